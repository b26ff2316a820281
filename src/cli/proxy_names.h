/* SPDX-License-Identifier: Apache-2.0 */
/* Names to addresses of the overlay: those of peers at once; others from the DNS servers of the
 * configuration, asked through the overlay. The loop's thread. */
#ifndef WEFT_CLI_PROXY_NAMES_H
#define WEFT_CLI_PROXY_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/list.h"
#include "base/mono.h"

struct os_loop;
struct overlay;
struct proxy_ask;
struct proxy_names;

#define PROXY_ADDRS_MAX 4

/* A question comes to its end: err, or addrs. It may be asked anew or freed. */
typedef void proxy_answered(struct proxy_ask *a);

/* Embedded in whoever asks. Zero-initialised, nothing is asked. */
struct proxy_ask {
	proxy_answered *done; /* set before asking */
	void *ctx;
	/* The answer. */
	enum weft_err err; /* WEFT_ENOENT: no such name; WEFT_EAGAIN: the servers did not answer */
	struct ip_addr addrs[PROXY_ADDRS_MAX];
	size_t addrs_n;
	/* proxy_names' own. */
	struct list link; /* while it is asked */
	uint64_t tag;
	unsigned left; /* answers to come */
};

WEFT_MUST_CHECK enum weft_err proxy_names_new(
	struct overlay *v, struct os_loop *loop, struct proxy_names **out);
/* Questions under way end without a call. NULL is allowed. */
void proxy_names_free(struct proxy_names *n);
/* The configuration has changed. */
WEFT_MUST_CHECK enum weft_err proxy_names_reload(struct proxy_names *n);

/* WEFT_EAGAIN: done will be called; else it is answered already, by a->addrs on success.
 * WEFT_ENOENT: there is no such name; or none is asked for, because no server is configured. */
WEFT_MUST_CHECK enum weft_err proxy_names_ask(
	struct proxy_names *n, struct proxy_ask *a, const char *host);
/* done will not be called. Harmless when nothing is asked. */
void proxy_names_forget(struct proxy_ask *a);
bool proxy_names_has_servers(const struct proxy_names *n);

struct mono proxy_names_deadline(const struct proxy_names *n);
void proxy_names_turn(struct proxy_names *n, struct mono now);

#endif
