/* SPDX-License-Identifier: Apache-2.0 */
#include "wg/roster.h"

#include <stdlib.h>
#include <string.h>

#include "wg/peer.h"

#define BUCKETS_MIN 8u

enum weft_err
wg_roster_init(struct wg_roster *r, const uint8_t key[SIPHASH_KEY_LEN])
{
	siphash_key_init(&r->key, key);
	list_init(&r->peers);
	r->n = 0;
	r->buckets_n = BUCKETS_MIN;
	r->buckets = calloc(r->buckets_n, sizeof(struct wg_peer *));
	return r->buckets ? WEFT_OK : WEFT_ENOMEM;
}

void
wg_roster_fini(struct wg_roster *r)
{
	free(r->buckets);
	r->buckets = NULL;
}

static struct wg_peer **
bucket_of(const struct wg_roster *r, const uint8_t *public_key)
{
	uint64_t hash = siphash(&r->key, public_key, WG_KEY_LEN);
	return &r->buckets[hash & (r->buckets_n - 1)];
}

struct wg_peer *
wg_roster_find(const struct wg_roster *r, const uint8_t *public_key)
{
	struct wg_peer *p = *bucket_of(r, public_key);
	while (p && memcmp(p->remote.public_key, public_key, WG_KEY_LEN) != 0) {
		p = p->next_in_bucket;
	}
	return p;
}

static void
chain(struct wg_roster *r, struct wg_peer *p)
{
	struct wg_peer **bucket = bucket_of(r, p->remote.public_key);
	p->next_in_bucket = *bucket;
	*bucket = p;
}

/* Without memory for more buckets, chains grow instead. */
static void
grow(struct wg_roster *r)
{
	struct wg_peer **buckets = calloc(r->buckets_n * 2, sizeof(struct wg_peer *));
	if (!buckets) {
		return;
	}
	free(r->buckets);
	r->buckets = buckets;
	r->buckets_n *= 2;
	LIST_FOR_EACH(it, &r->peers)
	{
		chain(r, WEFT_CONTAINER_OF(it, struct wg_peer, of_device));
	}
}

void
wg_roster_add(struct wg_roster *r, struct wg_peer *p)
{
	if (r->n >= r->buckets_n) {
		grow(r);
	}
	chain(r, p);
	list_push_back(&r->peers, &p->of_device);
	r->n++;
}

void
wg_roster_remove(struct wg_roster *r, struct wg_peer *p)
{
	struct wg_peer **at = bucket_of(r, p->remote.public_key);
	while (*at != p) {
		at = &(*at)->next_in_bucket;
	}
	*at = p->next_in_bucket;
	list_remove(&p->of_device);
	r->n--;
}
