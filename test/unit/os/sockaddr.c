/* SPDX-License-Identifier: Apache-2.0 */
#include "sockaddr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <cmocka.h>

socklen_t
sockaddr_read(const char *text, uint16_t port, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	if (!strchr(text, ':')) {
		struct sockaddr_in *a = (struct sockaddr_in *)out;
		a->sin_family = AF_INET;
		a->sin_port = htons(port);
		assert_int_equal(inet_pton(AF_INET, text, &a->sin_addr), 1);
		return sizeof(*a);
	}
	struct sockaddr_in6 *a = (struct sockaddr_in6 *)out;
	a->sin6_family = AF_INET6;
	a->sin6_port = htons(port);
	assert_int_equal(inet_pton(AF_INET6, text, &a->sin6_addr), 1);
	return sizeof(*a);
}
