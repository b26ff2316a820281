/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_node.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "node/keeper.h"
#include "os/clock.h"
#include "os/entropy.h"
#include "pkt/drop_times.h"
#include "wg/trouble.h"

struct wg_device *
node_lock(struct node *n, struct wg_out **out)
{
	os_rwlock_write_lock(&n->lock);
	atomic_fetch_add(&n->holds, 1);
	n->out.msgs_n = n->out.events_n = 0;
	*out = &n->out;
	return n->device;
}

void
node_unlock(struct node *n)
{
	for (size_t i = 0; i < n->out.events_n; i++) {
		struct wg_peer *p = NULL;
		do {
			p = wg_peer_next(n->device, p);
		} while (p && p != n->out.events[i].peer);
		if (n->out.events[i].peer && !p) {
			atomic_fetch_add(&n->stale_news, 1);
		}
	}
	n->out.events_n = 0;
	os_rwlock_write_unlock(&n->lock);
}

const struct wg_device *
node_lock_shared(struct node *n)
{
	os_rwlock_read_lock(&n->lock);
	return n->device;
}

void
node_unlock_shared(struct node *n)
{
	os_rwlock_read_unlock(&n->lock);
}

struct wg_time
node_time(void)
{
	return (struct wg_time){.mono = os_clock_mono(), .wall_ns = os_clock_wall_ns()};
}

enum weft_err
node_set_listen_port(struct node *n, uint16_t port)
{
	if (!n->port_err) {
		n->port = port ? port : 40000;
		n->port_changes++;
	}
	return n->port_err;
}

enum weft_err
node_set_fwmark(struct node *n, uint32_t mark)
{
	if (!n->mark_err) {
		n->mark = mark;
		n->mark_changes++;
	}
	return n->mark_err;
}

struct ally_info *
fake_node_ally(struct wg_peer *p)
{
	struct ally_info *info = wg_peer_user(p);
	if (!info) {
		info = calloc(1, sizeof(*info));
		assert_non_null(info);
		info->policy = ALLY_POLICY_DEFAULT;
		wg_peer_set_user(p, info);
	}
	return info;
}

enum weft_err
node_set_policy(struct node *n, struct wg_peer *p, const struct ally_policy *policy)
{
	if (n->policies_left == 0) {
		return WEFT_ENOMEM;
	}
	n->policies_left--;
	fake_node_ally(p)->policy = *policy;
	return WEFT_OK;
}

void
node_ally_info(const struct wg_peer *p, struct ally_info *out)
{
	const struct ally_info *info = wg_peer_user(p);
	*out = info ? *info : (struct ally_info){.policy = ALLY_POLICY_DEFAULT};
}

void
node_facts(struct node *n, struct node_facts *out)
{
	*out = (struct node_facts){.name = "fake0",
		.ifindex = 7,
		.mtu = 1420,
		.is_up = true,
		.listen_port = n->port,
		.fwmark = n->mark,
		.workers = 2,
		.aead = "libcrypto",
		.has_tso = true,
		.has_udp_gro = true,
		.uptime_ns = 12345 * WEFT_NS_PER_MS};
}

void
node_keep_news(struct node *n, bool is_kept)
{
	news_keep(&n->news, is_kept);
}

size_t
node_take_news(struct node *n, struct node_news *v, size_t cap)
{
	return news_take(&n->news, v, cap);
}

uint64_t
node_news_lost(struct node *n)
{
	return news_lost(&n->news);
}

void
node_stats(struct node *n, struct node_stats *out)
{
	os_rwlock_read_lock(&n->lock);
	*out = n->stats;
	os_rwlock_read_unlock(&n->lock);
}

void
node_drop_times(struct node *n, struct drop_times *out)
{
	(void)n;
	*out = (struct drop_times){0};
}

void
node_troubles(struct node *n, struct wg_troubles *out)
{
	(void)n;
	out[0] = out[1] = (struct wg_troubles){0};
}

const struct conf *
keeper_conf(const struct keeper *k)
{
	(void)k;
	return NULL;
}

bool
keeper_name(const struct keeper *k, const uint8_t key[], struct keeper_name *out)
{
	(void)k;
	(void)key;
	(void)out;
	return false;
}

static void
on_stop(void *ctx)
{
	struct node *n = ctx;
	atomic_fetch_add(&n->stops, 1);
}

static enum weft_err
on_reload(void *ctx, const char *file, char *why, size_t cap)
{
	struct node *n = ctx;
	if (file && strcmp(file, "/bad") == 0) {
		snprintf(why, cap, "/bad:1:2: error: \"two\"\n/bad:2:1: error: lines");
		ctl_control_reloaded(n->control, file, why);
		return WEFT_EPARSE;
	}
	atomic_fetch_add(&n->reloads, file ? 100 : 1);
	ctl_control_reloaded(n->control, file, NULL);
	return WEFT_OK;
}

static void
on_wake(void *ctx, uint32_t events)
{
	struct node *n = ctx;
	(void)events;
	os_wake_clear(&n->wake);
	void (*action)(void) = atomic_load(&n->action);
	if (action) {
		action();
		atomic_store(&n->action, NULL);
	}
}

void
fake_node_do(struct node *n, void (*action)(void))
{
	atomic_store(&n->action, action);
	os_wake_signal(&n->wake);
	while (atomic_load(&n->action)) {
		os_clock_sleep_ns(WEFT_NS_PER_MS);
	}
}

void
fake_node_tell(struct node *n, const struct node_news *v)
{
	if (news_put(&n->news, v)) {
		os_wake_signal(&n->wake);
	}
}

void
fake_node_init(struct node *n)
{
	const struct wg_device_config config = {.entropy = os_entropy()};
	*n = (struct node){.port = 51820, .policies_left = UINT_MAX};
	os_rwlock_init(&n->lock);
	news_init(&n->news, &n->log, false);
	n->out = (struct wg_out){.msgs = n->msgs,
		.msgs_cap = WEFT_ARRAY_LEN(n->msgs),
		.events = n->events,
		.events_cap = WEFT_ARRAY_LEN(n->events),
		.drops = &n->drops};
	assert_int_equal(wg_device_new(&config, &n->device), WEFT_OK);
	strcpy(n->folder, "/tmp/weft-ctl-XXXXXX");
	assert_non_null(mkdtemp(n->folder));
	snprintf(n->uapi_path, sizeof(n->uapi_path), "%s/uapi/fake0.sock", n->folder);
	snprintf(n->control_path, sizeof(n->control_path), "%s/control/fake0.sock", n->folder);
	assert_int_equal(os_loop_new(2 * 65 + 8, &n->loop), WEFT_OK);
	assert_int_equal(os_wake_init(&n->wake), WEFT_OK);
	assert_int_equal(os_loop_add(n->loop, n->wake.fd, OS_READABLE, on_wake, n), WEFT_OK);
	assert_int_equal(ctl_uapi_open(n, n->loop, n->uapi_path, &n->log, &n->uapi), WEFT_OK);
	const struct ctl_control_config control = {.node = n,
		.loop = n->loop,
		.path = n->control_path,
		.version = "0.0-test",
		.log = &n->log,
		.stop = on_stop,
		.reload = on_reload,
		.ctx = n};
	assert_int_equal(ctl_control_open(&control, &n->control), WEFT_OK);
}

static void
run(void *arg)
{
	struct node *n = arg;
	while (!os_loop_is_stopped(n->loop)) {
		os_loop_wait(n->loop, ctl_control_deadline(n->control));
		ctl_control_turn(n->control, os_clock_mono());
	}
}

void
fake_node_start(struct node *n)
{
	assert_int_equal(os_thread_start(&n->thread, "control", 0, run, n), WEFT_OK);
}

void
fake_node_stop(struct node *n)
{
	os_loop_stop(n->loop);
	os_thread_join(&n->thread);
	n->has_stopped = true;
}

void
fake_node_fini(struct node *n)
{
	char path[128];
	if (!n->has_stopped) {
		fake_node_stop(n);
	}
	ctl_uapi_close(n->uapi);
	ctl_control_close(n->control);
	assert_int_not_equal(access(n->uapi_path, F_OK), 0);
	assert_int_not_equal(access(n->control_path, F_OK), 0);
	os_loop_free(n->loop);
	os_wake_fini(&n->wake);
	news_fini(&n->news);
	for (struct wg_peer *p = wg_peer_next(n->device, NULL); p; p = wg_peer_next(n->device, p)) {
		free(wg_peer_user(p));
	}
	wg_device_free(n->device);
	os_rwlock_fini(&n->lock);
	snprintf(path, sizeof(path), "%s/uapi", n->folder);
	assert_int_equal(rmdir(path), 0);
	snprintf(path, sizeof(path), "%s/control", n->folder);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(n->folder), 0);
}

void
fake_node_add_peer(struct node *n, unsigned i)
{
	uint8_t key[WG_KEY_LEN] = {(uint8_t)i, (uint8_t)(i >> 8), (uint8_t)(i >> 16)};
	struct ip_prefix prefix = {
		.addr = {.family = IP_FAMILY_V4,
			.b = {10, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i}},
		.bits = 32};
	struct wg_out *out;
	struct wg_peer *p;
	key[31] = 9;
	struct wg_device *d = node_lock(n, &out);
	assert_int_equal(wg_peer_add(d, key, &p), WEFT_OK);
	assert_int_equal(wg_peer_allow(d, p, &prefix), WEFT_OK);
	node_unlock(n);
}

size_t
fake_node_peers(struct node *n)
{
	size_t count = wg_device_peer_count(node_lock_shared(n));
	node_unlock_shared(n);
	return count;
}
