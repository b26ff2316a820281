/* SPDX-License-Identifier: Apache-2.0 */
#include "wg/allowed_node.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

void *
allowed_memory_take(struct allowed_memory *m, size_t n)
{
	if (m->bytes + n > m->bytes_max) {
		return NULL;
	}
	void *p = malloc(n);
	if (p) {
		m->bytes += n;
	}
	return p;
}

void
allowed_memory_give(struct allowed_memory *m, void *p, size_t n)
{
	m->bytes -= n;
	free(p);
}

unsigned
allowed_window_of(unsigned bits)
{
	return (bits & ~63u) + (bits & 63) / ALLOWED_WINDOW_BITS * ALLOWED_WINDOW_BITS;
}

unsigned
allowed_end_number(struct allowed_key k, unsigned bits)
{
	unsigned pos = allowed_window_of(bits);
	unsigned r = bits - pos;
	return (1u << r) - 1 + (allowed_key_digit(k, pos) >> (ALLOWED_WINDOW_BITS - r));
}

struct allowed_link **
allowed_node_links(const struct allowed_node *n)
{
	return (struct allowed_link **)(void *)(allowed_node_keys(n) +
						n->leaves_n * (n->is_v6 ? 2u : 1u));
}

size_t
allowed_node_size(const struct allowed_node *n)
{
	struct allowed_link **end = allowed_node_links(n) + n->ends_n + n->leaves_n;
	return (size_t)((uintptr_t)end - (uintptr_t)n);
}

void
allowed_open_init(struct allowed_open *o, struct allowed_key key, unsigned pos, bool is_v6)
{
	*o = (struct allowed_open){.key = key, .pos = (uint8_t)pos, .is_v6 = is_v6};
}

void
allowed_open_unpack(struct allowed_open *o, const struct allowed_node *n)
{
	struct allowed_link **links = allowed_node_links(n);
	struct allowed_node **children = allowed_node_children(n);
	allowed_open_init(o, n->key, n->pos, n->is_v6);
	o->n = (unsigned)n->ends_n + n->leaves_n + n->children_n;
	for (uint64_t map = n->ends; map; map &= map - 1) {
		o->ends[WEFT_LOW_BIT64(map)] = *links++;
	}
	for (uint64_t map = n->leaves; map; map &= map - 1) {
		o->leaves[WEFT_LOW_BIT64(map)] = *links++;
	}
	for (uint64_t map = n->children; map; map &= map - 1) {
		o->children[WEFT_LOW_BIT64(map)] = *children++;
	}
}

/* Where a prefix at or behind the window stands. */
static struct allowed_link **
place_of(struct allowed_open *o, const struct allowed_link *l)
{
	if (allowed_window_of(l->bits) == o->pos) {
		return &o->ends[allowed_end_number(l->key, l->bits)];
	}
	return &o->leaves[allowed_key_digit(l->key, o->pos)];
}

void
allowed_open_add(struct allowed_open *o, struct allowed_link *l)
{
	struct allowed_link **place = place_of(o, l);
	weft_assert(!*place);
	*place = l;
	o->n++;
}

void
allowed_open_remove(struct allowed_open *o, const struct allowed_link *l)
{
	struct allowed_link **place = place_of(o, l);
	weft_assert(*place == l);
	*place = NULL;
	o->n--;
}

void
allowed_open_set_child(struct allowed_open *o, unsigned digit, struct allowed_node *child)
{
	o->n += (child != NULL) - (o->children[digit] != NULL);
	o->children[digit] = child;
}

/* The maps and counts, from which all places follow. */
static struct allowed_node
head_of(const struct allowed_open *o)
{
	struct allowed_node n = {.key = o->key, .pos = o->pos, .is_v6 = o->is_v6};
	for (unsigned i = 0; i < ALLOWED_DIGITS; i++) {
		uint64_t bit = UINT64_C(1) << i;
		n.ends |= i < ALLOWED_ENDS && o->ends[i] ? bit : 0;
		n.leaves |= o->leaves[i] ? bit : 0;
		n.children |= o->children[i] ? bit : 0;
	}
	n.ends_n = (uint8_t)WEFT_POPCOUNT64(n.ends);
	n.leaves_n = (uint8_t)WEFT_POPCOUNT64(n.leaves);
	n.children_n = (uint8_t)WEFT_POPCOUNT64(n.children);
	n.bits_words = (uint8_t)(n.is_v6 ? (n.leaves_n + 7) / 8 : 0);
	return n;
}

static void
write_leaf(struct allowed_node *n, unsigned i, const struct allowed_link *l)
{
	uint64_t *keys = allowed_node_keys(n);
	if (n->is_v6) {
		keys[2 * i] = l->key.hi;
		keys[2 * i + 1] = l->key.lo;
		allowed_node_bits(n)[i] = l->bits;
	} else {
		keys[i] = l->key.hi | (uint64_t)l->bits << ALLOWED_V4_BITS_SHIFT;
	}
}

/* n has room for it, and may be the node that was unpacked. */
static void
write_node(struct allowed_node *n, const struct allowed_node *head, const struct allowed_open *o)
{
	*n = *head;
	struct allowed_node **children = allowed_node_children(n);
	struct allowed_owner **owners = allowed_node_owners(n);
	struct allowed_link **links = allowed_node_links(n);
	unsigned leaf = 0;
	for (uint64_t map = n->children; map; map &= map - 1) {
		*children++ = o->children[WEFT_LOW_BIT64(map)];
	}
	for (uint64_t map = n->ends; map; map &= map - 1) {
		struct allowed_link *l = o->ends[WEFT_LOW_BIT64(map)];
		*owners++ = l->owner;
		*links++ = l;
	}
	for (uint64_t map = n->leaves; map; map &= map - 1) {
		struct allowed_link *l = o->leaves[WEFT_LOW_BIT64(map)];
		*owners++ = l->owner;
		*links++ = l;
		write_leaf(n, leaf++, l);
	}
}

struct allowed_node *
allowed_open_pack(struct allowed_memory *m, const struct allowed_open *o)
{
	struct allowed_node head = head_of(o);
	struct allowed_node *n = allowed_memory_take(m, allowed_node_size(&head));
	if (n) {
		write_node(n, &head, o);
	}
	return n;
}

bool
allowed_open_repack(
	struct allowed_memory *m, const struct allowed_open *o, struct allowed_node **at)
{
	struct allowed_node head = head_of(o), *n = *at;
	size_t before = allowed_node_size(n), after = allowed_node_size(&head);
	if (after > before) {
		n = allowed_open_pack(m, o);
		if (n) {
			allowed_memory_give(m, *at, before);
			*at = n;
		}
		return n != NULL;
	}
	write_node(n, &head, o);
	if (after < before) {
		m->bytes -= before - after;
		n = realloc(n, after);
		*at = n ? n : *at; /* one that cannot shrink is longer than it says, no more */
	}
	return true;
}
