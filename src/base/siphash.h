/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-2-4: a keyed 64-bit hash for tables whose keys a stranger may choose.
 *
 * Spec: Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012. */
#ifndef WEFT_BASE_SIPHASH_H
#define WEFT_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

#define SIPHASH_KEY_LEN 16

struct siphash_key {
	uint64_t k0, k1;
};

void siphash_key_init(struct siphash_key *k, const uint8_t bytes[SIPHASH_KEY_LEN]);
uint64_t siphash(const struct siphash_key *k, const void *data, size_t len);

#endif
