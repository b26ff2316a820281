/* SPDX-License-Identifier: Apache-2.0 */
#include "node/news.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a peer, as its user pointer. */
enum told {
	TOLD_NOTHING,
	TOLD_UP,
	TOLD_DOWN,
};

void
news_init(struct news *s, const struct log *log, bool is_kept)
{
	*s = (struct news){.log = *log};
	atomic_init(&s->is_kept, is_kept);
	s->stale_limit = (struct log_limit){.period_ns = 60 * WEFT_NS_PER_S, .burst = 3};
	s->many_limit = (struct log_limit){.period_ns = 10 * WEFT_NS_PER_S, .burst = 20};
	os_mutex_init(&s->mutex);
}

void
news_fini(struct news *s)
{
	os_mutex_fini(&s->mutex);
	free(s->ring);
}

static char *
short_key(const struct wg_peer_info *info, char out[16])
{
	snprintf(out, 16, "%02x%02x%02x%02x...", info->public_key[0], info->public_key[1],
		info->public_key[2], info->public_key[3]);
	return out;
}

/* Of news that peers can make at will, and thousands at once: the first few of each period. */
static enum log_level
many_level(struct news *s, struct wg_time now)
{
	return log_limit_take(&s->many_limit, now.mono) ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG;
}

static void
log_event(struct news *s, const char *device, const struct wg_event *e,
	const struct wg_peer_info *info, struct wg_time now)
{
	char key[16];
	char to[ENDPOINT_TEXT_MAX];
	short_key(info, key);
	switch (e->kind) {
	case WG_EVENT_SESSION:
		log_debug(&s->log, "%s: peer %s: session is up", device, key);
		break;
	case WG_EVENT_ENDPOINT:
		log_write(&s->log, many_level(s, now), "%s: peer %s: endpoint is now %s", device,
			key, endpoint_format(&info->endpoint, to));
		break;
	case WG_EVENT_GAVE_UP:
		log_write(&s->log, many_level(s, now),
			"%s: peer %s: no handshake answer, %llu waiting packets dropped", device,
			key, (unsigned long long)e->value);
		break;
	case WG_EVENT_STALE:
		if (log_limit_take(&s->stale_limit, now.mono)) {
			log_warn(&s->log,
				"%s: peer %s: initiation with an old timestamp: replayed, or the "
				"peer's clock went backward",
				device, key);
		}
		break;
	case WG_EVENT_HANDSHAKE:
		log_debug(&s->log, "%s: peer %s: sending initiation, attempt %llu", device, key,
			(unsigned long long)e->value);
		break;
	case WG_EVENT_EXPIRED:
		log_debug(&s->log, "%s: peer %s: session has run out", device, key);
		break;
	case WG_EVENT_STAMP:
		break;
	}
}

bool
news_is_up(const struct wg_peer *p)
{
	return (enum told)(uintptr_t)wg_peer_user(p) == TOLD_UP;
}

/* The news in an event; false for none. */
static bool
make_news(const struct wg_event *e, const struct wg_peer_info *info, struct node_news *out)
{
	enum told told = (enum told)(uintptr_t)wg_peer_user(e->peer), next = told;
	*out = (struct node_news){.to = info->endpoint};
	memcpy(out->public_key, info->public_key, sizeof(out->public_key));
	switch (e->kind) {
	case WG_EVENT_SESSION:
		next = TOLD_UP;
		out->kind = NODE_NEWS_PEER_UP;
		break;
	case WG_EVENT_GAVE_UP:
	case WG_EVENT_EXPIRED:
		next = TOLD_DOWN;
		out->kind = NODE_NEWS_PEER_DOWN;
		break;
	case WG_EVENT_ENDPOINT:
		out->kind = NODE_NEWS_ENDPOINT_MOVED;
		out->from = wg_peer_moved_from(e->peer);
		return true;
	case WG_EVENT_STALE:
	case WG_EVENT_HANDSHAKE:
	case WG_EVENT_STAMP:
		return false;
	}
	wg_peer_set_user(e->peer, (void *)(uintptr_t)next);
	return next != told;
}

bool
news_tell(struct news *s, const char *device, const struct wg_event *e, struct wg_time now)
{
	struct wg_peer_info info;
	struct node_news v;
	wg_peer_info(e->peer, &info);
	log_event(s, device, e, &info, now);
	if (!make_news(e, &info, &v)) {
		return false;
	}
	v.wall_ns = now.wall_ns;
	return news_put(s, &v);
}

bool
news_put(struct news *s, const struct node_news *v)
{
	if (!atomic_load_explicit(&s->is_kept, memory_order_relaxed)) {
		return false;
	}
	os_mutex_lock(&s->mutex);
	bool was_empty = s->n == 0;
	if (!s->ring) {
		s->ring = calloc(NEWS_MAX, sizeof(*s->ring));
	}
	if (!s->ring || s->n == NEWS_MAX) {
		s->lost++;
		was_empty = false;
	} else {
		s->ring[(s->first + s->n++) % NEWS_MAX] = *v;
	}
	os_mutex_unlock(&s->mutex);
	return was_empty;
}

size_t
news_take(struct news *s, struct node_news *v, size_t cap)
{
	size_t n = 0;
	os_mutex_lock(&s->mutex);
	for (; n < cap && s->n > 0; s->n--) {
		v[n++] = s->ring[s->first];
		s->first = (s->first + 1) % NEWS_MAX;
	}
	os_mutex_unlock(&s->mutex);
	return n;
}

uint64_t
news_lost(struct news *s)
{
	os_mutex_lock(&s->mutex);
	uint64_t lost = s->lost;
	os_mutex_unlock(&s->mutex);
	return lost;
}

void
news_keep(struct news *s, bool is_kept)
{
	os_mutex_lock(&s->mutex);
	s->first = s->n = 0;
	atomic_store(&s->is_kept, is_kept);
	os_mutex_unlock(&s->mutex);
}
