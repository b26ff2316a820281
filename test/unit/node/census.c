/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "node/census.h"
#include "wire/conf.h"

#define PEERS_MAX 24
#define KEYS 8
#define PREFIXES 6
#define PREFIX_KINDS 12

/* A configuration with few keys and prefixes, so that they meet often. */
static struct conf *
random_conf(struct rng *r)
{
	struct conf *c = calloc(1, sizeof(*c));
	c->peers_n = rng_below(r, PEERS_MAX + 1);
	c->peers = calloc(PEERS_MAX, sizeof(*c->peers));
	for (size_t i = 0; i < c->peers_n; i++) {
		struct conf_peer *p = &c->peers[i];
		p->public_key[0] = (uint8_t)rng_below(r, KEYS);
		p->pos.line = (uint32_t)i + 1;
		p->keepalive_s = (uint16_t)rng_below(r, 3);
		p->has_psk = rng_below(r, 2);
		p->allowed.n = rng_below(r, PREFIXES + 1);
		p->allowed.v = calloc(PREFIXES, sizeof(*p->allowed.v));
		for (size_t k = 0; k < p->allowed.n; k++) {
			uint8_t v = (uint8_t)rng_below(r, PREFIX_KINDS);
			p->allowed.v[k].prefix = (struct ip_prefix){
				{v & 1 ? IP_FAMILY_V4 : IP_FAMILY_V6, {v, 0, 0, 9}}, 24};
		}
	}
	return c;
}

static void
free_conf(struct conf *c)
{
	for (size_t i = 0; i < c->peers_n; i++) {
		free(c->peers[i].allowed.v);
	}
	free(c->peers);
	free(c);
}

/* Who has a prefix by the naive rule: the section that says it last. NULL: nobody. */
static const uint8_t *
owner_of(const struct conf *c, const struct ip_prefix *p)
{
	const uint8_t *owner = NULL;
	for (size_t i = 0; i < c->peers_n; i++) {
		for (size_t k = 0; k < c->peers[i].allowed.n; k++) {
			struct ip_prefix q = c->peers[i].allowed.v[k].prefix;
			ip_prefix_mask(&q);
			if (census_compare_prefixes(&q, p) == 0) {
				owner = c->peers[i].public_key;
			}
		}
	}
	return owner;
}

static void
check(const struct conf *c, const struct census *s)
{
	size_t keys = 0, prefixes = 0;
	uint32_t line = 0;
	for (uint8_t key = 0; key < KEYS; key++) {
		uint8_t whole[KEY_LEN] = {key};
		const struct conf_peer *first = NULL, *psk = NULL;
		uint16_t keepalive_s = 0;
		for (size_t i = 0; i < c->peers_n; i++) {
			const struct conf_peer *p = &c->peers[i];
			if (p->public_key[0] != key) {
				continue;
			}
			first = first ? first : p;
			psk = p->has_psk ? p : psk;
			keepalive_s = p->keepalive_s ? p->keepalive_s : keepalive_s;
		}
		const struct census_peer *found = census_find(s, whole);
		assert_int_equal(found != NULL, first != NULL);
		if (found) {
			keys++;
			assert_int_equal(found->line, first->pos.line);
			assert_ptr_equal(found->psk, psk ? psk->psk : NULL);
			assert_int_equal(found->keepalive_s, keepalive_s);
		}
	}
	assert_int_equal(s->n, keys);
	for (size_t i = 0; i < s->n; i++) {
		assert_true(s->v[i].line > line);
		line = s->v[i].line;
		for (size_t k = 0; k < s->v[i].prefixes_n; k++, prefixes++) {
			const struct ip_prefix *p = &s->v[i].prefixes[k];
			assert_memory_equal(owner_of(c, p), s->v[i].key, KEY_LEN);
			assert_true(k == 0 || census_compare_prefixes(p - 1, p) < 0);
		}
	}
	for (uint8_t v = 0; v < PREFIX_KINDS; v++) {
		struct ip_prefix p = {{v & 1 ? IP_FAMILY_V4 : IP_FAMILY_V6, {v}}, 24};
		prefixes -= owner_of(c, &p) != NULL;
	}
	assert_int_equal(prefixes, 0); /* none is missing */
}

static void
census_has_each_key_once_and_each_prefix_where_it_was_named_last(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 2000; seed++) {
		struct rng r;
		struct census s;
		rng_init(&r, seed);
		struct conf *c = random_conf(&r);
		assert_int_equal(census_make(c, &s), WEFT_OK);
		check(c, &s);
		census_fini(&s);
		free_conf(c);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(census_has_each_key_once_and_each_prefix_where_it_was_named_last),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
