/* SPDX-License-Identifier: Apache-2.0 */
/* The prefixes of an allowed.h table as records, and the table's memory.
 *
 * Lookups touch entries at random, so what they read is kept short and dense: the entries of a
 * family lie back to back in slabs, apart from the links that only changes need. Against one
 * allocation a prefix this halved the lookup at 100,000 prefixes. */
#ifndef WEFT_WG_ALLOWED_ENTRY_H
#define WEFT_WG_ALLOWED_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/compiler.h"
#include "base/list.h"

struct allowed_owner;

/* An address as two words, IPv4 in the upper half of the first. */
struct allowed_key {
	uint64_t hi, lo;
};

/* One prefix, as short as lookups can use: they touch these at random. */
struct allowed_entry {
	struct allowed_owner *owner;
	uint32_t v4; /* the IPv4 address, masked */
	uint8_t bits;
	uint8_t family; /* enum ip_family */
	uint16_t slot;  /* in its slab */
};

struct allowed_entry6 {
	struct allowed_entry e;
	struct allowed_key key; /* the IPv6 address, masked */
};

/* One table's. */
struct allowed_memory {
	struct list slabs[2]; /* IPv4, IPv6: those with a free slot */
	uint64_t bytes;
	uint64_t bytes_max;
};

static WEFT_ALWAYS_INLINE struct allowed_key
allowed_entry_key(const struct allowed_entry *e)
{
	if (e->family == IP_FAMILY_V4) {
		return (struct allowed_key){(uint64_t)e->v4 << 32, 0};
	}
	return ((const struct allowed_entry6 *)e)->key;
}

void allowed_memory_init(struct allowed_memory *m, uint64_t bytes_max);
/* Like malloc and free; NULL above bytes_max, too. */
void *allowed_memory_take(struct allowed_memory *m, size_t n);
void allowed_memory_give(struct allowed_memory *m, void *p, size_t n);

/* An entry without owner, or NULL. key is masked to bits. */
struct allowed_entry *allowed_entry_new(
	struct allowed_memory *m, enum ip_family family, struct allowed_key key, unsigned bits);
/* Leaves its owner. */
void allowed_entry_free(struct allowed_memory *m, struct allowed_entry *e);
/* Goes to the end of o's prefixes. */
void allowed_entry_set_owner(struct allowed_entry *e, struct allowed_owner *o);
/* The entry behind an element of an owner's prefixes. */
struct allowed_entry *allowed_entry_at(const struct list *element);

#endif
