/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <poll.h>
#include <string.h>
#include <cmocka.h>

#include "base/endian.h"
#include "link/mem.h"
#include "os/thread.h"

static const struct endpoint at[2] = {
	{.addr = {.family = IP_FAMILY_V4, .b = {10, 0, 0, 1}}, .port = 1},
	{.addr = {.family = IP_FAMILY_V6, .b = {0xfd, [15] = 2}}, .port = 2}};

static void
run_stays_a_run_and_comes_from_its_end(void **state)
{
	(void)state;
	struct link *ends[2];
	assert_int_equal(link_mem_pair(1 << 20, at, ends), WEFT_OK);
	uint8_t data[4500];
	for (size_t i = 0; i < sizeof(data); i++) {
		data[i] = (uint8_t)(i * 7);
	}
	for (int i = 0; i < 2; i++) {
		struct link_run runs[2] = {
			{.to = &at[1 - i], .data = data, .len = 4500, .seg = 1000, .ecn = 3},
			{.to = &at[1 - i], .data = data, .len = 1, .seg = 1}};
		struct link_rx rx[4];
		size_t n;
		ends[i]->ops->send(ends[i], runs, 2);
		assert_int_equal(ends[1 - i]->ops->receive(ends[1 - i], rx, 4, &n), WEFT_OK);
		assert_int_equal(n, 2);
		assert_int_equal(rx[0].len, 4500);
		assert_int_equal(rx[0].seg, 1000);
		assert_int_equal(rx[0].ecn, 3);
		assert_memory_equal(rx[0].data, data, 4500);
		assert_true(endpoint_is_same_remote(&rx[0].from, &at[i]));
		assert_true(ip_addr_is_equal(&rx[0].from.src, &at[1 - i].addr));
		assert_int_equal(ends[i]->stats.tx_datagrams, 6);
		assert_int_equal(ends[1 - i]->stats.rx_datagrams, 6);
		assert_int_equal(ends[1 - i]->stats.rx_bytes, 4501);
		assert_int_equal(ends[1 - i]->ops->receive(ends[1 - i], rx, 4, &n), WEFT_EAGAIN);
	}
	ends[0]->ops->close(ends[0]);
	ends[1]->ops->close(ends[1]);
}

static void
received_bytes_stay_until_the_next_receive(void **state)
{
	(void)state;
	struct link *ends[2];
	assert_int_equal(link_mem_pair(4096, at, ends), WEFT_OK);
	uint8_t data[1000] = {1};
	struct link_run run = {.to = &at[1], .data = data, .len = 1000, .seg = 1000};
	struct link_rx rx[4];
	size_t n;
	ends[0]->ops->send(ends[0], &run, 1);
	assert_int_equal(ends[1]->ops->receive(ends[1], rx, 4, &n), WEFT_OK);
	/* Fills the ring around what is being read; none of it may be overwritten. */
	data[0] = 2;
	for (int i = 0; i < 10; i++) {
		ends[0]->ops->send(ends[0], &run, 1);
	}
	assert_int_equal(rx[0].data[0], 1);
	uint64_t dropped = ends[0]->stats.drops.n[DROP_LINK_NOBUFS];
	assert_int_equal(ends[0]->stats.tx_datagrams + dropped, 11);
	assert_true(dropped > 0);
	assert_int_equal(ends[1]->ops->receive(ends[1], rx, 4, &n), WEFT_OK);
	assert_int_equal(rx[0].data[0], 2);
	ends[0]->ops->close(ends[0]);
	ends[1]->ops->close(ends[1]);
}

#define RUNS 50000u

static void
send_all(void *arg)
{
	struct link *l = arg;
	uint8_t data[600];
	struct link_run run = {.to = &at[1], .data = data, .len = 600, .seg = 100};
	memset(data, 0, sizeof(data));
	for (uint32_t i = 0; i < RUNS;) {
		uint64_t before = l->stats.tx_datagrams;
		store_le32(data, i);
		l->ops->send(l, &run, 1);
		if (l->stats.tx_datagrams != before) {
			i++;
		} else {
			os_thread_yield();
		}
	}
}

static void
ends_work_from_two_threads(void **state)
{
	(void)state;
	struct link *ends[2];
	struct os_thread t;
	assert_int_equal(link_mem_pair(1 << 16, at, ends), WEFT_OK);
	assert_int_equal(os_thread_start(&t, "sender", 0, send_all, ends[0]), WEFT_OK);
	for (uint32_t next = 0; next < RUNS;) {
		struct link_rx rx[8];
		size_t n;
		if (ends[1]->ops->receive(ends[1], rx, 8, &n)) {
			struct pollfd f = {.fd = link_mem_fd(ends[1]), .events = POLLIN};
			assert_int_equal(poll(&f, 1, 5000), 1);
			continue;
		}
		for (size_t i = 0; i < n; i++) {
			assert_int_equal(load_le32(rx[i].data), next++);
		}
	}
	os_thread_join(&t);
	ends[1]->ops->close(ends[1]);
	ends[0]->ops->close(ends[0]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run_stays_a_run_and_comes_from_its_end),
		cmocka_unit_test(received_bytes_stay_until_the_next_receive),
		cmocka_unit_test(ends_work_from_two_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
