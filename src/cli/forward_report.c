/* SPDX-License-Identifier: Apache-2.0 */
/* What `weft forward` says: the access log, failures, and the table at its end. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/forward.h"
#include "cli/number.h"
#include "os/clock.h"
#include "os/inet.h"
#include "weft/dial.h"

#define LINE_MAX_BYTES 1024
#define CELLS 9

static void
print_line(const char *rule, const char *text)
{
	char at[32];
	struct tm tm;
	int64_t wall_ns = os_clock_wall_ns();
	time_t s = (time_t)(wall_ns / WEFT_NS_PER_S);
	localtime_r(&s, &tm);
	strftime(at, sizeof(at), "%Y-%m-%d %H:%M:%S", &tm);
	fprintf(stderr, "%s.%03d %s: %s\n", at, (int)(wall_ns % WEFT_NS_PER_S / WEFT_NS_PER_MS),
		rule, text);
}

void
forward_access(struct forward_route *r, const char *fmt, ...)
{
	char text[LINE_MAX_BYTES];
	va_list ap;
	if (!r->f->is_verbose) {
		return;
	}
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	print_line(r->name, text);
}

void
forward_warn(struct forward_route *r, const char *fmt, ...)
{
	char text[LINE_MAX_BYTES];
	va_list ap;
	uint32_t held_back = r->fail_limit.suppressed;
	if (!log_limit_take(&r->fail_limit, os_clock_mono())) {
		return;
	}
	va_start(ap, fmt);
	int n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (held_back > 0 && n > 0 && (size_t)n < sizeof(text)) {
		snprintf(
			text + n, sizeof(text) - (size_t)n, " (and %u lines before it)", held_back);
	}
	print_line(r->name, text);
}

char *
forward_who(const struct forward_route *r, const struct endpoint *at, char out[FORWARD_WHO_MAX])
{
	char text[ENDPOINT_TEXT_MAX];
	struct weft_identity who = {.size = sizeof(who)};
	struct os_inet_name name;
	endpoint_format(at, text);
	os_inet_name(&at->addr, at->port, 0, &name);
	if (r->rule.side == FORWARD_REMOTE &&
		weft_whois(r->f->overlay.node, (const struct sockaddr *)&name.at, name.len, &who) ==
			WEFT_OK &&
		who.name[0]) {
		snprintf(out, FORWARD_WHO_MAX, "%s (%s)", text, who.name);
	} else {
		snprintf(out, FORWARD_WHO_MAX, "%s", text);
	}
	return out;
}

static const char *const heads[CELLS] = {"rule", "opened", "failed", "cut", "bytes to target",
	"bytes from target", "datagrams to", "datagrams from", "dropped"};

/* Datagram columns stand where a rule has some. */
static size_t
cells_shown(const struct forward *f)
{
	for (size_t i = 0; i < f->routes_n; i++) {
		if (f->routes[i].rule.is_udp) {
			return CELLS;
		}
	}
	return CELLS - 3;
}

static const char *
cell(const struct forward_route *r, size_t i, char out[NUMBER_TEXT_MAX])
{
	const struct forward_counters *c = &r->count;
	const uint64_t values[CELLS] = {0, c->opened, c->failed, c->cut, c->bytes[0], c->bytes[1],
		c->packets[0], c->packets[1], c->dropped};
	if (i == 0) {
		return r->name;
	}
	if (i >= CELLS - 3 && !r->rule.is_udp) {
		return "";
	}
	return number_count(values[i], out);
}

static void
print_cell(size_t i, size_t width, const char *text)
{
	if (i == 0) {
		printf("%-*s", (int)width, text);
	} else {
		printf("  %*s", (int)width, text);
	}
}

void
forward_print_summary(const struct forward *f)
{
	size_t n = cells_shown(f), widths[CELLS];
	char text[NUMBER_TEXT_MAX];
	for (size_t i = 0; i < n; i++) {
		widths[i] = strlen(heads[i]);
		for (size_t k = 0; k < f->routes_n; k++) {
			size_t len = strlen(cell(&f->routes[k], i, text));
			widths[i] = len > widths[i] ? len : widths[i];
		}
	}
	for (size_t i = 0; i < n; i++) {
		print_cell(i, widths[i], heads[i]);
	}
	putchar('\n');
	for (size_t k = 0; k < f->routes_n; k++) {
		for (size_t i = 0; i < n; i++) {
			print_cell(i, widths[i], cell(&f->routes[k], i, text));
		}
		putchar('\n');
	}
	fflush(stdout);
}
