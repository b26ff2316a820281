/* SPDX-License-Identifier: Apache-2.0 */
/* Intrusive circular doubly linked list. The head is a node that belongs to no element. */
#ifndef WEFT_BASE_LIST_H
#define WEFT_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

struct list {
	struct list *next;
	struct list *prev;
};

static inline void
list_init(struct list *l)
{
	l->next = l;
	l->prev = l;
}

static inline bool
list_is_empty(const struct list *l)
{
	return l->next == l;
}

static inline void
list_push_back(struct list *head, struct list *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

/* Leaves node a list of its own, so removing twice is harmless. */
static inline void
list_remove(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

#define LIST_FOR_EACH(it, head) for (struct list *it = (head)->next; it != (head); it = it->next)
#define LIST_FOR_EACH_SAFE(it, tmp, head)                                                          \
	for (struct list *it = (head)->next, *tmp = it->next; it != (head);                        \
		it = tmp, tmp = it->next)

#endif
