/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "world.h"

static void
staged_packet_arrives_after_the_handshake(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 2, 1);
	world_meet(&w, 0, 1, true);
	world_meet(&w, 1, 0, false);
	world_send(&w, 0, 1, "first");
	assert_int_equal(w.sides[0].sent[WIRE_WG_TYPE_INITIATION], 1);
	world_run_s(&w, 0.1);
	assert_int_equal(w.sides[1].delivered, 1);
	assert_string_equal(w.sides[1].last, "first");
	world_send(&w, 1, 0, "second");
	world_run_s(&w, 0.1);
	assert_string_equal(w.sides[0].last, "second");
	assert_int_equal(w.sides[0].sent[WIRE_WG_TYPE_INITIATION], 1);
	assert_int_equal(w.sides[1].sent[WIRE_WG_TYPE_INITIATION], 0);
	world_fini(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(staged_packet_arrives_after_the_handshake),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
