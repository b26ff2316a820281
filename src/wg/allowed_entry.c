/* SPDX-License-Identifier: Apache-2.0 */
#include "wg/allowed_entry.h"

#include <stdlib.h>

#include "wg/allowed.h"

/* What only changes need, kept away from the entries. */
struct entry_link {
	struct list list; /* in owner->prefixes, or in slab.free */
	struct allowed_entry *entry;
};

/* Entries of one family back to back, then their links. The size divides that of a cache line,
 * so no entry lies in two lines. */
struct slab {
	WEFT_ALIGNED(64) struct list list; /* in allowed.slabs while a slot is free, or none */
	struct list free;                  /* links of the unused slots */
	void *allocation;                  /* begins at most 48 bytes before the slab */
	uint32_t used;
};

#define SLAB_BYTES 4064 /* with malloc's own header, a page at most */
#define SLAB_ROOM (SLAB_BYTES - 48 - sizeof(struct slab))

void
allowed_memory_init(struct allowed_memory *m, uint64_t bytes_max)
{
	*m = (struct allowed_memory){.bytes_max = bytes_max};
	list_init(&m->slabs[0]);
	list_init(&m->slabs[1]);
}

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
	if (p) {
		m->bytes -= n;
		free(p);
	}
}

static size_t
entry_size(enum ip_family family)
{
	return family == IP_FAMILY_V4 ? sizeof(struct allowed_entry)
				      : sizeof(struct allowed_entry6);
}

static size_t
slab_capacity(enum ip_family family)
{
	return SLAB_ROOM / (entry_size(family) + sizeof(struct entry_link));
}

static struct slab *
slab_of(const struct allowed_entry *e)
{
	size_t offset = e->slot * entry_size((enum ip_family)e->family) + sizeof(struct slab);
	return (struct slab *)(void *)((char *)(uintptr_t)e - offset);
}

static struct entry_link *
slab_links(struct slab *s, enum ip_family family)
{
	return (struct entry_link *)(void *)((char *)(s + 1) +
					     slab_capacity(family) * entry_size(family));
}

static struct entry_link *
link_of(const struct allowed_entry *e)
{
	return slab_links(slab_of(e), (enum ip_family)e->family) + e->slot;
}

static struct slab *
slab_new(struct allowed_memory *m, enum ip_family family)
{
	void *allocation = allowed_memory_take(m, SLAB_BYTES);
	if (!allocation) {
		return NULL;
	}
	uintptr_t aligned = ((uintptr_t)allocation + 63) & ~(uintptr_t)63;
	struct slab *s = (struct slab *)aligned;
	s->allocation = allocation;
	s->used = 0;
	list_init(&s->free);
	list_push_back(&m->slabs[family == IP_FAMILY_V6], &s->list);
	struct entry_link *links = slab_links(s, family);
	for (size_t i = 0; i < slab_capacity(family); i++) {
		links[i].entry =
			(struct allowed_entry *)(void *)((char *)(s + 1) + i * entry_size(family));
		links[i].entry->family = (uint8_t)family;
		links[i].entry->slot = (uint16_t)i;
		list_push_back(&s->free, &links[i].list);
	}
	return s;
}

struct allowed_entry *
allowed_entry_new(
	struct allowed_memory *m, enum ip_family family, struct allowed_key key, unsigned bits)
{
	struct list *slabs = &m->slabs[family == IP_FAMILY_V6];
	struct slab *s = WEFT_CONTAINER_OF(slabs->next, struct slab, list);
	if (list_is_empty(slabs)) {
		s = slab_new(m, family);
		if (!s) {
			return NULL;
		}
	}
	struct entry_link *l = WEFT_CONTAINER_OF(s->free.next, struct entry_link, list);
	list_remove(&l->list);
	s->used++;
	if (list_is_empty(&s->free)) {
		list_remove(&s->list);
	}
	l->entry->bits = (uint8_t)bits;
	l->entry->v4 = (uint32_t)(key.hi >> 32);
	if (family == IP_FAMILY_V6) {
		((struct allowed_entry6 *)l->entry)->key = key;
	}
	return l->entry;
}

void
allowed_entry_free(struct allowed_memory *m, struct allowed_entry *e)
{
	struct slab *s = slab_of(e);
	struct entry_link *l = link_of(e);
	list_remove(&l->list);
	list_push_back(&s->free, &l->list);
	list_remove(&s->list);
	s->used--;
	if (s->used == 0) {
		allowed_memory_give(m, s->allocation, SLAB_BYTES);
	} else {
		list_push_back(&m->slabs[e->family == IP_FAMILY_V6], &s->list);
	}
}

void
allowed_entry_set_owner(struct allowed_entry *e, struct allowed_owner *o)
{
	struct entry_link *l = link_of(e);
	list_remove(&l->list);
	e->owner = o;
	list_push_back(&o->prefixes, &l->list);
}

struct allowed_entry *
allowed_entry_at(const struct list *element)
{
	return WEFT_CONTAINER_OF(element, struct entry_link, list)->entry;
}
