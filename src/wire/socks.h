/* SPDX-License-Identifier: Apache-2.0 */
/* SOCKS 5 as a server sees it: RFC 1928, and user names with passwords, RFC 1929.
 *
 * Messages of a stream say by themselves how long they are. Their decoders take the bytes that
 * came so far and give
 *   WEFT_OK      *need bytes are the message;
 *   WEFT_EAGAIN  it is not whole; *need > len bytes of it are sure to come, and who reads up to
 *                there never reads into what follows the message;
 *   WEFT_EPARSE  it never will be one, *need is not set. */
#ifndef WEFT_WIRE_SOCKS_H
#define WEFT_WIRE_SOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"

#define SOCKS_HOST_MAX 255    /* characters of a name */
#define SOCKS_MESSAGE_MAX 513 /* of a client, over the stream: the longest is a login */
#define SOCKS_REPLY_MAX 22
#define SOCKS_HEADER_MAX 262       /* of a datagram, from a client */
#define SOCKS_ANSWER_HEADER_MAX 22 /* of a datagram, to a client */

enum socks_method {
	SOCKS_METHOD_NONE = 0,
	SOCKS_METHOD_LOGIN = 2,
	SOCKS_METHOD_REFUSED = 0xff,
};

enum socks_command {
	SOCKS_COMMAND_CONNECT = 1,
	SOCKS_COMMAND_BIND = 2,
	SOCKS_COMMAND_ASSOCIATE = 3,
};

enum socks_reply {
	SOCKS_REPLY_DONE = 0,
	SOCKS_REPLY_FAILED = 1,
	SOCKS_REPLY_FORBIDDEN = 2,
	SOCKS_REPLY_NET_UNREACHABLE = 3,
	SOCKS_REPLY_HOST_UNREACHABLE = 4,
	SOCKS_REPLY_REFUSED = 5,
	SOCKS_REPLY_TTL_EXPIRED = 6,
	SOCKS_REPLY_NO_COMMAND = 7,
	SOCKS_REPLY_NO_ADDRESS_TYPE = 8,
};

struct socks_greeting {
	bool has_none, has_login; /* methods that the client offers */
};

struct socks_login {
	const uint8_t *user, *password; /* into the message, without a NUL */
	uint8_t user_len, password_len;
};

struct socks_target {
	struct ip_addr addr;           /* IP_FAMILY_NONE: host is a name */
	char host[SOCKS_HOST_MAX + 1]; /* empty where addr is set; at least one character else */
	uint16_t port;                 /* may be 0 */
};

struct socks_request {
	uint8_t command; /* enum socks_command, or any other */
	struct socks_target to;
};

struct socks_datagram {
	uint8_t fragment; /* 0: it is whole */
	struct socks_target to;
	size_t header_len; /* the rest is payload */
};

WEFT_MUST_CHECK enum weft_err socks_greeting_decode(
	const uint8_t *p, size_t len, struct socks_greeting *out, size_t *need);
WEFT_MUST_CHECK enum weft_err socks_login_decode(
	const uint8_t *p, size_t len, struct socks_login *out, size_t *need);
/* WEFT_ENOTSUP: a kind of address that does not exist; *need is not set. */
WEFT_MUST_CHECK enum weft_err socks_request_decode(
	const uint8_t *p, size_t len, struct socks_request *out, size_t *need);
/* WEFT_EPARSE, WEFT_ENOTSUP: as above. */
WEFT_MUST_CHECK enum weft_err socks_datagram_decode(
	const uint8_t *p, size_t len, struct socks_datagram *out);

void socks_method_encode(enum socks_method m, uint8_t out[2]);
void socks_login_reply_encode(bool is_right, uint8_t out[2]);
/* addr: IP_FAMILY_NONE is written as 0.0.0.0. Each returns the length. */
size_t socks_reply_encode(enum socks_reply code, const struct ip_addr *addr, uint16_t port,
	uint8_t out[SOCKS_REPLY_MAX]);
size_t socks_header_encode(
	const struct ip_addr *from, uint16_t port, uint8_t out[SOCKS_ANSWER_HEADER_MAX]);

#endif
