/* SPDX-License-Identifier: Apache-2.0 */
/* A path-compressed trie that consumes up to 6 bits a step; allowed_node.h has its nodes.
 *
 * Windows never overlap, so the shape of the trie depends only on the set of prefixes, not on
 * the order of their coming: every node but the root parts at least two items. (When a removal
 * finds no memory to say so, a node with one item stays; it only costs its visit.) Each level
 * takes 6 bits, so 100,000 random prefixes are three or four nodes deep. */
#include "wg/allowed.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/endian.h"
#include "wg/allowed_node.h"

#define DEPTH_MAX 23 /* windows of 128 bits */

struct allowed {
	struct allowed_node *roots[2]; /* IPv4, IPv6; NULL: no prefix */
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
static const uint64_t covering[ALLOWED_DIGITS] = {
	COVER16(0), COVER16(16), COVER16(32), COVER16(48)};

static struct allowed_key
key_load(enum ip_family family, const uint8_t *addr)
{
	if (family == IP_FAMILY_V4) {
		return (struct allowed_key){
			(uint64_t)load_be32(addr) << (32 - ALLOWED_V4_FIRST), 0};
	}
	return (struct allowed_key){load_be64(addr), load_be64(addr + 8)};
}

static WEFT_ALWAYS_INLINE bool
is_set(uint64_t map, unsigned bit)
{
	return (map >> bit) & 1;
}

enum weft_err
allowed_new(struct allowed **out)
{
	struct allowed *a = calloc(1, sizeof(*a));
	if (!a) {
		return WEFT_ENOMEM;
	}
	a->memory.bytes_max = ALLOWED_BYTES_MAX;
	a->has_popcnt = WEFT_CPU_HAS_POPCNT();
	*out = a;
	return WEFT_OK;
}

/* At most DEPTH_MAX deep. */
static void
free_node(struct allowed_node *n)
{
	struct allowed_link **links = allowed_node_links(n);
	for (unsigned i = 0; i < (unsigned)n->ends_n + n->leaves_n; i++) {
		list_remove(&links[i]->list);
		free(links[i]);
	}
	for (unsigned i = 0; i < n->children_n; i++) {
		free_node(allowed_node_children(n)[i]);
	}
	free(n);
}

void
allowed_free(struct allowed *a)
{
	for (unsigned i = 0; a && i < 2; i++) {
		if (a->roots[i]) {
			free_node(a->roots[i]);
		}
	}
	free(a);
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

/* Where a prefix is, or would go. */
struct place {
	struct allowed_node **path[DEPTH_MAX]; /* what points to each node, from the root on */
	unsigned depth;                        /* nodes on the path */
	struct allowed_owner **owner;          /* in the last node; NULL: the prefix is not there */
	struct allowed_link *link; /* the prefix; or with owner NULL the leaf in its place */
	bool is_above;             /* it does not belong into the last node, but above */
};

static unsigned
min2(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Looks into the last node; false: the search goes on with the child at *digit. */
static bool
find_in_node(struct place *p, struct allowed_key key, unsigned bits, unsigned *digit)
{
	struct allowed_node *n = *p->path[p->depth - 1];
	struct allowed_link **links = allowed_node_links(n);
	struct allowed_owner **owners = allowed_node_owners(n);
	if (min2(allowed_key_common(key, n->key), bits) < n->pos) {
		p->is_above = true;
		return true;
	}
	if (allowed_window_of(bits) == n->pos) {
		unsigned end = allowed_end_number(key, bits);
		if (is_set(n->ends, end)) {
			unsigned i = allowed_rank(n->ends, end);
			p->link = links[i];
			p->owner = &owners[i];
		}
		return true;
	}
	*digit = allowed_key_digit(key, n->pos);
	if (is_set(n->leaves, *digit)) {
		unsigned i = n->ends_n + allowed_rank(n->leaves, *digit);
		p->link = links[i];
		if (p->link->bits == bits && allowed_key_common(p->link->key, key) >= bits) {
			p->owner = &owners[i];
		}
	}
	return !is_set(n->children, *digit);
}

static void
find(struct place *p, struct allowed_node **root, struct allowed_key key, unsigned bits)
{
	p->depth = 0;
	p->owner = NULL;
	p->link = NULL;
	p->is_above = false;
	struct allowed_node **at = root;
	unsigned digit = 0;
	if (!*root) {
		return;
	}
	do {
		weft_assert(p->depth < DEPTH_MAX);
		p->path[p->depth++] = at;
		if (find_in_node(p, key, bits, &digit)) {
			return;
		}
		at = allowed_node_children(*at) + allowed_rank((*at)->children, digit);
	} while (true);
}

/* Key, its length and root of a prefix; NULL when it is none. */
static struct allowed_node **
prefix_key(
	struct allowed *a, const struct ip_prefix *prefix, struct allowed_key *key, unsigned *bits)
{
	struct ip_prefix p = *prefix;
	enum ip_family f = p.addr.family;
	if ((f != IP_FAMILY_V4 && f != IP_FAMILY_V6) || p.bits > ip_family_len(f) * 8) {
		return NULL;
	}
	ip_prefix_mask(&p);
	*key = key_load(f, p.addr.b);
	*bits = p.bits + (f == IP_FAMILY_V4 ? ALLOWED_V4_FIRST : 0u);
	return &a->roots[f == IP_FAMILY_V6];
}

/* A new node that parts the prefix from another item, and the digit of the other one there. */
static void
fork_init(struct allowed_open *o, struct allowed_link *l, struct allowed_key other, unsigned bits)
{
	unsigned common = min2(allowed_key_common(l->key, other), min2(l->bits, bits));
	allowed_open_init(o, l->key, allowed_window_of(common), l->is_v6);
	allowed_open_add(o, l);
}

/* Above the node at *at, which differs from the prefix before its position. */
static bool
insert_above(struct allowed *a, struct allowed_node **at, struct allowed_link *l)
{
	struct allowed_open o;
	struct allowed_node *n = *at;
	fork_init(&o, l, n->key, n->pos);
	allowed_open_set_child(&o, allowed_key_digit(n->key, o.pos), n);
	n = allowed_open_pack(&a->memory, &o);
	if (n) {
		*at = n;
	}
	return n != NULL;
}

/* Where a leaf stands already: both go into a new child. */
static bool
insert_beside(struct allowed *a, struct allowed_node **at, struct allowed_link *l,
	struct allowed_link *leaf)
{
	struct allowed_open o;
	fork_init(&o, l, leaf->key, leaf->bits);
	allowed_open_add(&o, leaf);
	struct allowed_node *child = allowed_open_pack(&a->memory, &o);
	if (!child) {
		return false;
	}
	allowed_open_unpack(&o, *at);
	allowed_open_remove(&o, leaf);
	if (o.n == 0) {
		allowed_memory_give(&a->memory, *at, allowed_node_size(*at));
		*at = child;
		return true;
	}
	allowed_open_set_child(&o, allowed_key_digit(l->key, o.pos), child);
	/* A child takes less than a leaf, so this needs no memory. */
	weft_assert(allowed_open_repack(&a->memory, &o, at));
	return true;
}

static bool
insert_link(struct allowed *a, struct allowed_node **root, struct place *p, struct allowed_link *l)
{
	struct allowed_open o;
	if (p->depth == 0) {
		allowed_open_init(&o, l->key, 0, l->is_v6);
		allowed_open_add(&o, l);
		*root = allowed_open_pack(&a->memory, &o);
		return *root != NULL;
	}
	struct allowed_node **at = p->path[p->depth - 1];
	if (p->is_above) {
		return insert_above(a, at, l);
	}
	if (p->link) {
		return insert_beside(a, at, l, p->link);
	}
	allowed_open_unpack(&o, *at);
	allowed_open_add(&o, l);
	return allowed_open_repack(&a->memory, &o, at);
}

enum weft_err
allowed_insert(struct allowed *a, const struct ip_prefix *prefix, struct allowed_owner *o)
{
	struct allowed_key key;
	unsigned bits;
	struct place p;
	struct allowed_node **root = prefix_key(a, prefix, &key, &bits);
	if (!root) {
		return WEFT_EINVAL;
	}
	find(&p, root, key, bits);
	if (p.owner) {
		if (*p.owner != o) {
			*p.owner = o;
			p.link->owner = o;
			list_remove(&p.link->list);
			list_push_back(&o->prefixes, &p.link->list);
		}
		return WEFT_OK;
	}
	struct allowed_link *l = allowed_memory_take(&a->memory, sizeof(*l));
	if (!l) {
		return WEFT_ENOMEM;
	}
	*l = (struct allowed_link){.owner = o,
		.key = key,
		.bits = (uint8_t)bits,
		.is_v6 = prefix->addr.family == IP_FAMILY_V6};
	if (!insert_link(a, root, &p, l)) {
		allowed_memory_give(&a->memory, l, sizeof(*l));
		return WEFT_ENOMEM;
	}
	list_push_back(&o->prefixes, &l->list);
	a->count++;
	return WEFT_OK;
}

/* The only item of an open node, if it is a prefix or if it is a child. */
static void
only_item(const struct allowed_open *o, struct allowed_link **link, struct allowed_node **child)
{
	*link = NULL;
	*child = NULL;
	for (unsigned i = 0; i < ALLOWED_DIGITS; i++) {
		*link = i < ALLOWED_ENDS && o->ends[i] ? o->ends[i] : *link;
		*link = o->leaves[i] ? o->leaves[i] : *link;
		*child = o->children[i] ? o->children[i] : *child;
	}
}

/* In the parent, puts the link, or nothing, in place of the node. False: no memory. */
static bool
replace_in_parent(struct allowed *a, const struct place *p, struct allowed_link *link)
{
	struct allowed_open o;
	struct allowed_node *n = *p->path[p->depth - 1];
	struct allowed_node **at = p->path[p->depth - 2];
	allowed_open_unpack(&o, *at);
	allowed_open_set_child(&o, allowed_key_digit(n->key, o.pos), NULL);
	if (link) {
		allowed_open_add(&o, link);
	}
	return allowed_open_repack(&a->memory, &o, at);
}

/* Dissolves the last node of the path when it parts nothing any more. Returns whether its
 * parent has changed and must be looked at, too. */
static bool
dissolve(struct allowed *a, const struct place *p)
{
	struct allowed_node **at = p->path[p->depth - 1], *n = *at, *child;
	struct allowed_open o;
	struct allowed_link *link;
	size_t size = allowed_node_size(n);
	allowed_open_unpack(&o, n);
	if (o.n > 1) {
		return false;
	}
	only_item(&o, &link, &child);
	if (child) {
		*at = child;
	} else if (p->depth > 1) {
		if (!replace_in_parent(a, p, link)) {
			return false;
		}
	} else if (link) {
		return false; /* the root may hold one prefix */
	} else {
		*at = NULL;
	}
	allowed_memory_give(&a->memory, n, size);
	return !child && p->depth > 1;
}

static void
remove_found(struct allowed *a, struct place *p)
{
	struct allowed_open o;
	struct allowed_link *l = p->link;
	struct allowed_node **at = p->path[p->depth - 1];
	allowed_open_unpack(&o, *at);
	allowed_open_remove(&o, l);
	weft_assert(allowed_open_repack(&a->memory, &o, at)); /* shrinks */
	while (dissolve(a, p)) {
		p->depth--;
	}
	list_remove(&l->list);
	allowed_memory_give(&a->memory, l, sizeof(*l));
	a->count--;
}

bool
allowed_remove(struct allowed *a, const struct ip_prefix *prefix, struct allowed_owner *o)
{
	struct allowed_key key;
	unsigned bits;
	struct place p;
	struct allowed_node **root = prefix_key(a, prefix, &key, &bits);
	if (!root) {
		return false;
	}
	find(&p, root, key, bits);
	if (!p.owner || *p.owner != o) {
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
		struct allowed_link *l = WEFT_CONTAINER_OF(it, struct allowed_link, list);
		struct place p;
		find(&p, &a->roots[l->is_v6], l->key, l->bits);
		weft_assert(p.owner && p.link == l);
		remove_found(a, &p);
	}
}

static WEFT_ALWAYS_INLINE struct allowed_owner *
lookup(const struct allowed_node *n, struct allowed_key key)
{
	const struct allowed_node *best = NULL; /* the deepest node with an end that covers key */
	uint64_t best_ends = 0;

	while (n && allowed_key_common(key, n->key) >= n->pos) {
		unsigned digit = allowed_key_digit(key, n->pos);
		uint64_t ends = n->ends & covering[digit];
		if (ends) {
			best = n;
			best_ends = ends;
		}
		if (is_set(n->children, digit)) {
			n = allowed_node_children(n)[allowed_rank(n->children, digit)];
			continue;
		}
		if (is_set(n->leaves, digit)) {
			unsigned i = allowed_rank(n->leaves, digit);
			if (allowed_leaf_covers(n, i, key)) {
				return allowed_node_owners(n)[n->ends_n + i];
			}
		}
		break;
	}
	if (!best) {
		return NULL;
	}
	unsigned end = WEFT_TOP_BIT64(best_ends);
	return allowed_node_owners(best)[allowed_rank(best->ends, end)];
}

static struct allowed_owner *
lookup_plain(const struct allowed_node *root, struct allowed_key key)
{
	return lookup(root, key);
}

/* The same, with the instruction where the compiler otherwise sums by arithmetic: measured a
 * quarter to a third faster. */
static WEFT_TARGET_POPCNT struct allowed_owner *
lookup_popcnt(const struct allowed_node *root, struct allowed_key key)
{
	return lookup(root, key);
}

struct allowed_owner *
allowed_lookup(const struct allowed *a, enum ip_family family, const uint8_t *addr)
{
	const struct allowed_node *root = a->roots[family == IP_FAMILY_V6];
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
	const struct allowed_link *l = WEFT_CONTAINER_OF(at->next, struct allowed_link, list);
	*out = (struct ip_prefix){
		.addr.family = l->is_v6 ? IP_FAMILY_V6 : IP_FAMILY_V4, .bits = l->bits};
	if (l->is_v6) {
		store_be64(out->addr.b, l->key.hi);
		store_be64(out->addr.b + 8, l->key.lo);
	} else {
		out->bits = (uint8_t)(l->bits - ALLOWED_V4_FIRST);
		store_be32(out->addr.b, (uint32_t)(l->key.hi >> (32 - ALLOWED_V4_FIRST)));
	}
	return true;
}
