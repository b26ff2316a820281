/* SPDX-License-Identifier: Apache-2.0 */
/* What is drawn of samples. Peers get a few lines each while they fit, else one line each, the
 * busiest first. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/number.h"
#include "cli/recovery.h"
#include "cli/reply.h"
#include "cli/screen.h"
#include "cli/spark.h"
#include "cli/watch.h"

#define DROP_LINES_MAX 4
#define DEVICE_LINES 3
#define RATE_COLUMNS 21 /* before a sparkline */

static void
draw_flow(struct screen *s, const struct watch_flow *f, bool is_out)
{
	char rate[NUMBER_TEXT_MAX], spark[SPARK_TEXT_MAX];
	unsigned room = s->columns > RATE_COLUMNS ? s->columns - RATE_COLUMNS : 0;
	size_t width = room < SPARK_WIDTH_MAX ? room : SPARK_WIDTH_MAX;
	screen_line(s, "  %-3s %13s  %s", is_out ? "out" : "in",
		number_rate(is_out ? watch_flow_out(f) : watch_flow_in(f), rate),
		spark_draw(is_out ? f->out : f->in, f->n, width, s->is_utf8, spark));
}

static void
draw_device(struct screen *s, const struct watch_device *d)
{
	const json_t *o = json_object_get(d->status, "device");
	char uptime[NUMBER_TEXT_MAX];
	screen_title(s, "%s  %s, up for %s, port %" PRId64 ", %s, %zu peer%s%s", d->name,
		reply_is_true(o, "is_up") ? "running" : "interface is down",
		number_age(reply_count(o, "uptime_s"), uptime), reply_count(o, "listen_port"),
		reply_text(o, "aead", "?"), d->peers_n, d->peers_n == 1 ? "" : "s",
		s->used == 0 ? "   (q quits)" : "");
	draw_flow(s, &d->flow, false);
	draw_flow(s, &d->flow, true);
}

static void
draw_head(struct screen *s, const struct watch_peer *p)
{
	const json_t *e = json_object_get(p->json, "extensions");
	char age[NUMBER_TEXT_MAX] = "no handshake yet", text[NUMBER_TEXT_MAX + 20];
	const char *name = reply_text(e, "name", "");
	snprintf(text, sizeof(text), "%s", age);
	if (reply_has(p->json, "handshake_age_s")) {
		snprintf(text, sizeof(text), "handshake %s ago",
			number_age(reply_count(p->json, "handshake_age_s"), age));
	}
	screen_line(s, "peer %.8s%s%.20s  %s  %s  %s", p->key, name[0] ? " " : "", name,
		reply_text(p->json, "endpoint", "no endpoint"), text,
		reply_text(p->json, "cipher", ""));
}

static void
draw_recovery(struct screen *s, const struct watch_peer *p)
{
	const json_t *f = json_object_get(p->json, "fec"), *rx = json_object_get(f, "rx");
	char loss[NUMBER_TEXT_MAX], residual[NUMBER_TEXT_MAX], more[NUMBER_TEXT_MAX],
		why[RECOVERY_TEXT_MAX], runs[NUMBER_TEXT_MAX] = "";
	if (!reply_has(p->json, "extensions")) {
		return; /* an older device */
	}
	if (!recovery_is_running(p->json)) {
		screen_line(s, "  extensions: %s", recovery_extensions(p->json, why));
		if (recovery_has_why(p->json)) {
			screen_line(s, "  %s", recovery_why(p->json, why));
		}
		return;
	}
	if (reply_number(f, "loss") > 0 && reply_number(f, "burst") > 0) {
		snprintf(runs, sizeof(runs), " in runs of %.1f", reply_number(f, "burst"));
	}
	double all = reply_number(rx, "received") + reply_number(rx, "lost");
	double given_up = reply_number(rx, "given_up");
	screen_line(s, "  out loss %s%s, residual %s, overhead %s",
		number_share(reply_number(f, "loss"), loss), runs,
		number_share(reply_number(f, "residual"), residual),
		number_share(reply_number(f, "overhead"), more));
	screen_line(s, "  in  loss %s, residual %s since the start, held %s",
		number_share(p->loss, loss), number_share(all > 0 ? given_up / all : 0, residual),
		number_ms(reply_number(rx, "hold_avg_ms"), more));
	screen_line(s, "  %s", recovery_why(p->json, why));
}

/* Of one with its blank line. */
static unsigned
peer_lines(const struct watch_peer *p)
{
	unsigned more = reply_has(p->json, "extensions") + recovery_has_why(p->json);
	return 1 + 1 + 2 + (recovery_is_running(p->json) ? 3 : more);
}

static void
draw_peer(struct screen *s, const struct watch_peer *p)
{
	screen_line(s, " ");
	draw_head(s, p);
	draw_flow(s, &p->flow, false);
	draw_flow(s, &p->flow, true);
	draw_recovery(s, p);
}

static double
busyness(const struct watch_peer *p)
{
	return watch_flow_in(&p->flow) + watch_flow_out(&p->flow);
}

static int
compare_busyness(const void *a, const void *b)
{
	const struct watch_peer *const *x = a, *const *y = b;
	double d = busyness(*y) - busyness(*x);
	return d < 0 ? -1 : d > 0 ? 1 : *x < *y ? -1 : *x > *y;
}

static void
draw_row(struct screen *s, const struct watch_peer *p)
{
	const json_t *f = json_object_get(p->json, "fec"), *rx = json_object_get(f, "rx");
	char in[NUMBER_TEXT_MAX], out[NUMBER_TEXT_MAX],
		loss[NUMBER_TEXT_MAX] = "-", residual[NUMBER_TEXT_MAX] = "-",
		overhead[NUMBER_TEXT_MAX] = "-", hold[NUMBER_TEXT_MAX] = "-";
	if (recovery_is_running(p->json)) {
		number_share(reply_number(f, "loss"), loss);
		number_share(reply_number(f, "residual"), residual);
		number_share(reply_number(f, "overhead"), overhead);
		number_ms(reply_number(rx, "hold_avg_ms"), hold);
	}
	screen_line(s, "%-8.8s %12s %12s %8s %8s %8s %8s %s", p->key,
		number_rate(watch_flow_in(&p->flow), in),
		number_rate(watch_flow_out(&p->flow), out), loss, residual, overhead, hold,
		reply_text(f, "why", "-"));
}

static void
draw_table(struct screen *s, const struct watch_device *d, unsigned lines)
{
	const struct watch_peer **sorted = malloc((d->peers_n + 1) * sizeof(*sorted));
	if (!sorted || lines < 3) {
		free(sorted);
		return;
	}
	for (size_t i = 0; i < d->peers_n; i++) {
		sorted[i] = &d->peers[i];
	}
	qsort(sorted, d->peers_n, sizeof(*sorted), compare_busyness);
	screen_line(s, "%-8s %12s %12s %8s %8s %8s %8s %s", "peer", "in", "out", "out loss",
		"residual", "overhead", "in held", "why");
	size_t fit = lines - 1, shown = d->peers_n <= fit ? d->peers_n : fit - 1;
	for (size_t i = 0; i < shown; i++) {
		draw_row(s, sorted[i]);
	}
	if (shown < d->peers_n) {
		screen_line(s, "and %zu more, less busy", d->peers_n - shown);
	}
	free(sorted);
}

struct grown {
	enum drop_reason reasons[DROP_COUNT];
	size_t n;
};

static struct grown
find_grown(const struct watch_device *d)
{
	struct grown g = {.n = 0};
	for (unsigned i = 0; i < DROP_COUNT; i++) {
		uint64_t n = watch_drops(d, (enum drop_reason)i);
		size_t at = g.n;
		if (n == 0) {
			continue;
		}
		for (; at > 0 && watch_drops(d, g.reasons[at - 1]) < n; at--) {
			g.reasons[at] = g.reasons[at - 1];
		}
		g.reasons[at] = (enum drop_reason)i;
		g.n++;
	}
	return g;
}

static void
draw_drops(struct screen *s, const struct watch_device *d, const struct grown *g, size_t shown)
{
	char count[NUMBER_TEXT_MAX];
	if (shown == 0) {
		return;
	}
	screen_line(s, " ");
	screen_line(s, "dropped in the last %d s%s", WATCH_DROP_SAMPLES,
		shown < g->n ? ", the most" : "");
	for (size_t i = 0; i < shown; i++) {
		screen_line(s, "%12s  %-16s  %s",
			number_count(watch_drops(d, g->reasons[i]), count),
			drop_name(g->reasons[i]), drop_text(g->reasons[i]));
	}
}

static void
draw_one(struct screen *s, const struct watch_device *d, unsigned lines)
{
	if (!d->status) {
		screen_title(s, "%s  does not run%s", d->name, s->used == 0 ? "   (q quits)" : "");
		return;
	}
	draw_device(s, d);
	unsigned left = lines > DEVICE_LINES ? lines - DEVICE_LINES : 0;
	const struct grown g = find_grown(d);
	size_t drops = g.n < DROP_LINES_MAX ? g.n : DROP_LINES_MAX;
	while (drops > 0 && drops + 2 > left / 2) {
		drops--;
	}
	left -= drops > 0 ? (unsigned)drops + 2 : 0;
	unsigned wanted = 0;
	for (size_t i = 0; i < d->peers_n && wanted <= left; i++) {
		wanted += peer_lines(&d->peers[i]);
	}
	if (wanted <= left) {
		for (size_t i = 0; i < d->peers_n; i++) {
			draw_peer(s, &d->peers[i]);
		}
	} else if (left > 0) {
		screen_line(s, " ");
		draw_table(s, d, left - 1);
	}
	draw_drops(s, d, &g, drops);
}

void
watch_draw(struct screen *s, const struct watch_device *devices, size_t n)
{
	for (size_t i = 0; i < n && screen_rows_left(s) > 0; i++) {
		if (i > 0) {
			screen_line(s, " ");
		}
		/* Rows that one does not use are left to those behind it. */
		draw_one(s, &devices[i], screen_rows_left(s) / (unsigned)(n - i));
	}
	if (n == 0) {
		screen_title(s, "no device is running   (q quits)");
	}
}
