/* SPDX-License-Identifier: Apache-2.0 */
/* The transmit path end to end: a packet enters node 0 at its port, is routed, split, sealed and
 * put on the link; node 1 opens, checks, joins and delivers it.
 *
 * Serial: one packet in flight, both nodes on the calling thread, so a row is the latency of
 * injection. Saturate: each worker of node 0 has a thread that keeps `depth` packets in
 * flight, each of node 1 a thread that takes what arrives; nobody sleeps. */
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "bench/micro/flow.h"
#include "bench/path/path.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/thread.h"

#define MTU_MIN 1420
#define SEGMENTS 45 /* packets of a super-frame */
#define SEGMENT_LEN 1400
#define WARM_UP_NS (30 * WEFT_NS_PER_MS)
#define STUCK_NS (10 * WEFT_NS_PER_S)
#define MIB 1048576.0

static const uint32_t sizes[] = {64, 256, 1400, 9000};
static const unsigned depths[] = {1, 4, 16, 64, 256};
static const unsigned worker_counts[] = {1, 2, 4, 8, 16};

/* What is sent again and again. */
struct load {
	struct frame frame;
	unsigned packets; /* that the frame stands for */
	uint32_t size;    /* of each */
	uint8_t bytes[65536];
};

static void
load_init(struct load *l, uint32_t size, unsigned packets)
{
	struct flow f = {.family = IP_FAMILY_V4,
		.is_tcp = true,
		.src = {10, 0, 0, 1},
		.dst = {10, 0, 0, 2},
		.sport = 40000,
		.dport = 443,
		.seq = 1};
	uint32_t headers = flow_header_len(&f), payload = size - headers;
	l->packets = packets;
	l->size = size;
	flow_frame(&f, l->bytes, headers + packets * payload, packets > 1 ? (uint16_t)payload : 0,
		&l->frame);
}

static struct path *
connected(struct bench *b, const struct load *l, unsigned workers, unsigned depth)
{
	struct path *p;
	/* A record of up to half a ring always fits; twice the load leaves room for the rings'
	 * own bookkeeping, and keeps what is worked on as small as the depth allows. */
	size_t bytes = 2 * (size_t)depth * (l->frame.len + l->packets * 64 + 256);
	struct path_config c = {.workers = workers,
		.mtu = (uint16_t)(l->size > MTU_MIN ? l->size : MTU_MIN),
		.ring_bytes = bytes < 32768 ? 32768 : bytes,
		.has_gso = l->packets > 1};
	enum weft_err e = path_new(&c, &p);
	if (e) {
		bench_fail(b, "cannot build the path: %s", weft_err_text(e));
		return NULL;
	}
	e = path_connect(p, &l->frame);
	if (e) {
		bench_fail(b, "no session: %s", weft_err_text(e));
		path_free(p);
		return NULL;
	}
	return p;
}

/* Everything must have arrived; then frees the path. But a worker that is taken off its
 * processor with a batch in hand sends it when the others, who draw from the same counters,
 * are more than a replay window further: a loss that a loaded machine really has. */
static void
finish(struct bench *b, struct path *p)
{
	uint64_t late = 0;
	for (unsigned i = 0; i < 2 * p->workers; i++) {
		struct drop_counts d;
		path_drops(p, i % 2, i / 2, &d);
		if (p->workers > 1) {
			late += d.n[DROP_RX_REPLAY];
			d.n[DROP_RX_REPLAY] = 0;
		}
		for (unsigned k = 0; k < DROP_COUNT; k++) {
			if (d.n[k] > 0) {
				bench_fail(b, "%lu packets were dropped as %s",
					(unsigned long)d.n[k], drop_name((enum drop_reason)k));
			}
		}
	}
	if (late > 0) {
		bench_note(b, "%u workers: %lu packets came too late for the replay window",
			p->workers, (unsigned long)late);
	}
	path_free(p);
}

struct serial {
	struct path *path;
	const struct load *load;
	uint64_t wrong; /* deliveries of another length, or none */
	uint64_t sum;
};

static void
send_in_turn(void *ctx, uint64_t n)
{
	struct serial *s = ctx;
	struct port *in = s->path->nodes[0].workers[0]->port;
	struct port *out = s->path->nodes[1].workers[0]->port;
	for (uint64_t i = 0; i < n; i++) {
		struct port_mem_frame got;
		s->wrong += !port_mem_inject(in, &s->load->frame);
		path_turn(s->path, 0, 0);
		path_turn(s->path, 1, 0);
		if (port_mem_take(out, &got) && got.len == s->load->frame.len) {
			s->sum += got.data[got.len - 1];
		} else {
			s->wrong++;
		}
	}
}

static void
run_serial(struct bench *b, struct load *l)
{
	for (size_t i = 0; i < WEFT_ARRAY_LEN(sizes); i++) {
		load_init(l, sizes[i], 1);
		struct serial s = {.path = connected(b, l, 1, 1), .load = l};
		struct bench_label label = {.plot = "serial: one packet in flight, latency",
			.series = "port to port",
			.x_name = "bytes a packet",
			.x = sizes[i],
			.unit = "ns/packet"};
		if (!s.path) {
			return;
		}
		double latency_ns = bench_time(b, &label, send_in_turn, &s, 1);
		double rate = sizes[i] / MIB * 1e9 / (latency_ns > 0 ? latency_ns : 1);
		label.plot = "serial: one packet in flight, throughput";
		label.unit = "MiB/s";
		label.more_is_better = true;
		bench_add(b, &label, &rate, 1);
		bench_use(b, s.sum);
		if (s.wrong > 0) {
			bench_fail(b, "%lu packets did not arrive whole", (unsigned long)s.wrong);
		}
		finish(b, s.path);
	}
}

/* One worker of node 0 and its counterpart of node 1. */
struct lane {
	struct path *path;
	const struct load *load;
	unsigned index;
	unsigned depth;
	const _Atomic bool *is_stopping;
	struct os_thread sender, receiver;
	/* Packets; written by the receiver. */
	WEFT_ALIGNED(64) _Atomic uint64_t delivered;
	_Atomic uint64_t settled; /* delivered or lost: no longer in flight */
	uint64_t sum;             /* the receiver's */
};

static void
run_sender(void *arg)
{
	struct lane *lane = arg;
	struct port *port = lane->path->nodes[0].workers[lane->index]->port;
	uint64_t sent = 0, limit = (uint64_t)lane->depth * lane->load->packets;
	while (!atomic_load_explicit(lane->is_stopping, memory_order_relaxed)) {
		uint64_t settled = atomic_load_explicit(&lane->settled, memory_order_acquire);
		bool has_sent = false;
		while (sent - settled < limit && port_mem_inject(port, &lane->load->frame)) {
			sent += lane->load->packets;
			has_sent = true;
		}
		path_turn(lane->path, 0, lane->index);
		if (!has_sent) {
			os_thread_yield();
		}
	}
}

/* The only loss that finish() forgives. */
static uint64_t
replays_of(const struct lane *lane)
{
	struct drop_counts d;
	path_drops(lane->path, 1, lane->index, &d);
	return d.n[DROP_RX_REPLAY];
}

static void
run_receiver(void *arg)
{
	struct lane *lane = arg;
	struct port *port = lane->path->nodes[1].workers[lane->index]->port;
	uint64_t delivered = 0;
	while (!atomic_load_explicit(lane->is_stopping, memory_order_relaxed)) {
		struct port_mem_frame got;
		bool has_got = false;
		path_turn(lane->path, 1, lane->index);
		while (port_mem_take(port, &got)) {
			lane->sum += got.data[got.len - 1];
			delivered += got.packets;
			has_got = true;
		}
		atomic_store_explicit(&lane->delivered, delivered, memory_order_relaxed);
		atomic_store_explicit(
			&lane->settled, delivered + replays_of(lane), memory_order_release);
		if (!has_got) {
			os_thread_yield();
		}
	}
}

static uint64_t
delivered_by_all(struct lane *lanes, unsigned n)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < n; i++) {
		sum += atomic_load_explicit(&lanes[i].delivered, memory_order_acquire);
	}
	return sum;
}

static void
measure_flow(struct bench *b, struct lane *lanes, unsigned n, const struct bench_label *label)
{
	unsigned rounds = bench_rounds(b);
	double *values = calloc(rounds, sizeof(*values));
	weft_assert(values);
	os_clock_sleep_ns(WARM_UP_NS);
	for (unsigned i = 0; i < rounds; i++) {
		struct mono t0 = os_clock_mono();
		uint64_t before = delivered_by_all(lanes, n), packets = 0;
		int64_t took_ns = 0;
		/* On a loaded machine a window may end before any thread had its turn. */
		while (packets == 0 && took_ns < STUCK_NS) {
			os_clock_sleep_ns((int64_t)(bench_seconds(b) * 1e9 / rounds));
			packets = delivered_by_all(lanes, n) - before;
			took_ns = mono_diff_ns(os_clock_mono(), t0);
		}
		if (packets == 0) {
			bench_fail(b, "%s: nothing arrives any more", label->series);
		}
		values[i] = (double)packets * lanes[0].load->size / MIB / ((double)took_ns / 1e9);
	}
	bench_add(b, label, values, rounds);
	free(values);
}

static void
run_flow(struct bench *b, const struct load *l, unsigned workers, unsigned depth,
	const struct bench_label *label)
{
	struct lane *lanes = aligned_alloc(64, workers * sizeof(*lanes));
	_Atomic bool is_stopping = false;
	weft_assert(lanes);
	struct path *p = connected(b, l, workers, depth);
	if (!p) {
		free(lanes);
		return;
	}
	for (unsigned i = 0; i < workers; i++) {
		lanes[i] = (struct lane){.path = p,
			.load = l,
			.index = i,
			.depth = depth,
			.is_stopping = &is_stopping};
	}
	bool has_started = true;
	for (unsigned i = 0; i < workers && has_started; i++) {
		struct lane *lane = &lanes[i];
		has_started =
			os_thread_start(&lane->receiver, "receiver", 0, run_receiver, lane) ==
				WEFT_OK &&
			os_thread_start(&lane->sender, "sender", 0, run_sender, lane) == WEFT_OK;
	}
	if (has_started) {
		measure_flow(b, lanes, workers, label);
	} else {
		bench_fail(b, "cannot start threads");
	}
	atomic_store(&is_stopping, true);
	for (unsigned i = 0; i < workers; i++) {
		os_thread_join(&lanes[i].sender);
		os_thread_join(&lanes[i].receiver);
		bench_use(b, lanes[i].sum);
	}
	free(lanes);
	finish(b, p);
}

static void
run_depths(struct bench *b, struct load *l)
{
	char series[64];
	struct bench_label label = {.plot = "saturate: one worker, by packets in flight",
		.series = series,
		.x_name = "packets in flight",
		.unit = "MiB/s",
		.more_is_better = true};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(sizes); i++) {
		load_init(l, sizes[i], 1);
		snprintf(series, sizeof(series), "%u B", sizes[i]);
		for (size_t k = 0; k < WEFT_ARRAY_LEN(depths); k++) {
			label.x = depths[k];
			run_flow(b, l, 1, depths[k], &label);
		}
	}
}

static void
run_workers(struct bench *b, struct load *l)
{
	char series[64];
	unsigned cpus = os_process_cpus(), most = cpus > 4 ? cpus : 4;
	struct bench_label label = {.plot = "saturate: 256 packets in flight a worker, by workers",
		.series = series,
		.x_name = "workers of each node",
		.unit = "MiB/s",
		.more_is_better = true};
	for (size_t i = 0; i <= WEFT_ARRAY_LEN(sizes); i++) {
		bool is_super = i == WEFT_ARRAY_LEN(sizes);
		if (is_super) {
			load_init(l, SEGMENT_LEN, SEGMENTS);
			snprintf(series, sizeof(series), "%u B in frames of %u", SEGMENT_LEN,
				SEGMENTS);
		} else {
			load_init(l, sizes[i], 1);
			snprintf(series, sizeof(series), "%u B", sizes[i]);
		}
		for (size_t k = 0; k < WEFT_ARRAY_LEN(worker_counts); k++) {
			if (worker_counts[k] <= most) {
				label.x = worker_counts[k];
				run_flow(b, l, worker_counts[k], is_super ? 6 : 256, &label);
			}
		}
	}
	bench_note(b,
		"%u processors; with w workers 2 w threads run, half of them sealing, half opening",
		cpus);
}

void
bench_tx(struct bench *b)
{
	struct load *l = malloc(sizeof(*l));
	if (!l) {
		bench_fail(b, "out of memory");
		return;
	}
	run_serial(b, l);
	run_depths(b, l);
	run_workers(b, l);
	free(l);
}
