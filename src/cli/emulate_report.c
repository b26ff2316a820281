/* SPDX-License-Identifier: Apache-2.0 */
/* What `weft emulate` says of its work: a line while it runs, a table and JSON at the end. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/emulate.h"
#include "os/file.h"
#include "os/process.h"

struct row {
	const char *key;  /* in JSON */
	const char *text; /* in the table */
	uint64_t value[2];
};

#define ROWS_MAX 24

static uint64_t
late_us(const struct emulator *e, unsigned dir, double share)
{
	return (uint64_t)(emu_histogram_quantile(&e->late[dir], share) / WEFT_NS_PER_US);
}

static size_t
collect(const struct emulator *e, struct row rows[ROWS_MAX])
{
	const struct emu_counters *ab = &e->channel[0].counters, *ba = &e->channel[1].counters;
	const struct emulate_io *io = e->io;
	size_t n = 0;
#define ROW(key, text, a, b)                                                                       \
	rows[n++] = (struct row)                                                                   \
	{                                                                                          \
		key, text,                                                                         \
		{                                                                                  \
			a, b                                                                       \
		}                                                                                  \
	}
#define COUNTER(field, text) ROW(#field, text, ab->field, ba->field)
	ROW("in_packets", "packets in", ab->in, ba->in);
	COUNTER(in_bytes, "bytes in");
	ROW("out_packets", "packets out", ab->out, ba->out);
	COUNTER(out_bytes, "bytes out");
	COUNTER(lost, "lost");
	COUNTER(queue_dropped, "dropped at the queue");
	COUNTER(ring_full, "of these, memory full");
	COUNTER(mtu_dropped, "longer than the MTU");
	COUNTER(duplicated, "duplicated");
	COUNTER(reordered, "reordered");
	COUNTER(corrupted, "corrupted");
	ROW("pending", "still on their way", emu_channel_pending(&e->channel[0]),
		emu_channel_pending(&e->channel[1]));
	ROW("kernel_dropped", "frames dropped before us", io[0].kernel_dropped,
		io[1].kernel_dropped);
	ROW("refused", "not taken in", io[0].refused, io[1].refused);
	ROW("send_failed", "packets not taken", io[0].send_failed, io[1].send_failed);
	ROW("late_p50_us", "late by, p50 us", late_us(e, 0, 0.5), late_us(e, 1, 0.5));
	ROW("late_p99_us", "late by, p99 us", late_us(e, 0, 0.99), late_us(e, 1, 0.99));
	ROW("late_max_us", "late by, most us", late_us(e, 0, 1), late_us(e, 1, 1));
	ROW("rx_calls", "receive calls", io[0].rx_calls, io[1].rx_calls);
	ROW("tx_calls", "send calls", io[0].tx_calls, io[1].tx_calls);
#undef COUNTER
#undef ROW
	return n;
}

static double
seconds(const struct emulator *e, struct mono now)
{
	return (double)mono_diff_ns(now, e->start) / (double)WEFT_NS_PER_S;
}

/* "a>b   940.1 Mbit/s   81200/s lost  4.9% dropped 0 wait 3.1 ms" */
static void
print_direction(struct emulator *e, unsigned dir, struct mono now)
{
	const struct emu_channel *c = &e->channel[dir];
	const struct emu_counters *n = &c->counters, *before = &e->shown[dir];
	double s = (double)mono_diff_ns(now, e->shown_at) / (double)WEFT_NS_PER_S;
	double packets = (double)(n->in - before->in);
	double lost = packets > 0 ? 100 * (double)(n->lost - before->lost) / packets : 0;
	fprintf(stderr, "  %s %7.1f Mbit/s %7.0f/s lost %4.1f%% dropped %" PRIu64 " wait %.1f ms",
		dir == EMULATE_AB ? "a>b" : "b>a",
		(double)(n->in_bytes - before->in_bytes) * 8 / 1e6 / s, packets / s, lost,
		n->queue_dropped + n->mtu_dropped - before->queue_dropped - before->mtu_dropped,
		(double)emu_channel_wait_ns(c, now) / (double)WEFT_NS_PER_MS);
	e->shown[dir] = *n;
}

void
emulate_print_progress(struct emulator *e, struct mono now)
{
	fprintf(stderr, "\r%5.0f s", seconds(e, now));
	print_direction(e, EMULATE_AB, now);
	print_direction(e, EMULATE_BA, now);
	e->shown_at = now;
	fputs("\x1b[K", stderr); /* clears what is left of a longer line */
}

static struct os_process_stats
own_stats(void)
{
	struct os_process_stats s;
	if (os_process_stats(0, &s)) {
		s = (struct os_process_stats){0};
	}
	return s;
}

void
emulate_print_table(const struct emulator *e, struct mono now)
{
	struct row rows[ROWS_MAX];
	size_t n = collect(e, rows);
	struct os_process_stats s = own_stats();
	printf("%-26s %16s %16s\n", "", "a to b", "b to a");
	for (size_t i = 0; i < n; i++) {
		printf("%-26s %16" PRIu64 " %16" PRIu64 "\n", rows[i].text, rows[i].value[0],
			rows[i].value[1]);
	}
	printf("%.3f s, CPU %.3f s user and %.3f s system, %" PRIu64 " KiB at most",
		seconds(e, now), (double)s.user_ns / (double)WEFT_NS_PER_S,
		(double)s.system_ns / (double)WEFT_NS_PER_S, s.rss_peak_bytes / 1024);
	if (e->mode->rebind) {
		printf(", %u clients, %" PRIu64 " rebinds", e->clients, e->rebinds);
	}
	putchar('\n');
	fflush(stdout);
}

static json_t *
direction_json(const struct row *rows, size_t n, unsigned dir)
{
	json_t *o = json_object();
	for (size_t i = 0; i < n; i++) {
		json_object_set_new(o, rows[i].key, json_integer((json_int_t)rows[i].value[dir]));
	}
	return o;
}

enum weft_err
emulate_write_json(const struct emulator *e, struct mono now)
{
	struct row rows[ROWS_MAX];
	size_t n = collect(e, rows);
	struct os_process_stats s = own_stats();
	json_t *o = json_pack("{s:s, s:I, s:b, s:f, s:f, s:f, s:I, s:I, s:I, s:o, s:o}", "mode",
		e->mode->name, "seed", (json_int_t)e->options->seed, "realtime",
		(int)e->is_realtime, "duration_s", seconds(e, now), "cpu_user_s",
		(double)s.user_ns / (double)WEFT_NS_PER_S, "cpu_system_s",
		(double)s.system_ns / (double)WEFT_NS_PER_S, "rss_peak_bytes",
		(json_int_t)s.rss_peak_bytes, "clients", (json_int_t)e->clients, "rebinds",
		(json_int_t)e->rebinds, "ab", direction_json(rows, n, 0), "ba",
		direction_json(rows, n, 1));
	char *text = o ? json_dumps(o, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
	json_decref(o);
	if (!text) {
		return WEFT_ENOMEM;
	}
	enum weft_err err = WEFT_OK;
	if (strcmp(e->options->json_path, "-") == 0) {
		puts(text);
	} else {
		err = os_file_write(e->options->json_path, text, strlen(text), 0644);
	}
	free(text);
	return err;
}
