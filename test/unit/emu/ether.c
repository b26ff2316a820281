/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/endian.h"
#include "emu/channel.h"
#include "emu/ether.h"
#include "emu/histogram.h"
#include "pkt/csum.h"

#define MAC_HEADER 14
#define IP_HEADER 20
#define TCP_HEADER 20
#define HEADERS (IP_HEADER + TCP_HEADER)
#define MSS 1400
#define SEGS 40
#define NEEDS_CSUM 1
#define GSO_TCP4 1

static const struct gro_caps all_caps = {
	.has_tcp4 = true, .has_tcp6 = true, .has_udp4 = true, .has_udp6 = true};

struct lab {
	struct emu_channel channel;
	struct emu_ether *ether;
	struct emu_histogram late;
	uint8_t frame[66000];
	uint32_t len;
	uint8_t vnet[EMU_ETHER_VNET_LEN];
};

static void
lab_init(struct lab *l, const struct emu_settings *s)
{
	struct emu_channel_params p = {
		.seed = 5, .ring_bytes = 1 << 20, .packets_max = 1000, .corrupt_offset = 14};
	memset(l, 0, sizeof(*l));
	assert_int_equal(emu_channel_init(&l->channel, &p, s), WEFT_OK);
	assert_int_equal(emu_ether_new(&all_caps, &l->ether), WEFT_OK);
}

static void
lab_fini(struct lab *l)
{
	emu_channel_fini(&l->channel);
	emu_ether_free(l->ether);
}

/* The byte of the stream at a sequence number. */
static uint8_t
stream_at(uint32_t seq)
{
	return (uint8_t)(seq * 7 + seq / 251);
}

static void
write_mac(struct lab *l, uint8_t host, uint16_t vlan, uint16_t type)
{
	memset(l->frame, 0, 12);
	l->frame[0] = l->frame[6] = 2;
	l->frame[5] = host;
	l->frame[11] = 77;
	l->len = 12;
	if (vlan) {
		store_be16(l->frame + l->len, 0x8100);
		store_be16(l->frame + l->len + 2, vlan);
		l->len += 4;
	}
	store_be16(l->frame + l->len, type);
	l->len += 2;
}

/* TCP over IPv4 with its checksum left to the offload, as a veth hands it over. */
static void
write_tcp(struct lab *l, uint32_t seq, uint32_t payload, uint16_t vlan)
{
	write_mac(l, 1, vlan, 0x0800);
	uint32_t header_len = l->len;
	uint8_t *ip = l->frame + header_len, *tcp = ip + IP_HEADER;
	memset(ip, 0, HEADERS);
	ip[0] = 0x45;
	store_be16(ip + 2, (uint16_t)(HEADERS + payload));
	store_be16(ip + 4, 1000);
	ip[6] = 0x40; /* DF */
	ip[8] = 64;
	ip[9] = 6;
	memcpy(ip + 12, "\x0a\x00\x00\x01\x0a\x00\x00\x02", 8);
	csum_store(ip + 10, csum_header(ip, IP_HEADER));
	store_be16(tcp, 4000);
	store_be16(tcp + 2, 80);
	store_be32(tcp + 4, seq);
	tcp[12] = 5 << 4;
	tcp[13] = 0x18; /* ACK, PSH */
	store_be16(tcp + 14, 500);
	csum_store_partial(tcp + 16, csum_pseudo4(ip + 12, 6) + csum_dword(TCP_HEADER + payload));
	for (uint32_t i = 0; i < payload; i++) {
		tcp[TCP_HEADER + i] = stream_at(seq + i);
	}
	l->len += HEADERS + payload;
	memset(l->vnet, 0, sizeof(l->vnet));
	l->vnet[0] = NEEDS_CSUM;
	l->vnet[6] = (uint8_t)(header_len + IP_HEADER);
	l->vnet[8] = 16;
	if (payload > MSS) {
		l->vnet[1] = GSO_TCP4;
		l->vnet[2] = (uint8_t)(header_len + HEADERS);
		l->vnet[4] = (uint8_t)(MSS & 0xff);
		l->vnet[5] = (uint8_t)(MSS >> 8);
	}
}

static enum weft_err
push(struct lab *l, int64_t now_ns)
{
	return emu_ether_push(
		l->ether, &l->channel, (struct mono){now_ns}, l->vnet, l->frame, l->len);
}

/* Bytes of a frame in one piece, without its offload header. */
static uint32_t
flatten(const struct emu_ether_frame *f, uint8_t *out)
{
	uint32_t n = 0;
	assert_int_equal(f->pieces[0].len, EMU_ETHER_VNET_LEN);
	for (uint32_t i = 1; i < f->pieces_n; i++) {
		memcpy(out + n, f->pieces[i].data, f->pieces[i].len);
		n += (uint32_t)f->pieces[i].len;
	}
	assert_int_equal(n, f->len);
	return n;
}

/* Marks the segments that a frame stands for, and checks its bytes and checksum. */
static uint32_t
check_tcp(const struct emu_ether_frame *f, uint32_t first_seq, uint8_t seen[SEGS])
{
	static uint8_t bytes[66000];
	const uint8_t *vnet = f->pieces[0].data;
	uint32_t len = flatten(f, bytes), payload = len - MAC_HEADER - HEADERS;
	const uint8_t *ip = bytes + MAC_HEADER, *tcp = ip + IP_HEADER;
	uint32_t seq = load_be32(tcp + 4);
	assert_int_equal(load_be16(ip + 2), HEADERS + payload);
	assert_int_equal(csum_fold(csum_header(ip, IP_HEADER)), 0xffff);
	for (uint32_t i = 0; i < payload; i++) {
		assert_int_equal(tcp[TCP_HEADER + i], stream_at(seq + i));
	}
	uint64_t sum = csum_pseudo4(ip + 12, 6) + csum_dword(TCP_HEADER + payload);
	if (f->packets > 1) {
		assert_true(vnet[1] == GSO_TCP4 && (vnet[0] & NEEDS_CSUM));
		assert_int_equal(vnet[4] | vnet[5] << 8, MSS);
		assert_int_equal(vnet[6], MAC_HEADER + IP_HEADER);
		assert_int_equal(vnet[2], MAC_HEADER + HEADERS);
		assert_int_equal(csum_load(tcp + 16), csum_fold(sum));
	} else {
		assert_int_equal(csum_fold(sum + csum_partial(tcp, TCP_HEADER + payload)), 0xffff);
	}
	uint32_t k = (seq - first_seq) / MSS;
	assert_int_equal((seq - first_seq) % MSS, 0);
	assert_int_equal((payload + MSS - 1) / MSS, f->packets);
	for (uint32_t i = 0; i < f->packets; i++) {
		seen[k + i]++;
	}
	return f->packets;
}

static void
super_frame_leaves_as_it_came_when_nothing_is_lost(void **state)
{
	(void)state;
	static struct lab l;
	struct emu_settings s = {.delay_ns = 1000};
	const struct emu_ether_frame *frames;
	uint8_t seen[SEGS] = {0};
	lab_init(&l, &s);
	write_tcp(&l, 90000, SEGS * MSS - 700, 0);
	assert_int_equal(push(&l, 0), WEFT_OK);
	assert_int_equal(l.channel.counters.in, SEGS);
	assert_int_equal(l.channel.counters.in_bytes, SEGS * (MAC_HEADER + HEADERS + MSS) - 700);
	assert_int_equal(
		emu_ether_pop(l.ether, &l.channel, (struct mono){999}, &l.late, &frames), 0);
	assert_int_equal(
		emu_ether_pop(l.ether, &l.channel, (struct mono){1500}, &l.late, &frames), 1);
	assert_int_equal(check_tcp(&frames[0], 90000, seen), SEGS);
	assert_int_equal(frames[0].len, l.len);
	assert_true(l.late.count == SEGS && l.late.max_ns == 500);
	lab_fini(&l);
}

/* Each segment has the fate that the seed gives it; what remains is whole and in order. */
static void
segments_of_a_super_frame_are_lost_one_by_one(void **state)
{
	(void)state;
	static struct lab l;
	struct emu_settings s = {.loss = {.in_good = 0.2}, .duplicate = 0.1};
	struct emu_channel twin;
	struct emu_channel_params p = {.seed = 5, .packets_max = 1000};
	lab_init(&l, &s);
	assert_int_equal(emu_channel_init(&twin, &p, &s), WEFT_OK);
	for (uint32_t round = 0; round < 50; round++) {
		uint32_t seq = 1000000 * round;
		uint8_t seen[SEGS] = {0};
		const struct emu_ether_frame *frames;
		write_tcp(&l, seq, SEGS * MSS, 0);
		assert_int_equal(push(&l, round), WEFT_OK);
		size_t n =
			emu_ether_pop(l.ether, &l.channel, (struct mono){round}, &l.late, &frames);
		for (size_t i = 0; i < n; i++) {
			check_tcp(&frames[i], seq, seen);
		}
		for (uint32_t k = 0; k < SEGS; k++) {
			unsigned copies = emu_channel_push(
				&twin, (struct mono){round}, NULL, MSS + HEADERS + MAC_HEADER, 0);
			if (seen[k] != copies) {
				fail_msg("round %u segment %u: %u times, not %u", round, k, seen[k],
					copies);
			}
		}
		struct emu_packet out;
		while (emu_channel_pop(&twin, MONO_NEVER, &out)) {
		}
	}
	assert_int_equal(l.channel.counters.out, twin.counters.out);
	assert_true(l.channel.counters.lost > 300);
	emu_channel_fini(&twin);
	lab_fini(&l);
}

static void
arrivals_in_order_are_joined_across_frames(void **state)
{
	(void)state;
	static struct lab l;
	struct emu_settings s = {0};
	const struct emu_ether_frame *frames;
	uint8_t seen[SEGS] = {0};
	lab_init(&l, &s);
	for (uint32_t k = 0; k < 10; k++) {
		write_tcp(&l, k * MSS, MSS, 0);
		l.frame[MAC_HEADER + IP_HEADER + 13] = 0x10; /* no PSH: nothing ends the run */
		store_be16(l.frame + MAC_HEADER + 4, (uint16_t)(1000 + k));
		memset(l.frame + MAC_HEADER + 10, 0, 2);
		csum_store(l.frame + MAC_HEADER + 10, csum_header(l.frame + MAC_HEADER, IP_HEADER));
		assert_int_equal(push(&l, 0), WEFT_OK);
	}
	assert_int_equal(emu_ether_pop(l.ether, &l.channel, (struct mono){0}, &l.late, &frames), 1);
	assert_int_equal(check_tcp(&frames[0], 0, seen), 10);
	lab_fini(&l);
}

static void
frames_between_different_hosts_are_not_joined(void **state)
{
	(void)state;
	static struct lab l;
	struct emu_settings s = {0};
	const struct emu_ether_frame *frames;
	static uint8_t bytes[66000];
	lab_init(&l, &s);
	for (uint8_t k = 0; k < 4; k++) {
		write_tcp(&l, k * MSS, MSS, 0);
		l.frame[5] = k / 2; /* the receiver's address */
		assert_int_equal(push(&l, 0), WEFT_OK);
	}
	size_t n = emu_ether_pop(l.ether, &l.channel, (struct mono){0}, &l.late, &frames);
	assert_true(n >= 2);
	uint32_t packets = 0;
	for (size_t i = 0; i < n; i++) {
		flatten(&frames[i], bytes);
		assert_int_equal(bytes[5], packets / 2);
		packets += frames[i].packets;
	}
	assert_int_equal(packets, 4);
	lab_fini(&l);
}

static void
frame_without_ip_passes_byte_for_byte(void **state)
{
	(void)state;
	static struct lab l;
	struct emu_settings s = {0};
	const struct emu_ether_frame *frames;
	uint8_t bytes[200];
	lab_init(&l, &s);
	/* ARP; an unknown type; IPv4 with padding behind it; a damaged IPv4; less than a header. */
	static const struct {
		uint16_t type;
		uint8_t first, total_len;
		uint32_t len;
	} cases[] = {{0x0806, 0, 0, 60}, {0x88cc, 9, 9, 100}, {0x0800, 0x45, 28, 60},
		{0x0800, 0x41, 46, 60}, {0x86dd, 0x60, 0, 20}};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		write_mac(&l, 1, 0, cases[i].type);
		for (uint32_t k = MAC_HEADER; k < cases[i].len; k++) {
			l.frame[k] = (uint8_t)k;
		}
		l.frame[MAC_HEADER] = cases[i].first;
		store_be16(l.frame + MAC_HEADER + 2, cases[i].total_len);
		l.len = cases[i].len;
		assert_int_equal(push(&l, 0), WEFT_OK);
		assert_int_equal(
			emu_ether_pop(l.ether, &l.channel, (struct mono){0}, &l.late, &frames), 1);
		assert_int_equal(frames[0].packets, 1);
		assert_int_equal(flatten(&frames[0], bytes), cases[i].len);
		assert_memory_equal(bytes, l.frame, cases[i].len);
		assert_memory_equal(frames[0].pieces[0].data, l.vnet, EMU_ETHER_VNET_LEN);
	}
	lab_fini(&l);
}

static void
vlan_tag_stays_on_every_segment(void **state)
{
	(void)state;
	static struct lab l;
	struct emu_settings s = {.reorder = {.share = 1, .extra_ns = 1}};
	const struct emu_ether_frame *frames;
	static uint8_t bytes[66000];
	lab_init(&l, &s);
	write_tcp(&l, 0, 3 * MSS, 42);
	assert_int_equal(push(&l, 0), WEFT_OK);
	assert_int_equal(l.channel.counters.in_bytes, 3 * (MAC_HEADER + 4 + HEADERS + MSS));
	assert_int_equal(emu_ether_pop(l.ether, &l.channel, (struct mono){1}, &l.late, &frames), 1);
	flatten(&frames[0], bytes);
	assert_memory_equal(bytes, l.frame, MAC_HEADER + 4);
	assert_int_equal(
		((const uint8_t *)frames[0].pieces[0].data)[6], MAC_HEADER + 4 + IP_HEADER);
	lab_fini(&l);
}

static void
super_frame_that_cannot_be_split_is_refused_whole(void **state)
{
	(void)state;
	static struct lab l;
	struct emu_settings s = {0};
	lab_init(&l, &s);
	for (int fault = 0; fault < 6; fault++) {
		write_tcp(&l, 0, 5 * MSS, 0);
		switch (fault) {
		case 0:
			l.vnet[1] = 9; /* no such type */
			break;
		case 1:
			l.vnet[4] = l.vnet[5] = 0; /* no segment size */
			break;
		case 2:
			l.vnet[6] = 3; /* checksum before the IP header */
			break;
		case 3:
			store_be16(l.frame + 12, 0x0806); /* no IP at all */
			break;
		case 4:
			l.frame[MAC_HEADER + IP_HEADER + 12] = 1 << 4; /* TCP header too short */
			break;
		default:
			l.len = MAC_HEADER + 10;
		}
		if (push(&l, 0) != WEFT_EPARSE) {
			fail_msg("fault %d taken", fault);
		}
	}
	assert_int_equal(l.channel.counters.in, 0);
	lab_fini(&l);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(super_frame_leaves_as_it_came_when_nothing_is_lost),
		cmocka_unit_test(segments_of_a_super_frame_are_lost_one_by_one),
		cmocka_unit_test(arrivals_in_order_are_joined_across_frames),
		cmocka_unit_test(frames_between_different_hosts_are_not_joined),
		cmocka_unit_test(frame_without_ip_passes_byte_for_byte),
		cmocka_unit_test(vlan_tag_stays_on_every_segment),
		cmocka_unit_test(super_frame_that_cannot_be_split_is_refused_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
