/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request to an HTTP/1 proxy: CONNECT (RFC 9110, section 9.3.6), or any method with
 * an absolute http: URI (RFC 9112, section 3.2.2); the head that goes on to the server; replies.
 *
 * Strict where laxness lets two readers of one head see two messages: lines end with CRLF, no
 * folded lines, no blank before a colon, no control characters. */
#ifndef WEFT_WIRE_HTTP_CONNECT_H
#define WEFT_WIRE_HTTP_CONNECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define HTTP_HEAD_MAX 16384 /* bytes, its empty line included */
#define HTTP_HOST_MAX 255   /* characters */
#define HTTP_REPLY_MAX 1024
#define HTTP_LOGIN_MAX 513 /* bytes of user, colon and password: 511, in groups of 3 */
/* What a rewritten head may be longer: the fields that are added, and a Host of its own. */
#define HTTP_REWRITE_MORE 320

/* Pointers lead into the head. */
struct http_request {
	bool is_connect;
	char host[HTTP_HOST_MAX + 1]; /* without brackets */
	uint16_t port;                /* never 0 */
	size_t head_len;
	const char *login; /* base64 of Proxy-Authorization: Basic; NULL: none */
	size_t login_len;
	/* Parts of the request line, for http_head_rewrite(). */
	const char *method, *authority, *path, *version;
	size_t method_len, authority_len, path_len;
};

/* Why a request is not served. */
struct http_fault {
	unsigned status;
	const char *why; /* a sentence */
};

/* WEFT_EAGAIN: the end of the head is not among the bytes; WEFT_EPARSE: *fault is set. */
WEFT_MUST_CHECK enum weft_err http_head_decode(
	const char *p, size_t len, struct http_request *out, struct http_fault *fault);
/* What goes to the server: the path alone, a Host of that URI, no field that is meant for us, and
 * the wish that the connection ends with the answer. p: the head that r was read from.
 * WEFT_EMSGSIZE: cap. head_len + HTTP_REWRITE_MORE is enough. */
WEFT_MUST_CHECK enum weft_err http_head_rewrite(
	const char *p, const struct http_request *r, char *out, size_t cap, size_t *n);

struct http_login {
	uint8_t bytes[HTTP_LOGIN_MAX];
	size_t user_len, password_len;
	const uint8_t *user, *password; /* into bytes */
};
/* RFC 7617. WEFT_EPARSE. */
WEFT_MUST_CHECK enum weft_err http_login_decode(
	const char *base64, size_t len, struct http_login *out);

/* A whole reply, after which the connection ends; of status 200 its head alone. why is a sentence
 * for people. Returns the length. */
size_t http_reply_encode(unsigned status, const char *why, char out[HTTP_REPLY_MAX]);

#endif
