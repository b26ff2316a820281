/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/bytes.h"

static void
reader_gives_integers_in_their_byte_order(void **state)
{
	(void)state;
	static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
		18, 19, 20, 21, 22, 23, 24};
	struct reader r;
	uint8_t rest[3];
	reader_init(&r, bytes, sizeof(bytes));
	assert_int_equal(reader_u8(&r), 1);
	assert_int_equal(reader_be16(&r), 0x0203);
	assert_int_equal(reader_be32(&r), 0x04050607);
	assert_int_equal(reader_le32(&r), 0x0b0a0908);
	assert_true(reader_le64(&r) == UINT64_C(0x131211100f0e0d0c));
	reader_copy(&r, rest, 3);
	assert_memory_equal(rest, bytes + 19, 3);
	assert_int_equal(reader_le16(&r), 0x1817);
	assert_int_equal(reader_left(&r), 0);
	assert_false(r.failed);
}

static void
reader_failure_is_sticky_and_yields_zeros(void **state)
{
	(void)state;
	static const uint8_t bytes[] = {9, 9, 9};
	struct reader r;
	uint8_t copy[4] = {7, 7, 7, 7};
	reader_init(&r, bytes, sizeof(bytes));
	assert_int_equal(reader_be32(&r), 0); /* one byte short */
	assert_true(r.failed);
	assert_int_equal(reader_u8(&r), 0); /* there is one, but it is too late */
	assert_int_equal(reader_be16(&r), 0);
	assert_int_equal(reader_le32(&r), 0);
	assert_true(reader_le64(&r) == 0);
	assert_null(reader_take(&r, 0));
	reader_copy(&r, copy, sizeof(copy));
	assert_int_equal(copy[0] | copy[1] | copy[2] | copy[3], 0);
}

static void
reader_refuses_lengths_that_would_wrap(void **state)
{
	(void)state;
	static const uint8_t bytes[] = {1};
	struct reader r;
	reader_init(&r, bytes, sizeof(bytes));
	assert_null(reader_take(&r, SIZE_MAX));
	assert_true(r.failed);
}

static void
writer_fills_exactly_to_the_end(void **state)
{
	(void)state;
	uint8_t out[17];
	struct writer w;
	memset(out, 0xee, sizeof(out));
	writer_init(&w, out, 16);
	writer_u8(&w, 1);
	writer_le32(&w, 0x05040302);
	writer_le64(&w, UINT64_C(0x0d0c0b0a09080706));
	writer_le16(&w, 0x0f0e);
	writer_copy(&w, "\x10", 1);
	assert_false(w.failed);
	for (unsigned i = 0; i < 16; i++) {
		assert_int_equal(out[i], i + 1);
	}
	assert_int_equal(out[16], 0xee);
}

static void
writer_failure_is_sticky_and_writes_nothing(void **state)
{
	(void)state;
	uint8_t out[4] = {0};
	struct writer w;
	writer_init(&w, out, 3);
	writer_le32(&w, UINT32_MAX);
	assert_true(w.failed);
	writer_u8(&w, 0xff);
	writer_copy(&w, "x", 1);
	writer_le64(&w, UINT64_MAX);
	assert_null(writer_take(&w, 0));
	assert_int_equal(out[0] | out[1] | out[2] | out[3], 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reader_gives_integers_in_their_byte_order),
		cmocka_unit_test(reader_failure_is_sticky_and_yields_zeros),
		cmocka_unit_test(reader_refuses_lengths_that_would_wrap),
		cmocka_unit_test(writer_fills_exactly_to_the_end),
		cmocka_unit_test(writer_failure_is_sticky_and_writes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
