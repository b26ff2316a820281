/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/path/path.h"

#include <stdlib.h>

#include "base/assert.h"
#include "link/mem.h"
#include "os/clock.h"
#include "os/entropy.h"

#define CONNECT_NS (2 * WEFT_NS_PER_S)

static void
wake(void *ctx, unsigned i)
{
	(void)ctx;
	(void)i; /* whoever runs the workers never sleeps */
}

static struct endpoint
address_of(unsigned node, unsigned worker)
{
	return (struct endpoint){.addr = {IP_FAMILY_V4, {192, 0, 2, (uint8_t)(1 + node)}},
		.port = (uint16_t)(51820 + worker)};
}

static enum weft_err
init_node(struct path_node *n, unsigned workers)
{
	struct wg_device_config c = {.entropy = os_entropy()};
	uint8_t key[WG_KEY_LEN];
	os_rwlock_init(&n->lock);
	atomic_init(&n->deadline_ns, INT64_MAX);
	atomic_init(&n->listen_port, 51820);
	enum weft_err e = wg_device_new(&c, &n->device);
	if (e) {
		return e;
	}
	c.entropy.fill(c.entropy.ctx, key, sizeof(key));
	wg_device_set_private_key(n->device, key);
	return workers > 1 ? crew_new(workers, wake, NULL, &n->crew) : WEFT_OK;
}

static enum weft_err
introduce(struct path *p, unsigned i)
{
	uint8_t key[WG_KEY_LEN];
	struct wg_peer *peer;
	struct endpoint at = address_of(1 - i, 0);
	struct ip_prefix inner = {{IP_FAMILY_V4, {10, 0, 0, (uint8_t)(2 - i)}}, 32};
	weft_assert(wg_device_public_key(p->nodes[1 - i].device, key));
	enum weft_err e = wg_peer_add(p->nodes[i].device, key, &peer);
	if (e) {
		return e;
	}
	wg_peer_set_endpoint(peer, &at);
	return wg_peer_allow(p->nodes[i].device, peer, &inner);
}

static enum weft_err
add_worker(struct path_node *n, unsigned k, const struct path_config *c, struct link *link)
{
	struct gro_caps caps = {c->has_gso, c->has_gso, c->has_gso, c->has_gso};
	struct worker_config wc = {
		.env = {.device = n->device,
			.lock = &n->lock,
			.listen_port = &n->listen_port,
			.deadline_ns = &n->deadline_ns,
			.wake = wake,
			.crew = n->crew},
		.link = link,
		.index = k,
	};
	enum weft_err e = port_mem_new(c->ring_bytes, c->mtu, &caps, &wc.port);
	if (e) {
		return e;
	}
	/* Nobody sleeps here; otherwise each packet that finds its reader idle would pay for
	 * waking it, six system calls port to port. */
	port_mem_set_polled(wc.port);
	link_mem_set_polled(link);
	e = worker_new(&wc, &n->workers[k]);
	if (e) {
		wc.port->ops->close(wc.port);
	}
	return e;
}

static enum weft_err
add_pair(struct path *p, unsigned k, const struct path_config *c)
{
	struct link *links[2];
	struct endpoint at[2] = {address_of(0, k), address_of(1, k)};
	enum weft_err e = link_mem_pair(c->ring_bytes, at, links);
	if (e) {
		return e;
	}
	e = add_worker(&p->nodes[0], k, c, links[0]);
	if (e) {
		links[0]->ops->close(links[0]);
		links[1]->ops->close(links[1]);
		return e;
	}
	e = add_worker(&p->nodes[1], k, c, links[1]);
	if (e) {
		links[1]->ops->close(links[1]);
	}
	return e;
}

enum weft_err
path_new(const struct path_config *c, struct path **out)
{
	struct path *p = calloc(1, sizeof(*p));
	if (!p) {
		return WEFT_ENOMEM;
	}
	p->workers = c->workers;
	enum weft_err e = init_node(&p->nodes[0], c->workers);
	if (!e) {
		e = init_node(&p->nodes[1], c->workers);
	}
	for (unsigned i = 0; !e && i < 2; i++) {
		e = introduce(p, i);
	}
	for (unsigned k = 0; !e && k < c->workers; k++) {
		e = add_pair(p, k, c);
	}
	if (e) {
		path_free(p);
		return e;
	}
	*out = p;
	return WEFT_OK;
}

void
path_free(struct path *p)
{
	for (unsigned i = 0; i < 2; i++) {
		struct path_node *n = &p->nodes[i];
		for (unsigned k = 0; k < p->workers && n->workers[k]; k++) {
			worker_free(n->workers[k]);
		}
		if (n->crew) {
			crew_free(n->crew);
		}
		if (n->device) {
			wg_device_free(n->device);
			os_rwlock_fini(&n->lock);
		}
	}
	free(p);
}

void
path_turn(struct path *p, unsigned node, unsigned worker)
{
	struct path_node *n = &p->nodes[node];
	struct worker *w = n->workers[worker];
	struct wg_time now = node_time();
	if (worker == 0 &&
		atomic_load_explicit(&n->deadline_ns, memory_order_relaxed) <= now.mono.ns) {
		worker_tick(w, now);
	}
	worker_turn(w, now, WORKER_READY_LINK | WORKER_READY_PORT);
}

enum weft_err
path_connect(struct path *p, const struct frame *f)
{
	struct port_mem_frame got;
	struct mono end = mono_add_ns(os_clock_mono(), CONNECT_NS);
	if (!port_mem_inject(p->nodes[0].workers[0]->port, f)) {
		return WEFT_EMSGSIZE;
	}
	while (mono_is_before(os_clock_mono(), end)) {
		for (unsigned k = 0; k < p->workers; k++) {
			path_turn(p, 0, k);
			path_turn(p, 1, k);
		}
		if (port_mem_take(p->nodes[1].workers[0]->port, &got)) {
			return WEFT_OK;
		}
	}
	return WEFT_ETIMEDOUT;
}

void
path_drops(const struct path *p, unsigned node, unsigned worker, struct drop_counts *out)
{
	const struct worker *w = p->nodes[node].workers[worker];
	for (unsigned i = 0; i < DROP_COUNT; i++) {
		out->n[i] =
			w->stats.drops.n[i] + w->link->stats.drops.n[i] + w->port->stats.drops.n[i];
	}
}
