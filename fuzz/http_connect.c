/* SPDX-License-Identifier: Apache-2.0 */
/* A head of a request; where it is one, it is rewritten, and its login decoded. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "fuzz.h"
#include "wire/http_connect.h"

static char out[HTTP_HEAD_MAX + HTTP_REWRITE_MORE];

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *p = (const char *)data;
	struct http_request r;
	struct http_fault fault = {0};
	struct http_login login;
	enum weft_err e = http_head_decode(p, size, &r, &fault);
	if (e == WEFT_EPARSE) {
		char reply[HTTP_REPLY_MAX];
		weft_assert(http_reply_encode(fault.status, fault.why, reply) < HTTP_REPLY_MAX);
	}
	if (http_login_decode(p, size < 700 ? size : 700, &login) == WEFT_OK) {
		weft_assert(login.password + login.password_len <= login.bytes + HTTP_LOGIN_MAX);
	}
	if (e) {
		return 0;
	}
	weft_assert(r.head_len <= size && r.head_len <= HTTP_HEAD_MAX && r.port > 0 && r.host[0]);
	weft_assert(!r.login || r.login + r.login_len <= p + r.head_len);
	if (r.is_connect) {
		return 0;
	}
	size_t n;
	weft_assert(http_head_rewrite(p, &r, out, sizeof(out), &n) == WEFT_OK);
	/* One head, and no other behind it. */
	weft_assert(n >= 4 && memcmp(out + n - 4, "\r\n\r\n", 4) == 0);
	weft_assert((char *)memmem(out, n, "\r\n\r\n", 4) == out + n - 4);
	return 0;
}
