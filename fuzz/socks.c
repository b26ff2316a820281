/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are taken as each of the messages in turn. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "fuzz.h"
#include "wire/socks.h"

static void
check_need(enum weft_err e, size_t need, size_t size)
{
	weft_assert(e == WEFT_OK || e == WEFT_EAGAIN || e == WEFT_EPARSE || e == WEFT_ENOTSUP);
	weft_assert(e != WEFT_OK || need <= size);
	weft_assert(e != WEFT_EAGAIN || (need > size && need <= SOCKS_MESSAGE_MAX));
}

static void
check_target(const struct socks_target *t)
{
	size_t n = strlen(t->host);
	weft_assert((t->addr.family == IP_FAMILY_NONE) == (n > 0));
	weft_assert(n <= SOCKS_HOST_MAX);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct socks_greeting g;
	struct socks_login l;
	struct socks_request r;
	struct socks_datagram d;
	size_t need = 0;
	enum weft_err e = socks_greeting_decode(data, size, &g, &need);
	check_need(e, need, size);
	e = socks_login_decode(data, size, &l, &need);
	check_need(e, need, size);
	if (e == WEFT_OK) {
		weft_assert(l.user + l.user_len <= data + size);
		weft_assert(l.password + l.password_len <= data + size);
	}
	e = socks_request_decode(data, size, &r, &need);
	check_need(e, need, size);
	if (e == WEFT_OK) {
		check_target(&r.to);
	}
	if (socks_datagram_decode(data, size, &d) == WEFT_OK) {
		weft_assert(d.header_len <= size && d.header_len <= SOCKS_HEADER_MAX);
		check_target(&d.to);
		if (d.to.addr.family != IP_FAMILY_NONE) {
			uint8_t again[SOCKS_ANSWER_HEADER_MAX];
			size_t n = socks_header_encode(&d.to.addr, d.to.port, again);
			weft_assert(n == d.header_len && memcmp(again + 3, data + 3, n - 3) == 0);
		}
	}
	return 0;
}
