/* SPDX-License-Identifier: Apache-2.0 */
/* AllowedIPs: lookups at random, and what a prefix costs. */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "base/rng.h"
#include "wg/allowed.h"

#define CHAIN_LEN (4u << 20 >> 6) /* cache lines of 4 MiB */
#define QUERIES 512               /* addresses made at a time, outside the measured part: 8 KB */

static const unsigned counts[] = {10, 1000, 100000};

struct trie_kind {
	const char *name;
	enum ip_family family;
	bool is_host;  /* all of full length; otherwise lengths from short_bits, so they nest */
	bool is_dense; /* consecutive addresses; otherwise anywhere */
	unsigned short_bits;
};

static const struct trie_kind kinds[] = {
	{"IPv4 hosts, random", IP_FAMILY_V4, true, false, 0},
	{"IPv4 hosts, consecutive", IP_FAMILY_V4, true, true, 0},
	{"IPv4 /8 to /32, random", IP_FAMILY_V4, false, false, 8},
	{"IPv6 hosts, random", IP_FAMILY_V6, true, false, 0},
	{"IPv6 hosts, consecutive", IP_FAMILY_V6, true, true, 0},
	{"IPv6 /32 to /128, in one /16", IP_FAMILY_V6, false, false, 32},
};

struct trie_work {
	const struct trie_kind *kind;
	struct allowed *table;
	struct allowed_owner *owners;
	unsigned count;
	uint64_t state; /* of the order of queries */
	uint8_t queries[QUERIES][16];
	uintptr_t found;
	unsigned missed;
};

/* splitmix64's finish: prefix i without a table of prefixes, which would take the cache that
 * the trie is to have. */
static uint64_t
mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* The address of prefix i, and its length. */
static unsigned
prefix_at(const struct trie_kind *k, unsigned i, uint8_t addr[16])
{
	unsigned bits = (unsigned)ip_family_len(k->family) * 8;
	uint64_t h = mix(i + UINT64_C(0x9e3779b97f4a7c15));
	memset(addr, 0, 16);
	if (k->family == IP_FAMILY_V4) {
		store_be32(addr, k->is_dense ? 0x0a000000 + i : (uint32_t)(h >> 32));
	} else if (k->is_dense) {
		store_be64(addr, UINT64_C(0xfd00000000000000));
		store_be64(addr + 8, i);
	} else {
		store_be64(addr, k->is_host ? h : UINT64_C(0x2001) << 48 | h >> 16);
		store_be64(addr + 8, mix(h));
	}
	return k->is_host ? bits : k->short_bits + (unsigned)(h % (bits + 1 - k->short_bits));
}

static void
make_queries(void *ctx)
{
	struct trie_work *w = ctx;
	for (size_t i = 0; i < QUERIES; i++) {
		w->state += UINT64_C(0x9e3779b97f4a7c15);
		prefix_at(
			w->kind, (unsigned)((mix(w->state) >> 32) * w->count >> 32), w->queries[i]);
	}
}

static void
look_up(void *ctx)
{
	struct trie_work *w = ctx;
	for (size_t i = 0; i < QUERIES; i++) {
		uintptr_t owner =
			(uintptr_t)allowed_lookup(w->table, w->kind->family, w->queries[i]);
		w->found ^= owner;
		w->missed += owner == 0;
	}
}

/* As a packet's path has it: the next address is known only after the last was found. */
static void
look_up_in_turn(void *ctx)
{
	struct trie_work *w = ctx;
	uintptr_t owner = 0;
	for (size_t i = 0; i < QUERIES; i++) {
		/* Bit 0 of a pointer to a struct is never set, which the compiler cannot know. */
		owner = (uintptr_t)allowed_lookup(
			w->table, w->kind->family, w->queries[(i + (owner & 1)) % QUERIES]);
		w->missed += owner == 0;
	}
	w->found ^= owner;
}

static bool
fill(struct bench *b, struct trie_work *w)
{
	for (unsigned i = 0; i < w->count; i++) {
		struct ip_prefix p = {.addr.family = w->kind->family};
		p.bits = (uint8_t)prefix_at(w->kind, i, p.addr.b);
		allowed_owner_init(&w->owners[i]);
		if (allowed_insert(w->table, &p, &w->owners[i]) != WEFT_OK) {
			bench_fail(b, "out of memory");
			return false;
		}
	}
	return true;
}

static void
run_one(struct bench *b, struct trie_work *w)
{
	static const struct bench_steps apart = {make_queries, look_up};
	static const struct bench_steps in_turn = {make_queries, look_up_in_turn};
	struct bench_label l = {
		.series = w->kind->name, .x_name = "prefixes", .x = w->count, .unit = "ns"};
	if (allowed_new(&w->table) != WEFT_OK) {
		bench_fail(b, "out of memory");
		return;
	}
	uint64_t empty_bytes = allowed_bytes(w->table);
	if (fill(b, w)) {
		l.plot = "lookup, one after the other";
		bench_time_steps(b, &l, &in_turn, w, QUERIES);
		l.plot = "lookup, overlapping";
		bench_time_steps(b, &l, &apart, w, QUERIES);
		double each = (double)(allowed_bytes(w->table) - empty_bytes) /
			      (double)allowed_count(w->table);
		l.plot = "memory of a prefix";
		l.unit = "bytes";
		bench_add(b, &l, &each, 1);
		bench_use(b, w->found);
		if (w->missed > 0) {
			bench_fail(b, "%s: %u lookups found nobody", w->kind->name, w->missed);
		}
	}
	allowed_free(w->table);
}

/* One cache line of a chain that leads through all of them in random order. */
struct chain {
	WEFT_ALIGNED(64) uint32_t next;
};

struct yardstick {
	struct chain *chain;
	uint32_t at;
};

static void
follow(void *ctx, uint64_t n)
{
	struct yardstick *y = ctx;
	for (uint64_t i = 0; i < n; i++) {
		y->at = y->chain[y->at].next;
	}
}

/* What the memory of this machine costs just now, neighbours included: a lookup among 100,000
 * prefixes, which take about so much, needs two such reads or three. */
static void
run_yardstick(struct bench *b)
{
	struct chain *c = aligned_alloc(64, CHAIN_LEN * sizeof(*c));
	struct rng rng;
	if (!c) {
		bench_fail(b, "out of memory");
		return;
	}
	/* Sattolo's shuffle: one cycle through all. */
	rng_init(&rng, 1);
	for (uint32_t i = 0; i < CHAIN_LEN; i++) {
		c[i].next = i;
	}
	for (uint32_t i = CHAIN_LEN - 1; i > 0; i--) {
		uint32_t k = (uint32_t)rng_below(&rng, i), next = c[i].next;
		c[i].next = c[k].next;
		c[k].next = next;
	}
	struct bench_label l = {.plot = "lookup, one after the other",
		.series = "for scale: one read in 4 MiB",
		.x_name = "prefixes",
		.x = counts[WEFT_ARRAY_LEN(counts) - 1],
		.unit = "ns"};
	struct yardstick y = {.chain = c};
	bench_time(b, &l, follow, &y, 1);
	bench_use(b, y.at);
	free(c);
}

void
bench_trie(struct bench *b)
{
	struct trie_work *w = calloc(1, sizeof(*w));
	if (w) {
		w->owners = calloc(counts[WEFT_ARRAY_LEN(counts) - 1], sizeof(*w->owners));
	}
	if (!w || !w->owners) {
		bench_fail(b, "out of memory");
		free(w);
		return;
	}
	for (size_t k = 0; k < WEFT_ARRAY_LEN(kinds); k++) {
		for (size_t i = 0; i < WEFT_ARRAY_LEN(counts); i++) {
			w->kind = &kinds[k];
			w->count = counts[i];
			run_one(b, w);
		}
	}
	run_yardstick(b);
	free(w->owners);
	free(w);
}
