/* SPDX-License-Identifier: Apache-2.0 */
/* [shared] calls from several threads while [excl] calls come and go, under a reader-writer
 * lock a device, as the node has it. TSan runs this, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "base/rng.h"
#include "crypto/aead.h"
#include "wg/device.h"
#include "wire/wg.h"

#define WORKERS 3
#define BATCH 8
#define ROUNDS 20000
#define PACKET_LEN 64

struct host {
	pthread_rwlock_t lock;
	struct wg_device *device;
	struct wg_peer *peer;
	struct endpoint at;
	struct drop_counts drops;
	struct rng rng; /* under the write lock */
};

struct pair {
	struct host hosts[2];
	_Atomic int64_t now_ns;
	atomic_bool is_over;
	_Atomic uint64_t sent, delivered, lost, replays, staged, duplicates;
	_Atomic uint64_t by_cipher[AEAD_CIPHER_COUNT]; /* sent, without duplicates */
};

static void
fill(void *ctx, void *out, size_t len)
{
	rng_fill(ctx, out, len);
}

static struct mono
now_of(struct pair *p)
{
	return (struct mono){atomic_load(&p->now_ns)};
}

static struct wg_time
time_of(struct pair *p)
{
	struct mono now = now_of(p);
	return (struct wg_time){now, INT64_C(1700000000) * WEFT_NS_PER_S + now.ns};
}

struct outbox {
	struct wg_msg msgs[16];
	struct wg_event events[32];
	struct wg_out out;
};

static void
outbox_init(struct outbox *o, struct host *h)
{
	o->out = (struct wg_out){o->msgs, 16, 0, o->events, 32, 0, &h->drops};
}

static void accept_data(struct pair *p, size_t to, uint8_t *const *msgs, const size_t *lens,
	size_t n, struct aead *a);

/* Hands over what host `from` wants sent; what comes of that goes the other way, and so on. */
static void
exchange(struct pair *p, size_t from, struct outbox *box, struct aead *a)
{
	while (box->out.msgs_n > 0) {
		struct host *to = &p->hosts[1 - from];
		struct outbox next;
		outbox_init(&next, to);
		for (size_t i = 0; i < box->out.msgs_n; i++) {
			struct wg_msg *m = &box->msgs[i];
			if (m->bytes[0] == WIRE_WG_TYPE_DATA) {
				uint8_t *bytes = m->bytes;
				size_t len = m->len;
				accept_data(p, 1 - from, &bytes, &len, 1, a);
				continue;
			}
			pthread_rwlock_wrlock(&to->lock);
			wg_device_handle(to->device, time_of(p), m->bytes, m->len,
				&p->hosts[from].at, &next.out);
			pthread_rwlock_unlock(&to->lock);
		}
		*box = next;
		box->out.msgs = box->msgs;
		box->out.events = box->events;
		from = 1 - from;
	}
}

static void
settle(struct pair *p, size_t i, struct wg_note *note, struct aead *a)
{
	if (!note->needs) {
		return;
	}
	struct outbox box;
	outbox_init(&box, &p->hosts[i]);
	pthread_rwlock_wrlock(&p->hosts[i].lock);
	wg_device_settle(p->hosts[i].device, time_of(p), note, 1, &box.out);
	pthread_rwlock_unlock(&p->hosts[i].lock);
	exchange(p, i, &box, a);
}

/* One batch of one session. */
static void
accept_data(struct pair *p, size_t to, uint8_t *const *msgs, const size_t *lens, size_t n,
	struct aead *a)
{
	struct host *h = &p->hosts[to];
	struct aead_op ops[BATCH];
	struct wg_note note;
	/* Nobody counted it as sent. One that its thread was long about is behind the window. */
	bool is_keepalive = lens[0] == WG_OVERHEAD;
	pthread_rwlock_rdlock(&h->lock);
	struct wg_session *s = wg_device_session(h->device, wire_wg_data_receiver(msgs[0]));
	if (!s || !wg_session_can_open(s, now_of(p))) {
		pthread_rwlock_unlock(&h->lock);
		p->lost += is_keepalive ? 0 : n;
		return;
	}
	wg_session_get(s);
	pthread_rwlock_unlock(&h->lock);
	for (size_t i = 0; i < n; i++) {
		ops[i] = (struct aead_op){msgs[i] + WG_HEADER_LEN, (uint32_t)lens[i] - WG_OVERHEAD,
			false, wire_wg_data_counter(msgs[i])};
	}
	/* Ends agree in advance here. A batch has one cipher, as a run of the node has. */
	wg_session_allow_cipher(s, AEAD_CIPHER_AES_256_GCM);
	size_t right = aead_open(a, wg_session_recv_key(s, wire_wg_data_cipher(msgs[0])), ops, n);
	uint64_t replays = 0, delivered = 0;
	pthread_rwlock_rdlock(&h->lock);
	wg_session_accept(h->device, s, now_of(p), ops, n, &p->hosts[1 - to].at, &replays, &note);
	pthread_rwlock_unlock(&h->lock);
	for (size_t i = 0; i < n; i++) {
		delivered += ops[i].ok && ops[i].len > 0;
	}
	p->lost += is_keepalive ? 0 : n - right;
	p->replays += is_keepalive ? 0 : replays;
	p->delivered += delivered;
	settle(p, to, &note, a);
	wg_session_put(s);
}

static void
send_batch(struct pair *p, size_t from, struct rng *rng, struct aead *a)
{
	struct host *h = &p->hosts[from];
	uint8_t buf[BATCH][WG_OVERHEAD + PACKET_LEN] = {0}, copy[BATCH][WG_OVERHEAD + PACKET_LEN];
	uint8_t *msgs[BATCH], *copies[BATCH];
	size_t lens[BATCH];
	struct aead_op ops[BATCH];
	struct wg_note note;
	uint64_t first;
	static const uint8_t dst[4] = {10, 0, 0, 1};
	pthread_rwlock_rdlock(&h->lock);
	struct wg_peer *peer = wg_device_route_raw(h->device, IP_FAMILY_V4, dst);
	struct wg_session *s =
		wg_peer_begin_send(h->device, peer, now_of(p), BATCH, sizeof(buf), &first, &note);
	if (s) {
		wg_session_get(s);
	}
	pthread_rwlock_unlock(&h->lock);
	if (s) {
		/* The cipher changes while others are sending. */
		if (rng_below(rng, 8) == 0) {
			wg_session_set_send_cipher(s, rng_below(rng, 2) == 0
							      ? AEAD_CIPHER_CHACHA20_POLY1305
							      : AEAD_CIPHER_AES_256_GCM);
		}
		const struct aead_key *key = wg_session_send_key(s);
		p->by_cipher[key->cipher] += BATCH;
		for (size_t i = 0; i < BATCH; i++) {
			msgs[i] = buf[i];
			copies[i] = copy[i];
			lens[i] = sizeof(buf[i]);
			ops[i] = (struct aead_op){
				buf[i] + WG_HEADER_LEN, PACKET_LEN, false, first + i};
			wire_wg_data_write_header(
				buf[i], key->cipher, wg_session_remote_index(s), first + i);
		}
		aead_seal(a, key, ops, BATCH);
		memcpy(copy, buf, sizeof(copy));
		p->sent += BATCH;
		accept_data(p, 1 - from, msgs, lens, BATCH, a);
		if (rng_below(rng, 4) == 0) {
			p->sent += BATCH;
			p->duplicates += BATCH;
			accept_data(p, 1 - from, copies, lens, BATCH, a);
		}
		wg_session_put(s);
	} else {
		p->staged++;
	}
	settle(p, from, &note, a);
}

struct worker {
	struct pair *pair;
	uint64_t seed;
};

static void *
work(void *arg)
{
	struct worker *w = arg;
	struct rng rng;
	struct aead *a;
	rng_init(&rng, w->seed);
	if (aead_new(AEAD_BACKEND_LIBCRYPTO, &a)) {
		return NULL;
	}
	for (int i = 0; i < ROUNDS; i++) {
		send_batch(w->pair, rng_below(&rng, 2), &rng, a);
		struct wg_peer_info info;
		struct host *h = &w->pair->hosts[i % 2];
		pthread_rwlock_rdlock(&h->lock);
		wg_peer_info(h->peer, &info);
		pthread_rwlock_unlock(&h->lock);
	}
	aead_free(a);
	return w;
}

/* Time passes, peers come and go, the device ticks. */
static void *
govern(void *arg)
{
	struct pair *p = arg;
	struct aead *a;
	struct rng rng;
	rng_init(&rng, 99);
	if (aead_new(AEAD_BACKEND_LIBCRYPTO, &a)) {
		return NULL;
	}
	while (!atomic_load(&p->is_over)) {
		atomic_fetch_add(&p->now_ns, (int64_t)rng_below(&rng, 500) * WEFT_NS_PER_MS);
		size_t i = rng_below(&rng, 2);
		struct host *h = &p->hosts[i];
		struct outbox box;
		outbox_init(&box, h);
		pthread_rwlock_wrlock(&h->lock);
		uint8_t key[32];
		struct wg_peer *extra;
		rng_fill(&rng, key, sizeof(key));
		if (wg_peer_add(h->device, key, &extra) == WEFT_OK) {
			struct ip_prefix prefix = {
				.addr = {.family = IP_FAMILY_V4, .b = {10, 9}}, .bits = 16};
			wg_peer_set_endpoint(extra, &h->at);
			if (wg_peer_allow(h->device, extra, &prefix)) {
				atomic_store(&p->is_over, true);
			}
		}
		struct wg_peer *first = wg_peer_next(h->device, h->peer);
		if (wg_device_peer_count(h->device) > 10 && first) {
			wg_peer_remove(h->device, first);
		}
		if (rng_below(&rng, 50) == 0) {
			/* Sessions end under the workers' hands. */
			uint8_t own[32];
			if (wg_device_private_key(h->device, own)) {
				wg_device_set_private_key(h->device, own);
			}
		}
		wg_device_tick(h->device, time_of(p), &box.out);
		pthread_rwlock_unlock(&h->lock);
		exchange(p, i, &box, a);
	}
	aead_free(a);
	return p;
}

static void
pair_init(struct pair *p)
{
	memset(p, 0, sizeof(*p));
	p->now_ns = 1;
	uint8_t public[2][32];
	for (size_t i = 0; i < 2; i++) {
		struct host *h = &p->hosts[i];
		uint8_t key[32];
		rng_init(&h->rng, 7 + i);
		struct wg_device_config c = {.entropy = {fill, &h->rng}};
		pthread_rwlockattr_t attr;
		pthread_rwlockattr_init(&attr);
		/* glibc prefers readers by default, and busy workers would starve the writer. */
		pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
		pthread_rwlock_init(&h->lock, &attr);
		pthread_rwlockattr_destroy(&attr);
		h->at = (struct endpoint){
			.addr = {.family = IP_FAMILY_V4, .b = {127, 0, 0, (uint8_t)(i + 1)}},
			.port = 51820};
		assert_int_equal(wg_device_new(&c, &h->device), WEFT_OK);
		rng_fill(&h->rng, key, sizeof(key));
		wg_device_set_private_key(h->device, key);
		assert_true(wg_device_public_key(h->device, public[i]));
	}
	for (size_t i = 0; i < 2; i++) {
		struct host *h = &p->hosts[i];
		struct ip_prefix prefix = {
			.addr = {.family = IP_FAMILY_V4, .b = {10, 0, 0, 1}}, .bits = 32};
		assert_int_equal(wg_peer_add(h->device, public[1 - i], &h -> peer), WEFT_OK);
		assert_int_equal(wg_peer_allow(h->device, h->peer, &prefix), WEFT_OK);
		wg_peer_set_endpoint(h->peer, &p->hosts[1 - i].at);
	}
}

static void
workers_and_a_governor_share_two_devices(void **state)
{
	(void)state;
	static struct pair p;
	pthread_t threads[WORKERS], governor;
	struct worker workers[WORKERS];
	pair_init(&p);
	assert_int_equal(pthread_create(&governor, NULL, govern, &p), 0);
	for (size_t i = 0; i < WORKERS; i++) {
		workers[i] = (struct worker){&p, i + 1};
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}
	for (size_t i = 0; i < WORKERS; i++) {
		void *result;
		pthread_join(threads[i], &result);
		assert_ptr_equal(result, &workers[i]);
	}
	atomic_store(&p.is_over, true);
	pthread_join(governor, NULL);
	for (size_t i = 0; i < 2; i++) {
		wg_device_free(p.hosts[i].device);
		pthread_rwlock_destroy(&p.hosts[i].lock);
	}
	print_message(
		"sent %llu, delivered %llu, lost with their session %llu, replays %llu, batches "
		"without session %llu, virtual time %llu s\n",
		(unsigned long long)p.sent, (unsigned long long)p.delivered,
		(unsigned long long)p.lost, (unsigned long long)p.replays,
		(unsigned long long)p.staged, (unsigned long long)(p.now_ns / WEFT_NS_PER_S));
	/* Nothing twice, nothing lost but with its session: what is not delivered is a replay, and
	 * replays are our duplicates. */
	assert_true(p.delivered > 0);
	assert_true(p.by_cipher[AEAD_CIPHER_CHACHA20_POLY1305] > 0);
	assert_true(p.by_cipher[AEAD_CIPHER_AES_256_GCM] > 0);
	assert_int_equal(p.delivered + p.lost + p.replays, p.sent);
	assert_true(p.replays <= p.duplicates);
	assert_true(p.delivered <= p.sent - p.duplicates);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_and_a_governor_share_two_devices),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
