/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting and joining against the kernel's own: super-packets of random headers are routed
 * from one TUN to others, where the kernel cuts them or hands them out whole.
 *
 *   in [offloads] -- kernel routes --+-- plain [none: the kernel cuts]
 *                                    +-- whole [offloads: we split]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "../os/netns.h"
#include "../pkt/batch.h"
#include "../pkt/naive.h"
#include "base/compiler.h"
#include "os/fd.h"
#include "os/tun.h"
#include "pkt/gso.h"
#include "port/tun.h"
#include "wire/vnet.h"

#define SEEDS 200
#define FRAME_CAP (65535 + 64)
#define ARENA_CAP (256u << 10)
#define SEGS_CAP 256
#define WAIT_MS 5000

enum which { IN, PLAIN, WHOLE, DEVICES };

struct lab {
	int home;
	struct os_tun tun[DEVICES];
	struct port *port[DEVICES];
	struct log log;
	struct batch batch;
	uint8_t *got, *super, *payload, *arena;
	struct gso_seg segs[SEGS_CAP];
};

static struct lab lab;

static void
ignore_line(void *ctx, enum log_level level, const char *text)
{
	(void)ctx, (void)level, (void)text;
}

static int
set_up(void **state)
{
	(void)state;
	static const enum os_tun_offload levels[] = {
		OS_TUN_OFFLOAD_USO, OS_TUN_OFFLOAD_NONE, OS_TUN_OFFLOAD_USO};
	lab.home = netns_here();
	lab.log = (struct log){.sink = ignore_line, .level = LOG_LEVEL_ERROR};
	netns_fresh();
	netns_run("sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 "
		  "net.ipv6.conf.default.addr_gen_mode=1");
	for (int i = 0; i < DEVICES; i++) {
		assert_int_equal(os_tun_open(&lab.tun[i], "wt%d", 1, levels[i], &lab.log), WEFT_OK);
		assert_int_equal(lab.tun[i].offload, levels[i]);
		const char *name = lab.tun[i].name;
		netns_run("ip link set %s mtu 1500 txqueuelen 5000 up && ip addr add 10.%d.0.1/24 "
			  "dev %s && ip -6 addr add fd0%d::1/64 dev %s nodad",
			name, i, name, i, name);
		struct port_tun_config c = {.fd = lab.tun[i].fds[0],
			.offload = levels[i],
			.mtu = 1500,
			.log = &lab.log};
		assert_int_equal(port_tun_new(&c, &lab.port[i]), WEFT_OK);
	}
	batch_init(&lab.batch, 1u << 20);
	lab.got = malloc(FRAME_CAP);
	lab.super = malloc(FRAME_CAP);
	lab.payload = malloc(FRAME_CAP);
	lab.arena = malloc(ARENA_CAP);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	for (int i = 0; i < DEVICES; i++) {
		lab.port[i]->ops->close(lab.port[i]);
		os_tun_close(&lab.tun[i]);
	}
	netns_enter(lab.home);
	os_fd_close(&lab.home);
	batch_fini(&lab.batch);
	free(lab.got);
	free(lab.super);
	free(lab.payload);
	free(lab.arena);
	return 0;
}

/* Addresses that the kernel routes from IN to the device, and no header that it stops at. */
static struct naive_packet
random_flow(struct rng *r, enum which to)
{
	struct naive_packet n = naive_random(r, false);
	memset(n.src, 0, sizeof(n.src));
	memset(n.dst, 0, sizeof(n.dst));
	if (n.version == 4) {
		memcpy(n.src, (uint8_t[]){10, IN, 0, 2}, 4);
		memcpy(n.dst, (uint8_t[]){10, (uint8_t)to, 0, 2}, 4);
	} else {
		n.src[0] = n.dst[0] = 0xfd;
		n.src[1] = IN;
		n.dst[1] = (uint8_t)to;
		n.src[15] = n.dst[15] = 2;
	}
	n.ttl = (uint8_t)(2 + n.ttl % 200);
	memset(n.options, 1, n.options_len);
	if (n.version == 6 && rng_below(r, 3) == 0) {
		n.ext_first = 60;
		n.ext_len = 8;
		memcpy(n.ext, (uint8_t[]){n.proto, 0, 1, 4, 0, 0, 0, 0}, 8);
	}
	return n;
}

static uint32_t
header_len(const struct naive_packet *n)
{
	uint32_t l4 = n->proto == 6 ? 20u + n->options_len : 8;
	return l4 + (n->version == 4 ? 20 : 40u + n->ext_len);
}

/* The next frame for us; the kernel's own reports on a new interface are skipped. */
static bool
next_frame(enum which from, struct frame *f)
{
	for (;;) {
		enum weft_err err =
			lab.port[from]->ops->receive(lab.port[from], lab.got, FRAME_CAP, f);
		if (err == WEFT_EAGAIN) {
			struct pollfd p = {.fd = port_tun_fd(lab.port[from]), .events = POLLIN};
			if (poll(&p, 1, WAIT_MS) <= 0) {
				return false;
			}
			continue;
		}
		assert_int_equal(err, WEFT_OK);
		const uint8_t *ip = f->data;
		if (ip[0] >> 4 == 4 ? ip[12] == 10 && ip[15] == 2 : ip[8] == 0xfd && ip[23] == 2) {
			return true;
		}
	}
}

/* Is what the router forwarded the packet that was sent? Takes the hop back first. */
static bool
is_forwarded(uint8_t *got, uint32_t len, uint8_t *sent, uint32_t sent_len, bool is_id_redrawn)
{
	if (len != sent_len) {
		return false;
	}
	if (got[0] >> 4 == 6) {
		got[7]++;
		return memcmp(got, sent, len) == 0;
	}
	if (naive_sum(got, 20, 0) != 0xffff) {
		return false;
	}
	got[8]++;
	if (is_id_redrawn) {
		memcpy(got + 4, sent + 4, 2);
	}
	memcpy(got + 10, sent + 10, 2);
	return memcmp(got, sent, len) == 0;
}

/* Fills the batch with a run that joins to one frame. */
static bool
make_run(struct rng *r, struct naive_packet n)
{
	bool has_fixed_id = n.version == 4 && (n.fragment & 0x4000) != 0 && rng_below(r, 2);
	uint32_t header = header_len(&n);
	uint32_t size = 1 + (uint32_t)rng_below(r, 1480 - header);
	uint32_t count = 2 + (uint32_t)rng_below(r, GRO_PACKETS_MAX - 1);
	if (count * size + header > 60000) {
		count = 60000 / size;
	}
	batch_begin(&lab.batch);
	for (uint32_t i = 0; i < count; i++) {
		uint16_t id = n.id;
		bool is_last = i + 1 == count;
		n.flags = is_last ? 0x18 : 0x10;
		batch_add_next(&lab.batch, &n, is_last ? 1 + size / 2 : size);
		n.id = has_fixed_id ? id : n.id;
	}
	batch_join(&lab.batch, &lab.port[IN]->caps);
	assert_int_equal(lab.batch.out.frames_n, 1);
	lab.port[IN]->ops->send(lab.port[IN], &lab.batch.out);
	return has_fixed_id;
}

static void
check_sent(uint64_t seed)
{
	assert_int_equal(lab.port[IN]->stats.join_off_count, 0);
	for (size_t k = 0; k < DROP_COUNT; k++) {
		if (lab.port[IN]->stats.drops.n[k] != 0) {
			fail_msg("seed %llu: %s", (unsigned long long)seed, drop_text(k));
		}
	}
}

static void
kernel_cuts_a_joined_frame_into_what_came_in(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct rng r;
		rng_init(&r, seed);
		struct naive_packet n = random_flow(&r, PLAIN);
		bool is_id_redrawn = make_run(&r, n);
		check_sent(seed);
		for (size_t i = 0; i < lab.batch.n; i++) {
			struct frame f;
			if (!next_frame(PLAIN, &f) ||
				!is_forwarded(f.data, f.len, batch_was(&lab.batch, i),
					lab.batch.pkts[i].len, is_id_redrawn)) {
				fail_msg("seed %llu, packet %zu", (unsigned long long)seed, i);
			}
		}
	}
}

static void
gso_splits_what_the_kernel_hands_out_into_what_came_in(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct rng r;
		rng_init(&r, seed);
		struct naive_packet n = random_flow(&r, WHOLE);
		bool is_id_redrawn = make_run(&r, n);
		check_sent(seed);
		struct frame f;
		struct gso_arena a = {
			.buf = lab.arena, .cap = ARENA_CAP, .segs = lab.segs, .segs_cap = SEGS_CAP};
		enum drop_reason why;
		if (!next_frame(WHOLE, &f) || gso_split(&f, 1500, &a, &why) != lab.batch.n) {
			fail_msg("seed %llu", (unsigned long long)seed);
		}
		for (size_t i = 0; i < lab.batch.n; i++) {
			if (!is_forwarded(a.buf + a.segs[i].off + GSO_HEADROOM, a.segs[i].len,
				    batch_was(&lab.batch, i), lab.batch.pkts[i].len,
				    is_id_redrawn)) {
				fail_msg("seed %llu, packet %zu", (unsigned long long)seed, i);
			}
		}
	}
}

/* Any TCP flags, urgent pointer and reserved bits: more than joining ever makes. */
static struct frame
make_super(struct rng *r)
{
	struct naive_packet n = random_flow(r, PLAIN);
	n.flags = (uint8_t)rng_u64(r);
	n.urgent = (uint16_t)rng_u64(r);
	n.tcp_reserved = (uint8_t)rng_below(r, 16);
	bool is_v4 = n.version == 4;
	struct frame f = {.data = lab.super, .needs_csum = true};
	f.gso_size = (uint16_t)(50 + rng_below(r, 1400 - header_len(&n)));
	uint32_t len = f.gso_size + 1u + (uint32_t)rng_below(r, 40u * f.gso_size);
	len = len > 60000 ? 60000 : len;
	rng_fill(r, lab.payload, len);
	f.len = naive_build(lab.super, &n, lab.payload, len);
	f.gso = n.proto == 6 ? (is_v4 ? FRAME_GSO_TCP4 : FRAME_GSO_TCP6)
			     : (is_v4 ? FRAME_GSO_UDP4 : FRAME_GSO_UDP6);
	f.has_ecn_gso = n.proto == 6 && (n.flags & 0x80) != 0;
	f.csum_start = (uint16_t)(is_v4 ? 20 : 40 + n.ext_len);
	f.csum_offset = n.proto == 6 ? 16 : 6;
	naive_make_partial(lab.super, f.len);
	return f;
}

static void
write_super(const struct frame *f, uint64_t seed)
{
	struct gro_frame g = {.gso = f->gso,
		.gso_size = f->gso_size,
		.needs_csum = true,
		.csum_start = f->csum_start,
		.csum_offset = f->csum_offset};
	uint8_t hdr[VNET_HDR_LEN];
	vnet_encode(&g, hdr);
	hdr[1] |= f->has_ecn_gso ? 0x80 : 0;
	struct iovec iov[2] = {{hdr, sizeof(hdr)}, {f->data, f->len}};
	if (writev(port_tun_fd(lab.port[IN]), iov, 2) != (ssize_t)(sizeof(hdr) + f->len)) {
		fail_msg("seed %llu: %s", (unsigned long long)seed, strerror(errno));
	}
}

static void
kernel_cuts_a_super_frame_as_gso_split_does(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct rng r;
		rng_init(&r, seed);
		struct frame f = make_super(&r), got;
		struct gso_arena a = {
			.buf = lab.arena, .cap = ARENA_CAP, .segs = lab.segs, .segs_cap = SEGS_CAP};
		enum drop_reason why;
		assert_int_not_equal(gso_split(&f, 1500, &a, &why), 0);
		write_super(&f, seed);
		for (size_t i = 0; i < a.segs_n; i++) {
			if (!next_frame(PLAIN, &got) ||
				!is_forwarded(got.data, got.len,
					a.buf + a.segs[i].off + GSO_HEADROOM, a.segs[i].len,
					false)) {
				fail_msg("seed %llu, packet %zu", (unsigned long long)seed, i);
			}
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_cuts_a_joined_frame_into_what_came_in),
		cmocka_unit_test(gso_splits_what_the_kernel_hands_out_into_what_came_in),
		cmocka_unit_test(kernel_cuts_a_super_frame_as_gso_split_does),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
