/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "cli/screen.h"
#include "cli/watch.h"

/* Counters of a device and its peers, to make samples of. */
struct world {
	size_t peers;
	double rx_rate, tx_rate; /* of the first peer, others a multiple; negative: none yet */
	uint64_t received, lost, dropped;
	uint64_t time_s;
};

WEFT_PRINTF(3, 4)
static void
feed_text(struct watch_device *d, enum watch_step want, const char *fmt, ...)
{
	char text[4096];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_t *o = json_loads(text, 0, NULL);
	assert_non_null(o);
	assert_int_equal(watch_feed(d, o, text), want);
	json_decref(o);
}

static const char *
rate_text(double rate, unsigned times, char out[32])
{
	snprintf(out, 32, rate < 0 ? "null" : "%.0f", rate * times);
	return out;
}

static void
feed_device(struct watch_device *d, const struct world *w, bool is_full, const char *gone)
{
	char in[32], out[32];
	feed_text(d, WATCH_STEP_MORE,
		"{\"sample\":\"device\",\"time_s\":%u.5,\"elapsed_ms\":%s,\"is_full\":%s,"
		"\"gone\":[%s],\"device\":{\"name\":\"home\",\"is_up\":true,\"uptime_s\":77.5,"
		"\"listen_port\":51820,\"aead\":\"libcrypto\"},\"link\":{\"rx_bits_s\":%s,"
		"\"tx_bits_s\":%s},\"drops\":{\"rx_auth\":%u}}",
		(unsigned)w->time_s, w->rx_rate < 0 ? "null" : "1000", is_full ? "true" : "false",
		gone, rate_text(w->rx_rate, 1, in), rate_text(w->tx_rate, 1, out),
		(unsigned)w->dropped);
}

static void
feed_peer(struct watch_device *d, const struct world *w, unsigned i)
{
	char in[32], out[32];
	feed_text(d, WATCH_STEP_MORE,
		"{\"sample\":\"peer\",\"public_key\":\"%08uAAAAAAAAAAAAAAAAAAA=\",%s"
		"\"rx_bits_s\":%s,\"tx_bits_s\":%s,\"endpoint\":\"192.0.2.1:51820\","
		"\"latest_handshake_s\":%s,\"unanswered\":%u,\"extensions\":{\"name\":\"gw\","
		"\"state\":\"agreed\"},\"cipher\":\"aes-256-gcm\",\"policy\":{\"fec\":\"auto\","
		"\"fec_delay_ms\":20},\"fec\":{\"loss\":0.05,\"rx\":{\"received\":%u,\"lost\":%u},"
		"\"why\":\"congested\",\"why_text\":\"it is congested\"}}",
		i, i == 1 ? "\"name\":\"gw\"," : "", rate_text(w->rx_rate, i + 1, in),
		rate_text(w->tx_rate, i + 1, out), i == 0 ? "90" : "null", i == 2 ? 3u : 0u,
		(unsigned)w->received, (unsigned)w->lost);
}

static void
feed_end(struct watch_device *d)
{
	feed_text(d, WATCH_STEP_WHOLE, "{\"sample\":\"end\"}");
}

/* A sample of all peers. */
static void
feed(struct watch_device *d, const struct world *w, bool is_full)
{
	feed_device(d, w, is_full, "");
	for (unsigned i = 0; i < w->peers; i++) {
		feed_peer(d, w, i);
	}
	feed_end(d);
}

static void
rates_are_those_of_the_device_and_begin_with_the_second_sample(void **state)
{
	(void)state;
	struct watch_device d = {.name = "home"};
	struct world w = {.peers = 2, .rx_rate = -1, .tx_rate = -1};
	feed(&d, &w, true);
	assert_int_equal(d.flow.n, 0);
	assert_true(watch_flow_in(&d.flow) == 0);
	w.rx_rate = 8000;
	w.tx_rate = 0;
	feed(&d, &w, false);
	assert_true(watch_flow_in(&d.flow) == 8000);
	assert_true(watch_flow_out(&d.flow) == 0);
	assert_true(watch_flow_in(&d.peers[1].flow) == 16000);
	watch_forget(&d);
}

static void
peer_that_is_not_in_a_sample_was_silent(void **state)
{
	(void)state;
	struct watch_device d = {.name = "home"};
	struct world w = {.peers = 2, .rx_rate = -1, .tx_rate = -1};
	feed(&d, &w, true);
	w.rx_rate = w.tx_rate = 8;
	feed(&d, &w, false);
	feed_device(&d, &w, false, "");
	feed_peer(&d, &w, 1);
	feed_end(&d);
	assert_int_equal(d.peers[0].flow.n, 2);
	assert_true(watch_flow_in(&d.peers[0].flow) == 0 && d.peers[0].flow.in[0] == 8);
	assert_true(watch_flow_in(&d.peers[1].flow) == 16);
	watch_forget(&d);
}

static void
history_keeps_the_last_minute(void **state)
{
	(void)state;
	struct watch_device d = {.name = "home"};
	struct world w = {.peers = 1, .rx_rate = -1};
	for (int i = 0; i < 200; i++) {
		w.rx_rate = i ? i : -1;
		feed(&d, &w, i == 0);
	}
	assert_int_equal(d.flow.n, WATCH_SAMPLES);
	assert_true(d.flow.in[WATCH_SAMPLES - 1] == 199);
	assert_true(d.flow.in[0] == (200 - WATCH_SAMPLES));
	assert_true(d.peers[0].flow.in[0] == d.flow.in[0]);
	watch_forget(&d);
}

static void
device_that_ended_begins_afresh(void **state)
{
	(void)state;
	struct watch_device d = {.name = "home"};
	struct world w = {.peers = 3, .rx_rate = 5};
	feed(&d, &w, true);
	feed_device(&d, &w, false, ""); /* half a sample */
	watch_forget(&d);
	assert_null(d.status);
	assert_int_equal(d.peers_n, 0);
	assert_int_equal(d.flow.n, 0);
	assert_string_equal(d.name, "home");
	feed_peer(&d, &w, 1); /* without a beginning: passed over */
	feed_text(&d, WATCH_STEP_MORE, "{\"sample\":\"end\"}");
	assert_int_equal(d.peers_n, 0);
	feed(&d, &w, true);
	assert_int_equal(d.peers_n, 3);
	watch_forget(&d);
}

static void
peers_that_come_and_go_keep_the_others_apart(void **state)
{
	(void)state;
	struct watch_device d = {.name = "home"};
	struct world w = {.peers = 200, .rx_rate = 8};
	feed(&d, &w, true);
	feed_device(&d, &w, false,
		"\"00000001AAAAAAAAAAAAAAAAAAA=\",\"00000150AAAAAAAAAAAAAAAAAAA=\",\"none\",7");
	feed_peer(&d, &w, 250);
	feed_peer(&d, &w, 2);
	feed_end(&d);
	assert_int_equal(d.peers_n, 199);
	assert_true(watch_flow_in(&d.peers[1].flow) == 24); /* the third */
	assert_int_equal(d.peers[1].flow.n, 2);
	assert_int_equal(d.peers[198].flow.n, 1);
	/* A full one: what is not in it is gone, and its order is no matter. */
	feed_device(&d, &w, true, "");
	feed_peer(&d, &w, 250);
	feed_peer(&d, &w, 7);
	feed_end(&d);
	assert_int_equal(d.peers_n, 2);
	assert_memory_equal(d.peers[0].key, "00000007", 8);
	assert_int_equal(d.peers[0].flow.n, 3);
	watch_forget(&d);
}

static void
loss_is_that_of_the_last_second(void **state)
{
	(void)state;
	struct watch_device d = {.name = "home"};
	struct world w = {.peers = 1, .rx_rate = -1, .received = 1000, .lost = 500};
	feed(&d, &w, true);
	assert_true(d.peers[0].loss == 0);
	w = (struct world){.peers = 1, .received = 1075, .lost = 525};
	feed(&d, &w, false);
	assert_true(d.peers[0].loss == 0.25);
	w.peers = 0;
	feed(&d, &w, false);
	assert_true(d.peers[0].loss == 0);
	watch_forget(&d);
}

static void
drops_are_news_for_ten_seconds(void **state)
{
	(void)state;
	struct watch_device d = {.name = "home"};
	struct world w = {.peers = 0};
	for (int i = 0; i <= 30; i++) {
		w.dropped = i < 10 ? 7 : 12;
		feed(&d, &w, i == 0);
		bool is_news = i >= 10 && i < 10 + WATCH_DROP_SAMPLES;
		assert_int_equal(watch_drops(&d, DROP_RX_AUTH), is_news ? 5 : 0);
		assert_int_equal(watch_drops(&d, DROP_RX_REPLAY), 0);
	}
	watch_forget(&d);
}

static void
note(struct watch_events *e, unsigned port)
{
	json_t *o = json_pack("{s:s, s:f, s:i}", "event", port % 2 ? "listen_port" : "stopping",
		"time_s", 0.0, "port", (int)port);
	watch_note(e, "home", o);
	json_decref(o);
}

static void
last_events_are_kept(void **state)
{
	(void)state;
	struct watch_events e = {0};
	for (unsigned i = 0; i < 100; i++) {
		note(&e, i);
		assert_int_equal(e.n, i < WATCH_EVENTS_MAX ? i + 1 : WATCH_EVENTS_MAX);
	}
	assert_string_equal(watch_event_at(&e, 0)->text, "the port to listen on is now 99");
	assert_true(watch_event_at(&e, 1)->is_bad);
	assert_string_equal(watch_event_at(&e, 2)->text, "the port to listen on is now 97");
}

/* How the lines of a picture look to a person. */
static size_t
split(struct screen *s, char lines[64][256])
{
	size_t n = 0, at = 0;
	screen_finish(s);
	for (size_t i = 0; i < s->len; i++) {
		if (s->text[i] == '\x1b') {
			while (!strchr("HKJm", s->text[i])) {
				i++;
			}
		} else if (s->text[i] == '\n') {
			lines[n++][at] = 0;
			at = 0;
		} else if (s->text[i] != '\r') {
			lines[n][at++] = s->text[i];
		}
		assert_true(n < 63 && at < 255);
	}
	lines[n][at] = 0;
	return n + (at > 0);
}

static void
picture_fits_every_terminal(void **state)
{
	(void)state;
	static const size_t peers[] = {0, 1, 2, 3, 9, 200};
	static char lines[64][256];
	struct screen s = {.has_colors = true};
	struct watch_events events = {0};
	for (size_t p = 0; p < 6; p++) {
		struct watch_device v[3] = {{.name = "home"}, {.name = "gone"}, {.name = "work"}};
		const struct watch_device *const d[3] = {&v[0], &v[1], &v[2]};
		struct world w = {.peers = peers[p], .rx_rate = -1}, other = {.peers = 2};
		for (int i = 0; i < 70; i++) {
			w.dropped = (unsigned)i;
			feed(&v[0], &w, i == 0);
			feed(&v[2], &other, i == 0);
			w.rx_rate = w.tx_rate = i * 100;
		}
		note(&events, (unsigned)p);
		for (unsigned rows = 1; rows <= 60; rows++) {
			for (unsigned columns = 1; columns <= 200; columns += 13) {
				for (size_t n = 0; n <= 3; n++) {
					screen_begin(&s, rows, columns);
					watch_draw(&s, d, n, &events);
					size_t used = split(&s, lines);
					assert_false(s.has_failed);
					assert_true(used <= rows);
					for (size_t k = 0; k < used; k++) {
						assert_true(strlen(lines[k]) <= columns);
					}
					assert_true(n == 0 || columns < 4 ||
						    memcmp(lines[0], "home", 4) == 0);
				}
			}
		}
		for (size_t i = 0; i < 3; i++) {
			watch_forget(&v[i]);
		}
	}
	screen_fini(&s);
}

/* A picture of one device, from its second sample, against what is expected of it, blanks at the
 * ends of lines aside. */
static void
expect_picture(const struct world *w, const struct watch_events *events, unsigned rows,
	unsigned columns, const char *const *want)
{
	static char lines[64][256];
	struct screen s = {0};
	struct watch_device d = {.name = "home"};
	const struct watch_device *const all[1] = {&d};
	struct world first = *w;
	first.rx_rate = first.tx_rate = -1;
	first.dropped = first.received = first.lost = 0;
	feed(&d, &first, true);
	feed(&d, w, false);
	screen_begin(&s, rows, columns);
	watch_draw(&s, all, 1, events);
	size_t n = split(&s, lines);
	for (size_t i = 0; i < n || want[i]; i++) {
		for (size_t len = i < n ? strlen(lines[i]) : 0;
			len > 0 && lines[i][len - 1] == ' ';) {
			lines[i][--len] = 0;
		}
		if (i >= n || !want[i] || strcmp(lines[i], want[i]) != 0) {
			fail_msg("line %zu is\n%s\ninstead of\n%s", i + 1,
				i < n ? lines[i] : "(none)", want[i] ? want[i] : "(none)");
		}
	}
	screen_fini(&s);
	watch_forget(&d);
}

static void
picture_of_few_peers_tells_all_of_each(void **state)
{
	(void)state;
	/* clang-format off */
	static const char *const want[] = {
		"home  running, up for 77 s, port 51820, libcrypto, 2 peers   (q quits)",
		"  in    1.00 Mbit/s                                                             #",
		"  out   2.00 kbit/s                                                             #",
		"",
		"peer 00000000  192.0.2.1:51820  handshake 10 s ago  aes-256-gcm",
		"  in    1.00 Mbit/s                                                             #",
		"  out   2.00 kbit/s                                                             #",
		"  out loss 5.0 %, residual 0, overhead 0",
		"  in  loss 25.0 %, residual 0 since the start, held 0",
		"  auto within 20 ms: it is congested",
		"",
		"peer 00000001 gw  192.0.2.1:51820  no handshake yet  aes-256-gcm",
		"  in    2.00 Mbit/s                                                             #",
		"  out   4.00 kbit/s                                                             #",
		"  out loss 5.0 %, residual 0, overhead 0",
		"  in  loss 25.0 %, residual 0 since the start, held 0",
		"  auto within 20 ms: it is congested",
		"",
		"dropped in the last 10 s",
		"           3  rx_auth           authentication tag is wrong",
		"",
		"",
		"00:00:00 the device is stopping",
		"00:00:00 the port to listen on is now 1",
		NULL};
	/* clang-format on */
	struct world w = {.peers = 2,
		.rx_rate = 1e6,
		.tx_rate = 2000,
		.received = 75,
		.lost = 25,
		.dropped = 3,
		.time_s = 100};
	struct watch_events events = {0};
	note(&events, 0);
	note(&events, 1);
	expect_picture(&w, &events, 24, 81, want);
}

static void
picture_of_a_narrow_terminal_breaks_lines(void **state)
{
	(void)state;
	/* clang-format off */
	static const char *const want[] = {
		"home  running, up for 77 s, port 51820,",
		"  in    1.00 Mbit/s                    #",
		"  out   2.00 kbit/s                    #",
		"",
		"peer 00000000  192.0.2.1:51820",
		"    handshake 10 s ago  aes-256-gcm",
		"  in    1.00 Mbit/s                    #",
		"  out   2.00 kbit/s                    #",
		"  out loss 5.0 %, residual 0, overhead 0",
		"  in  loss 25.0 %, residual 0 since the",
		"    start, held 0",
		"  auto within 20 ms: it is congested",
		"",
		"dropped in the last 10 s",
		"     3  rx_auth           authentication",
		"",
		"",
		"",
		"",
		"00:00:00 the port to listen on is now 1",
		NULL};
	/* clang-format on */
	struct world w = {.peers = 1,
		.rx_rate = 1e6,
		.tx_rate = 2000,
		.received = 75,
		.lost = 25,
		.dropped = 3,
		.time_s = 100};
	struct watch_events events = {0};
	note(&events, 1);
	expect_picture(&w, &events, 20, 40, want);
}

static void
picture_of_many_peers_has_the_busiest_first(void **state)
{
	(void)state;
	/* clang-format off */
	static const char *const want[] = {
		"home  running, up for 77 s, port 51820, libcrypto, 100 peers   (q quits)",
		"  in    1.00 Mbit/s                                                            #",
		"  out   2.00 kbit/s                                                            #",
		"",
		"peer              in         out     age out loss residual overhead why",
		"00000099  100 Mbit/s  200 kbit/s   never    5.0 %        0        0 congested",
		"00000098 99.0 Mbit/s  198 kbit/s   never    5.0 %        0        0 congested",
		"and 98 more, less busy",
		NULL};
	/* clang-format on */
	/* clang-format off */
	static const char *const narrow[] = {
		"home  running, up for 77 s, port 51820,",
		"  in    1.00 Mbit/s                    #",
		"  out   2.00 kbit/s                    #",
		"",
		"peer              in         out     age",
		"00000099  100 Mbit/s  200 kbit/s   never",
		"00000098 99.0 Mbit/s  198 kbit/s   never",
		"and 98 more, less busy",
		NULL};
	/* clang-format on */
	/* clang-format off */
	static const char *const wide[] = {
		"home  running, up for 77 s, port 51820, libcrypto, 3 peers   (q quits)",
		"  in    1.00 Mbit/s                                                             #",
		"  out   2.00 kbit/s                                                             #",
		"",
		"peer                      in         out     age out loss residual overhead why        in and out           endpoint",
		"00000002         3.00 Mbit/s 6.00 kbit/s   never    5.0 %        0        0 congested                     # 192.0.2.1:51820",
		"gw               2.00 Mbit/s 4.00 kbit/s   never    5.0 %        0        0 congested                     # 192.0.2.1:51820",
		"00000000         1.00 Mbit/s 2.00 kbit/s    10 s    5.0 %        0        0 congested                     # 192.0.2.1:51820",
		NULL};
	/* clang-format on */
	struct world w = {.peers = 100, .rx_rate = 1e6, .tx_rate = 2000, .time_s = 100};
	struct watch_events none = {0};
	expect_picture(&w, &none, 8, 80, want);
	expect_picture(&w, &none, 8, 40, narrow);
	w.peers = 3;
	expect_picture(&w, &none, 9, 140, wide);
}

static void
colours_are_there_when_wanted_alone(void **state)
{
	(void)state;
	struct watch_device d = {.name = "home"};
	const struct watch_device *const all[1] = {&d};
	struct world w = {.peers = 3};
	struct watch_events events = {0};
	feed(&d, &w, true);
	note(&events, 0);
	for (unsigned has = 0; has < 2; has++) {
		struct screen s = {.has_colors = has};
		screen_begin(&s, 60, 80);
		watch_draw(&s, all, 1, &events);
		screen_finish(&s);
		bool found = false;
		for (size_t i = 0; i + 2 < s.len; i++) {
			found |= memcmp(s.text + i, "\x1b[3", 3) == 0;
		}
		assert_int_equal(found, has);
		screen_fini(&s);
	}
	watch_forget(&d);
}

int
main(void)
{
	assert_int_equal(setenv("TZ", "UTC", 1), 0);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_are_those_of_the_device_and_begin_with_the_second_sample),
		cmocka_unit_test(peer_that_is_not_in_a_sample_was_silent),
		cmocka_unit_test(history_keeps_the_last_minute),
		cmocka_unit_test(device_that_ended_begins_afresh),
		cmocka_unit_test(peers_that_come_and_go_keep_the_others_apart),
		cmocka_unit_test(loss_is_that_of_the_last_second),
		cmocka_unit_test(drops_are_news_for_ten_seconds),
		cmocka_unit_test(last_events_are_kept),
		cmocka_unit_test(picture_fits_every_terminal),
		cmocka_unit_test(picture_of_few_peers_tells_all_of_each),
		cmocka_unit_test(picture_of_a_narrow_terminal_breaks_lines),
		cmocka_unit_test(picture_of_many_peers_has_the_busiest_first),
		cmocka_unit_test(colours_are_there_when_wanted_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
