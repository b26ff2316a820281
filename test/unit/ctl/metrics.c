/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ctl/metrics.h"

static struct {
	char text[32768];
	size_t len;
} out;

static void
put(void *ctx, const char *text, size_t len)
{
	(void)ctx;
	assert_true(len < sizeof(out.text) - out.len);
	memcpy(out.text + out.len, text, len);
	out.len += len;
	out.text[out.len] = 0;
}

static const char *
write_of(const char *statuses)
{
	json_error_t error;
	json_t *o = json_loads(statuses, 0, &error);
	if (!o) {
		fail_msg("%s: %s", error.text, statuses);
	}
	out.len = 0;
	out.text[0] = 0;
	ctl_metrics_write(o, put, NULL);
	json_decref(o);
	return out.text;
}

static void
metrics_of_nothing_are_nothing(void **state)
{
	(void)state;
	assert_string_equal(write_of("[]"), "");
}

static void
samples_of_a_metric_stand_together_under_one_head(void **state)
{
	(void)state;
	const char *text =
		write_of("[{\"device\":{\"name\":\"a\"},\"gaps\":1,\"peers\":["
			 "{\"public_key\":\"k1\",\"fec\":{\"repairs_ahead\":2,\"repairs_tail\":3}},"
			 "{\"public_key\":\"k2\",\"fec\":{\"repairs_ahead\":4}}]},"
			 "{\"device\":{\"name\":\"b\"},\"gaps\":5,\"peers\":[]}]");
	assert_non_null(
		strstr(text, "# HELP weft_gaps_total Times that the daemon did not run though it "
			     "was to.\n# TYPE weft_gaps_total counter\n"
			     "weft_gaps_total{device=\"a\"} 1\n"
			     "weft_gaps_total{device=\"b\"} 5\n#"));
	assert_non_null(strstr(text,
		"# HELP weft_peer_fec_repairs_total Repairs sent.\n"
		"# TYPE weft_peer_fec_repairs_total counter\n"
		"weft_peer_fec_repairs_total{device=\"a\",public_key=\"k1\",kind=\"ahead\"} 2\n"
		"weft_peer_fec_repairs_total{device=\"a\",public_key=\"k2\",kind=\"ahead\"} 4\n"
		"weft_peer_fec_repairs_total{device=\"a\",public_key=\"k1\",kind=\"tail\"} 3\n"));
	assert_null(strstr(text, "weft_peer_fec_loss_ratio"));
}

static void
values_are_in_the_unit_of_their_name(void **state)
{
	(void)state;
	const char *text = write_of(
		"[{\"device\":{\"name\":\"a\",\"is_up\":true,\"uptime_s\":1.25},\"link\":{"
		"\"rx_bytes\":1234567890123456},\"peers\":[{\"public_key\":\"k\","
		"\"latest_handshake_s\":null,\"fec\":{\"rtt_ms\":10.5,\"loss\":0.049}}]}]");
	assert_non_null(strstr(text, "weft_device_up{device=\"a\"} 1\n"));
	assert_non_null(strstr(text, "weft_uptime_seconds{device=\"a\"} 1.25\n"));
	assert_non_null(
		strstr(text, "weft_link_receive_bytes_total{device=\"a\"} 1234567890123456\n"));
	assert_non_null(strstr(text, "fec_rtt_seconds{device=\"a\",public_key=\"k\"} 0.0105\n"));
	assert_non_null(strstr(text, "fec_loss_ratio{device=\"a\",public_key=\"k\"} 0.049\n"));
	assert_null(strstr(text, "latest_handshake"));
}

static void
labels_are_escaped(void **state)
{
	(void)state;
	const char *text = write_of("[{\"device\":{\"name\":\"a\\\"b\\\\c\\nd}\"},\"drops\":{"
				    "\"rx_auth\":0,\"rx_replay\":7}}]");
	assert_non_null(strstr(text,
		"weft_dropped_total{device=\"a\\\"b\\\\c\\nd}\",reason=\"rx_auth\"} 0\n"
		"weft_dropped_total{device=\"a\\\"b\\\\c\\nd}\",reason=\"rx_replay\"} 7\n"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(metrics_of_nothing_are_nothing),
		cmocka_unit_test(samples_of_a_metric_stand_together_under_one_head),
		cmocka_unit_test(values_are_in_the_unit_of_their_name),
		cmocka_unit_test(labels_are_escaped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
