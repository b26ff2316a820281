/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "base/endian.h"
#include "os/thread.h"
#include "pkt/csum.h"
#include "pkt/ecn.h"
#include "pair.h"
#include "wire/wg.h"

static struct wg_time
at_ms(int64_t ms)
{
	return (struct wg_time){
		{ms * WEFT_NS_PER_MS}, (INT64_C(1700000000) * 1000 + ms) * WEFT_NS_PER_MS};
}

static const struct ally_policy open_policy = {.has_extensions = true,
	.cipher = ALLY_CIPHER_AES_256_GCM,
	.fec = {.mode = FEC_MODE_AUTO, .budget_us = 20000}};

/* One packet each way, so that there is a session, and a moment for HELLOs. */
static void
meet(struct pair *p, int64_t *ms)
{
	uint16_t flow;
	uint32_t seq, len;
	for (unsigned i = 0; i < 2; i++) {
		assert_true(pair_inject(p, i, 0, 1, 0, 100));
		pair_run(p, at_ms(*ms), 20);
		assert_true(pair_take(p, 1 - i, 0, &flow, &seq, &len));
	}
	*ms += 5;
	pair_run(p, at_ms(*ms), 4);
}

static uint64_t
ext_drops(const struct pair *p, unsigned i)
{
	return p->node[i].w[0]->stats.drops.n[DROP_RX_EXT];
}

static void
recover_agrees_by_hello_and_moves_to_the_common_cipher(void **state)
{
	(void)state;
	const struct ally_policy *const both[2] = {&open_policy, &open_policy};
	struct pair p;
	int64_t ms = 1000;
	pair_init_allied(&p, 1, 1, both);
	meet(&p, &ms);
	for (unsigned i = 0; i < 2; i++) {
		struct ally_info info;
		ally_info(pair_peer(&p, i), &info);
		assert_int_equal(info.state, ALLY_STATE_AGREED);
		assert_int_equal(info.cipher, AEAD_CIPHER_AES_256_GCM);
		assert_string_equal(info.name, "node");
		assert_true(info.has_fec);
		assert_int_equal(ext_drops(&p, i), 0);
		uint64_t marked = p.filters[i][0].marked;
		uint16_t flow;
		uint32_t seq, len;
		assert_true(pair_inject(&p, i, 0, 1, 7, 100));
		pair_run(&p, at_ms(ms), 4);
		assert_true(pair_take(&p, 1 - i, 0, &flow, &seq, &len));
		assert_int_equal(seq, 7);
		assert_int_equal(p.filters[i][0].marked, marked + 1);
	}
	pair_fini(&p);
}

/* The HELLO comes right behind the packet that confirms the first session, in the same batch. */
static void
recover_answers_the_first_hello_of_a_peer_without_policy(void **state)
{
	(void)state;
	const struct ally_policy *const none[2] = {&pair_no_policy, &pair_no_policy};
	struct pair p;
	int64_t ms = 1000;
	pair_init_allied(&p, 1, 1, none);
	meet(&p, &ms);
	for (unsigned i = 0; i < 2; i++) {
		struct ally_info info;
		ally_info(pair_peer(&p, i), &info);
		assert_int_equal(info.state, ALLY_STATE_AGREED);
		assert_int_equal(ext_drops(&p, i), 0);
	}
	pair_fini(&p);
}

static void
recover_sends_a_stock_peer_three_hellos_and_nothing_else(void **state)
{
	(void)state;
	const struct ally_policy *const one[2] = {&open_policy, NULL};
	struct pair p;
	int64_t ms = 1000;
	pair_init_allied(&p, 1, 2, one);
	meet(&p, &ms);
	/* Long enough for every try, and for several sessions. */
	for (int64_t end = ms + 600000; ms < end; ms += 50) {
		if (ms % 1000 < 50) {
			assert_true(pair_inject(&p, 0, 0, 1, 0, 100));
		}
		pair_run(&p, at_ms(ms), 1);
	}
	assert_int_equal(ext_drops(&p, 1), 3);
	assert_int_equal(p.filters[0][0].marked, 0);
	struct ally_info info;
	ally_info(pair_peer(&p, 0), &info);
	assert_int_equal(info.state, ALLY_STATE_STOCK);
	pair_fini(&p);
}

static void
recover_is_silent_towards_a_peer_with_extensions_off(void **state)
{
	(void)state;
	struct ally_policy closed = open_policy;
	closed.has_extensions = false;
	const struct ally_policy *const policies[2] = {&open_policy, &closed};
	struct pair p;
	int64_t ms = 1000;
	pair_init_allied(&p, 1, 3, policies);
	meet(&p, &ms);
	for (int64_t end = ms + 20000; ms < end; ms += 50) {
		pair_run(&p, at_ms(ms), 1);
	}
	struct ally_info info;
	ally_info(pair_peer(&p, 1), &info);
	assert_int_equal(info.state, ALLY_STATE_OFF);
	assert_int_equal(ext_drops(&p, 0), 0);
	assert_in_range(ext_drops(&p, 1), 1, 3);
	pair_fini(&p);
}

/* 100 packets/ms for a while through loss: what comes out, each once. */
static void
run_lossy(unsigned workers, double loss, uint64_t seed, uint32_t per_ms, uint32_t *missing)
{
	enum { PACKETS = 20000 };
	static bool has[PACKETS];
	const struct ally_policy *const both[2] = {&open_policy, &open_policy};
	struct pair p;
	int64_t ms = 1000;
	uint16_t flow;
	uint32_t seq, len, sent = 0, got = 0;
	pair_init_allied(&p, workers, seed, both);
	meet(&p, &ms);
	memset(has, 0, sizeof(has));
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned k = 0; k < workers; k++) {
			p.filters[i][k].loss = loss;
		}
	}
	for (unsigned idle = 0; idle < 300; ms++, idle++) {
		for (uint32_t k = 0; k < per_ms && sent < PACKETS; k++, idle = 0) {
			assert_true(
				pair_inject(&p, 0, sent % workers, 1, sent, 36 + sent % 7 * 200));
			sent++;
		}
		pair_run(&p, at_ms(ms), 2);
		for (unsigned k = 0; k < workers; k++) {
			while (pair_take(&p, 1, k, &flow, &seq, &len)) {
				assert_in_range(seq, 0, PACKETS - 1);
				assert_false(has[seq]);
				assert_int_equal(len, 36 + seq % 7 * 200);
				has[seq] = true;
				got++;
			}
		}
	}
	assert_true(p.filters[0][0].lost > 0);
	*missing = PACKETS - got;
	assert_int_equal(ext_drops(&p, 0) + ext_drops(&p, 1), 0);
	pair_fini(&p);
}

static void
recover_brings_back_what_a_lossy_link_takes(void **state)
{
	(void)state;
	const double losses[] = {0.01, 0.05, 0.1, 0.2};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(losses); i++) {
		uint32_t missing;
		run_lossy(1, losses[i], 10 + i, 4, &missing);
		/* What was lost before the first report is not remembered by the sender. */
		assert_in_range(missing, 0, 20);
	}
}

static void
recover_works_with_four_workers(void **state)
{
	(void)state;
	uint32_t missing;
	run_lossy(4, 0.05, 20, 40, &missing);
	assert_in_range(missing, 0, 100);
}

struct turner {
	struct os_thread thread;
	struct pair_node *node;
	unsigned index;
	_Atomic int64_t *ms; /* negative: stop */
	_Atomic unsigned turns;
};

static void
turn(void *arg)
{
	struct turner *t = arg;
	int64_t ms;
	while ((ms = atomic_load(t->ms)) >= 0) {
		struct wg_time now = at_ms(ms);
		if (t->index == 0 && atomic_load(&t->node->deadline_ns) <= now.mono.ns) {
			worker_tick(t->node->w[0], now);
		}
		if (!worker_turn(
			    t->node->w[t->index], now, WORKER_READY_LINK | WORKER_READY_PORT)) {
			os_thread_yield();
		}
		atomic_fetch_add(&t->turns, 1);
	}
}

/* Their clock stands still meanwhile: a busy machine must not make time pass without them. */
static void
let_each_turn(struct turner turners[2][4])
{
	unsigned before[8];
	for (unsigned i = 0; i < 8; i++) {
		before[i] = atomic_load(&turners[i / 4][i % 4].turns);
	}
	for (unsigned i = 0; i < 8; i++) {
		while (atomic_load(&turners[i / 4][i % 4].turns) == before[i]) {
			os_thread_yield();
		}
	}
}

static void
recover_is_told_of_counters_in_order_by_four_threads(void **state)
{
	(void)state;
	enum { PACKETS = 20000 };
	struct ally_policy fixed = open_policy;
	fixed.fec = (struct fec_policy){.mode = FEC_MODE_FIXED, .percent = 50, .budget_us = 20000};
	const struct ally_policy *const both[2] = {&fixed, &fixed};
	struct pair p;
	int64_t ms = 1000;
	pair_init_allied(&p, 4, 30, both);
	meet(&p, &ms);
	_Atomic int64_t now_ms = ms;
	struct turner turners[2][4];
	for (unsigned i = 0; i < 8; i++) {
		struct turner *t = &turners[i / 4][i % 4];
		*t = (struct turner){.node = &p.node[i / 4], .index = i % 4, .ms = &now_ms};
		assert_int_equal(os_thread_start(&t->thread, "turn", 0, turn, t), WEFT_OK);
	}
	uint32_t sent = 0, got = 0, seq, len;
	uint16_t flow;
	/* A minute of their time at most: a session of this length needs no renewal. */
	for (unsigned n = 0; got < PACKETS && n < 60000; n++, ms++) {
		while (sent < PACKETS && sent - got < 400 &&
			pair_inject(&p, 0, sent % 4, (uint16_t)(sent % 4), sent, 100)) {
			sent++;
		}
		for (unsigned k = 0; k < 4; k++) {
			while (pair_take(&p, 1, k, &flow, &seq, &len)) {
				got++;
			}
		}
		atomic_store(&now_ms, ms);
		let_each_turn(turners);
	}
	atomic_store(&now_ms, -1);
	for (unsigned i = 0; i < 8; i++) {
		os_thread_join(&turners[i / 4][i % 4].thread);
	}
	struct ally_info info;
	ally_info(pair_peer(&p, 1), &info);
	assert_int_equal(got, PACKETS);
	assert_true(info.fec.rx.repairs > 0);
	assert_int_equal(info.fec.rx.repairs_refused, 0);
	pair_fini(&p);
}

static struct ally_info
info_of(struct pair *p, unsigned i)
{
	struct ally_info info;
	ally_info(pair_peer(p, i), &info);
	return info;
}

/* As node_set_policy() does. */
static void
set_policy(struct pair *p, unsigned i, const struct ally_policy *policy, struct wg_time now)
{
	struct pair_node *n = &p->node[i];
	struct wg_msg msgs[4];
	struct wg_event events[8];
	struct wg_out out = {.msgs = msgs,
		.msgs_cap = 4,
		.events = events,
		.events_cap = 8,
		.drops = &n->w[0]->stats.drops};
	bool wants_session;
	struct ally *a = wg_peer_ally(pair_peer(p, i));
	(void)ally_set_policy(&n->allies, a, policy, now.mono, &wants_session);
	if (wants_session) {
		wg_peer_renew(n->device, pair_peer(p, i), now, &out);
	}
	atomic_store(&n->deadline_ns, 0);
	for (size_t k = 0; k < out.msgs_n; k++) {
		struct link_run run = {.to = &msgs[k].to,
			.data = msgs[k].bytes,
			.len = msgs[k].len,
			.seg = msgs[k].len};
		n->w[0]->link->ops->send(n->w[0]->link, &run, 1);
	}
}

/* What node 1 counts of n packets of one batch and, when it has emptied its socket, of one more
 * that is behind another that never came, of which the kernel counts a drop. */
static struct fec_recovery_stats
drop_behind(unsigned n)
{
	const struct ally_policy *const both[2] = {&open_policy, &open_policy};
	struct pair p;
	int64_t ms = 1000;
	struct ally_info info;
	pair_init_allied(&p, 1, 12, both);
	meet(&p, &ms);
	for (int i = 0; i < 4; i++) {
		pair_run(&p, at_ms(++ms), 2);
	}
	for (unsigned i = 0; i < n; i++) {
		assert_true(pair_inject(&p, 0, 0, 1, i, 100));
	}
	pair_run(&p, at_ms(++ms), 4);
	p.filters[0][0].loss = 1;
	assert_true(pair_inject(&p, 0, 0, 1, n, 100));
	pair_run(&p, at_ms(++ms), 2);
	assert_int_equal(p.filters[0][0].lost, 1);
	p.filters[0][0].loss = 0;
	p.filters[1][0].has_dropped = true;
	assert_true(pair_inject(&p, 0, 0, 1, n + 1, 100));
	for (int i = 0; i < 100; i++) {
		pair_run(&p, at_ms(++ms), 1);
	}
	ally_info(pair_peer(&p, 1), &info);
	assert_false(p.filters[1][0].has_dropped);
	pair_fini(&p);
	return info.fec;
}

/* A full socket has drops behind all that it holds, and a datagram with a wrong checksum, which the
 * kernel counts as well, has not. */
static void
recover_tells_a_full_socket_from_a_loss_of_the_path(void **state)
{
	(void)state;
	struct fec_recovery_stats full = drop_behind(20), wrong = drop_behind(2);
	assert_int_equal(full.rx.lost, 0);
	assert_int_equal(full.rx.overflowed, 1);
	assert_int_equal(wrong.rx.lost, 1);
	assert_int_equal(wrong.rx.overflowed, 0);
}

/* Both ends learn of it, whoever began the session: the next one has it. */
static void
recover_follows_policies_that_change_in_a_session(void **state)
{
	(void)state;
	const struct ally_policy *const both[2] = {&open_policy, &open_policy};
	const struct ally_policy plain = {.has_extensions = true,
		.cipher = ALLY_CIPHER_CHACHA20_POLY1305,
		.fec = {.mode = FEC_MODE_OFF}};
	const struct ally_policy closed = {.cipher = ALLY_CIPHER_AES_256_GCM};
	for (unsigned i = 0; i < 2; i++) {
		struct pair p;
		int64_t ms = 1000;
		pair_init_allied(&p, 1, 6 + i, both);
		meet(&p, &ms);
		const struct ally_policy *const turns[] = {
			&plain, &open_policy, &closed, &open_policy};
		for (size_t k = 0; k < WEFT_ARRAY_LEN(turns); k++) {
			bool is_open = turns[k] == &open_policy;
			set_policy(&p, i, turns[k], at_ms(ms));
			if (!is_open) {
				assert_int_equal(
					info_of(&p, i).cipher, AEAD_CIPHER_CHACHA20_POLY1305);
			}
			for (int64_t end = ms + 12000; ms < end; ms += 10) {
				pair_run(&p, at_ms(ms), 4);
			}
			for (unsigned side = 0; side < 2; side++) {
				struct ally_info info = info_of(&p, side);
				assert_int_equal(
					info.state == ALLY_STATE_AGREED, turns[k] != &closed);
				assert_int_equal(info.has_fec, is_open);
				assert_int_equal(
					info.cipher, is_open ? AEAD_CIPHER_AES_256_GCM
							     : AEAD_CIPHER_CHACHA20_POLY1305);
			}
		}
		pair_fini(&p);
	}
}

static void
recover_lets_go_of_a_removed_peer(void **state)
{
	(void)state;
	const struct ally_policy *const both[2] = {&open_policy, &open_policy};
	struct pair p;
	int64_t ms = 1000;
	pair_init_allied(&p, 1, 4, both);
	meet(&p, &ms);
	struct pair_node *n = &p.node[0];
	wg_peer_remove(n->device, pair_peer(&p, 0));
	atomic_store(&n->deadline_ns, 0);
	pair_run(&p, at_ms(ms + 2000), 2);
	assert_true(list_is_empty(&n->allies.all));
	assert_true(list_is_empty(&n->allies.active));
	pair_fini(&p);
}

/* Node 0 sends this text, whatever it is, in its session. */
static void
send_text(struct pair *p, const uint8_t *text, uint32_t len)
{
	uint8_t datagram[200] = {0};
	struct wg_session *s = wg_peer_session(pair_peer(p, 0));
	const struct aead_key *key = wg_session_send_key(s);
	uint64_t counter;
	assert_true(wg_session_begin_frames(s, 1, &counter));
	wire_wg_data_write_header(datagram, key->cipher, wg_session_remote_index(s), counter);
	memcpy(datagram + WG_HEADER_LEN, text, len);
	struct aead_op op = {.data = datagram + WG_HEADER_LEN, .len = len, .counter = counter};
	aead_seal(p->node[0].w[0]->aead, key, &op, 1);
	struct endpoint to = wg_peer_endpoint(pair_peer(p, 0));
	uint16_t datagram_len = (uint16_t)(len + WG_OVERHEAD);
	struct link_run run = {
		.to = &to, .data = datagram, .len = datagram_len, .seg = datagram_len};
	struct link *l = p->node[0].w[0]->link;
	l->ops->send(l, &run, 1);
}

/* Of a later version, perhaps: it is dropped, counted, and no loss. */
static void
recover_drops_frames_of_unknown_types(void **state)
{
	(void)state;
	const struct ally_policy *const both[2] = {&open_policy, &open_policy};
	static const uint8_t unknown[] = {9, 1, 2, 3};
	struct ally_info info;
	struct pair p;
	int64_t ms = 1000;
	pair_init_allied(&p, 1, 5, both);
	meet(&p, &ms);
	uint64_t frames = p.node[1].w[0]->stats.frames_rx;
	assert_in_range(frames, 1, 2);
	send_text(&p, unknown, sizeof(unknown));
	pair_run(&p, at_ms(ms), 4);
	assert_int_equal(ext_drops(&p, 1), 1);
	/* Nor is one that is refused. */
	static const uint8_t hello[] = {WIRE_EXT_TYPE_HELLO, 0, 1};
	send_text(&p, hello, sizeof(hello));
	pair_run(&p, at_ms(ms), 4);
	assert_int_equal(ext_drops(&p, 1), 2);
	assert_int_equal(p.node[1].w[0]->stats.frames_rx, frames);
	uint16_t flow;
	uint32_t seq, len;
	assert_true(pair_inject(&p, 0, 0, 1, 8, 100));
	pair_run(&p, at_ms(ms + 100), 4);
	assert_true(pair_take(&p, 1, 0, &flow, &seq, &len));
	pair_run(&p, at_ms(ms + 200), 4);
	ally_info(pair_peer(&p, 1), &info);
	assert_int_equal(info.fec.rx.lost, 0);
	pair_fini(&p);
}

/* Loss recovery's own frames give away an agreement whose HELLO was lost; others do not. */
static void
recover_presumes_nothing_from_frames_of_unknown_types(void **state)
{
	(void)state;
	const struct ally_policy *const one[2] = {NULL, &open_policy};
	static const uint8_t unknown[] = {9, 1, 2, 3};
	struct ally_info info;
	struct pair p;
	uint16_t flow;
	uint32_t seq, len;
	pair_init_allied(&p, 1, 6, one);
	assert_true(pair_inject(&p, 1, 0, 1, 0, 100));
	pair_run(&p, at_ms(1000), 20);
	assert_true(pair_take(&p, 0, 0, &flow, &seq, &len));
	send_text(&p, unknown, sizeof(unknown));
	pair_run(&p, at_ms(1001), 4);
	assert_int_equal(ext_drops(&p, 1), 1);
	ally_info(pair_peer(&p, 1), &info);
	assert_int_equal(info.state, ALLY_STATE_ASKING);
	assert_false(info.has_fec);
	pair_fini(&p);
}

/* --- marks --- */

/* From node 0 to node 1. */
static void
inject_ecn(struct pair *p, uint8_t ecn)
{
	uint8_t packet[100] = {0x45, ecn, 0,
		100, [8] = 64, [9] = 17, [12] = 10, [15] = 1, [16] = 10, [19] = 2, [25] = 80};
	csum_store(packet + 10, csum_header(packet, 20));
	struct frame f = {.data = packet, .len = sizeof(packet)};
	assert_true(port_mem_inject(p->node[0].w[0]->port, &f));
}

/* The ECN field of the next packet that comes out, whose header must be sound. */
static int
taken_ecn(struct pair *p)
{
	struct port_mem_frame f;
	if (!port_mem_take(p->node[1].w[0]->port, &f)) {
		return -1;
	}
	assert_int_equal(csum_fold(csum_header(f.data, 20)), 0xffff);
	return f.data[1] & 3;
}

/* A FEEDBACK of node 1 to node 0. */
static void
feed_back(struct pair *p, const struct wire_ext_feedback *f, int64_t ms)
{
	static uint64_t counter = 1000;
	struct fec_packet packets[4];
	uint8_t arena[4096], data[WIRE_EXT_FEEDBACK_MAX];
	struct fec_out out = {
		.packets = packets, .cap = 4, .arena = arena, .arena_cap = sizeof(arena)};
	size_t len = wire_ext_feedback_encode(f, data, sizeof(data));
	struct ally *a = wg_peer_ally(pair_peer(p, 0));
	uint64_t id = wg_session_id(wg_peer_session(pair_peer(p, 0)));
	const struct fec_arrival arrival = {.counter = counter++, .data = data, .len = len};
	assert_true(fec_recovery_received(a->recovery, at_ms(ms).mono, id, &arrival, &out));
}

static void
recover_marks_ce_for_losses_that_a_queue_made_and_nobody_saw(void **state)
{
	(void)state;
	const struct ally_policy *const both[2] = {&open_policy, &open_policy};
	struct pair p;
	int64_t ms = 1000;
	pair_init_allied(&p, 1, 8, both);
	meet(&p, &ms);
	struct wire_ext_feedback f = {0};
	unsigned marked = 0;
	for (unsigned i = 0; i < 5; i++) {
		ms += 40;
		for (unsigned k = 0; k < 10; k++) {
			inject_ecn(&p, ECN_ECT0);
			pair_run(&p, at_ms(ms), 2);
			marked += taken_ecn(&p) == ECN_CE;
		}
		/* A line that loses by itself is not doubted after one report, or two. */
		if (i < 4) {
			assert_int_equal(marked, 0);
		} else {
			assert_in_range(marked, 3, 5);
		}
		/* The first loss is the line's, one of many; then there is a queue. */
		int64_t queue_ms = i == 0 ? 0 : 50;
		f.highest += 10;
		f.received += i == 0 ? 1000 : 30;
		f.lost += i == 0 ? 1 : 5;
		f.runs += i == 0 ? 1 : 5;
		f.recovered_answer += i == 0 ? 1 : 5;
		f.clock_us = (uint32_t)((ms + 1 + queue_ms) * 1000);
		ms += queue_ms + 2;
		feed_back(&p, &f, ms);
	}
	/* As many again, of which what is not capable takes none. */
	static const uint8_t sent[] = {
		ECN_NOT_ECT, ECN_CE, ECN_ECT1, ECN_NOT_ECT, ECN_ECT0, ECN_ECT1};
	static const uint8_t got[] = {ECN_NOT_ECT, ECN_CE, ECN_CE, ECN_NOT_ECT, ECN_CE, ECN_CE};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(sent); i++) {
		inject_ecn(&p, sent[i]);
		pair_run(&p, at_ms(ms), 2);
		assert_int_equal(taken_ecn(&p), got[i]);
	}
	assert_int_equal(info_of(&p, 0).fec.ce_marked, marked + 3);
	assert_int_equal(info_of(&p, 0).fec.why, FEC_WHY_CONGESTED);
	pair_fini(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recover_agrees_by_hello_and_moves_to_the_common_cipher),
		cmocka_unit_test(recover_answers_the_first_hello_of_a_peer_without_policy),
		cmocka_unit_test(recover_sends_a_stock_peer_three_hellos_and_nothing_else),
		cmocka_unit_test(recover_is_silent_towards_a_peer_with_extensions_off),
		cmocka_unit_test(recover_brings_back_what_a_lossy_link_takes),
		cmocka_unit_test(recover_works_with_four_workers),
		cmocka_unit_test(recover_is_told_of_counters_in_order_by_four_threads),
		cmocka_unit_test(recover_tells_a_full_socket_from_a_loss_of_the_path),
		cmocka_unit_test(recover_follows_policies_that_change_in_a_session),
		cmocka_unit_test(recover_lets_go_of_a_removed_peer),
		cmocka_unit_test(recover_drops_frames_of_unknown_types),
		cmocka_unit_test(recover_presumes_nothing_from_frames_of_unknown_types),
		cmocka_unit_test(recover_marks_ce_for_losses_that_a_queue_made_and_nobody_saw),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
