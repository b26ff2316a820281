/* SPDX-License-Identifier: Apache-2.0 */
/* The control thread: a loop, and on it the keeper and what the program's threads ask for. */
#include <stdlib.h>
#include <string.h>

#include "lib/detail.h"
#include "lib/node.h"
#include "node/keeper.h"
#include "node/node.h"
#include "os/clock.h"
#include "os/loop.h"
#include "os/netns.h"
#include "wire/conf.h"

#define INTERFACE_NAME "weft0" /* it is alone in its namespace */
#define THREAD_NAME "weft"
#define WATCHES_MAX (KEEPER_WATCHES_MAX + 8)
#define TEXT_MAX 400

static void
on_post(void *ctx, uint32_t events)
{
	struct weft_node *n = ctx;
	(void)events;
	os_wake_clear(&n->post);
	os_mutex_lock(&n->mutex);
	struct lib_job *job = n->job;
	os_mutex_unlock(&n->mutex);
	if (!job) {
		return;
	}
	job->run(n, job->arg);
	os_mutex_lock(&n->mutex);
	n->job = NULL;
	job->is_done = true;
	os_cond_broadcast(&n->changed);
	os_mutex_unlock(&n->mutex);
}

static void
on_gone(void *ctx)
{
	struct weft_node *n = ctx;
	if (!n->is_gone) {
		n->is_gone = true;
		events_error(n, WEFT_ECLOSED,
			"the interface in the private namespace was deleted; stop and start the "
			"node to have another");
	}
}

static void
on_news(void *ctx)
{
	events_take_news(ctx);
}

static void
run(void *arg)
{
	struct weft_node *n = arg;
	while (!os_loop_is_stopped(n->loop)) {
		os_loop_wait(n->loop, keeper_deadline(n->keeper));
		keeper_turn(n->keeper, os_clock_mono());
	}
}

/* os_errno 0: text names no limit yet. */
static enum weft_err
refuse(struct weft_detail *why, enum weft_err e, int os_errno, const char *text)
{
	bool is_used_up = e == WEFT_ENOMEM && os_errno == 0;
	return detail_set(why, e, os_errno, "%s%s", text,
		is_used_up ? " (of descriptors, ulimit -n allows more)" : "");
}

static enum weft_err
start_keeper(struct weft_node *n, struct weft_detail *why)
{
	struct conf *conf;
	enum weft_err e = config_parse(&n->text, &conf, why);
	if (e) {
		return e;
	}
	struct keeper_config c = {.name = INTERFACE_NAME,
		.conf = conf,
		.log = &n->log,
		.workers = n->workers,
		.state_dir = n->state_dir,
		.netns = n->netns,
		.has_news = true,
		.no_tun = n->flags & WEFT_NODE_NO_TUN,
		.gone = on_gone,
		.news = on_news,
		.ctx = n};
	lib_log_clear(n);
	n->is_gone = false;
	e = keeper_new(&c, n->loop, &n->keeper);
	if (e) {
		char text[TEXT_MAX];
		conf_free(conf);
		lib_log_last(n, weft_err_text(e), text, sizeof(text));
		return refuse(why, e, 0, text);
	}
	n->inner = keeper_node(n->keeper);
	return WEFT_OK;
}

static enum weft_err
start_loop(struct weft_node *n, struct weft_detail *why)
{
	enum weft_err e = os_wake_init(&n->post);
	if (e) {
		return refuse(why, e, 0, weft_err_text(e));
	}
	e = os_loop_new(WATCHES_MAX, &n->loop);
	if (e) {
		refuse(why, e, 0, weft_err_text(e));
		goto undo_post;
	}
	e = os_loop_add(n->loop, n->post.fd, OS_READABLE, on_post, n);
	if (e) {
		refuse(why, e, 0, weft_err_text(e));
		goto undo_loop;
	}
	return WEFT_OK;

undo_loop:
	os_loop_free(n->loop);
undo_post:
	os_wake_fini(&n->post);
	return e;
}

enum weft_err
control_start(struct weft_node *n, struct weft_detail *why)
{
	struct os_netns_fault fault;
	enum weft_err e = os_netns_open(&n->netns, &fault);
	if (e) {
		return refuse(why, e, fault.errnum, fault.text);
	}
	e = start_loop(n, why);
	if (e) {
		goto undo_netns;
	}
	e = start_keeper(n, why);
	if (e) {
		goto undo_loop;
	}
	e = os_thread_start(&n->control, THREAD_NAME, 0, run, n);
	if (e) {
		detail_set(why, e, 0, "cannot start a thread: %s", weft_err_text(e));
		goto undo_keeper;
	}
	return WEFT_OK;

undo_keeper:
	keeper_free(n->keeper);
undo_loop:
	os_loop_free(n->loop);
	os_wake_fini(&n->post);
undo_netns:
	os_netns_close(n->netns);
	return e;
}

void
control_stop(struct weft_node *n)
{
	os_loop_stop(n->loop);
	os_thread_join(&n->control);
	keeper_free(n->keeper);
	os_loop_free(n->loop);
	os_wake_fini(&n->post);
	os_netns_close(n->netns);
}
