/* SPDX-License-Identifier: Apache-2.0 */
/* The control thread: a loop, and on it the keeper and what the program's threads ask for. */
#include <stdlib.h>
#include <string.h>

#include "lib/detail.h"
#include "lib/node.h"
#include "node/device.h"
#include "node/keeper.h"
#include "node/node.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/loop.h"
#include "os/netns.h"
#include "wire/conf.h"

#define INTERFACE_NAME "weft0" /* it is alone in its namespace */
#define THREAD_NAME "weft"
#define SETTLE_NS (2 * WEFT_NS_PER_S)
#define SETTLE_STEP_NS (200 * WEFT_NS_PER_US)
#define WATCHES_MAX (KEEPER_WATCHES_MAX + 8)

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

/* In containers the device is often not there, or not for everybody. */
static bool
has_tun(struct weft_node *n)
{
	int fd, errnum;
	if (os_netns_open_tun(n->netns, &fd, &errnum)) {
		return false;
	}
	os_fd_close(&fd);
	return true;
}

/* The kernel makes an IPv6 address reachable some time after it was added or its interface came up
 * (no detection of duplicates, but the same work item): until then what is sent to it is lost. */
void
control_settle(struct weft_node *n, const struct conf *c)
{
	const struct conf_prefixes *addrs = &c->interface.addresses;
	const struct node_device *dev = node_device_of(n->inner);
	struct mono deadline = mono_add_ns(os_clock_mono(), SETTLE_NS);
	for (size_t i = 0; i < addrs->n; i++) {
		const struct ip_addr *a = &addrs->v[i].prefix.addr;
		struct os_route r;
		/* Reachable, it leads to the loopback interface. */
		while (a->family == IP_FAMILY_V6 && mono_is_before(os_clock_mono(), deadline) &&
			(os_netlink_route_get(dev->netlink, a, 0, &r) ||
				r.ifindex == dev->ifindex)) {
			os_clock_sleep_ns(SETTLE_STEP_NS);
		}
	}
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
		.no_tun = (n->flags & WEFT_NODE_NO_TUN) || !has_tun(n),
		.gone = on_gone,
		.news = on_news,
		.ctx = n};
	lib_log_clear(n);
	n->is_gone = false;
	e = keeper_new(&c, n->loop, &n->keeper);
	if (e) {
		char text[400];
		conf_free(conf);
		lib_log_last(n, weft_err_text(e), text, sizeof(text));
		return detail_set(why, e, 0, "%s", text);
	}
	n->inner = keeper_node(n->keeper);
	control_settle(n, conf);
	return WEFT_OK;
}

static enum weft_err
start_loop(struct weft_node *n, struct weft_detail *why)
{
	enum weft_err e = os_wake_init(&n->post);
	if (e) {
		return detail_set(why, e, 0, "no descriptor is left: %s", weft_err_text(e));
	}
	e = os_loop_new(WATCHES_MAX, &n->loop);
	if (e) {
		detail_set(why, e, 0, "no descriptor is left: %s", weft_err_text(e));
		goto undo_post;
	}
	e = os_loop_add(n->loop, n->post.fd, OS_READABLE, on_post, n);
	if (e) {
		detail_set(why, e, 0, "%s", weft_err_text(e));
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
		return detail_set(why, e, fault.errnum, "%s", fault.text);
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
