/* SPDX-License-Identifier: Apache-2.0 */
/* The control socket's watch, seen from clients. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/rng.h"
#include "ctl/client.h"
#include "ctl/queue.h"
#include "fake_node.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/unixsock.h"
#include "wire/key.h"

static struct node node;

static int
setup(void **state)
{
	(void)state;
	fake_node_init(&node);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	fake_node_fini(&node);
	return 0;
}

static struct mono
soon(void)
{
	return mono_add_ns(os_clock_mono(), 30 * WEFT_NS_PER_S);
}

struct client {
	int fd;
	char text[64 << 10];
	size_t len;
};

static void
send_text(struct client *c, const char *text)
{
	assert_int_equal(os_fd_write_all(c->fd, text, strlen(text), soon()), WEFT_OK);
}

/* The next line, or NULL when the connection has ended. */
static json_t *
next_line(struct client *c)
{
	char *end;
	while (!(end = memchr(c->text, '\n', c->len))) {
		size_t n;
		assert_true(c->len < sizeof(c->text));
		assert_int_equal(os_fd_wait(c->fd, false, soon()), WEFT_OK);
		enum weft_err e = os_fd_read(c->fd, c->text + c->len, sizeof(c->text) - c->len, &n);
		if (e) {
			assert_int_equal(e, WEFT_ECLOSED);
			return NULL;
		}
		c->len += n;
	}
	size_t used = (size_t)(end - c->text) + 1;
	json_t *o = json_loadb(c->text, used, JSON_REJECT_DUPLICATES, NULL);
	if (!o) {
		fail_msg("not JSON: %.*s", (int)used, c->text);
	}
	memmove(c->text, c->text + used, c->len - used);
	c->len -= used;
	return o;
}

static const char *
text_of(const json_t *o, const char *name)
{
	const char *text = json_string_value(json_object_get(o, name));
	return text ? text : "";
}

static json_int_t
count_of(const json_t *o, const char *name)
{
	return json_integer_value(json_object_get(o, name));
}

static void
expect_ok(struct client *c)
{
	json_t *o = next_line(c);
	assert_true(json_is_true(json_object_get(o, "ok")));
	json_decref(o);
}

static void
expect_event(struct client *c, const char *kind, json_t **out)
{
	json_t *o = next_line(c);
	if (!o || strcmp(text_of(o, "event"), kind) != 0) {
		fail_msg("%s instead of %s", o ? json_dumps(o, 0) : "the end", kind);
	}
	assert_true(json_real_value(json_object_get(o, "time_s")) > 0);
	if (out) {
		*out = o;
	} else {
		json_decref(o);
	}
}

static struct client *
open_client(const char *request)
{
	struct client *c = calloc(1, sizeof(*c));
	assert_int_equal(os_unixsock_connect(node.control_path, soon(), &c->fd), WEFT_OK);
	send_text(c, request);
	return c;
}

static struct client *
open_watcher(const char *request)
{
	struct client *c = open_client(request);
	expect_ok(c);
	return c;
}

static void
close_client(struct client *c)
{
	os_fd_close(&c->fd);
	free(c);
}

static const char watch[] = "{\"op\":\"watch\"}\n";
static const char watch_often[] = "{\"op\":\"watch\",\"every_ms\":100}\n";

static void
tell_port(uint16_t port)
{
	const struct node_news v = {
		.kind = NODE_NEWS_PORT, .wall_ns = 7 * WEFT_NS_PER_S, .to.port = port};
	fake_node_tell(&node, &v);
}

static void
events_come_to_all_who_watch_and_to_nobody_else(void **state)
{
	(void)state;
	fake_node_start(&node);
	struct client *a = open_watcher(watch), *b = open_watcher(watch);
	struct client *other = open_client("{\"op\":\"version\"}\n");
	json_decref(next_line(other));
	tell_port(1);
	for (unsigned i = 0; i < 2; i++) {
		json_t *o;
		expect_event(i ? a : b, "listen_port", &o);
		assert_int_equal(count_of(o, "port"), 1);
		assert_true(json_real_value(json_object_get(o, "time_s")) == 7.0);
		json_decref(o);
	}
	close_client(a);
	tell_port(2);
	expect_event(b, "listen_port", NULL);
	close_client(b);
	send_text(other, "{\"op\":\"version\"}\n");
	json_t *o = next_line(other);
	assert_non_null(json_object_get(o, "version"));
	json_decref(o);
	close_client(other);
}

static void
nobody_who_watches_keeps_no_news(void **state)
{
	(void)state;
	fake_node_start(&node);
	tell_port(1);
	struct client *c = open_watcher(watch);
	tell_port(2);
	json_t *o;
	expect_event(c, "listen_port", &o);
	assert_int_equal(count_of(o, "port"), 2);
	json_decref(o);
	close_client(c);
}

static void
every_kind_of_news_has_its_event(void **state)
{
	(void)state;
	struct node_news v = {.public_key = {0, 0, 0, 0}, .wall_ns = WEFT_NS_PER_S};
	struct endpoint a = {.addr = {IP_FAMILY_V4, {192, 0, 2, 1}}, .port = 9};
	struct endpoint b = {.addr = {IP_FAMILY_V4, {192, 0, 2, 2}}, .port = 8};
	char key[KEY_BASE64_LEN + 1];
	static const struct {
		enum node_news_kind kind;
		const char *name;
		bool has_peer, has_from, has_host;
	} kinds[] = {{NODE_NEWS_PEER_UP, "peer_up", true, false, false},
		{NODE_NEWS_PEER_DOWN, "peer_down", true, false, false},
		{NODE_NEWS_ENDPOINT_MOVED, "endpoint_moved", true, true, false},
		{NODE_NEWS_NAME_FOUND, "name_resolved", true, false, true},
		{NODE_NEWS_NAME_FAILED, "name_failed", true, false, true},
		{NODE_NEWS_ERROR, "error", false, false, false}};
	fake_node_add_peer(&node, 5);
	struct wg_out *out;
	struct wg_peer *p = wg_peer_next(node_lock(&node, &out), NULL);
	struct wg_peer_info info;
	wg_peer_info(p, &info);
	strcpy(fake_node_ally(p)->name, "g\"\\w");
	node_unlock(&node);
	memcpy(v.public_key, info.public_key, sizeof(v.public_key));
	strcpy(v.text, "gw.example");
	v.to = a;
	fake_node_start(&node);
	struct client *c = open_watcher(watch);
	for (size_t i = 0; i < WEFT_ARRAY_LEN(kinds); i++) {
		json_t *o;
		v.kind = kinds[i].kind;
		v.from = kinds[i].has_from ? b : (struct endpoint){0};
		fake_node_tell(&node, &v);
		expect_event(c, kinds[i].name, &o);
		assert_string_equal(text_of(o, "public_key"),
			kinds[i].has_peer ? key_encode_base64(info.public_key, key) : "");
		assert_string_equal(text_of(o, "name"), kinds[i].has_peer ? "g\"\\w" : "");
		assert_string_equal(text_of(o, "endpoint"), kinds[i].has_peer ? "192.0.2.1:9" : "");
		assert_string_equal(text_of(o, "from"), kinds[i].has_from ? "192.0.2.2:8" : "");
		assert_string_equal(text_of(o, "host"), kinds[i].has_host ? "gw.example" : "");
		json_decref(o);
	}
	close_client(c);
}

static void
reload_is_told_to_others_and_answered(void **state)
{
	(void)state;
	fake_node_start(&node);
	struct client *c = open_watcher(watch);
	struct client *asking =
		open_client("{\"op\":\"reload\",\"file\":\"/a\"}\n{\"op\":\"reload\",\"file\":"
			    "\"/bad\"}\n");
	expect_ok(asking);
	json_decref(next_line(asking));
	json_t *o;
	expect_event(c, "reload", &o);
	assert_string_equal(text_of(o, "file"), "/a");
	json_decref(o);
	expect_event(c, "reload_refused", &o);
	assert_non_null(strstr(text_of(o, "text"), "/bad:2:1"));
	json_decref(o);
	/* Who asks and watches gets both; in which order is open. */
	send_text(c, "{\"op\":\"reload\",\"file\":\"/b\"}\n");
	bool has_ok = false, has_event = false;
	while (!has_ok || !has_event) {
		o = next_line(c);
		has_ok |= json_is_true(json_object_get(o, "ok"));
		has_event |= strcmp(text_of(o, "event"), "reload") == 0;
		json_decref(o);
	}
	close_client(asking);
	close_client(c);
}

static void
remove_peer(unsigned i)
{
	uint8_t key[WG_KEY_LEN] = {(uint8_t)i, (uint8_t)(i >> 8), (uint8_t)(i >> 16)};
	struct wg_out *out;
	key[31] = 9;
	struct wg_device *d = node_lock(&node, &out);
	struct wg_peer *p = wg_peer_find(d, key);
	assert_non_null(p);
	free(wg_peer_user(p));
	wg_peer_set_user(p, NULL);
	wg_peer_remove(d, p);
	node_unlock(&node);
}

/* Peers change with the control thread alone: it is this one, between rounds. */
static void
play_control(void)
{
	struct mono end = mono_add_ns(os_clock_mono(), 20 * WEFT_NS_PER_MS);
	while (mono_is_before(os_clock_mono(), end)) {
		os_loop_wait(node.loop, mono_min(end, ctl_control_deadline(node.control)));
		ctl_control_turn(node.control, os_clock_mono());
	}
}

static void
peers_that_come_and_go_are_told_in_order_and_many_by_their_number(void **state)
{
	(void)state;
	fake_node_add_peer(&node, 1);
	struct client *c = open_client(watch_often);
	play_control();
	expect_ok(c);
	fake_node_add_peer(&node, 2);
	const struct node_news up = {.kind = NODE_NEWS_PEER_UP, .wall_ns = WEFT_NS_PER_S};
	fake_node_tell(&node, &up);
	play_control(); /* before the next look is due */
	remove_peer(2);
	const struct node_news down = {.kind = NODE_NEWS_PEER_DOWN, .wall_ns = WEFT_NS_PER_S};
	fake_node_tell(&node, &down);
	play_control();
	for (unsigned i = 100; i < 150; i++) {
		fake_node_add_peer(&node, i);
	}
	fake_node_start(&node);
	static const char *const want[] = {"peer_added", "peer_up", "peer_down", "peer_removed"};
	size_t at = 0, added = 0;
	while (added < 50) {
		json_t *o = next_line(c);
		const char *kind = text_of(o, "event");
		if (at < WEFT_ARRAY_LEN(want) && kind[0]) {
			assert_string_equal(kind, want[at++]);
		} else if (kind[0]) {
			bool is_many = strcmp(kind, "peers_added") == 0;
			assert_true(is_many || strcmp(kind, "peer_added") == 0);
			added += is_many ? (size_t)count_of(o, "count") : 1;
			assert_true(added <= 50 && (added <= 32 || is_many));
		}
		json_decref(o);
	}
	close_client(c);
}

static void
set_drops(uint64_t n)
{
	struct wg_out *out;
	(void)node_lock(&node, &out);
	node.stats.drops.n[DROP_RX_AUTH] = n;
	node_unlock(&node);
}

static void
first_drop_of_a_reason_is_told_with_its_count(void **state)
{
	(void)state;
	json_t *o;
	set_drops(5);
	fake_node_start(&node);
	struct client *c = open_watcher(watch_often);
	while (strcmp(text_of(o = next_line(c), "sample"), "end") != 0) {
		json_decref(o);
	}
	json_decref(o);
	set_drops(12);
	while (strcmp(text_of(o = next_line(c), "event"), "drop") != 0) {
		json_decref(o);
	}
	assert_string_equal(text_of(o, "reason"), "rx_auth");
	assert_int_equal(count_of(o, "count"), 7);
	assert_int_equal(count_of(o, "total"), 12);
	json_decref(o);
	set_drops(20); /* within the minute */
	for (unsigned samples = 0; samples < 3;) {
		o = next_line(c);
		assert_string_equal(text_of(o, "event"), "");
		samples += strcmp(text_of(o, "sample"), "end") == 0;
		json_decref(o);
	}
	close_client(c);
}

/* The lines of one sample; returns how many peers. */
static size_t
read_sample(struct client *c, json_t **device, json_t *peers[], size_t cap)
{
	size_t n = 0;
	for (bool has_begun = false;;) {
		json_t *o = next_line(c);
		const char *kind = text_of(o, "sample");
		if (strcmp(kind, "device") == 0) {
			has_begun = true;
			*device = json_incref(o);
		} else if (strcmp(kind, "peer") == 0) {
			assert_true(has_begun && n < cap);
			peers[n++] = json_incref(o);
		} else if (strcmp(kind, "end") == 0) {
			assert_true(has_begun);
			assert_int_equal(count_of(o, "peers"), n);
			json_decref(o);
			return n;
		}
		json_decref(o);
	}
}

static void
forget(json_t *device, json_t *peers[], size_t n)
{
	json_decref(device);
	for (size_t i = 0; i < n; i++) {
		json_decref(peers[i]);
	}
}

static void
set_name(unsigned place, const char *name, uint16_t keepalive)
{
	struct wg_out *out;
	struct wg_device *d = node_lock(&node, &out);
	struct wg_peer *p = NULL;
	for (unsigned i = 0; i <= place; i++) {
		p = wg_peer_next(d, p);
	}
	struct endpoint at = {.addr = {IP_FAMILY_V4, {192, 0, 2, 1}}, .port = keepalive};
	wg_peer_set_endpoint(p, &at);
	strcpy(fake_node_ally(p)->name, name);
	node_unlock(&node);
}

static void
sample_has_all_peers_at_first_and_then_those_that_changed(void **state)
{
	(void)state;
	json_t *device, *peers[8];
	for (unsigned i = 0; i < 5; i++) {
		fake_node_add_peer(&node, i);
	}
	node.stats.link.rx_bytes = 100;
	fake_node_start(&node);
	struct client *c = open_watcher(watch_often);
	size_t n = read_sample(c, &device, peers, 8);
	assert_int_equal(n, 5);
	assert_true(json_is_true(json_object_get(device, "is_full")));
	assert_true(json_is_null(json_object_get(device, "elapsed_ms")));
	assert_int_equal(count_of(device, "peer_count"), 5);
	json_t *link = json_object_get(device, "link");
	assert_true(json_is_null(json_object_get(link, "rx_bits_s")));
	assert_true(json_is_null(json_object_get(peers[0], "rx_bits_s")));
	assert_string_equal(text_of(json_object_get(peers[0], "fec"), "why"), "not_agreed");
	forget(device, peers, n);
	n = read_sample(c, &device, peers, 8);
	assert_int_equal(n, 0);
	assert_true(json_is_false(json_object_get(device, "is_full")));
	assert_true(count_of(device, "elapsed_ms") >= 80);
	forget(device, peers, n);
	set_name(3, "g\"w", 7);
	do {
		n = read_sample(c, &device, peers, 8);
		if (n == 0) {
			json_decref(device);
		}
	} while (n == 0);
	assert_int_equal(n, 1);
	assert_string_equal(text_of(peers[0], "name"), "g\"w");
	assert_string_equal(text_of(peers[0], "endpoint"), "192.0.2.1:7");
	assert_true(json_is_integer(json_object_get(peers[0], "rx_bits_s")));
	forget(device, peers, n);
	close_client(c);
}

static void
rates_are_bits_over_the_time_that_passed(void **state)
{
	(void)state;
	json_t *device, *peers[1];
	node.stats.link.rx_bytes = 1000;
	fake_node_start(&node);
	struct client *c = open_watcher(watch_often);
	assert_int_equal(read_sample(c, &device, peers, 1), 0);
	json_decref(device);
	struct wg_out *out;
	(void)node_lock(&node, &out);
	node.stats.link.rx_bytes += 1000000;
	node_unlock(&node);
	json_int_t rate = 0, ms = 0;
	while (rate == 0) {
		assert_int_equal(read_sample(c, &device, peers, 1), 0);
		const json_t *link = json_object_get(device, "link");
		rate = count_of(link, "rx_bits_s");
		assert_int_equal(count_of(link, "tx_bits_s"), 0);
		ms = count_of(device, "elapsed_ms");
		json_decref(device);
	}
	/* The time is told in whole milliseconds. */
	assert_true(rate <= 8000000000 / ms && rate >= 8000000000 / (ms + 1) - 1);
	close_client(c);
}

static void
change_of_recovery_is_told_with_what_was(void **state)
{
	(void)state;
	json_t *o;
	fake_node_add_peer(&node, 1);
	fake_node_start(&node);
	struct client *c = open_watcher(watch_often);
	while (strcmp(text_of(o = next_line(c), "sample"), "end") != 0) {
		json_decref(o);
	}
	json_decref(o);
	struct wg_out *out;
	struct wg_peer *p = wg_peer_next(node_lock(&node, &out), NULL);
	fake_node_ally(p)->has_fec = true;
	fake_node_ally(p)->fec.why = FEC_WHY_AHEAD;
	const struct endpoint at = {.addr = {IP_FAMILY_V4, {192, 0, 2, 1}}, .port = 9};
	wg_peer_set_endpoint(p, &at); /* as packets would, which come with any such change */
	node_unlock(&node);
	while (strcmp(text_of(o = next_line(c), "event"), "recovery") != 0) {
		json_decref(o);
	}
	assert_string_equal(text_of(o, "why"), "ahead");
	assert_string_equal(text_of(o, "was"), "not_agreed");
	assert_string_equal(text_of(o, "why_text"), fec_why_text(FEC_WHY_AHEAD));
	json_decref(o);
	close_client(c);
}

static void
remove_two(void)
{
	remove_peer(3);
	remove_peer(150);
}

static void
remove_many(void)
{
	for (unsigned i = 10; i < 100; i++) {
		remove_peer(i);
	}
}

static void
removed_peers_are_gone_from_the_next_sample_or_it_is_a_full_one(void **state)
{
	(void)state;
	static json_t *peers[300];
	json_t *device;
	for (unsigned i = 0; i < 200; i++) {
		fake_node_add_peer(&node, i);
	}
	struct client *c = open_client(watch_often);
	play_control();
	fake_node_start(&node);
	expect_ok(c);
	size_t n = read_sample(c, &device, peers, 300);
	forget(device, peers, n);
	assert_int_equal(n, 200);
	fake_node_do(&node, remove_two);
	do {
		n = read_sample(c, &device, peers, 300);
	} while (count_of(device, "peer_count") != 198 && (forget(device, peers, n), true));
	assert_int_equal(n, 0);
	assert_int_equal(json_array_size(json_object_get(device, "gone")), 2);
	forget(device, peers, n);
	fake_node_do(&node, remove_many);
	do {
		n = read_sample(c, &device, peers, 300);
	} while (count_of(device, "peer_count") != 108 && (forget(device, peers, n), true));
	assert_true(json_is_true(json_object_get(device, "is_full")));
	assert_int_equal(n, 108);
	forget(device, peers, n);
	close_client(c);
}

static void
slow_reader_holds_up_nobody_and_learns_what_it_missed(void **state)
{
	(void)state;
	enum { ALL = 20000 };
	fake_node_start(&node);
	struct client *slow = open_watcher(watch), *fast = open_watcher(watch);
	json_int_t fast_seen = 0, slow_seen = 0, slow_lost = 0, last = 0, fast_lost = 0;
	for (unsigned i = 1; i <= ALL; i++) {
		tell_port((uint16_t)i);
		if (i % 100 == 0) { /* the ring of news holds 256 */
			while (fast_seen + fast_lost < i) {
				json_t *o = next_line(fast);
				bool is_loss = strcmp(text_of(o, "event"), "lost") == 0;
				fast_lost += is_loss ? count_of(o, "count") : 0;
				fast_seen += !is_loss;
				json_decref(o);
			}
		}
	}
	assert_int_equal(fast_lost, 0);
	assert_int_equal(fast_seen, ALL);
	while (slow_seen + slow_lost < ALL) {
		json_t *o = next_line(slow);
		if (strcmp(text_of(o, "event"), "lost") == 0) {
			slow_lost += count_of(o, "count");
		} else {
			/* The order is kept, and each loss stands where it was. */
			json_int_t port = count_of(o, "port");
			assert_int_equal(port, slow_seen + slow_lost + 1);
			last = port;
			slow_seen++;
		}
		json_decref(o);
	}
	assert_true(slow_lost > 0 && slow_seen >= CTL_QUEUE_LINES);
	assert_true(last > 0);
	tell_port(7);
	json_t *o;
	expect_event(slow, "listen_port", &o);
	assert_int_equal(count_of(o, "port"), 7);
	json_decref(o);
	close_client(slow);
	close_client(fast);
}

static void
slow_reader_of_samples_gets_the_next_whole(void **state)
{
	(void)state;
	enum { PEERS = 3000 };
	static json_t *peers[PEERS];
	json_t *device;
	for (unsigned i = 0; i < PEERS; i++) {
		fake_node_add_peer(&node, i);
	}
	fake_node_start(&node);
	struct client *slow = open_watcher(watch_often), *fast = open_watcher(watch_often);
	for (unsigned i = 0; i < 5; i++) { /* it does not wait for the other */
		size_t n = read_sample(fast, &device, peers, PEERS);
		forget(device, peers, n);
	}
	for (unsigned i = 0; i < 2; i++) {
		size_t n = read_sample(slow, &device, peers, PEERS);
		assert_int_equal(n, i == 0 ? PEERS : 0);
		forget(device, peers, n);
	}
	close_client(slow);
	close_client(fast);
}

static void
requests_between_are_answered_and_garbage_ends_nothing(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, 11);
	for (unsigned i = 0; i < 50; i++) {
		fake_node_add_peer(&node, i);
	}
	fake_node_start(&node);
	struct client *c = open_watcher(watch_often);
	static const char *const pieces[] = {"{\"op\":\"watch\",\"every_ms\":100}", "{", "}", "[",
		"\"op\":", "watch", "\"every_ms\":99", "{\"op\":\"watch\",\"every_ms\":-1}",
		"{\"op\":\"watch\",\"every_ms\":\"100\"}", "{\"op\":\"watch\",\"every_ms\":60001}",
		"{\"op\":\"watch\",\"every_ms\":1e2}", "{\"op\":\"version\"}", "\xff\xfe",
		"\\u0000", "{\"op\":\"status\"}", "{\"op\":\"watch\",\"other\":[{}]}", "nul", " "};
	size_t asked = 0, answered = 0;
	for (unsigned i = 0; i < 400; i++) {
		char line[1024] = "";
		for (unsigned k = 0; k < 1 + rng_below(&rng, 3); k++) {
			strcat(line, pieces[rng_below(&rng, WEFT_ARRAY_LEN(pieces))]);
		}
		strcat(line, "\n");
		send_text(c, line);
		asked++;
		while (answered + 4 < asked) {
			json_t *o = next_line(c);
			answered += !json_object_get(o, "event") && !json_object_get(o, "sample");
			json_decref(o);
		}
	}
	while (answered < asked) {
		json_t *o = next_line(c);
		answered += !json_object_get(o, "event") && !json_object_get(o, "sample");
		json_decref(o);
	}
	send_text(c, watch);
	json_t *o;
	while (!json_object_get(o = next_line(c), "ok")) {
		json_decref(o);
	}
	json_decref(o);
	tell_port(3);
	while (strcmp(text_of(o = next_line(c), "event"), "listen_port") != 0) {
		json_decref(o);
	}
	json_decref(o);
	close_client(c);
}

static void
period_out_of_range_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {"0", "99", "60001", "-5", "1.5", "null", "\"100\"", "[]",
		"99999999999999999", "true"};
	fake_node_start(&node);
	for (size_t i = 0; i < WEFT_ARRAY_LEN(bad); i++) {
		char request[128];
		snprintf(request, sizeof(request), "{\"op\":\"watch\",\"every_ms\":%s}\n", bad[i]);
		struct client *c = open_client(request);
		json_t *o = next_line(c);
		assert_string_equal(text_of(json_object_get(o, "error"), "code"), "value");
		json_decref(o);
		close_client(c);
	}
}

static void
client_that_sends_no_more_goes_on_receiving(void **state)
{
	(void)state;
	fake_node_start(&node);
	struct client *c = open_client(watch);
	assert_int_equal(shutdown(c->fd, SHUT_WR), 0);
	expect_ok(c);
	tell_port(1);
	expect_event(c, "listen_port", NULL);
	tell_port(2);
	expect_event(c, "listen_port", NULL);
	close_client(c);
	/* It is noticed: nobody keeps news. */
	struct mono deadline = soon();
	while (atomic_load(&node.news.is_kept)) {
		assert_true(mono_is_before(os_clock_mono(), deadline));
		os_clock_sleep_ns(WEFT_NS_PER_MS);
	}
}

static void
stopping_is_the_last_line(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		fake_node_add_peer(&node, i);
	}
	fake_node_start(&node);
	struct client *a = open_watcher(watch), *b = open_watcher(watch_often);
	fake_node_stop(&node);
	ctl_control_stopping(node.control);
	ctl_control_drain(node.control);
	expect_event(a, "stopping", NULL);
	assert_null(next_line(a));
	bool was_last = false;
	json_t *o;
	while ((o = next_line(b))) {
		was_last = strcmp(text_of(o, "event"), "stopping") == 0;
		json_decref(o);
	}
	assert_true(was_last);
	close_client(a);
	close_client(b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			events_come_to_all_who_watch_and_to_nobody_else, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody_who_watches_keeps_no_news, setup, teardown),
		cmocka_unit_test_setup_teardown(every_kind_of_news_has_its_event, setup, teardown),
		cmocka_unit_test_setup_teardown(
			reload_is_told_to_others_and_answered, setup, teardown),
		cmocka_unit_test_setup_teardown(
			peers_that_come_and_go_are_told_in_order_and_many_by_their_number, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			first_drop_of_a_reason_is_told_with_its_count, setup, teardown),
		cmocka_unit_test_setup_teardown(
			sample_has_all_peers_at_first_and_then_those_that_changed, setup, teardown),
		cmocka_unit_test_setup_teardown(
			rates_are_bits_over_the_time_that_passed, setup, teardown),
		cmocka_unit_test_setup_teardown(
			change_of_recovery_is_told_with_what_was, setup, teardown),
		cmocka_unit_test_setup_teardown(
			removed_peers_are_gone_from_the_next_sample_or_it_is_a_full_one, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			slow_reader_holds_up_nobody_and_learns_what_it_missed, setup, teardown),
		cmocka_unit_test_setup_teardown(
			slow_reader_of_samples_gets_the_next_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(
			requests_between_are_answered_and_garbage_ends_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(period_out_of_range_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(
			client_that_sends_no_more_goes_on_receiving, setup, teardown),
		cmocka_unit_test_setup_teardown(stopping_is_the_last_line, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
