/* SPDX-License-Identifier: Apache-2.0 */
/* What dialing, listening and accepting share: options, sockets of the namespace. */
#ifndef WEFT_LIB_DIAL_H
#define WEFT_LIB_DIAL_H

#include "base/addr.h"
#include "base/err.h"
#include "lib/target.h"
#include "weft/dial.h"

struct os_inet_name;

/* o NULL: the defaults. WEFT_EINVAL. */
WEFT_MUST_CHECK enum weft_err dial_options(
	const struct weft_dial_options *o, struct weft_dial_options *out, struct weft_detail *why);
/* A socket of the node's namespace that does not block. Between lib_node_enter() and
 * lib_node_leave(). */
WEFT_MUST_CHECK enum weft_err dial_socket(struct weft_node *n, const struct network *net,
	enum ip_family family, int *fd, struct weft_detail *why);
/* Binds it. Says why not: address is what the program wrote. */
WEFT_MUST_CHECK enum weft_err dial_bind(int fd, const struct os_inet_name *at, unsigned flags,
	const char *address, struct weft_detail *why);

#endif
