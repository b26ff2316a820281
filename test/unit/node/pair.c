/* SPDX-License-Identifier: Apache-2.0 */
#include "pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/endian.h"

#define RING_BYTES (1u << 20)

static void
fill(void *ctx, void *out, size_t len)
{
	rng_fill(ctx, out, len);
}

static void
on_event(void *ctx, const struct wg_event *e, struct wg_time now)
{
	struct pair_node *n = ctx;
	(void)now;
	n->events[e->kind]++;
}

static void
wake(void *ctx, unsigned i)
{
	(void)ctx;
	(void)i; /* nobody sleeps in these tests */
}

static struct endpoint
address_of(unsigned node, unsigned worker)
{
	return (struct endpoint){.addr = {IP_FAMILY_V4, {192, 0, 2, (uint8_t)(1 + node)}},
		.port = (uint16_t)(51820 + worker)};
}

static void
init_node(struct pair *p, unsigned i, unsigned workers, uint64_t seed)
{
	struct pair_node *n = &p->node[i];
	rng_init(&n->rng, seed + i);
	n->workers = workers;
	os_rwlock_init(&n->lock);
	atomic_init(&n->deadline_ns, INT64_MAX);
	atomic_init(&n->listen_port, 51820);
	struct wg_device_config c = {.entropy = {fill, &n->rng}};
	assert_int_equal(wg_device_new(&c, &n->device), WEFT_OK);
	uint8_t key[WG_KEY_LEN];
	rng_fill(&n->rng, key, sizeof(key));
	wg_device_set_private_key(n->device, key);
	if (workers > 1) {
		assert_int_equal(crew_new(workers, wake, NULL, &n->crew), WEFT_OK);
	}
}

static void
introduce(struct pair *p, unsigned i)
{
	struct wg_device *d = p->node[i].device;
	uint8_t key[WG_KEY_LEN];
	struct wg_peer *peer;
	assert_true(wg_device_public_key(p->node[1 - i].device, key));
	assert_int_equal(wg_peer_add(d, key, &peer), WEFT_OK);
	struct endpoint at = address_of(1 - i, 0);
	wg_peer_set_endpoint(peer, &at);
	struct ip_prefix net = {{IP_FAMILY_V4, {10, 0, 0, (uint8_t)(2 - i)}}, 32};
	assert_int_equal(wg_peer_allow(d, peer, &net), WEFT_OK);
}

static enum weft_err
filter_receive(struct link *l, struct link_rx *rx, size_t cap, size_t *n)
{
	struct pair_filter *f = (struct pair_filter *)l;
	enum weft_err e = f->inner->ops->receive(f->inner, rx, cap, n);
	f->base.stats.rx_datagrams = f->inner->stats.rx_datagrams;
	if (!e) {
		rx[0].is_behind_drop = f->has_dropped;
		f->has_dropped = false;
	}
	return e;
}

static void
filter_send(struct link *l, struct link_run *runs, size_t n)
{
	struct pair_filter *f = (struct pair_filter *)l;
	for (size_t i = 0; i < n; i++) {
		for (uint32_t off = 0; off < runs[i].len; off += runs[i].seg) {
			struct link_run one = runs[i];
			one.data += off;
			one.len = runs[i].len - off < one.seg ? runs[i].len - off : one.seg;
			bool is_data = one.data[0] == 4;
			f->marked += is_data && one.data[1] == 1;
			if (is_data && f->loss > 0 && rng_is_hit(f->rng, f->loss)) {
				f->lost++;
				continue;
			}
			f->inner->ops->send(f->inner, &one, 1);
		}
	}
}

static void
filter_close(struct link *l)
{
	struct pair_filter *f = (struct pair_filter *)l;
	f->inner->ops->close(f->inner);
}

static struct link *
filter(struct pair *p, unsigned i, unsigned k, struct link *inner)
{
	static const struct link_ops ops = {filter_receive, filter_send, filter_close};
	p->filters[i][k] =
		(struct pair_filter){.base = {.ops = &ops}, .inner = inner, .rng = &p->node[i].rng};
	return &p->filters[i][k].base;
}

void
pair_init(struct pair *p, unsigned workers, uint64_t seed)
{
	const struct ally_policy *const stock[2] = {NULL, NULL};
	pair_init_allied(p, workers, seed, stock);
}

struct wg_peer *
pair_peer(struct pair *p, unsigned i)
{
	return wg_peer_next(p->node[i].device, NULL);
}

const struct ally_policy pair_no_policy = {0};

static void
ally(struct pair_node *n, struct wg_peer *peer, const struct ally_policy *policy)
{
	allies_init(&n->allies, "node", 1420);
	n->has_allies = policy != NULL;
	if (policy && policy != &pair_no_policy) {
		struct ally *a = ally_of(&n->allies, peer);
		assert_non_null(a);
		bool wants_session;
		(void)ally_set_policy(&n->allies, a, policy, (struct mono){0}, &wants_session);
	}
}

void
pair_init_allied(struct pair *p, unsigned workers, uint64_t seed,
	const struct ally_policy *const policies[2])
{
	memset(p, 0, sizeof(*p));
	init_node(p, 0, workers, seed);
	init_node(p, 1, workers, seed + 100);
	introduce(p, 0);
	introduce(p, 1);
	ally(&p->node[0], pair_peer(p, 0), policies[0]);
	ally(&p->node[1], pair_peer(p, 1), policies[1]);
	for (unsigned k = 0; k < workers; k++) {
		struct link *links[2];
		struct endpoint at[2] = {address_of(0, k), address_of(1, k)};
		assert_int_equal(link_mem_pair(RING_BYTES, at, links), WEFT_OK);
		for (unsigned i = 0; i < 2; i++) {
			struct pair_node *n = &p->node[i];
			struct port *port;
			struct gro_caps caps = {0};
			assert_int_equal(port_mem_new(RING_BYTES, 1420, &caps, &port), WEFT_OK);
			struct worker_config c = {
				.env = {.device = n->device,
					.lock = &n->lock,
					.event = on_event,
					.ctx = n,
					.listen_port = &n->listen_port,
					.deadline_ns = &n->deadline_ns,
					.wake = wake,
					.crew = n->crew,
					.allies = n->has_allies ? &n->allies : NULL},
				.link = n->has_allies ? filter(p, i, k, links[i]) : links[i],
				.port = port,
				.index = k,
			};
			assert_int_equal(worker_new(&c, &n->w[k]), WEFT_OK);
		}
	}
}

void
pair_fini(struct pair *p)
{
	for (unsigned i = 0; i < 2; i++) {
		struct pair_node *n = &p->node[i];
		for (unsigned k = 0; k < n->workers; k++) {
			worker_free(n->w[k]);
		}
		if (n->crew) {
			crew_free(n->crew);
		}
		allies_fini(&n->allies);
		wg_device_free(n->device);
		os_rwlock_fini(&n->lock);
	}
}

void
pair_run(struct pair *p, struct wg_time now, unsigned turns)
{
	for (unsigned t = 0; t < turns; t++) {
		for (unsigned i = 0; i < 2; i++) {
			struct pair_node *n = &p->node[i];
			if (!mono_is_before(now.mono, worker_deadline(n->w[0]))) {
				worker_tick(n->w[0], now);
			}
			for (unsigned k = 0; k < n->workers; k++) {
				worker_turn(n->w[k], now, WORKER_READY_LINK | WORKER_READY_PORT);
			}
		}
	}
}

bool
pair_inject(struct pair *p, unsigned from, unsigned w, uint16_t flow, uint32_t seq, uint32_t len)
{
	uint8_t packet[1500] = {0x45};
	assert_in_range(len, 36, sizeof(packet));
	store_be16(packet + 2, (uint16_t)len);
	packet[8] = 64;
	packet[9] = 17;
	const uint8_t src[4] = {10, 0, 0, (uint8_t)(1 + from)};
	const uint8_t dst[4] = {10, 0, 0, (uint8_t)(2 - from)};
	memcpy(packet + 12, src, 4);
	memcpy(packet + 16, dst, 4);
	uint32_t sum = 0;
	for (size_t i = 0; i < 20; i += 2) {
		sum += load_be16(packet + i);
	}
	sum = (sum & 0xffff) + (sum >> 16);
	store_be16(packet + 10, (uint16_t) ~(sum + (sum >> 16)));
	store_be16(packet + 20, (uint16_t)(10000 + flow));
	store_be16(packet + 22, 9);
	store_be16(packet + 24, (uint16_t)(len - 20));
	store_be32(packet + 28, seq);
	for (uint32_t i = 32; i < len; i++) {
		packet[i] = (uint8_t)(seq + i);
	}
	struct frame f = {.data = packet, .len = len};
	return port_mem_inject(p->node[from].w[w]->port, &f);
}

bool
pair_take(struct pair *p, unsigned at, unsigned w, uint16_t *flow, uint32_t *seq, uint32_t *len)
{
	struct port_mem_frame f;
	if (!port_mem_take(p->node[at].w[w]->port, &f)) {
		return false;
	}
	*flow = (uint16_t)(load_be16(f.data + 20) - 10000);
	*seq = load_be32(f.data + 28);
	*len = f.len;
	for (uint32_t i = 32; i < f.len; i++) {
		assert_int_equal(f.data[i], (uint8_t)(*seq + i));
	}
	return true;
}
