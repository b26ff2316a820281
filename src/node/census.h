/* SPDX-License-Identifier: Apache-2.0 */
/* The peers of a configuration as a device has them: each key once, each prefix with the peer
 * that named it last. */
#ifndef WEFT_NODE_CENSUS_H
#define WEFT_NODE_CENSUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"

struct conf;
struct conf_endpoint;
struct conf_policy;

/* Pointers are into the configuration. Of a key that comes twice, the latest word counts. */
struct census_peer {
	const uint8_t *key;
	const uint8_t *psk;                   /* NULL: none */
	const struct conf_endpoint *endpoint; /* NULL: none */
	const struct conf_policy *policy;
	uint16_t keepalive_s;
	uint32_t line;                    /* in the file, of its first section */
	const struct ip_prefix *prefixes; /* sorted, each once */
	size_t prefixes_n;
};

struct census {
	struct census_peer *v; /* in the order of the file */
	size_t n;
	size_t *by_key; /* indices into v, sorted by key */
	struct ip_prefix *prefixes;
};

/* c must outlive it. */
WEFT_MUST_CHECK enum weft_err census_make(const struct conf *c, struct census *out);
void census_fini(struct census *s);
/* NULL: not there. */
const struct census_peer *census_find(const struct census *s, const uint8_t *key);
/* Order of prefixes here: by family, bits, bytes. */
int census_compare_prefixes(const void *a, const void *b);

#endif
