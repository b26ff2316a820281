/* SPDX-License-Identifier: Apache-2.0 */
#include "fec/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "base/endian.h"
#include "base/rng.h"
#include "fec/symbol.h"

#define BLOCK FEC_STORE_BLOCK
#define PACKET_MAX 2000u
#define PACKETS 8000u
#define SEEDS 40u

/* A store as a list of packets, each with the room that it lies in and where there. Rooms are
 * numbered as they are had; what is written into one takes everything in it that begins before the
 * end of what was written. */
struct entry {
	uint64_t place;
	unsigned room;
	uint32_t from;
	uint16_t len;
	bool is_gone;
};

struct model {
	struct entry entries[PACKETS];
	unsigned n;
	unsigned rooms[FEC_STORE_BLOCKS_MAX]; /* in use, the oldest first */
	unsigned rooms_n, spares_n, rooms_ever;
	uint64_t blocks; /* places begin at (blocks - 1) * BLOCK in the newest */
	uint32_t used;   /* of the newest room */
};

static void
packet(uint64_t seed, unsigned number, uint8_t *out, uint16_t len)
{
	struct rng r;
	rng_init(&r, seed * 1000003 + number);
	rng_fill(&r, out, len);
}

static unsigned
oldest_room(const struct model *m)
{
	return m->spares_n > 0 ? m->rooms_ever : m->rooms[0];
}

/* In which room a packet would lie, and where. */
static struct entry
next_entry(const struct model *m, uint16_t len)
{
	uint32_t need = len + (uint32_t)FEC_LEN_BYTES;
	uint32_t from = need < 512 ? m->used : (m->used + 63) / 64 * 64;
	bool is_next = from + need > BLOCK;
	uint64_t base = is_next ? m->blocks * BLOCK : (m->blocks - 1) * BLOCK;
	from = is_next ? 0 : from;
	return (struct entry){.place = base + from,
		.room = is_next ? oldest_room(m) : m->rooms[m->rooms_n - 1],
		.from = from,
		.len = len};
}

static bool
takes(const struct model *m, const struct entry *new, const struct entry *old)
{
	bool is_before = new->place / BLOCK > old->place / BLOCK;
	bool is_hit = old->room == new->room &&is_before &&
		      old->from < new->from + new->len + (uint32_t)FEC_LEN_BYTES;
	/* The rest of a room that was written into halfway goes with the next one. */
	bool is_left = new->place >= m->blocks *BLOCK &&is_before &&
		       old->room == m->rooms[m->rooms_n - 1] && old->place / BLOCK != m->blocks - 1;
	return is_hit || is_left;
}

static void
begin_room(struct model *m)
{
	unsigned room = oldest_room(m);
	if (m->spares_n > 0) {
		m->spares_n--;
		m->rooms_ever++;
	} else {
		m->rooms_n--;
		memmove(m->rooms, m->rooms + 1, m->rooms_n * sizeof(m->rooms[0]));
	}
	m->rooms[m->rooms_n++] = room;
	m->blocks++;
}

/* keep: index of the oldest entry to be kept; m->n: none. */
static bool
model_put(struct model *m, uint16_t len, unsigned keep)
{
	struct entry e = next_entry(m, len);
	for (unsigned i = keep; i < m->n; i++) {
		if (m->entries[i].is_gone || takes(m, &e, &m->entries[i])) {
			return false;
		}
	}
	for (unsigned i = 0; i < m->n; i++) {
		m->entries[i].is_gone |= takes(m, &e, &m->entries[i]);
	}
	if (e.place >= m->blocks * BLOCK) {
		begin_room(m);
	}
	m->used = e.from + len + (uint32_t)FEC_LEN_BYTES;
	m->entries[m->n++] = e;
	return true;
}

/* What goes with the oldest block: it, and what is left of the one before it. */
static bool
model_shrink(struct model *m)
{
	if (m->spares_n > 0 && m->rooms_n + m->spares_n > 1) {
		m->spares_n--;
		m->rooms_ever++;
		return true;
	}
	if (m->rooms_n == 1) {
		return false;
	}
	uint64_t low = (m->blocks - m->rooms_n + 1) * BLOCK;
	for (unsigned i = 0; i < m->n; i++) {
		m->entries[i].is_gone |= m->entries[i].place < low;
	}
	m->rooms_n--;
	memmove(m->rooms, m->rooms + 1, m->rooms_n * sizeof(m->rooms[0]));
	return true;
}

static void
check_packets(const struct fec_store *s, const struct model *m, uint64_t seed)
{
	for (unsigned i = 0; i < m->n; i++) {
		const struct entry *e = &m->entries[i];
		if (fec_store_has(s, e->place) == e->is_gone) {
			fail_msg("seed %llu: packet %u of %u", (unsigned long long)seed, i, m->n);
		}
		if (!e->is_gone) {
			uint8_t bytes[PACKET_MAX];
			packet(seed, i, bytes, e->len);
			const uint8_t *p = fec_store_at(s, e->place);
			if (load_le16(p) != e->len || memcmp(p + FEC_LEN_BYTES, bytes, e->len)) {
				fail_msg("seed %llu: bytes of packet %u", (unsigned long long)seed,
					i);
			}
		}
	}
}

static unsigned
pick_keep(const struct model *m, struct rng *r)
{
	unsigned back = (unsigned)rng_below(r, 1 + 4 * BLOCK / PACKET_MAX);
	return rng_below(r, 3) == 0 && back <= m->n ? m->n - back : m->n;
}

static void
put(struct fec_store *s, struct model *m, struct rng *r, uint64_t seed)
{
	uint8_t bytes[PACKET_MAX];
	bool is_small = rng_below(r, 3) == 0;
	uint16_t len = (uint16_t)(20 + rng_below(r, (is_small ? 256 : PACKET_MAX) - 20));
	unsigned number = m->n, keep = pick_keep(m, r);
	packet(seed, number, bytes, len);
	uint64_t place = 0;
	uint64_t from = keep < m->n ? m->entries[keep].place : FEC_STORE_FREE;
	bool is_put = fec_store_put(s, bytes, len, from, &place);
	if (is_put != model_put(m, len, keep) || (is_put && place != m->entries[number].place)) {
		fail_msg("seed %llu: put %u, from %u kept", (unsigned long long)seed, number, keep);
	}
}

static void
resize(struct fec_store *s, struct model *m, struct rng *r, uint64_t seed)
{
	if (rng_below(r, 2)) {
		uint32_t more = (uint32_t)rng_below(r, 3 * BLOCK);
		uint32_t cap = (uint32_t)s->cap + more;
		if (cap <= 12 * BLOCK) {
			assert_true(fec_store_grow(s, cap));
			m->spares_n += more / BLOCK;
		}
	} else if (fec_store_shrink(s) != model_shrink(m)) {
		fail_msg("seed %llu: shrink", (unsigned long long)seed);
	}
	assert_int_equal(s->cap, (uint64_t)(m->rooms_n + m->spares_n) * BLOCK);
	assert_int_equal(s->spares_n, m->spares_n);
}

static void
store_keeps_and_loses_what_a_list_of_packets_does(void **state)
{
	(void)state;
	static struct model m;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct rng r;
		rng_init(&r, seed);
		struct fec_store s;
		uint32_t blocks = 1 + (uint32_t)rng_below(&r, 5);
		assert_true(fec_store_init(&s, blocks * BLOCK));
		m = (struct model){.rooms_n = 1, .rooms_ever = 1, .blocks = 1};
		m.spares_n = blocks - 1;
		for (unsigned step = 0; step < 2000; step++) {
			if (rng_below(&r, 20) == 0) {
				resize(&s, &m, &r, seed);
			} else {
				put(&s, &m, &r, seed);
			}
			if (step % 16 == 0) {
				check_packets(&s, &m, seed);
			}
		}
		check_packets(&s, &m, seed);
		fec_store_fini(&s);
	}
}

static void
store_takes_the_longest_packet_and_no_room_beyond_its_cap(void **state)
{
	(void)state;
	static uint8_t bytes[FEC_PACKET_MAX];
	struct fec_store s;
	uint64_t first, place;
	assert_true(fec_store_init(&s, FEC_STORE_MIN + BLOCK - 1));
	assert_int_equal(s.cap, FEC_STORE_MIN);
	assert_int_equal(fec_store_size(FEC_STORE_MIN + BLOCK - 1), FEC_STORE_MIN);
	assert_true(fec_store_put(&s, bytes, FEC_PACKET_MAX, FEC_STORE_FREE, &first));
	assert_false(fec_store_put(&s, bytes, FEC_PACKET_MAX, first, &place));
	assert_true(fec_store_has(&s, first));
	assert_true(fec_store_put(&s, bytes, FEC_PACKET_MAX, FEC_STORE_FREE, &place));
	assert_false(fec_store_has(&s, first));
	assert_true(fec_store_has(&s, place));
	assert_false(fec_store_shrink(&s));
	fec_store_fini(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(store_keeps_and_loses_what_a_list_of_packets_does),
		cmocka_unit_test(store_takes_the_longest_packet_and_no_room_beyond_its_cap),
	};
	return cmocka_run_group_tests_name("fec/store", tests, NULL, NULL);
}
