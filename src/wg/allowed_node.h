/* SPDX-License-Identifier: Apache-2.0 */
/* A node of the allowed.h trie: how it lies in memory, and how it is changed.
 *
 * A node stands at a bit position `pos` that begins a window of 6 bits (the last window of each
 * 64-bit word has 4) and holds three kinds of items, each found by a bitmap:
 *  - ends: prefixes whose length lies in the window. A prefix of r bits in the window is number
 *    2^r - 1 + (its r bits), so of those that cover a digit the longest is the highest bit;
 *  - leaves: for a digit, the only prefix that goes on behind the window;
 *  - children: for a digit, the node that parts several of those.
 *
 * Lookups at random are paid in cache misses, so a node is one piece of memory, what a lookup
 * reads comes first in it, and nothing else has to be visited: a leaf's key, bits and owner are 16
 * bytes (IPv4) or 25 (IPv6), found from the node's head without a further step. Records of
 * their own outside the nodes, tried before, took half as long again at 100,000 prefixes. */
#ifndef WEFT_WG_ALLOWED_NODE_H
#define WEFT_WG_ALLOWED_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/compiler.h"
#include "base/list.h"

#define ALLOWED_WINDOW_BITS 6
#define ALLOWED_DIGITS 64
#define ALLOWED_ENDS 63

/* An address as two words. IPv4 stands in bits 28 to 59 of the first, counted from the top: its
 * last bit ends a window, as IPv6's does, so that hosts, the most frequent prefixes, are leaves
 * of the node above and need none of their own. */
struct allowed_key {
	uint64_t hi, lo;
};
#define ALLOWED_V4_FIRST 28
#define ALLOWED_V4_BITS_SHIFT 56

struct allowed_owner;

/* A prefix. Lookups do not come here. */
struct allowed_link {
	struct list list; /* in owner->prefixes */
	struct allowed_owner *owner;
	struct allowed_key key; /* masked to bits */
	uint8_t bits;           /* of the key: for IPv4, ALLOWED_V4_FIRST more than its length */
	bool is_v6;
};

/* Behind it lie, in this order: with IPv6, the leaves' bits, a byte each, up to a full word;
 * children; owners of the ends, then of the leaves; keys of the leaves; links of the ends, then
 * of the leaves. A leaf's key is a struct allowed_key; with IPv4 it is the first word, and the
 * bits are its first byte, which the address leaves free. */
struct allowed_node {
	struct allowed_key key; /* the first pos bits are those of everything below */
	uint64_t ends, leaves, children;
	uint8_t pos;
	bool is_v6;
	uint8_t ends_n, leaves_n, children_n;
	uint8_t bits_words; /* room of the leaves' bits, in words of 8 bytes */
};

/* The same with a place for every item there can be: what changes work on. */
struct allowed_open {
	struct allowed_key key;
	uint8_t pos;
	bool is_v6;
	unsigned n; /* items of all kinds */
	struct allowed_link *ends[ALLOWED_ENDS];
	struct allowed_link *leaves[ALLOWED_DIGITS];
	struct allowed_node *children[ALLOWED_DIGITS];
};

/* Of one table: counts what it takes. */
struct allowed_memory {
	uint64_t bytes;
	uint64_t bytes_max;
};

/* Like malloc and free; NULL above bytes_max, too. */
void *allowed_memory_take(struct allowed_memory *m, size_t n);
void allowed_memory_give(struct allowed_memory *m, void *p, size_t n);

/* How many leading bits are equal: 128 when all are. */
static WEFT_ALWAYS_INLINE unsigned
allowed_key_common(struct allowed_key a, struct allowed_key b)
{
	uint64_t hi = a.hi ^ b.hi, lo = a.lo ^ b.lo;
	if (hi) {
		return 63 - WEFT_TOP_BIT64(hi);
	}
	return lo ? 127 - WEFT_TOP_BIT64(lo) : 128;
}

/* The digit of the window at pos, zeros behind the end of the word. */
static WEFT_ALWAYS_INLINE unsigned
allowed_key_digit(struct allowed_key k, unsigned pos)
{
	uint64_t word = pos & 64 ? k.lo : k.hi;
	return (unsigned)((word << (pos & 63)) >> (64 - ALLOWED_WINDOW_BITS));
}

/* How many items of the map come before bit. */
static WEFT_ALWAYS_INLINE unsigned
allowed_rank(uint64_t map, unsigned bit)
{
	return WEFT_POPCOUNT64(map & ((UINT64_C(1) << bit) - 1));
}

static WEFT_ALWAYS_INLINE struct allowed_node **
allowed_node_children(const struct allowed_node *n)
{
	return (struct allowed_node **)((uintptr_t)(n + 1) + n->bits_words * 8u);
}

static WEFT_ALWAYS_INLINE struct allowed_owner **
allowed_node_owners(const struct allowed_node *n)
{
	return (struct allowed_owner **)(void *)(allowed_node_children(n) + n->children_n);
}

static WEFT_ALWAYS_INLINE uint64_t *
allowed_node_keys(const struct allowed_node *n)
{
	return (uint64_t *)(void *)(allowed_node_owners(n) + n->ends_n + n->leaves_n);
}

static WEFT_ALWAYS_INLINE uint8_t *
allowed_node_bits(const struct allowed_node *n)
{
	return (uint8_t *)(uintptr_t)(n + 1);
}

/* Does leaf i cover the address? */
static WEFT_ALWAYS_INLINE bool
allowed_leaf_covers(const struct allowed_node *n, unsigned i, struct allowed_key key)
{
	const uint64_t *keys = allowed_node_keys(n);
	if (!n->is_v6) {
		uint64_t bits = keys[i] >> ALLOWED_V4_BITS_SHIFT;
		uint64_t x = key.hi ^ keys[i] ^ bits << ALLOWED_V4_BITS_SHIFT;
		return x == 0 || 63 - WEFT_TOP_BIT64(x) >= bits;
	}
	struct allowed_key leaf = {keys[2 * i], keys[2 * i + 1]};
	unsigned common = allowed_key_common(key, leaf);
	return common == 128 || common >= allowed_node_bits(n)[i];
}

/* The position of the window that a prefix of so many bits ends in. With all 128 that is one
 * behind the last, where no node can be. */
unsigned allowed_window_of(unsigned bits);
/* The number of a prefix among the ends of its window. */
unsigned allowed_end_number(struct allowed_key k, unsigned bits);
/* The links of ends and leaves; the bytes that the node takes. */
struct allowed_link **allowed_node_links(const struct allowed_node *n);
size_t allowed_node_size(const struct allowed_node *n);

/* An open node without items. */
void allowed_open_init(struct allowed_open *o, struct allowed_key key, unsigned pos, bool is_v6);
void allowed_open_unpack(struct allowed_open *o, const struct allowed_node *n);
/* Puts the prefix among ends or leaves; its place must be free. */
void allowed_open_add(struct allowed_open *o, struct allowed_link *l);
void allowed_open_remove(struct allowed_open *o, const struct allowed_link *l);
void allowed_open_set_child(struct allowed_open *o, unsigned digit, struct allowed_node *child);
/* NULL: no memory. */
struct allowed_node *allowed_open_pack(struct allowed_memory *m, const struct allowed_open *o);
/* Replaces the node at *at, which may move. False: it had to grow, there was no memory, and
 * nothing has changed. */
WEFT_MUST_CHECK bool allowed_open_repack(
	struct allowed_memory *m, const struct allowed_open *o, struct allowed_node **at);

#endif
