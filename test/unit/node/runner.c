/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "node/runner.h"
#include "os/fd.h"
#include "os/loop.h"

/* A runner without worker and thread, and descriptors to watch. */
struct fixture {
	struct runner r;
	struct os_wake wakes[5];
};

static void
setup(struct fixture *f)
{
	*f = (struct fixture){0};
	assert_int_equal(runner_init(&f->r, NULL), WEFT_OK);
	for (size_t i = 0; i < WEFT_ARRAY_LEN(f->wakes); i++) {
		assert_int_equal(os_wake_init(&f->wakes[i]), WEFT_OK);
	}
}

static void
teardown(struct fixture *f)
{
	for (size_t i = 0; i < WEFT_ARRAY_LEN(f->wakes); i++) {
		os_wake_fini(&f->wakes[i]);
	}
	os_mutex_fini(&f->r.mutex);
	os_cond_fini(&f->r.done);
	os_wake_fini(&f->r.wake);
	os_loop_free(f->r.loop);
}

static void
runner_watches_a_port_and_two_links_at_once(void **state)
{
	(void)state;
	struct fixture f;
	setup(&f);
	int old[2] = {f.wakes[1].fd, f.wakes[2].fd}, fresh[2] = {f.wakes[3].fd, f.wakes[4].fd};
	assert_int_equal(runner_watch_port(&f.r, f.wakes[0].fd), WEFT_OK);
	assert_int_equal(runner_watch_link(&f.r, old, 2), WEFT_OK);
	assert_int_equal(runner_watch_link(&f.r, fresh, 2), WEFT_OK);
	runner_unwatch_link(&f.r, old, 2);
	f.r.ready = 0;
	os_wake_signal(&f.wakes[1]);
	os_loop_wait(f.r.loop, (struct mono){0});
	assert_int_equal(f.r.ready, 0);
	os_wake_signal(&f.wakes[4]);
	os_loop_wait(f.r.loop, (struct mono){0});
	assert_int_equal(f.r.ready, WORKER_READY_LINK);
	os_wake_signal(&f.wakes[0]);
	os_loop_wait(f.r.loop, (struct mono){0});
	assert_int_equal(f.r.ready, WORKER_READY_LINK | WORKER_READY_PORT);
	teardown(&f);
}

static void
link_that_cannot_be_watched_leaves_the_old_one_watched(void **state)
{
	(void)state;
	struct fixture f;
	setup(&f);
	int old[2] = {f.wakes[1].fd, f.wakes[2].fd};
	/* The second is closed: epoll refuses it. */
	int closed = f.wakes[4].fd;
	os_fd_close(&f.wakes[4].fd);
	int fresh[2] = {f.wakes[3].fd, closed};
	assert_int_equal(runner_watch_link(&f.r, old, 2), WEFT_OK);
	assert_int_not_equal(runner_watch_link(&f.r, fresh, 2), WEFT_OK);
	f.r.ready = 0;
	os_wake_signal(&f.wakes[3]);
	os_loop_wait(f.r.loop, (struct mono){0});
	assert_int_equal(f.r.ready, 0);
	os_wake_signal(&f.wakes[2]);
	os_loop_wait(f.r.loop, (struct mono){0});
	assert_int_equal(f.r.ready, WORKER_READY_LINK);
	teardown(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runner_watches_a_port_and_two_links_at_once),
		cmocka_unit_test(link_that_cannot_be_watched_leaves_the_old_one_watched),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
