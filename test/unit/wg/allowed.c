/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "base/rng.h"
#include "wg/allowed.h"

static struct ip_prefix
prefix(const char *text)
{
	struct ip_prefix p;
	assert_int_equal(ip_prefix_parse(text, strlen(text), &p), WEFT_OK);
	return p;
}

static struct allowed *
table(void)
{
	struct allowed *a;
	assert_int_equal(allowed_new(&a), WEFT_OK);
	return a;
}

static void
insert(struct allowed *a, const char *text, struct allowed_owner *o)
{
	struct ip_prefix p = prefix(text);
	assert_int_equal(allowed_insert(a, &p, o), WEFT_OK);
}

static struct allowed_owner *
lookup(const struct allowed *a, const char *text)
{
	struct ip_addr addr;
	assert_int_equal(ip_addr_parse(text, strlen(text), &addr), WEFT_OK);
	return allowed_lookup(a, addr.family, addr.b);
}

static void
longest_of_nested_prefixes_wins(void **state)
{
	(void)state;
	static const char *const nested[] = {"0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16",
		"10.1.2.0/24", "10.1.2.128/25", "10.1.2.130/31", "10.1.2.130/32", "::/0",
		"2001:db8::/32", "2001:db8:0:1::/64", "2001:db8:0:1::/65", "2001:db8:0:1::4/127",
		"2001:db8:0:1::5/128"};
	static const struct {
		const char *addr;
		int owner;
	} lookups[] = {{"9.255.255.255", 0}, {"10.255.0.1", 1}, {"10.1.3.1", 2}, {"10.1.2.127", 3},
		{"10.1.2.129", 4}, {"10.1.2.131", 5}, {"10.1.2.130", 6}, {"255.255.255.255", 0},
		{"::1", 7}, {"2001:db8:1::", 8}, {"2001:db8:0:1:8000::", 9},
		{"2001:db8:0:1::1", 10}, {"2001:db8:0:1::4", 11}, {"2001:db8:0:1::5", 12},
		{"2001:db8:0:1::6", 10}};
	struct allowed_owner owners[WEFT_ARRAY_LEN(nested)];
	/* Forwards, backwards and from the middle: the order of arrival must not matter. */
	for (int order = 0; order < 3; order++) {
		struct allowed *a = table();
		for (size_t i = 0; i < WEFT_ARRAY_LEN(nested); i++) {
			size_t n = WEFT_ARRAY_LEN(nested);
			size_t k = order == 0 ? i : order == 1 ? n - 1 - i : (i * 5 + 6) % n;
			allowed_owner_init(&owners[k]);
			insert(a, nested[k], &owners[k]);
		}
		assert_int_equal(allowed_count(a), WEFT_ARRAY_LEN(nested));
		for (size_t i = 0; i < WEFT_ARRAY_LEN(lookups); i++) {
			if (lookup(a, lookups[i].addr) != &owners[lookups[i].owner]) {
				fail_msg("order %d: wrong owner of %s", order, lookups[i].addr);
			}
		}
		allowed_free(a);
	}
}

static void
families_do_not_mix(void **state)
{
	(void)state;
	struct allowed *a = table();
	struct allowed_owner o;
	allowed_owner_init(&o);
	assert_null(lookup(a, "1.2.3.4"));
	insert(a, "0.0.0.0/0", &o);
	assert_ptr_equal(lookup(a, "1.2.3.4"), &o);
	assert_null(lookup(a, "102:304::"));
	allowed_remove_all(a, &o);
	insert(a, "::/0", &o);
	assert_null(lookup(a, "1.2.3.4"));
	assert_ptr_equal(lookup(a, "102:304::"), &o);
	allowed_free(a);
}

static void
insert_ignores_host_bits_and_refuses_what_is_no_prefix(void **state)
{
	(void)state;
	struct allowed *a = table();
	struct allowed_owner o;
	allowed_owner_init(&o);
	insert(a, "10.1.2.3/8", &o);
	insert(a, "10.9.9.9/8", &o);
	assert_int_equal(allowed_count(a), 1);
	void *cursor = NULL;
	struct ip_prefix p;
	char text[IP_PREFIX_TEXT_MAX];
	assert_true(allowed_next(&o, &cursor, &p));
	assert_string_equal(ip_prefix_format(&p, text), "10.0.0.0/8");
	assert_false(allowed_next(&o, &cursor, &p));

	p = prefix("1.2.3.4/32");
	p.bits = 33;
	assert_int_equal(allowed_insert(a, &p, &o), WEFT_EINVAL);
	p = prefix("::/128");
	p.bits = 129;
	assert_int_equal(allowed_insert(a, &p, &o), WEFT_EINVAL);
	p.bits = 0;
	p.addr.family = IP_FAMILY_NONE;
	assert_int_equal(allowed_insert(a, &p, &o), WEFT_EINVAL);
	assert_false(allowed_remove(a, &p, &o));
	assert_int_equal(allowed_count(a), 1);
	allowed_free(a);
}

static void
prefix_moves_to_the_owner_that_takes_it(void **state)
{
	(void)state;
	struct allowed *a = table();
	struct allowed_owner x, y;
	allowed_owner_init(&x);
	allowed_owner_init(&y);
	insert(a, "10.0.0.0/8", &x);
	insert(a, "fd00::/8", &x);
	insert(a, "10.0.0.0/8", &y);
	assert_int_equal(allowed_count(a), 2);
	assert_ptr_equal(lookup(a, "10.0.0.1"), &y);

	struct ip_prefix p = prefix("10.0.0.0/8");
	assert_false(allowed_remove(a, &p, &x));
	void *cursor = NULL;
	assert_true(allowed_next(&x, &cursor, &p));
	char text[IP_PREFIX_TEXT_MAX];
	assert_string_equal(ip_prefix_format(&p, text), "fd00::/8");
	assert_false(allowed_next(&x, &cursor, &p));
	allowed_remove_all(a, &y);
	assert_null(lookup(a, "10.0.0.1"));
	assert_ptr_equal(lookup(a, "fd00::1"), &x);
	allowed_free(a);
}

/* A naive model: all prefixes in an array, searched from end to end. */
#define OWNERS 8
#define PREFIXES_MAX 3000

struct model {
	struct allowed *table;
	struct allowed_owner owners[OWNERS];
	struct {
		struct ip_prefix p; /* masked */
		struct allowed_owner *owner;
	} at[PREFIXES_MAX];
	size_t n;
	uint64_t seed;
};

static size_t
model_find(const struct model *m, struct ip_prefix p)
{
	ip_prefix_mask(&p);
	for (size_t i = 0; i < m->n; i++) {
		if (m->at[i].p.bits == p.bits && ip_addr_is_equal(&m->at[i].p.addr, &p.addr)) {
			return i;
		}
	}
	return m->n;
}

static struct allowed_owner *
model_lookup(const struct model *m, const struct ip_addr *addr)
{
	struct allowed_owner *best = NULL;
	int best_bits = -1;
	for (size_t i = 0; i < m->n; i++) {
		struct ip_prefix p = {.addr = *addr, .bits = m->at[i].p.bits};
		if (m->at[i].p.addr.family != addr->family || m->at[i].p.bits <= best_bits) {
			continue;
		}
		ip_prefix_mask(&p);
		if (ip_addr_is_equal(&p.addr, &m->at[i].p.addr)) {
			best = m->at[i].owner;
			best_bits = m->at[i].p.bits;
		}
	}
	return best;
}

static void
model_insert(struct model *m, const struct ip_prefix *p, struct allowed_owner *o)
{
	size_t i = model_find(m, *p);
	if (i == m->n) {
		if (m->n == PREFIXES_MAX) {
			return;
		}
		m->at[m->n].p = *p;
		ip_prefix_mask(&m->at[m->n].p);
		m->n++;
	}
	m->at[i].owner = o;
	if (allowed_insert(m->table, p, o) != WEFT_OK) {
		fail_msg("seed %lu: insert failed", m->seed);
	}
}

static void
model_remove(struct model *m, const struct ip_prefix *p, struct allowed_owner *o)
{
	size_t i = model_find(m, *p);
	bool is_there = i < m->n && m->at[i].owner == o;
	if (is_there) {
		m->at[i] = m->at[--m->n];
	}
	if (allowed_remove(m->table, p, o) != is_there) {
		fail_msg("seed %lu: remove says the wrong thing", m->seed);
	}
}

static void
model_remove_all(struct model *m, struct allowed_owner *o)
{
	for (size_t i = m->n; i-- > 0;) {
		if (m->at[i].owner == o) {
			m->at[i] = m->at[--m->n];
		}
	}
	allowed_remove_all(m->table, o);
	void *cursor = NULL;
	struct ip_prefix p;
	assert_false(allowed_next(o, &cursor, &p));
}

/* Addresses cluster, so that prefixes nest, share nodes and fork at every depth. */
static struct ip_prefix
some_prefix(struct rng *rng, unsigned density)
{
	struct ip_prefix p = {.addr.family = rng_is_hit(rng, 0.5) ? IP_FAMILY_V4 : IP_FAMILY_V6};
	unsigned bits = (unsigned)ip_family_len(p.addr.family) * 8;
	for (unsigned i = 0; i < bits / 8; i++) {
		p.addr.b[i] = rng_below(rng, density) == 0 ? (uint8_t)rng_u64(rng) : 0x20;
	}
	switch (rng_below(rng, 4)) {
	case 0:
		p.bits = (uint8_t)bits;
		break;
	case 1:
		p.bits = (uint8_t)rng_below(rng, 8);
		break;
	default:
		p.bits = (uint8_t)rng_below(rng, bits + 1);
	}
	return p;
}

static void
model_compare(struct model *m, struct rng *rng, unsigned density)
{
	struct ip_prefix p = some_prefix(rng, density);
	if (m->n > 0 && rng_is_hit(rng, 0.7)) {
		/* Near a prefix that is there: inside it, or one flipped bit away. */
		p = m->at[rng_below(rng, m->n)].p;
		unsigned bit = (unsigned)rng_below(rng, ip_family_len(p.addr.family) * 8);
		p.addr.b[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
	}
	if (allowed_lookup(m->table, p.addr.family, p.addr.b) != model_lookup(m, &p.addr)) {
		char text[IP_ADDR_TEXT_MAX];
		fail_msg("seed %lu: wrong owner of %s", m->seed, ip_addr_format(&p.addr, text));
	}
}

static void
model_compare_owners(struct model *m)
{
	size_t seen = 0;
	for (int i = 0; i < OWNERS; i++) {
		void *cursor = NULL;
		struct ip_prefix p;
		while (allowed_next(&m->owners[i], &cursor, &p)) {
			size_t k = model_find(m, p);
			if (k == m->n || m->at[k].owner != &m->owners[i]) {
				fail_msg("seed %lu: owner %d walks over another's", m->seed, i);
			}
			seen++;
		}
	}
	if (seen != m->n || allowed_count(m->table) != m->n) {
		fail_msg("seed %lu: %zu walked, %zu there", m->seed, seen, m->n);
	}
}

static void
table_equals_a_naive_model(void **state)
{
	(void)state;
	static struct model m;
	for (m.seed = 1; m.seed <= 60; m.seed++) {
		struct rng rng;
		rng_init(&rng, m.seed);
		unsigned density = 1 + (unsigned)rng_below(&rng, 6);
		m.n = 0;
		m.table = table();
		uint64_t empty_bytes = allowed_bytes(m.table);
		for (int i = 0; i < OWNERS; i++) {
			allowed_owner_init(&m.owners[i]);
		}
		for (int step = 0; step < 1500; step++) {
			struct ip_prefix p = some_prefix(&rng, density);
			struct allowed_owner *o = &m.owners[rng_below(&rng, OWNERS)];
			uint64_t what = rng_below(&rng, 200);
			if (what == 0) {
				model_remove_all(&m, o);
			} else if (what < 60) {
				if (m.n > 0 && rng_is_hit(&rng, 0.9)) {
					size_t i = rng_below(&rng, m.n);
					p = m.at[i].p;
					o = rng_is_hit(&rng, 0.9) ? m.at[i].owner : o;
				}
				/* Now and then without memory to tidy up with. */
				if (rng_is_hit(&rng, 0.3)) {
					allowed_set_bytes_max(m.table, allowed_bytes(m.table));
				}
				model_remove(&m, &p, o);
				allowed_set_bytes_max(m.table, ALLOWED_BYTES_MAX);
			} else {
				model_insert(&m, &p, o);
			}
			model_compare(&m, &rng, density);
		}
		model_compare_owners(&m);
		for (int i = 0; i < OWNERS; i++) {
			model_remove_all(&m, &m.owners[i]);
		}
		/* Everything went back: no node or slab stays behind. */
		if (allowed_count(m.table) != 0 || allowed_bytes(m.table) != empty_bytes) {
			fail_msg("seed %lu: not empty at the end", m.seed);
		}
		allowed_free(m.table);
	}
}

static void
free_leaves_owners_without_prefixes(void **state)
{
	(void)state;
	struct allowed *a = table();
	struct allowed_owner o;
	allowed_owner_init(&o);
	insert(a, "10.0.0.0/8", &o);
	insert(a, "10.0.0.0/9", &o);
	insert(a, "fd00::1", &o);
	allowed_free(a);
	allowed_free(NULL);
	void *cursor = NULL;
	struct ip_prefix p;
	assert_false(allowed_next(&o, &cursor, &p));
}

static void
insert_without_memory_changes_nothing(void **state)
{
	(void)state;
	static struct model m;
	struct rng rng;
	m.seed = 4;
	m.n = 0;
	rng_init(&rng, m.seed);
	m.table = table();
	for (int i = 0; i < OWNERS; i++) {
		allowed_owner_init(&m.owners[i]);
	}
	size_t refused = 0;
	for (int i = 0; i < 1000; i++) {
		struct ip_prefix p = some_prefix(&rng, 3);
		struct allowed_owner *o = &m.owners[rng_below(&rng, OWNERS)];
		/* Every amount of memory from nothing to enough, so each step fails once. */
		uint64_t before = allowed_bytes(m.table);
		for (uint64_t room = 0;; room += 8) {
			allowed_set_bytes_max(m.table, before + room);
			enum weft_err e = allowed_insert(m.table, &p, o);
			if (e == WEFT_OK) {
				break;
			}
			assert_int_equal(e, WEFT_ENOMEM);
			assert_int_equal(allowed_bytes(m.table), before);
			assert_int_equal(allowed_count(m.table), m.n);
			refused++;
			model_compare(&m, &rng, 3);
		}
		model_insert(&m, &p, o);
	}
	assert_true(refused > 1000);
	model_compare_owners(&m);
	allowed_free(m.table);
}

static void
hundred_thousand_prefixes_cost_under_150_bytes_each(void **state)
{
	(void)state;
	enum { COUNT = 100000 };
	for (int family = 4; family <= 6; family += 2) {
		struct allowed *a = table();
		struct allowed_owner *owners = calloc(COUNT, sizeof(*owners));
		assert_non_null(owners);
		struct rng rng;
		rng_init(&rng, 11);
		for (size_t i = 0; i < COUNT; i++) {
			struct ip_prefix p = {.addr.family = (enum ip_family)family};
			size_t len = ip_family_len(p.addr.family);
			rng_fill(&rng, p.addr.b, len);
			p.bits = (uint8_t)(len * 8);
			allowed_owner_init(&owners[i]);
			assert_int_equal(allowed_insert(a, &p, &owners[i]), WEFT_OK);
		}
		/* Two prefixes a peer must stay under 300 bytes. */
		assert_true(allowed_bytes(a) < (uint64_t)150 * COUNT);
		rng_init(&rng, 11);
		size_t right = 0;
		for (size_t i = 0; i < COUNT; i++) {
			uint8_t addr[16];
			rng_fill(&rng, addr, ip_family_len((enum ip_family)family));
			right += allowed_lookup(a, (enum ip_family)family, addr) == &owners[i];
		}
		/* A few of the 100,000 draws of 32 bits hit the same address twice. */
		assert_true(right >= allowed_count(a) - (COUNT - allowed_count(a)));
		allowed_free(a);
		free(owners);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(longest_of_nested_prefixes_wins),
		cmocka_unit_test(families_do_not_mix),
		cmocka_unit_test(insert_ignores_host_bits_and_refuses_what_is_no_prefix),
		cmocka_unit_test(prefix_moves_to_the_owner_that_takes_it),
		cmocka_unit_test(table_equals_a_naive_model),
		cmocka_unit_test(free_leaves_owners_without_prefixes),
		cmocka_unit_test(insert_without_memory_changes_nothing),
		cmocka_unit_test(hundred_thousand_prefixes_cost_under_150_bytes_each),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
