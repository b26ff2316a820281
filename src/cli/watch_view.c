/* SPDX-License-Identifier: Apache-2.0 */
/* What is drawn of samples. Peers get a few lines each while they fit, else one line each, the
 * busiest first; columns that a narrow terminal has no room for are left out. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/number.h"
#include "cli/recovery.h"
#include "cli/reply.h"
#include "cli/screen.h"
#include "cli/spark.h"
#include "cli/watch.h"

#define DROP_LINES_MAX 4
#define EVENT_LINES_MAX 6
#define DEVICE_LINES 3
#define RATE_COLUMNS 21 /* before a sparkline */
#define INDENT 4        /* of what a narrow terminal breaks */
/* A share lost for good that is told in red. */
#define RESIDUAL_BAD 0.001

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
	screen_styled(s, SCREEN_TITLE, "%s  %s, up for %s, port %" PRId64 ", %s, %zu peer%s%s",
		d->name, reply_is_true(o, "is_up") ? "running" : "interface is down",
		number_age(reply_count(o, "uptime_s"), uptime), reply_count(o, "listen_port"),
		reply_text(o, "aead", "?"), d->peers_n, d->peers_n == 1 ? "" : "s",
		s->used == 0 ? "   (q quits)" : "");
	draw_flow(s, &d->flow, false);
	draw_flow(s, &d->flow, true);
}

/* "12 s" since the last handshake; false: there was none. */
static bool
handshake_age(const struct watch_device *d, const json_t *peer, char out[NUMBER_TEXT_MAX])
{
	double age = reply_number(d->status, "time_s") - reply_number(peer, "latest_handshake_s");
	number_age(age > 0 ? (int64_t)age : 0, out);
	return reply_has(peer, "latest_handshake_s");
}

/* Nothing goes there: initiations stay without an answer. */
static bool
is_silent(const json_t *peer)
{
	return reply_count(peer, "unanswered") > 1;
}

static void
draw_head(
	struct screen *s, const struct watch_device *d, const struct watch_peer *p, const json_t *o)
{
	char age[NUMBER_TEXT_MAX], handshake[NUMBER_TEXT_MAX + 20] = "no handshake yet",
							       silent[48] = "";
	if (handshake_age(d, o, age)) {
		snprintf(handshake, sizeof(handshake), "handshake %s ago", age);
	}
	if (is_silent(o)) {
		snprintf(silent, sizeof(silent), ", no answer to %" PRId64,
			reply_count(o, "unanswered"));
	}
	screen_wrapped(s, is_silent(o) ? SCREEN_BAD : SCREEN_HEAD, INDENT,
		"peer %.8s%s%.63s  %s  %s%s  %s", p->key, p->name[0] ? " " : "", p->name,
		reply_text(o, "endpoint", "no endpoint"), handshake, silent,
		reply_text(o, "cipher", ""));
}

static void
draw_recovery(struct screen *s, const struct watch_peer *p, const json_t *o)
{
	const json_t *f = json_object_get(o, "fec"), *rx = json_object_get(f, "rx");
	char loss[NUMBER_TEXT_MAX], residual[NUMBER_TEXT_MAX], more[NUMBER_TEXT_MAX],
		why[RECOVERY_TEXT_MAX], runs[NUMBER_TEXT_MAX] = "";
	if (!recovery_is_running(o)) {
		screen_wrapped(
			s, SCREEN_PLAIN, INDENT, "  extensions: %s", recovery_extensions(o, why));
		if (recovery_has_why(o)) {
			screen_wrapped(s, SCREEN_PLAIN, INDENT, "  %s", recovery_why(o, why));
		}
		return;
	}
	if (reply_number(f, "loss") > 0 && reply_number(f, "burst") > 0) {
		snprintf(runs, sizeof(runs), " in runs of %.1f", reply_number(f, "burst"));
	}
	double all = reply_number(rx, "received") + reply_number(rx, "lost");
	double given_up = reply_number(rx, "given_up");
	bool is_bad = reply_number(f, "residual") > RESIDUAL_BAD;
	screen_wrapped(s, is_bad ? SCREEN_BAD : SCREEN_PLAIN, INDENT,
		"  out loss %s%s, residual %s, overhead %s",
		number_share(reply_number(f, "loss"), loss), runs,
		number_share(reply_number(f, "residual"), residual),
		number_share(reply_number(f, "overhead"), more));
	screen_wrapped(s, SCREEN_PLAIN, INDENT,
		"  in  loss %s, residual %s since the start, held %s", number_share(p->loss, loss),
		number_share(all > 0 ? given_up / all : 0, residual),
		number_ms(reply_number(rx, "hold_avg_ms"), more));
	screen_wrapped(s, SCREEN_PLAIN, INDENT, "  %s", recovery_why(o, why));
}

static void
draw_peer(struct screen *s, const struct watch_device *d, const struct watch_peer *p)
{
	json_t *o = json_loads(p->text, 0, NULL);
	screen_line(s, " ");
	draw_head(s, d, p, o);
	draw_flow(s, &p->flow, false);
	draw_flow(s, &p->flow, true);
	draw_recovery(s, p, o);
	json_decref(o);
}

/* All that is known of each. False: they need more lines, and none is drawn. */
static bool
draw_peers(struct screen *s, const struct watch_device *d, unsigned lines)
{
	const struct screen_mark mark = screen_mark(s);
	unsigned rows = s->rows;
	bool was_cut = s->is_cut;
	s->rows = s->used + lines;
	s->is_cut = false;
	for (size_t i = 0; i < d->peers_n && !s->is_cut; i++) {
		draw_peer(s, d, &d->peers[i]);
	}
	bool is_cut = s->is_cut;
	s->rows = rows;
	s->is_cut = was_cut;
	if (is_cut) {
		screen_take_back(s, &mark);
	}
	return !is_cut;
}

/* --- one line each --- */

/* A row of the table, its cells as texts. */
struct row {
	char peer[WATCH_NAME_MAX], in[NUMBER_TEXT_MAX], out[NUMBER_TEXT_MAX];
	char age[NUMBER_TEXT_MAX], loss[NUMBER_TEXT_MAX], residual[NUMBER_TEXT_MAX],
		overhead[NUMBER_TEXT_MAX];
	char why[24], endpoint[64], spark[SPARK_TEXT_MAX];
};

#define SPARK_COLUMNS 20
#define WIDE 110 /* columns from which names get more room */

/* In order; a column is drawn when it and all before it have room. */
struct column {
	const char *head;
	unsigned width;
	bool is_left;
	size_t offset;
};

static const struct column columns[] = {
	{"peer", 8, true, offsetof(struct row, peer)},
	{"in", 11, false, offsetof(struct row, in)},
	{"out", 11, false, offsetof(struct row, out)},
	{"age", 7, false, offsetof(struct row, age)},
	{"out loss", 8, false, offsetof(struct row, loss)},
	{"residual", 8, false, offsetof(struct row, residual)},
	{"overhead", 8, false, offsetof(struct row, overhead)},
	{"why", 10, true, offsetof(struct row, why)},
	{"in and out", SPARK_COLUMNS, true, offsetof(struct row, spark)},
	{"endpoint", 21, true, offsetof(struct row, endpoint)},
};

/* Characters of UTF-8. */
static unsigned
count_columns(const char *text)
{
	unsigned n = 0;
	for (; *text; text++) {
		n += ((unsigned char)*text & 0xc0) != 0x80;
	}
	return n;
}

/* row NULL: the heads. */
static void
draw_row(struct screen *s, enum screen_style style, const struct row *row)
{
	char line[SCREEN_LINE_MAX];
	size_t at = 0;
	unsigned used = 0;
	line[0] = 0;
	for (size_t i = 0; i < WEFT_ARRAY_LEN(columns); i++) {
		const struct column *c = &columns[i];
		const char *text = row ? (const char *)row + c->offset : c->head;
		unsigned width = i == 0 && s->columns >= WIDE ? c->width * 2 : c->width;
		unsigned len = count_columns(text);
		if (i > 0 && used + 1 + width > s->columns) {
			break;
		}
		int pad = len < width ? (int)(width - len) : 0;
		/* The first column's text alone may be too long, and it is ASCII. */
		int max = i == 0 ? (int)width : (int)strlen(text);
		at += (size_t)snprintf(line + at, sizeof(line) - at, "%s%*s%.*s%*s",
			i > 0 ? " " : "", c->is_left ? 0 : pad, "", max, text, c->is_left ? pad : 0,
			"");
		used += (i > 0) + width;
	}
	while (at > 0 && line[at - 1] == ' ') {
		line[--at] = 0;
	}
	screen_styled(s, style, "%s", line);
}

static void
fill_spark(const struct screen *s, const struct watch_flow *f, char out[SPARK_TEXT_MAX])
{
	float both[WATCH_SAMPLES];
	for (size_t i = 0; i < f->n; i++) {
		both[i] = f->in[i] + f->out[i];
	}
	spark_draw(both, f->n, SPARK_COLUMNS, s->is_utf8, out);
}

static void
draw_short(struct screen *s, const struct watch_device *d, const struct watch_peer *p)
{
	json_t *o = json_loads(p->text, 0, NULL);
	const json_t *f = json_object_get(o, "fec");
	struct row r = {.loss = "-", .residual = "-", .overhead = "-"};
	snprintf(r.peer, sizeof(r.peer), "%.*s", p->name[0] ? WATCH_NAME_MAX - 1 : 8,
		p->name[0] ? p->name : p->key);
	number_rate(watch_flow_in(&p->flow), r.in);
	number_rate(watch_flow_out(&p->flow), r.out);
	if (!handshake_age(d, o, r.age)) {
		snprintf(r.age, sizeof(r.age), "never");
	}
	if (recovery_is_running(o)) {
		number_share(reply_number(f, "loss"), r.loss);
		number_share(reply_number(f, "residual"), r.residual);
		number_share(reply_number(f, "overhead"), r.overhead);
	}
	snprintf(r.why, sizeof(r.why), "%.10s", reply_text(f, "why", "-"));
	snprintf(r.endpoint, sizeof(r.endpoint), "%.63s", reply_text(o, "endpoint", "-"));
	fill_spark(s, &p->flow, r.spark);
	bool is_bad = is_silent(o) || reply_number(f, "residual") > RESIDUAL_BAD;
	draw_row(s, is_bad ? SCREEN_BAD : SCREEN_PLAIN, &r);
	json_decref(o);
}

struct busy {
	double rate;
	const struct watch_peer *peer;
};

static int
compare_busyness(const void *a, const void *b)
{
	const struct busy *x = a, *y = b;
	double d = y->rate - x->rate;
	return d < 0 ? -1 : d > 0 ? 1 : x->peer < y->peer ? -1 : x->peer > y->peer;
}

static void
draw_table(struct screen *s, const struct watch_device *d, unsigned lines)
{
	struct busy *sorted = malloc((d->peers_n + 1) * sizeof(*sorted));
	if (!sorted || lines < 3) {
		free(sorted);
		return;
	}
	for (size_t i = 0; i < d->peers_n; i++) {
		sorted[i] = (struct busy){watch_flow_lately(&d->peers[i].flow), &d->peers[i]};
	}
	qsort(sorted, d->peers_n, sizeof(*sorted), compare_busyness);
	draw_row(s, SCREEN_HEAD, NULL);
	size_t fit = lines - 1, shown = d->peers_n <= fit ? d->peers_n : fit - 1;
	for (size_t i = 0; i < shown; i++) {
		draw_short(s, d, sorted[i].peer);
	}
	if (shown < d->peers_n) {
		char more[NUMBER_TEXT_MAX];
		screen_styled(s, SCREEN_FAINT, "and %s more, less busy",
			number_count(d->peers_n - shown, more));
	}
	free(sorted);
}

/* --- drops --- */

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
	screen_styled(s, SCREEN_HEAD, "dropped in the last %d s%s", WATCH_DROP_SAMPLES,
		shown < g->n ? ", the most" : "");
	for (size_t i = 0; i < shown; i++) {
		bool is_narrow = s->columns < 60;
		screen_styled(s, SCREEN_WARN, "%*s  %-16s  %s", is_narrow ? 6 : 12,
			number_count(watch_drops(d, g->reasons[i]), count),
			drop_name(g->reasons[i]), drop_text(g->reasons[i]));
	}
}

/* --- all --- */

static void
draw_one(struct screen *s, const struct watch_device *d, unsigned lines)
{
	if (!d->status) {
		screen_styled(s, SCREEN_TITLE, "%s  does not run%s", d->name,
			s->used == 0 ? "   (q quits)" : "");
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
	if (!draw_peers(s, d, left) && left > 0) {
		screen_line(s, " ");
		draw_table(s, d, left - 1);
	}
	draw_drops(s, d, &g, drops);
}

static void
draw_events(struct screen *s, const struct watch_events *e, size_t shown, bool is_alone)
{
	if (shown == 0) {
		return;
	}
	while (screen_rows_left(s) > shown) {
		screen_line(s, " ");
	}
	for (size_t i = shown; i-- > 0;) {
		const struct watch_event *v = watch_event_at(e, i);
		screen_styled(s, v->is_bad ? SCREEN_WARN : SCREEN_FAINT, "%s %s%s%s", v->clock,
			is_alone ? "" : v->device, is_alone ? "" : ": ", v->text);
	}
}

void
watch_draw(struct screen *s, const struct watch_device *const *devices, size_t n,
	const struct watch_events *events)
{
	/* Never more than a quarter of the rows, and a blank one before. */
	size_t shown = events->n < EVENT_LINES_MAX ? events->n : EVENT_LINES_MAX;
	shown = shown < s->rows / 4 ? shown : s->rows / 4;
	unsigned rows = s->rows;
	s->rows -= shown > 0 ? (unsigned)shown + 1 : 0;
	for (size_t i = 0; i < n && screen_rows_left(s) > 0; i++) {
		if (i > 0) {
			screen_line(s, " ");
		}
		/* Rows that one does not use are left to those behind it. */
		draw_one(s, devices[i], screen_rows_left(s) / (unsigned)(n - i));
	}
	if (n == 0) {
		screen_styled(s, SCREEN_TITLE, "no device is running   (q quits)");
	}
	s->rows = rows;
	draw_events(s, events, shown, n == 1);
}
