/* SPDX-License-Identifier: Apache-2.0 */
#include "wg/stage.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

struct staged {
	struct list of_pool;
	struct list of_peer;
	struct wg_stage *stage;
	uint32_t len;
	uint8_t bytes[];
};

void
wg_stage_pool_init(struct wg_stage_pool *pool, size_t bytes_max)
{
	list_init(&pool->packets);
	pool->bytes = 0;
	pool->bytes_max = bytes_max;
}

void
wg_stage_init(struct wg_stage *s)
{
	list_init(&s->packets);
	s->n = 0;
	s->bytes = 0;
}

static void
drop(struct wg_stage_pool *pool, struct staged *p)
{
	list_remove(&p->of_pool);
	list_remove(&p->of_peer);
	pool->bytes -= p->len;
	p->stage->bytes -= p->len;
	p->stage->n--;
	free(p);
}

static struct staged *
oldest(struct wg_stage *s)
{
	return WEFT_CONTAINER_OF(s->packets.next, struct staged, of_peer);
}

uint32_t
wg_stage_push(struct wg_stage_pool *pool, struct wg_stage *s, const uint8_t *packet, size_t len)
{
	if (len > WG_STAGE_BYTES_MAX || len > pool->bytes_max) {
		return 1;
	}
	struct staged *p = malloc(sizeof(*p) + len);
	if (!p) {
		return 1;
	}
	uint32_t lost = 0;
	while (s->n >= WG_STAGE_PACKETS_MAX || s->bytes + len > WG_STAGE_BYTES_MAX) {
		drop(pool, oldest(s));
		lost++;
	}
	while (pool->bytes + len > pool->bytes_max) {
		drop(pool, WEFT_CONTAINER_OF(pool->packets.next, struct staged, of_pool));
		lost++;
	}
	p->stage = s;
	p->len = (uint32_t)len;
	memcpy(p->bytes, packet, len);
	list_push_back(&pool->packets, &p->of_pool);
	list_push_back(&s->packets, &p->of_peer);
	pool->bytes += len;
	s->bytes += p->len;
	s->n++;
	return lost;
}

bool
wg_stage_take(
	struct wg_stage_pool *pool, struct wg_stage *s, uint8_t *packet, size_t cap, size_t *len)
{
	if (list_is_empty(&s->packets)) {
		return false;
	}
	struct staged *p = oldest(s);
	if (p->len > cap) {
		return false;
	}
	memcpy(packet, p->bytes, p->len);
	*len = p->len;
	drop(pool, p);
	return true;
}

uint32_t
wg_stage_clear(struct wg_stage_pool *pool, struct wg_stage *s)
{
	uint32_t n = s->n;
	while (!list_is_empty(&s->packets)) {
		drop(pool, oldest(s));
	}
	return n;
}
