/* SPDX-License-Identifier: Apache-2.0 */
/* What a node has counted, and how its peers are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fec/recovery.h"
#include "lib/detail.h"
#include "lib/node.h"
#include "node/ally.h"
#include "node/node.h"
#include "node/peers.h"
#include "os/clock.h"

static uint64_t
sum_recovered(struct node *n, const struct node_peers *t)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < t->n; i++) {
		struct ally_info a;
		(void)node_lock_shared(n);
		if (!wg_peer_is_removed(t->v[i])) {
			node_ally_info(t->v[i], &a);
			sum += a.has_fec ? a.fec.rx.recovered_ahead + a.fec.rx.recovered_answer : 0;
		}
		node_unlock_shared(n);
	}
	return sum;
}

static void
take_stats(struct weft_node *n, void *arg)
{
	node_stats(n->inner, arg);
}

enum weft_err
weft_node_stats(struct weft_node *n, struct weft_stats *out)
{
	if (!n || !out || out->size < sizeof(*out)) {
		return WEFT_EINVAL;
	}
	enum weft_err e = lib_node_enter(n);
	if (e) {
		return e;
	}
	struct node_stats s;
	struct node_peers peers = {0};
	lib_node_ask(n, take_stats, &s);
	e = node_peers_take(n->inner, &peers);
	if (!e) {
		struct weft_stats own = {.rx_bytes = s.port.tx_bytes,
			.rx_frames = s.port.tx_frames,
			.tx_bytes = s.port.rx_bytes,
			.tx_frames = s.port.rx_frames,
			.rx_datagrams = s.link.rx_datagrams,
			.tx_datagrams = s.link.tx_datagrams,
			.recovered = sum_recovered(n->inner, &peers),
			.events_lost = events_lost(&n->events) + node_news_lost(n->inner)};
		for (size_t i = 0; i < DROP_COUNT; i++) {
			own.drops += s.drops.n[i];
		}
		(void)record_give(out, &own, sizeof(own), sizeof(own));
		node_peers_fini(&peers);
	}
	lib_node_leave(n);
	return e;
}

/* False: it was removed. */
static bool
describe(struct weft_node *n, const struct wg_peer *p, struct weft_peer *out)
{
	struct wg_peer_info info;
	char text[ENDPOINT_TEXT_MAX];
	struct mono now = os_clock_mono();
	(void)node_lock_shared(n->inner);
	bool is_there = !wg_peer_is_removed(p);
	if (is_there) {
		wg_peer_info(p, &info);
		*out = (struct weft_peer){.is_up = wg_peer_can_send(p, now)};
	}
	node_unlock_shared(n->inner);
	if (!is_there) {
		return false;
	}
	memcpy(out->public_key, info.public_key, WEFT_KEY_LEN);
	if (info.endpoint.addr.family != IP_FAMILY_NONE) {
		snprintf(out->endpoint, sizeof(out->endpoint), "%s",
			endpoint_format(&info.endpoint, text));
	}
	out->handshake_age_ms =
		info.has_session ? mono_diff_ns(now, info.session_born) / WEFT_NS_PER_MS : -1;
	out->rx_bytes = info.rx_bytes;
	out->tx_bytes = info.tx_bytes;
	os_mutex_lock(&n->mutex);
	snprintf(out->name, sizeof(out->name), "%s", lib_names_of(&n->names, info.public_key));
	os_mutex_unlock(&n->mutex);
	return true;
}

static enum weft_err
write_peers(struct weft_node *n, const struct node_peers *t, struct weft_peer *v, size_t cap,
	size_t *count)
{
	char *at = (char *)v;
	size_t size = cap ? v[0].size : 0, written = 0;
	for (size_t i = 0; i < t->n; i++) {
		struct weft_peer own;
		if (written >= cap) {
			*count = t->n;
			return WEFT_EMSGSIZE;
		}
		if (describe(n, t->v[i], &own)) {
			memcpy(at, &size, sizeof(size));
			(void)record_give(at, &own, sizeof(own), sizeof(own));
			at += size;
			written++;
		}
	}
	*count = written;
	return WEFT_OK;
}

enum weft_err
weft_node_peers(struct weft_node *n, struct weft_peer *v, size_t cap, size_t *count)
{
	if (!n || !count || (cap && (!v || v[0].size < sizeof(*v)))) {
		return WEFT_EINVAL;
	}
	enum weft_err e = lib_node_enter(n);
	if (e) {
		return e;
	}
	struct node_peers peers;
	e = node_peers_take(n->inner, &peers);
	if (!e) {
		e = write_peers(n, &peers, v, cap, count);
		node_peers_fini(&peers);
	}
	lib_node_leave(n);
	return e;
}

static void
take_port(struct weft_node *n, void *arg)
{
	struct node_facts f;
	uint16_t *port = arg;
	node_facts(n->inner, &f);
	*port = f.listen_port;
}

uint16_t
weft_node_port(const struct weft_node *n)
{
	struct weft_node *own = (struct weft_node *)n; /* its lock is no part of its value */
	uint16_t port = 0;
	if (lib_node_enter(own) == WEFT_OK) {
		lib_node_ask(own, take_port, &port);
		lib_node_leave(own);
	}
	return port;
}
