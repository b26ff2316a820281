/* SPDX-License-Identifier: Apache-2.0 */
/* Which keys a backend has expanded for one cipher and one direction.
 *
 * Owns copies of the keys and the order of their use; what belongs to a slot (a key schedule, a
 * context) is the backend's. Keys are told apart by their bytes: a session's memory may be freed
 * and come back with another key at the same address. */
#ifndef WEFT_CRYPTO_AEAD_CACHE_H
#define WEFT_CRYPTO_AEAD_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/aead.h"

/* A batch that goes to more peers than that expands keys again, which takes about as long as a
 * packet does. */
#define AEAD_CACHE_SLOTS 4

struct aead_cache_slot {
	uint8_t key[AEAD_KEY_LEN];
	uint64_t used; /* time of the last use, counted in uses; 0 = empty */
};

/* All zeros is an empty one. */
struct aead_cache {
	struct aead_cache_slot slots[AEAD_CACHE_SLOTS];
	size_t last; /* used last */
	uint64_t uses;
};

/* The slot of the key. *is_new: it is a slot that was empty or used longest ago; the caller
 * expands the key for it. */
size_t aead_cache_find(struct aead_cache *c, const struct aead_key *k, bool *is_new);
static inline bool
aead_cache_is_used(const struct aead_cache *c, size_t slot)
{
	return c->slots[slot].used != 0;
}
/* Empties and wipes it. */
void aead_cache_clear(struct aead_cache *c);

#endif
