/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration protocol of user-space WireGuard implementations, which wg(8) speaks over a
 * local socket: https://www.wireguard.com/xplatform/
 *
 * A request is "get=1" or "set=1", lines of key=value and an empty line; so is a reply, which
 * ends in errno=. Requests are decoded as bytes arrive and checked whole before a caller sees
 * any of them, so that a set can be applied all or not at all.
 *
 * Knows no sockets and no devices. Interfaces in scopes are kept as text where they are names. */
#ifndef WEFT_WIRE_UAPI_H
#define WEFT_WIRE_UAPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/bytes.h"
#include "base/err.h"
#include "wire/key.h"

/* Bytes of a line without its newline. The longest right one has 101: a private_key has 76, an
 * endpoint with a scope's name up to 9 + 1 + 45 + 1 + 15 + 1 + 6. */
#define UAPI_LINE_MAX 256
/* Bytes of a request: 200,000 peers of about 330 bytes each. */
#define UAPI_REQUEST_MAX (64u << 20)
#define UAPI_SCOPE_MAX 15 /* characters of an interface name */

/* errno values of Linux, which this rank may not include. */
#define UAPI_EPERM 1
#define UAPI_EIO 5
#define UAPI_ENOMEM 12
#define UAPI_EINVAL 22
#define UAPI_EPROTO 71
#define UAPI_EMSGSIZE 90
#define UAPI_EADDRINUSE 98

enum uapi_kind {
	UAPI_NONE, /* not known yet, or neither of them */
	UAPI_GET,
	UAPI_SET,
};

/* A whole request. */
struct uapi_request {
	enum uapi_kind kind;
	int error;  /* 0, or the errno to answer with; then text is empty */
	char *text; /* UAPI_SET: its lines, each right by itself and in its place */
	size_t len, cap;
};

/* Zero-initialise; uapi_decoder_fini() when done. */
struct uapi_decoder {
	struct uapi_request request;
	size_t taken;    /* bytes of the request so far */
	size_t line_len; /* bytes of an unfinished line */
	bool is_in_peer; /* a public_key line came */
	bool is_broken;
	char line[UAPI_LINE_MAX];
};

enum uapi_step {
	UAPI_STEP_MORE,   /* everything was taken; more bytes are needed */
	UAPI_STEP_DONE,   /* request is complete; *used bytes were taken */
	UAPI_STEP_BROKEN, /* a limit was passed: answer request.error and close */
};

/* Takes bytes up to the end of one request. After UAPI_STEP_DONE: use request, then
 * uapi_decoder_next(). A request that is wrong is read to its end and has its error set. */
enum uapi_step uapi_decoder_feed(
	struct uapi_decoder *d, const char *data, size_t len, size_t *used);
void uapi_decoder_next(struct uapi_decoder *d);
/* Has a request begun and not ended? */
bool uapi_decoder_is_midway(const struct uapi_decoder *d);
/* Wipes and frees. */
void uapi_decoder_fini(struct uapi_decoder *d);

/* --- what a set asks for --- */
struct uapi_set_device {
	bool has_private_key; /* of zeros: the key is to be removed */
	uint8_t private_key[KEY_LEN];
	bool has_listen_port;
	uint16_t listen_port;
	bool has_fwmark;
	uint32_t fwmark;
	bool has_replace_peers;
};

struct uapi_set_peer {
	uint8_t public_key[KEY_LEN];
	bool is_removed;     /* nothing else counts then */
	bool is_update_only; /* do not add it when it is not there */
	bool has_psk;        /* of zeros: none */
	uint8_t psk[KEY_LEN];
	bool has_endpoint;
	struct endpoint endpoint;
	char scope[UAPI_SCOPE_MAX + 1]; /* name of an interface for endpoint.scope_id, or empty */
	bool has_keepalive;
	uint16_t keepalive_s;
	bool has_replace_allowed;
	const char *lines; /* of this peer, behind the last replacement: for uapi_set_allowed() */
	size_t lines_len;
};

struct uapi_set_cursor {
	const char *p;
	size_t left;
};

/* The lines before the first peer; the cursor is then at the first peer. */
void uapi_set_begin(
	const struct uapi_request *r, struct uapi_set_device *out, struct uapi_set_cursor *cursor);
/* The next peer in order; false at the end. One key may come several times. */
bool uapi_set_peer(struct uapi_set_cursor *cursor, struct uapi_set_peer *out);
/* The next allowed_ip of the peer, masked; false at the end. */
bool uapi_set_allowed(struct uapi_set_peer *peer, struct ip_prefix *out, bool *is_removal);

/* --- a get's reply --- */
struct uapi_device_info {
	bool has_private_key;
	uint8_t private_key[KEY_LEN];
	uint16_t listen_port; /* 0 = none */
	uint32_t fwmark;      /* 0 = none */
};

struct uapi_peer_info {
	uint8_t public_key[KEY_LEN];
	uint8_t psk[KEY_LEN]; /* zeros = none */
	struct endpoint endpoint;
	char scope[UAPI_SCOPE_MAX + 1]; /* decoding alone: a scope that is a name */
	int64_t last_handshake_s, last_handshake_ns;
	uint64_t rx_bytes, tx_bytes;
	uint16_t keepalive_s;
};

/* Bytes that one call of an encoder writes at most. */
#define UAPI_ENCODE_MAX 640

void uapi_encode_device(struct writer *w, const struct uapi_device_info *d);
/* The peer without its allowed IPs, which follow it. */
void uapi_encode_peer(struct writer *w, const struct uapi_peer_info *p);
void uapi_encode_allowed(struct writer *w, const struct ip_prefix *p);
/* The end of a reply to a request of that kind; error 0 = success. */
void uapi_encode_errno(struct writer *w, enum uapi_kind kind, int error);

/* A whole reply, for the side that asked. The peers follow as with uapi_set_peer(). */
struct uapi_reply_cursor {
	const char *p;
	size_t left;
};

/* Does text end in a whole reply, "errno=N\n\n"? */
bool uapi_reply_is_whole(const char *text, size_t len);
/* WEFT_EPARSE: not a reply. *error: the errno that it carries, never negative. Unknown keys are
 * passed over: newer implementations have more. */
WEFT_MUST_CHECK enum weft_err uapi_reply_begin(const char *text, size_t len,
	struct uapi_device_info *out, int *error, struct uapi_reply_cursor *cursor);
/* WEFT_ENOENT at the end. The allowed IPs are in *lines. */
WEFT_MUST_CHECK enum weft_err uapi_reply_peer(struct uapi_reply_cursor *cursor,
	struct uapi_peer_info *out, struct uapi_reply_cursor *lines);
/* WEFT_ENOENT at the end. */
WEFT_MUST_CHECK enum weft_err uapi_reply_allowed(
	struct uapi_reply_cursor *lines, struct ip_prefix *out);

#endif
