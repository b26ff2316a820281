/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <poll.h>
#include <string.h>
#include <cmocka.h>

#include "port/mem.h"

static const struct gro_caps caps = {.has_tcp4 = true};

static bool
is_readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	return poll(&p, 1, 0) == 1;
}

static void
frame_comes_in_with_its_header(void **state)
{
	(void)state;
	struct port *p;
	uint8_t data[3000], buf[4000];
	struct frame f;
	assert_int_equal(port_mem_new(65536, 1420, &caps, &p), WEFT_OK);
	assert_int_equal(p->mtu, 1420);
	assert_true(p->caps.has_tcp4);
	assert_int_equal(p->ops->receive(p, buf, sizeof(buf), &f), WEFT_EAGAIN);
	memset(data, 9, sizeof(data));
	struct frame in = {.data = data,
		.len = sizeof(data),
		.gso = FRAME_GSO_TCP4,
		.gso_size = 1000,
		.needs_csum = true,
		.csum_start = 20,
		.csum_offset = 16};
	assert_true(port_mem_inject(p, &in));
	assert_true(is_readable(port_mem_fd(p)));
	assert_int_equal(p->ops->receive(p, buf, sizeof(buf), &f), WEFT_OK);
	assert_ptr_equal(f.data, buf);
	assert_int_equal(f.len, 3000);
	assert_int_equal(f.gso, FRAME_GSO_TCP4);
	assert_int_equal(f.gso_size, 1000);
	assert_int_equal(f.csum_offset, 16);
	assert_memory_equal(buf, data, 3000);
	assert_int_equal(p->stats.rx_bytes, 3000);

	/* Longer than the buffer: counted, and the next one comes. */
	assert_true(port_mem_inject(p, &in));
	in.len = 10;
	assert_true(port_mem_inject(p, &in));
	assert_int_equal(p->ops->receive(p, buf, 2000, &f), WEFT_OK);
	assert_int_equal(f.len, 10);
	assert_int_equal(p->stats.drops.n[DROP_TX_TOO_BIG], 1);
	unsigned n = 0;
	in.len = 3000;
	while (port_mem_inject(p, &in)) {
		n++;
	}
	assert_true(n >= 20 && n <= 21); /* 65,536 / 3,056 */
	p->ops->close(p);
}

static void
delivered_pieces_come_out_as_one_frame(void **state)
{
	(void)state;
	struct port *p;
	uint8_t a[20], b[1000], c[500];
	memset(a, 1, sizeof(a));
	memset(b, 2, sizeof(b));
	memset(c, 3, sizeof(c));
	struct gro_piece pieces[] = {{a, sizeof(a)}, {b, sizeof(b)}, {c, sizeof(c)}, {a, 7}};
	struct gro_frame frames[] = {{.gso = FRAME_GSO_TCP4,
					     .gso_size = 1000,
					     .needs_csum = true,
					     .csum_start = 20,
					     .len = 1520,
					     .first = 0,
					     .n = 3,
					     .packets = 2},
		{.len = 7, .first = 3, .n = 1, .packets = 1, .csum_valid = true}};
	struct gro_out out = {.frames = frames,
		.frames_cap = 2,
		.frames_n = 2,
		.pieces = pieces,
		.pieces_cap = 4,
		.pieces_n = 4};
	struct port_mem_frame f;
	assert_int_equal(port_mem_new(8192, 1420, &caps, &p), WEFT_OK);
	assert_false(port_mem_take(p, &f));
	p->ops->send(p, &out);
	assert_true(is_readable(port_mem_outer_fd(p)));
	assert_true(port_mem_take(p, &f));
	assert_int_equal(f.len, 1520);
	assert_int_equal(f.gso_size, 1000);
	assert_int_equal(f.packets, 2);
	assert_true(f.needs_csum);
	assert_memory_equal(f.data, a, 20);
	assert_memory_equal(f.data + 20, b, 1000);
	assert_memory_equal(f.data + 1020, c, 500);
	assert_true(port_mem_take(p, &f));
	assert_int_equal(f.len, 7);
	assert_true(f.csum_valid);
	assert_false(port_mem_take(p, &f));
	for (int i = 0; i < 10; i++) {
		p->ops->send(p, &out);
	}
	uint64_t dropped = p->stats.drops.n[DROP_PORT_FULL];
	assert_true(dropped > 0);
	uint64_t packets = 0;
	while (port_mem_take(p, &f)) {
		packets += f.packets;
	}
	assert_int_equal(packets + dropped, 30);
	p->ops->close(p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame_comes_in_with_its_header),
		cmocka_unit_test(delivered_pieces_come_out_as_one_frame),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
