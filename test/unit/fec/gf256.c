/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <sys/mman.h>

#include "base/compiler.h"
#include "base/rng.h"
#include "fec/gf256.h"

#define LEN_MAX 2100
#define ALIGNS 64
#define GUARD 64
#define GUARD_BYTE 0xa5

/* Lengths beyond the dense range: packets, and the edges of what a kernel takes at a time. */
static const size_t long_lengths[] = {383, 384, 385, 511, 512, 513, 575, 576, 640, 767, 768, 769,
	1023, 1024, 1025, 1279, 1280, 1281, 1407, 1408, 1409, 1410, 1422, 1471, 1472, 1500, 1502,
	1535, 1536, 1537, 1599, 1600, 1663, 1792, 1919, 1920, 1921, 2047, 2048, 2049, 2099,
	LEN_MAX};
#define DENSE_MAX 300
#define LENGTHS (DENSE_MAX + 1 + WEFT_ARRAY_LEN(long_lengths))

static size_t
length_at(size_t i)
{
	return i <= DENSE_MAX ? i : long_lengths[i - DENSE_MAX - 1];
}

/* Every kernel that this processor runs, the scalar one first. NULL past the last. */
static const struct gf256 *
kernel_at(size_t i)
{
	for (int isa = GF256_ISA_SCALAR; isa < GF256_ISA_COUNT; isa++) {
		const struct gf256 *g = gf256_get((enum gf256_isa)isa);
		if (g && i-- == 0) {
			return g;
		}
	}
	return NULL;
}

static void
fill(uint64_t seed, uint8_t *p, size_t len)
{
	struct rng r;
	rng_init(&r, seed);
	rng_fill(&r, p, len);
}

/* The field */

/* Schoolbook: shift, and subtract the polynomial when x^8 appears. */
static unsigned
naive_mul(unsigned a, unsigned b)
{
	unsigned product = 0;
	for (; b > 0; b >>= 1) {
		product ^= b & 1 ? a : 0;
		a <<= 1;
		a ^= a & 0x100 ? 0x11d : 0;
	}
	return product;
}

static void
gf256_mul_equals_schoolbook_multiplication(void **state)
{
	(void)state;
	for (unsigned a = 0; a < 256; a++) {
		for (unsigned b = 0; b < 256; b++) {
			assert_int_equal(gf256_mul((uint8_t)a, (uint8_t)b), naive_mul(a, b));
		}
	}
}

static void
gf256_mul_is_that_of_a_field(void **state)
{
	(void)state;
	unsigned wrong = 0;
	for (unsigned i = 0; i < 1u << 24; i++) {
		uint8_t a = (uint8_t)i, b = (uint8_t)(i >> 8), c = (uint8_t)(i >> 16);
		uint8_t ab = gf256_mul(a, b);
		wrong += gf256_mul(ab, c) != gf256_mul(a, gf256_mul(b, c));
		wrong += gf256_mul(a, b ^ c) != (ab ^ gf256_mul(a, c));
		wrong += ab != gf256_mul(b, a);
	}
	assert_int_equal(wrong, 0);
	for (unsigned a = 0; a < 256; a++) {
		assert_int_equal(gf256_mul((uint8_t)a, 1), a);
		assert_int_equal(gf256_mul((uint8_t)a, 0), 0);
	}
}

static void
gf256_inv_gives_one_when_multiplied(void **state)
{
	(void)state;
	for (unsigned a = 1; a < 256; a++) {
		assert_int_equal(gf256_mul((uint8_t)a, gf256_inv((uint8_t)a)), 1);
	}
}

static void
gf256_powers_of_two_reach_every_element_but_zero(void **state)
{
	(void)state;
	bool seen[256] = {false};
	uint8_t a = 1;
	for (int i = 0; i < 255; i++) {
		assert_false(seen[a]);
		seen[a] = true;
		a = gf256_mul(a, 2);
	}
	assert_int_equal(a, 1);
	assert_false(seen[0]);
}

/* The choice */

static void
gf256_get_gives_the_last_kernel_that_is_there(void **state)
{
	(void)state;
	const struct gf256 *last = NULL, *g;
	for (size_t i = 0; (g = kernel_at(i)) != NULL; i++) {
		last = g;
		assert_non_null(gf256_name(g));
	}
	assert_ptr_equal(gf256_get(GF256_ISA_AUTO), last);
	assert_non_null(gf256_get(GF256_ISA_SCALAR));
	assert_null(gf256_get(GF256_ISA_COUNT));
}

/* One source */

enum op { OP_ADD, OP_MUL_ADD, OP_SCALE, OP_COUNT };
static const char *const op_names[] = {"add", "mul_add", "scale"};

static uint8_t
expected(enum op op, uint8_t dst, uint8_t src, uint8_t c)
{
	switch (op) {
	case OP_ADD:
		return dst ^ src;
	case OP_MUL_ADD:
		return (uint8_t)(dst ^ naive_mul(c, src));
	default:
		return (uint8_t)naive_mul(c, dst);
	}
}

static void
apply(const struct gf256 *g, enum op op, uint8_t *dst, const uint8_t *src, uint8_t c, size_t n)
{
	switch (op) {
	case OP_ADD:
		g->add(dst, src, n);
		break;
	case OP_MUL_ADD:
		g->mul_add(dst, src, c, n);
		break;
	default:
		g->scale(dst, c, n);
		break;
	}
}

/* What goes in, and what must come out: the same bytes for every length, in prefixes. */
struct sample {
	uint8_t src[LEN_MAX], dst[LEN_MAX], want[LEN_MAX];
};

static void
sample_init(struct sample *s, enum op op, uint8_t c)
{
	fill(1, s->src, sizeof(s->src));
	fill(2, s->dst, sizeof(s->dst));
	for (size_t i = 0; i < LEN_MAX; i++) {
		s->want[i] = expected(op, s->dst[i], s->src[i], c);
	}
}

static bool
is_guard(const uint8_t *p)
{
	return p[0] == GUARD_BYTE && memcmp(p, p + 1, GUARD - 1) == 0;
}

/* dst: a destination with GUARD bytes on either side. */
static void
check_one(const struct gf256 *g, enum op op, const struct sample *s, const uint8_t *src,
	uint8_t *dst, uint8_t c, size_t n)
{
	memset(dst - GUARD, GUARD_BYTE, GUARD);
	memset(dst + n, GUARD_BYTE, GUARD);
	memcpy(dst, s->dst, n);
	apply(g, op, dst, src, c, n);
	if (memcmp(dst, s->want, n) != 0) {
		fail_msg("%s %s: %zu bytes from alignment %zu to %zu", g->name, op_names[op], n,
			(uintptr_t)src % ALIGNS, (uintptr_t)dst % ALIGNS);
	}
	if (!is_guard(dst - GUARD) || !is_guard(dst + n)) {
		fail_msg("%s %s: wrote outside %zu bytes at alignment %zu", g->name, op_names[op],
			n, (uintptr_t)dst % ALIGNS);
	}
}

static void
gf256_kernels_do_all_lengths_at_all_alignments(void **state)
{
	(void)state;
	static WEFT_ALIGNED(64) uint8_t src[LEN_MAX + ALIGNS], dst[LEN_MAX + ALIGNS + 2 * GUARD];
	static struct sample s;
	const struct gf256 *g;
	const uint8_t c = 0x8e;
	for (int op = 0; op < OP_COUNT; op++) {
		sample_init(&s, (enum op)op, c);
		for (size_t from = 0; from < ALIGNS; from++) {
			memcpy(src + from, s.src, LEN_MAX);
			for (size_t i = 0; i < LENGTHS * ALIGNS; i++) {
				size_t len = length_at(i / ALIGNS), to = i % ALIGNS;
				/* The destination alone, or every pair; pairs of long ones are
				 * sampled. */
				if ((op == OP_SCALE && from > 0) ||
					(len > DENSE_MAX && (to * 5 + from) % 16 > 0)) {
					continue;
				}
				for (size_t k = 0; (g = kernel_at(k)) != NULL; k++) {
					check_one(g, (enum op)op, &s, src + from, dst + GUARD + to,
						c, len);
				}
			}
		}
	}
}

static void
gf256_kernels_do_all_constants(void **state)
{
	(void)state;
	static uint8_t dst[LEN_MAX + 2 * GUARD];
	static const size_t lens[] = {1, 15, 31, 63, 255, 256, 257, 1410};
	static struct sample s;
	const struct gf256 *g;
	for (int op = OP_MUL_ADD; op < OP_COUNT; op++) {
		for (unsigned c = 0; c < 256; c++) {
			sample_init(&s, (enum op)op, (uint8_t)c);
			for (size_t i = 0; i < WEFT_ARRAY_LEN(lens); i++) {
				for (size_t k = 0; (g = kernel_at(k)) != NULL; k++) {
					check_one(g, (enum op)op, &s, s.src, dst + GUARD,
						(uint8_t)c, lens[i]);
				}
			}
		}
	}
}

/* Memory that cannot be touched on either side: ROOM bytes between two such pages. */
#define PAGE 4096u
#define ROOM PAGE
#define SLOTS (GF256_SOURCES_MAX + GF256_ROWS_MAX)

struct fenced {
	uint8_t *map;
};

static struct fenced
fenced_new(void)
{
	struct fenced f;
	f.map = mmap(NULL, (2 * SLOTS + 1) * PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(f.map, MAP_FAILED);
	for (size_t i = 0; i <= SLOTS; i++) {
		assert_int_equal(mprotect(f.map + 2 * i * PAGE, PAGE, PROT_NONE), 0);
	}
	return f;
}

static void
fenced_free(struct fenced *f)
{
	assert_int_equal(munmap(f->map, (2 * SLOTS + 1) * PAGE), 0);
}

/* n bytes of a slot, at its start or up to its end. */
static uint8_t *
fenced_at(const struct fenced *f, size_t slot, size_t n, bool is_at_end)
{
	return f->map + (2 * slot + 1) * PAGE + (is_at_end ? ROOM - n : 0);
}

static void
gf256_kernels_touch_nothing_beyond_either_end(void **state)
{
	(void)state;
	static struct sample s;
	struct fenced f = fenced_new();
	const struct gf256 *g;
	for (int op = 0; op < OP_COUNT; op++) {
		sample_init(&s, (enum op)op, 0x53);
		for (size_t i = 0; i < LENGTHS * 4; i++) {
			size_t n = length_at(i / 4);
			for (size_t k = 0; (g = kernel_at(k)) != NULL; k++) {
				uint8_t *src = fenced_at(&f, 0, n, i & 1);
				uint8_t *dst = fenced_at(&f, 1, n, i & 2);
				memcpy(src, s.src, n);
				memcpy(dst, s.dst, n);
				apply(g, (enum op)op, dst, src, 0x53, n);
				if (memcmp(dst, s.want, n) != 0) {
					fail_msg("%s %s: %zu bytes", g->name, op_names[op], n);
				}
			}
		}
	}
	fenced_free(&f);
}

/* Many sources */

struct dot_case {
	uint8_t *srcs[GF256_SOURCES_MAX];
	uint16_t lens[GF256_SOURCES_MAX];
	uint8_t cs[GF256_ROWS_MAX * GF256_SOURCES_MAX];
	uint8_t *dsts[GF256_ROWS_MAX];
	uint8_t before[GF256_ROWS_MAX][LEN_MAX], want[GF256_ROWS_MAX][LEN_MAX];
	size_t k, n, rows;
};

/* The same by its definition, a source and a row at a time. */
static void
dot_naively(struct dot_case *d)
{
	const struct gf256 *scalar = gf256_get(GF256_ISA_SCALAR);
	for (size_t row = 0; row < d->rows; row++) {
		memcpy(d->want[row], d->before[row], d->n);
		for (size_t i = 0; i < d->k; i++) {
			scalar->mul_add(
				d->want[row], d->srcs[i], d->cs[row * d->k + i], d->lens[i]);
		}
	}
}

static void
dot_restore(struct dot_case *d)
{
	for (size_t row = 0; row < d->rows; row++) {
		memcpy(d->dsts[row], d->before[row], d->n);
	}
}

static void
dot_compare(const struct dot_case *d, size_t rows, const char *what, unsigned long long seed)
{
	for (size_t row = 0; row < rows; row++) {
		for (size_t i = 0; i < d->n; i++) {
			if (d->dsts[row][i] != d->want[row][i]) {
				fail_msg("%s, seed %llu: k %zu, n %zu, row %zu of %zu, byte %zu",
					what, seed, d->k, d->n, row, rows, i);
			}
		}
	}
}

static void
check_dot(struct dot_case *d, unsigned long long seed)
{
	const struct gf256_sources s = {(const uint8_t *const *)d->srcs, d->lens, d->k};
	const struct gf256 *g;
	dot_naively(d);
	for (size_t i = 0; (g = kernel_at(i)) != NULL; i++) {
		dot_restore(d);
		g->dot(d->dsts[0], s.data, d->lens, d->cs, d->k, d->n);
		dot_compare(d, 1, g->name, seed);
		for (size_t row = 1; row < d->rows; row++) {
			assert_memory_equal(d->dsts[row], d->before[row], d->n);
		}
		dot_restore(d);
		g->dot_multi(d->dsts, d->rows, &s, d->cs, d->n);
		dot_compare(d, d->rows, g->name, seed);
	}
}

/* Sources that are full, that lack little, of any length, or empty. */
static uint16_t
draw_length(struct rng *r, size_t n, uint64_t mix)
{
	uint64_t kind = mix == 0 ? 0 : rng_below(r, 4);
	if (kind == 1) {
		return (uint16_t)(n - rng_below(r, n < 70 ? n + 1 : 70));
	}
	if (kind == 2) {
		return (uint16_t)rng_below(r, n + 1);
	}
	return kind == 3 && rng_below(r, 8) == 0 ? 0 : (uint16_t)n;
}

static void
draw_case(struct dot_case *d, const struct fenced *f, struct rng *r, size_t n)
{
	uint64_t mix = rng_below(r, 2);
	d->n = n;
	d->k = rng_below(r, 3) == 0 ? rng_below(r, GF256_SOURCES_MAX + 1) : rng_below(r, 12);
	d->rows = 1 + rng_below(r, GF256_ROWS_MAX);
	rng_fill(r, d->cs, sizeof(d->cs));
	for (size_t i = 0; i < d->k; i++) {
		d->lens[i] = draw_length(r, n, mix);
		d->srcs[i] = fenced_at(f, i, d->lens[i], rng_below(r, 2));
		rng_fill(r, d->srcs[i], d->lens[i]);
	}
	for (size_t row = 0; row < d->rows; row++) {
		d->dsts[row] = fenced_at(f, GF256_SOURCES_MAX + row, n, rng_below(r, 2));
		rng_fill(r, d->before[row], n);
	}
}

static void
gf256_dot_equals_repeated_mul_add_at_every_length(void **state)
{
	(void)state;
	static struct dot_case d;
	struct fenced f = fenced_new();
	struct rng r;
	for (size_t i = 0; i < LENGTHS * 3; i++) {
		rng_init(&r, i);
		draw_case(&d, &f, &r, length_at(i / 3));
		check_dot(&d, i);
	}
	fenced_free(&f);
}

static void
gf256_dot_equals_repeated_mul_add_of_random_cases(void **state)
{
	(void)state;
	static struct dot_case d;
	struct fenced f = fenced_new();
	struct rng r;
	for (uint64_t seed = 0; seed < 1500; seed++) {
		rng_init(&r, 1000000 + seed);
		size_t n = rng_below(&r, LEN_MAX + 1);
		draw_case(&d, &f, &r, n);
		check_dot(&d, 1000000 + seed);
	}
	fenced_free(&f);
}

/* One source whose length and that of the destination meet in every way. */
static void
gf256_dot_extends_a_source_of_any_length_with_zeros(void **state)
{
	(void)state;
	static struct dot_case d;
	static const size_t ns[] = {
		1, 15, 16, 17, 33, 64, 65, 100, 128, 200, 256, 300, 520, 1410, 1536, 1600};
	struct fenced f = fenced_new();
	struct rng r;
	rng_init(&r, 5);
	for (size_t i = 0; i < WEFT_ARRAY_LEN(ns); i++) {
		for (size_t len = 0; len <= ns[i]; len += ns[i] > 600 ? 7 : 1) {
			d.n = ns[i];
			d.k = 1;
			d.rows = 1 + len % GF256_ROWS_MAX;
			d.lens[0] = (uint16_t)len;
			d.srcs[0] = fenced_at(&f, 0, len, true);
			rng_fill(&r, d.srcs[0], len);
			rng_fill(&r, d.cs, sizeof(d.cs));
			for (size_t row = 0; row < d.rows; row++) {
				d.dsts[row] = fenced_at(&f, GF256_SOURCES_MAX + row, d.n, true);
				rng_fill(&r, d.before[row], d.n);
			}
			check_dot(&d, len);
		}
	}
	fenced_free(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gf256_mul_equals_schoolbook_multiplication),
		cmocka_unit_test(gf256_mul_is_that_of_a_field),
		cmocka_unit_test(gf256_inv_gives_one_when_multiplied),
		cmocka_unit_test(gf256_powers_of_two_reach_every_element_but_zero),
		cmocka_unit_test(gf256_get_gives_the_last_kernel_that_is_there),
		cmocka_unit_test(gf256_kernels_do_all_lengths_at_all_alignments),
		cmocka_unit_test(gf256_kernels_do_all_constants),
		cmocka_unit_test(gf256_kernels_touch_nothing_beyond_either_end),
		cmocka_unit_test(gf256_dot_equals_repeated_mul_add_at_every_length),
		cmocka_unit_test(gf256_dot_equals_repeated_mul_add_of_random_cases),
		cmocka_unit_test(gf256_dot_extends_a_source_of_any_length_with_zeros),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
