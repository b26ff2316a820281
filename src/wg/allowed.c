/* SPDX-License-Identifier: Apache-2.0 */
/* A path-compressed trie that consumes up to 6 bits a step.
 *
 * An address is two 64-bit words, IPv4 in the upper half of the first. A node stands at a bit
 * position `pos` that is a multiple of 6 within its word and decides by the digit of 6 bits
 * found there (the last window of a word has 4). So windows never overlap, and the shape of
 * the trie depends only on the set of prefixes, not on the order of their coming.
 *
 * A node holds two kinds of items, in one array:
 *  - ends: prefixes whose length lies in the node's window, found by bitmap `ends`. A prefix
 *    of r bits in the window is number 2^r - 1 + (its r bits), so of those that cover a digit
 *    the longest is the highest bit set under covering[digit];
 *  - ways: for each digit in bitmap `ways`, what lies further on: another node, or the prefix
 *    itself when it is alone there.
 * A node has at least two items; with one left it dissolves into its parent. Each level takes
 * 6 bits, so 100,000 random prefixes are three or four nodes deep, of one cache line each. */
#include "wg/allowed.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/endian.h"
#include "wg/allowed_entry.h"

#define WINDOW_BITS 6

/* A node or an entry, told apart by the lowest bit. 0 = nothing. */
struct item {
	uintptr_t v;
};

struct node {
	struct allowed_key key; /* the first pos bits are those of everything below */
	uint64_t ends;
	uint64_t ways;
	uint8_t pos;
	uint8_t ends_n;
	struct item items[]; /* entries by rank in ends, then ways by rank in ways */
};

struct allowed {
	struct item roots[2]; /* IPv4, IPv6 */
	size_t count;
	struct allowed_memory memory;
	bool has_popcnt;
};

/* Bit numbers of the ends that cover a digit, of 0 to 5 bits of it. */
#define COVER(d)                                                                                   \
	(UINT64_C(1) | UINT64_C(1) << (1 + ((d) >> 5)) | UINT64_C(1) << (3 + ((d) >> 4)) |         \
		UINT64_C(1) << (7 + ((d) >> 3)) | UINT64_C(1) << (15 + ((d) >> 2)) |               \
		UINT64_C(1) << (31 + ((d) >> 1)))
#define COVER4(d) COVER(d), COVER((d) + 1), COVER((d) + 2), COVER((d) + 3)
#define COVER16(d) COVER4(d), COVER4((d) + 4), COVER4((d) + 8), COVER4((d) + 12)
static const uint64_t covering[1 << WINDOW_BITS] = {
	COVER16(0), COVER16(16), COVER16(32), COVER16(48)};

static struct allowed_key
key_load(enum ip_family family, const uint8_t *addr)
{
	if (family == IP_FAMILY_V4) {
		return (struct allowed_key){(uint64_t)load_be32(addr) << 32, 0};
	}
	return (struct allowed_key){load_be64(addr), load_be64(addr + 8)};
}

/* How many leading bits are equal: 128 when all are. */
static WEFT_ALWAYS_INLINE unsigned
key_common(struct allowed_key a, struct allowed_key b)
{
	uint64_t hi = a.hi ^ b.hi, lo = a.lo ^ b.lo;
	if (hi) {
		return 63 - WEFT_TOP_BIT64(hi);
	}
	return lo ? 127 - WEFT_TOP_BIT64(lo) : 128;
}

/* The position of the window that a prefix of so many bits ends in. */
static unsigned
window_of(unsigned bits)
{
	if (bits == 128) {
		return 64 + 60; /* the last window has 4 bits and takes all lengths from 124 */
	}
	return (bits & 64) + (bits & 63) / WINDOW_BITS * WINDOW_BITS;
}

/* The digit of the window at pos, zeros behind the end of the word. */
static WEFT_ALWAYS_INLINE unsigned
key_digit(struct allowed_key k, unsigned pos)
{
	uint64_t word = pos & 64 ? k.lo : k.hi;
	return (unsigned)((word << (pos & 63)) >> (64 - WINDOW_BITS));
}

/* The number of the prefix among the ends of its window. */
static unsigned
end_number(struct allowed_key k, unsigned bits)
{
	unsigned pos = window_of(bits);
	unsigned r = bits - pos;
	return (1u << r) - 1 + (key_digit(k, pos) >> (WINDOW_BITS - r));
}

static WEFT_ALWAYS_INLINE unsigned
rank(uint64_t map, unsigned bit)
{
	return WEFT_POPCOUNT64(map & ((UINT64_C(1) << bit) - 1));
}

static WEFT_ALWAYS_INLINE bool
is_set(uint64_t map, unsigned bit)
{
	return (map >> bit) & 1;
}

static struct item
item_of_entry(struct allowed_entry *e)
{
	return (struct item){(uintptr_t)e | 1};
}

static struct item
item_of_node(struct node *n)
{
	return (struct item){(uintptr_t)n};
}

static WEFT_ALWAYS_INLINE bool
item_is_entry(struct item i)
{
	return i.v & 1;
}

static WEFT_ALWAYS_INLINE struct allowed_entry *
item_entry(struct item i)
{
	return (struct allowed_entry *)(i.v - 1);
}

static WEFT_ALWAYS_INLINE struct node *
item_node(struct item i)
{
	return (struct node *)i.v;
}

enum weft_err
allowed_new(struct allowed **out)
{
	struct allowed *a = calloc(1, sizeof(*a));
	if (!a) {
		return WEFT_ENOMEM;
	}
	allowed_memory_init(&a->memory, ALLOWED_BYTES_MAX);
	a->has_popcnt = WEFT_CPU_HAS_POPCNT();
	*out = a;
	return WEFT_OK;
}

static unsigned
node_count(const struct node *n)
{
	return n->ends_n + WEFT_POPCOUNT64(n->ways);
}

void
allowed_set_bytes_max(struct allowed *a, uint64_t bytes_max)
{
	a->memory.bytes_max = bytes_max;
}

uint64_t
allowed_bytes(const struct allowed *a)
{
	return a->memory.bytes;
}

size_t
allowed_count(const struct allowed *a)
{
	return a->count;
}

void
allowed_owner_init(struct allowed_owner *o)
{
	list_init(&o->prefixes);
}

/* Items are allocated by twos, so how many there are tells the capacity. */
static size_t
node_size(unsigned count)
{
	return sizeof(struct node) + ((count + 1u) & ~1u) * sizeof(struct item);
}

/* Makes room for one more item in the node at *at, which may move. */
static struct node *
node_reserve_one(struct allowed *a, struct item *at)
{
	struct node *n = item_node(*at);
	unsigned count = node_count(n);
	size_t before = node_size(count), after = node_size(count + 1);
	if (after == before) {
		return n;
	}
	if (a->memory.bytes + (after - before) > a->memory.bytes_max) {
		return NULL;
	}
	n = realloc(n, after);
	if (n) {
		*at = item_of_node(n);
		a->memory.bytes += after - before;
	}
	return n;
}

static void
items_open(struct item *items, unsigned count, unsigned at, struct item i)
{
	memmove(items + at + 1, items + at, (count - at) * sizeof(*items));
	items[at] = i;
}

/* Adds an item for which there is room and whose place is empty. */
static void
node_put(struct node *n, struct item i)
{
	unsigned count = node_count(n);
	struct allowed_key k =
		item_is_entry(i) ? allowed_entry_key(item_entry(i)) : item_node(i)->key;
	if (item_is_entry(i) && window_of(item_entry(i)->bits) == n->pos) {
		unsigned end = end_number(k, item_entry(i)->bits);
		weft_dassert(!is_set(n->ends, end));
		items_open(n->items, count, rank(n->ends, end), i);
		n->ends |= UINT64_C(1) << end;
		n->ends_n++;
	} else {
		unsigned digit = key_digit(k, n->pos);
		weft_dassert(!is_set(n->ways, digit));
		items_open(n->items, count, n->ends_n + rank(n->ways, digit), i);
		n->ways |= UINT64_C(1) << digit;
	}
}

/* A node at the window of split that holds what *at held, in its place. Has room for a second
 * item, which the caller puts there: split was chosen so that they do not collide. */
static struct node *
fork_at(struct allowed *a, struct item *at, unsigned split)
{
	struct node *n = allowed_memory_take(&a->memory, node_size(2));
	if (!n) {
		return NULL;
	}
	n->key = item_is_entry(*at) ? allowed_entry_key(item_entry(*at)) : item_node(*at)->key;
	n->ends = 0;
	n->ways = 0;
	n->ends_n = 0;
	n->pos = (uint8_t)window_of(split);
	node_put(n, *at);
	*at = item_of_node(n);
	return n;
}

static unsigned
min2(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Where a prefix is, or would go. */
struct place {
	struct item *at;      /* way or root that the search ended in */
	struct item *node_at; /* way or root of the last node on the path; NULL: there is none */
	struct allowed_entry *entry; /* the prefix itself; NULL when it is not there */
	bool is_fork;                /* a new node is needed at *at */
	unsigned split;              /* with is_fork: how many bits *at and the prefix share */
};

static struct place
find(struct item *root, struct allowed_key key, unsigned bits)
{
	struct place p = {.at = root};
	while (p.at->v) {
		if (item_is_entry(*p.at)) {
			struct allowed_entry *e = item_entry(*p.at);
			unsigned common = key_common(key, allowed_entry_key(e));
			p.is_fork = e->bits != bits || common < bits;
			p.entry = p.is_fork ? NULL : e;
			p.split = min2(min2(common, bits), e->bits);
			return p;
		}
		struct node *n = item_node(*p.at);
		unsigned common = key_common(key, n->key);
		p.split = min2(common, bits);
		if (p.split < n->pos) {
			p.is_fork = true;
			return p;
		}
		p.node_at = p.at;
		if (window_of(bits) == n->pos) {
			unsigned end = end_number(key, bits);
			if (is_set(n->ends, end)) {
				p.entry = item_entry(n->items[rank(n->ends, end)]);
			}
			return p;
		}
		unsigned digit = key_digit(key, n->pos);
		if (!is_set(n->ways, digit)) {
			return p;
		}
		p.at = &n->items[n->ends_n + rank(n->ways, digit)];
	}
	return p;
}

/* Key and root of a prefix; NULL when it is none. */
static struct item *
prefix_key(struct allowed *a, const struct ip_prefix *prefix, struct allowed_key *out)
{
	struct ip_prefix p = *prefix;
	enum ip_family f = p.addr.family;
	if ((f != IP_FAMILY_V4 && f != IP_FAMILY_V6) || p.bits > ip_family_len(f) * 8) {
		return NULL;
	}
	ip_prefix_mask(&p);
	*out = key_load(f, p.addr.b);
	return &a->roots[f == IP_FAMILY_V6];
}

enum weft_err
allowed_insert(struct allowed *a, const struct ip_prefix *prefix, struct allowed_owner *o)
{
	struct allowed_key key;
	struct item *root = prefix_key(a, prefix, &key);
	if (!root) {
		return WEFT_EINVAL;
	}
	struct place p = find(root, key, prefix->bits);
	if (p.entry) {
		if (p.entry->owner != o) {
			allowed_entry_set_owner(p.entry, o);
		}
		return WEFT_OK;
	}
	struct allowed_entry *e =
		allowed_entry_new(&a->memory, prefix->addr.family, key, prefix->bits);
	if (!e) {
		return WEFT_ENOMEM;
	}
	if (!p.at->v) {
		*p.at = item_of_entry(e);
	} else {
		struct node *n = p.is_fork ? fork_at(a, p.at, p.split) : node_reserve_one(a, p.at);
		if (!n) {
			allowed_entry_free(&a->memory, e);
			return WEFT_ENOMEM;
		}
		node_put(n, item_of_entry(e));
	}
	allowed_entry_set_owner(e, o);
	a->count++;
	return WEFT_OK;
}

/* Takes e, which is there, out of the node at *at. */
static void
node_take(struct allowed *a, struct item *at, const struct allowed_entry *e)
{
	struct node *n = item_node(*at);
	struct allowed_key key = allowed_entry_key(e);
	unsigned place, count = node_count(n) - 1;
	if (window_of(e->bits) == n->pos) {
		unsigned end = end_number(key, e->bits);
		place = rank(n->ends, end);
		n->ends &= ~(UINT64_C(1) << end);
		n->ends_n--;
	} else {
		unsigned digit = key_digit(key, n->pos);
		place = n->ends_n + rank(n->ways, digit);
		n->ways &= ~(UINT64_C(1) << digit);
	}
	memmove(n->items + place, n->items + place + 1, (count - place) * sizeof(*n->items));
	if (count == 1) {
		*at = n->items[0];
		allowed_memory_give(&a->memory, n, node_size(2));
	} else if (node_size(count) < node_size(count + 1)) {
		a->memory.bytes -= node_size(count + 1) - node_size(count);
		n = realloc(n, node_size(count));
		*at = n ? item_of_node(n) : *at;
	}
}

static void
remove_found(struct allowed *a, const struct place *p)
{
	if (p->node_at) {
		node_take(a, p->node_at, p->entry);
	} else {
		p->at->v = 0;
	}
	allowed_entry_free(&a->memory, p->entry);
	a->count--;
}

bool
allowed_remove(struct allowed *a, const struct ip_prefix *prefix, struct allowed_owner *o)
{
	struct allowed_key key;
	struct item *root = prefix_key(a, prefix, &key);
	if (!root) {
		return false;
	}
	struct place p = find(root, key, prefix->bits);
	if (!p.entry || p.entry->owner != o) {
		return false;
	}
	remove_found(a, &p);
	return true;
}

void
allowed_remove_all(struct allowed *a, struct allowed_owner *o)
{
	LIST_FOR_EACH_SAFE(it, next, &o->prefixes)
	{
		struct allowed_entry *e = allowed_entry_at(it);
		struct item *root = &a->roots[e->family == IP_FAMILY_V6];
		struct place p = find(root, allowed_entry_key(e), e->bits);
		weft_assert(p.entry == e);
		remove_found(a, &p);
	}
}

static void
item_free(struct allowed *a, struct item i)
{
	if (item_is_entry(i)) {
		allowed_entry_free(&a->memory, item_entry(i));
	} else if (i.v) {
		struct node *n = item_node(i);
		for (unsigned k = 0, count = node_count(n); k < count; k++) {
			item_free(a, n->items[k]); /* at most 22 deep: one a window */
		}
		free(n);
	}
}

void
allowed_free(struct allowed *a)
{
	if (a) {
		item_free(a, a->roots[0]);
		item_free(a, a->roots[1]);
		free(a);
	}
}

static WEFT_ALWAYS_INLINE struct allowed_owner *
lookup(struct item i, struct allowed_key key)
{
	const struct node *best = NULL; /* the deepest node with an end that covers key */
	uint64_t best_ends = 0;

	while (i.v) {
		if (item_is_entry(i)) {
			const struct allowed_entry *e = item_entry(i);
			if (key_common(key, allowed_entry_key(e)) >= e->bits) {
				return e->owner;
			}
			break;
		}
		const struct node *n = item_node(i);
		if (key_common(key, n->key) < n->pos) {
			break;
		}
		unsigned digit = key_digit(key, n->pos);
		uint64_t ends = n->ends & covering[digit];
		if (ends) {
			best = n;
			best_ends = ends;
		}
		if (!is_set(n->ways, digit)) {
			break;
		}
		i = n->items[n->ends_n + rank(n->ways, digit)];
	}
	if (!best) {
		return NULL;
	}
	return item_entry(best->items[rank(best->ends, WEFT_TOP_BIT64(best_ends))])->owner;
}

static struct allowed_owner *
lookup_plain(struct item root, struct allowed_key key)
{
	return lookup(root, key);
}

/* The same, with the instruction where the compiler otherwise sums by arithmetic: measured a
 * quarter to a third faster. */
static WEFT_TARGET_POPCNT struct allowed_owner *
lookup_popcnt(struct item root, struct allowed_key key)
{
	return lookup(root, key);
}

struct allowed_owner *
allowed_lookup(const struct allowed *a, enum ip_family family, const uint8_t *addr)
{
	struct item root = a->roots[family == IP_FAMILY_V6];
	struct allowed_key key = key_load(family, addr);
	return a->has_popcnt ? lookup_popcnt(root, key) : lookup_plain(root, key);
}

bool
allowed_next(const struct allowed_owner *o, void **cursor, struct ip_prefix *out)
{
	const struct list *at = *cursor ? *cursor : &o->prefixes;
	if (at->next == &o->prefixes) {
		return false;
	}
	*cursor = at->next;
	const struct allowed_entry *e = allowed_entry_at(at->next);
	struct allowed_key key = allowed_entry_key(e);
	*out = (struct ip_prefix){.addr.family = (enum ip_family)e->family, .bits = e->bits};
	if (e->family == IP_FAMILY_V4) {
		store_be32(out->addr.b, e->v4);
	} else {
		store_be64(out->addr.b, key.hi);
		store_be64(out->addr.b + 8, key.lo);
	}
	return true;
}
