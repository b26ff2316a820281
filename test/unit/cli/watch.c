/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cli/screen.h"
#include "cli/watch.h"

static struct mono
at_ms(int64_t ms)
{
	return (struct mono){1 + ms * WEFT_NS_PER_MS};
}

/* peers of them, each with rx and tx bytes times its place from 1. */
static json_t *
make_status(size_t peers, json_int_t rx, json_int_t tx, json_int_t lost)
{
	json_t *list = json_array();
	for (size_t i = 0; i < peers; i++) {
		char key[48];
		snprintf(key, sizeof(key), "%08uAAAAAAAAAAAAAAAAAAA=", (unsigned)i);
		json_array_append_new(list,
			json_pack("{s:s, s:I, s:I, s:s, s:s, s:{s:s, s:s}, s:{s:s, s:i}, s:{s:s, "
				  "s:s, s:f, s:{s:I, s:I}}}",
				"public_key", key, "rx_bytes", rx * (json_int_t)(i + 1), "tx_bytes",
				tx * (json_int_t)(i + 1), "endpoint", "192.0.2.1:51820", "cipher",
				"aes-256-gcm", "extensions", "state", "agreed", "name", "gw",
				"policy", "fec", "auto", "fec_delay_ms", 20, "fec", "why",
				"congested", "why_text", "it is congested", "loss", 0.05, "rx",
				"received", (json_int_t)1000 + rx, "lost", lost));
	}
	json_t *o = json_pack("{s:{s:s, s:b, s:f, s:i, s:s}, s:{s:I, s:I}, s:{s:I}, s:o}", "device",
		"name", "home", "is_up", 1, "uptime_s", 77.5, "listen_port", 51820, "aead",
		"libcrypto", "link", "rx_bytes", rx, "tx_bytes", tx, "drops", "rx_auth", lost,
		"peers", list);
	assert_non_null(o);
	return o;
}

static void
feed(struct watch_device *d, json_t *status, int64_t ms)
{
	assert_true(watch_feed(d, status, at_ms(ms)));
}

static void
rates_are_bits_over_the_time_that_passed(void **state)
{
	(void)state;
	struct watch_device d = {.name = "home"};
	feed(&d, make_status(2, 1000, 50, 0), 0);
	assert_int_equal(d.flow.n, 0);
	assert_true(watch_flow_in(&d.flow) == 0);
	feed(&d, make_status(2, 3000, 50, 0), 2000);
	assert_true(watch_flow_in(&d.flow) == 8000);
	assert_true(watch_flow_out(&d.flow) == 0);
	assert_true(watch_flow_in(&d.peers[1].flow) == 16000);
	watch_device_fini(&d);
}

static void
history_keeps_the_last_minute(void **state)
{
	(void)state;
	struct watch_device d = {.name = "home"};
	json_int_t sum = 0;
	for (int i = 0; i < 200; i++) {
		sum += i;
		feed(&d, make_status(1, sum, 0, 0), i * 1000);
	}
	assert_int_equal(d.flow.n, WATCH_SAMPLES);
	assert_true(d.flow.in[WATCH_SAMPLES - 1] == 199 * 8);
	assert_true(d.flow.in[0] == (200 - WATCH_SAMPLES) * 8);
	assert_true(d.peers[0].flow.in[0] == d.flow.in[0]);
	watch_device_fini(&d);
}

static void
device_that_was_started_again_begins_afresh(void **state)
{
	(void)state;
	struct watch_device d = {.name = "home"};
	feed(&d, make_status(1, 1000, 1000, 0), 0);
	feed(&d, make_status(1, 2000, 2000, 0), 1000);
	feed(&d, make_status(1, 5, 5, 0), 2000);
	assert_int_equal(d.flow.n, 0);
	assert_int_equal(d.peers[0].flow.n, 0);
	assert_string_equal(d.name, "home");
	feed(&d, NULL, 3000);
	assert_null(d.status);
	assert_int_equal(d.peers_n, 0);
	feed(&d, make_status(1, 6, 6, 0), 4000);
	assert_int_equal(d.flow.n, 0);
	watch_device_fini(&d);
}

static void
peers_that_come_and_go_keep_the_others_apart(void **state)
{
	(void)state;
	struct watch_device d = {.name = "home"};
	feed(&d, make_status(5, 100, 0, 0), 0);
	json_t *o = make_status(6, 200, 0, 0);
	json_array_remove(json_object_get(o, "peers"), 1);
	feed(&d, o, 1000);
	assert_int_equal(d.peers_n, 5);
	assert_true(watch_flow_in(&d.peers[0].flow) == 800);
	assert_true(watch_flow_in(&d.peers[1].flow) == 2400); /* the third */
	assert_int_equal(d.peers[4].flow.n, 0);               /* new */
	/* Back in another order. */
	o = make_status(3, 300, 0, 0);
	json_t *peers = json_object_get(o, "peers"), *last = json_incref(json_array_get(peers, 2));
	json_array_remove(peers, 2);
	json_array_insert_new(peers, 0, last);
	feed(&d, o, 2000);
	assert_true(watch_flow_in(&d.peers[0].flow) == 2400);
	assert_true(watch_flow_in(&d.peers[1].flow) == 800);
	assert_int_equal(d.peers[2].flow.n, 0);
	watch_device_fini(&d);
}

static void
loss_is_that_of_the_last_second(void **state)
{
	(void)state;
	struct watch_device d = {.name = "home"};
	feed(&d, make_status(1, 0, 0, 500), 0);
	assert_true(d.peers[0].loss == 0);
	feed(&d, make_status(1, 75, 0, 525), 1000);
	assert_true(d.peers[0].loss == 0.25);
	feed(&d, make_status(1, 175, 0, 525), 2000);
	assert_true(d.peers[0].loss == 0);
	watch_device_fini(&d);
}

static void
drops_are_news_for_ten_seconds(void **state)
{
	(void)state;
	struct watch_device d = {.name = "home"};
	for (int i = 0; i <= 30; i++) {
		feed(&d, make_status(0, 0, 0, i < 10 ? 7 : 12), i * 1000);
		bool is_news = i >= 10 && i < 10 + WATCH_DROP_SAMPLES;
		assert_int_equal(watch_drops(&d, DROP_RX_AUTH), is_news ? 5 : 0);
		assert_int_equal(watch_drops(&d, DROP_RX_REPLAY), 0);
	}
	watch_device_fini(&d);
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

static bool
has_line(char lines[64][256], size_t n, const char *part)
{
	for (size_t i = 0; i < n; i++) {
		if (strstr(lines[i], part)) {
			return true;
		}
	}
	return false;
}

static void
picture_fits_every_terminal(void **state)
{
	(void)state;
	static const size_t peers[] = {0, 1, 2, 3, 9, 200};
	static char lines[64][256];
	struct screen s = {0};
	for (size_t p = 0; p < 6; p++) {
		struct watch_device d[3] = {{.name = "home"}, {.name = "gone"}, {.name = "work"}};
		for (int i = 0; i < 70; i++) {
			feed(&d[0], make_status(peers[p], i * 100, i, i), i * 1000);
			feed(&d[2], make_status(2, i * 100, i, 0), i * 1000);
		}
		for (unsigned rows = 1; rows <= 60; rows++) {
			for (unsigned columns = 1; columns <= 200; columns += 13) {
				for (size_t n = 0; n <= 3; n++) {
					screen_begin(&s, rows, columns);
					watch_draw(&s, d, n);
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
			watch_device_fini(&d[i]);
		}
	}
	screen_fini(&s);
}

static void
picture_of_few_peers_tells_all_of_each(void **state)
{
	(void)state;
	static char lines[64][256];
	struct screen s = {0};
	struct watch_device d = {.name = "home"};
	feed(&d, make_status(2, 0, 0, 0), 0);
	feed(&d, make_status(2, 125000, 250, 3), 1000);
	screen_begin(&s, 24, 80);
	watch_draw(&s, &d, 1);
	size_t n = split(&s, lines);
	assert_true(
		has_line(lines, n, "home  running, up for 77 s, port 51820, libcrypto, 2 peers"));
	assert_true(has_line(lines, n, "in    1.00 Mbit/s"));
	assert_true(has_line(
		lines, n, "peer 00000001 gw  192.0.2.1:51820  no handshake yet  aes-256-gcm"));
	assert_true(has_line(lines, n, "out   4.00 kbit/s"));
	assert_true(has_line(lines, n, "out loss 5.0 %, residual 0, overhead 0"));
	assert_true(has_line(lines, n, "auto within 20 ms: it is congested"));
	assert_true(has_line(lines, n, "dropped in the last 10 s"));
	assert_true(has_line(lines, n, "3  rx_auth           authentication tag is wrong"));
	screen_fini(&s);
	watch_device_fini(&d);
}

static void
picture_of_many_peers_has_the_busiest_first(void **state)
{
	(void)state;
	static char lines[64][256];
	struct screen s = {0};
	struct watch_device d = {.name = "home"};
	feed(&d, make_status(100, 0, 0, 0), 0);
	feed(&d, make_status(100, 125000, 250, 0), 1000);
	screen_begin(&s, 24, 80);
	watch_draw(&s, &d, 1);
	size_t n = split(&s, lines);
	assert_int_equal(n, 24);
	assert_string_equal(lines[4],
		"peer               in          out out loss residual overhead  in held why");
	assert_string_equal(lines[5],
		"00000099   100 Mbit/s   200 kbit/s    5.0 %        0        0        0 congested");
	assert_string_equal(lines[23], "and 82 more, less busy");
	screen_fini(&s);
	watch_device_fini(&d);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_are_bits_over_the_time_that_passed),
		cmocka_unit_test(history_keeps_the_last_minute),
		cmocka_unit_test(device_that_was_started_again_begins_afresh),
		cmocka_unit_test(peers_that_come_and_go_keep_the_others_apart),
		cmocka_unit_test(loss_is_that_of_the_last_second),
		cmocka_unit_test(drops_are_news_for_ten_seconds),
		cmocka_unit_test(picture_fits_every_terminal),
		cmocka_unit_test(picture_of_few_peers_tells_all_of_each),
		cmocka_unit_test(picture_of_many_peers_has_the_busiest_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
