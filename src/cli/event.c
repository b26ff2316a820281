/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/event.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "cli/number.h"
#include "cli/reply.h"

#define PEER_TEXT_MAX 96

/* "peer gw (xTIBA5rb)" */
static char *
peer_text(const json_t *o, char out[PEER_TEXT_MAX])
{
	const char *name = reply_text(o, "name", ""), *key = reply_text(o, "public_key", "?");
	if (name[0]) {
		snprintf(out, PEER_TEXT_MAX, "peer %.64s (%.8s)", name, key);
	} else {
		snprintf(out, PEER_TEXT_MAX, "peer %.8s", key);
	}
	return out;
}

static void
write_up(const json_t *o, const char *peer, char *out)
{
	snprintf(out, EVENT_TEXT_MAX, "%s: session is up, at %s", peer,
		reply_text(o, "endpoint", "?"));
}

static void
write_down(const json_t *o, const char *peer, char *out)
{
	(void)o;
	snprintf(out, EVENT_TEXT_MAX, "%s: session is down", peer);
}

static void
write_moved(const json_t *o, const char *peer, char *out)
{
	snprintf(out, EVENT_TEXT_MAX, "%s: endpoint is now %s, was %s", peer,
		reply_text(o, "endpoint", "?"), reply_text(o, "from", "not known"));
}

static void
write_resolved(const json_t *o, const char *peer, char *out)
{
	snprintf(out, EVENT_TEXT_MAX, "%s: %.255s is %s", peer, reply_text(o, "host", "?"),
		reply_text(o, "endpoint", "?"));
}

static void
write_failed(const json_t *o, const char *peer, char *out)
{
	snprintf(out, EVENT_TEXT_MAX, "%s: cannot resolve %.255s; it is tried again", peer,
		reply_text(o, "host", "?"));
}

static void
write_port(const json_t *o, const char *peer, char *out)
{
	(void)peer;
	snprintf(out, EVENT_TEXT_MAX, "the port to listen on is now %d",
		(int)reply_count(o, "port"));
}

static void
write_reload(const json_t *o, const char *peer, char *out)
{
	(void)peer;
	snprintf(out, EVENT_TEXT_MAX, "%s is in force", reply_text(o, "file", "the configuration"));
}

static void
write_refused(const json_t *o, const char *peer, char *out)
{
	(void)peer;
	snprintf(out, EVENT_TEXT_MAX, "a reload changed nothing: %s", reply_text(o, "text", "?"));
}

static void
write_added(const json_t *o, const char *peer, char *out)
{
	(void)o;
	snprintf(out, EVENT_TEXT_MAX, "%s was added", peer);
}

static void
write_removed(const json_t *o, const char *peer, char *out)
{
	(void)o;
	snprintf(out, EVENT_TEXT_MAX, "%s was removed", peer);
}

static void
write_many_added(const json_t *o, const char *peer, char *out)
{
	char count[NUMBER_TEXT_MAX];
	(void)peer;
	snprintf(out, EVENT_TEXT_MAX, "%s more peers were added",
		number_count((uint64_t)reply_count(o, "count"), count));
}

static void
write_many_removed(const json_t *o, const char *peer, char *out)
{
	char count[NUMBER_TEXT_MAX];
	(void)peer;
	snprintf(out, EVENT_TEXT_MAX, "%s more peers were removed",
		number_count((uint64_t)reply_count(o, "count"), count));
}

static void
write_recovery(const json_t *o, const char *peer, char *out)
{
	snprintf(out, EVENT_TEXT_MAX, "%s: loss recovery is %s, was %s: %s", peer,
		reply_text(o, "why", "?"), reply_text(o, "was", "?"),
		reply_text(o, "why_text", "?"));
}

static void
write_drop(const json_t *o, const char *peer, char *out)
{
	char count[NUMBER_TEXT_MAX];
	(void)peer;
	snprintf(out, EVENT_TEXT_MAX, "dropped %s: %s (%s)",
		number_count((uint64_t)reply_count(o, "count"), count), reply_text(o, "text", "?"),
		reply_text(o, "reason", "?"));
}

static void
write_stopping(const json_t *o, const char *peer, char *out)
{
	(void)o;
	(void)peer;
	snprintf(out, EVENT_TEXT_MAX, "the device is stopping");
}

static void
write_lost(const json_t *o, const char *peer, char *out)
{
	char count[NUMBER_TEXT_MAX];
	(void)peer;
	snprintf(out, EVENT_TEXT_MAX,
		"%s events are missing here: they came faster than they "
		"were read",
		number_count((uint64_t)reply_count(o, "count"), count));
}

static void
write_error(const json_t *o, const char *peer, char *out)
{
	(void)peer;
	snprintf(out, EVENT_TEXT_MAX, "%s", reply_text(o, "text", "?"));
}

static const struct {
	const char *kind;
	void (*write)(const json_t *o, const char *peer, char *out);
	bool is_bad;
} kinds[] = {
	{"peer_up", write_up, false},
	{"peer_down", write_down, true},
	{"endpoint_moved", write_moved, false},
	{"name_resolved", write_resolved, false},
	{"name_failed", write_failed, true},
	{"listen_port", write_port, false},
	{"reload", write_reload, false},
	{"reload_refused", write_refused, true},
	{"peer_added", write_added, false},
	{"peer_removed", write_removed, false},
	{"peers_added", write_many_added, false},
	{"peers_removed", write_many_removed, false},
	{"recovery", write_recovery, false},
	{"drop", write_drop, true},
	{"stopping", write_stopping, true},
	{"lost", write_lost, true},
	{"error", write_error, true},
};

char *
event_text(const json_t *o, char out[EVENT_TEXT_MAX])
{
	char peer[PEER_TEXT_MAX];
	const char *kind = reply_text(o, "event", "?");
	/* A newer device may tell of more. */
	snprintf(out, EVENT_TEXT_MAX, "%s", kind);
	for (size_t i = 0; i < WEFT_ARRAY_LEN(kinds); i++) {
		if (strcmp(kinds[i].kind, kind) == 0) {
			kinds[i].write(o, peer_text(o, peer), out);
		}
	}
	for (char *p = out; *p; p++) {
		if ((unsigned char)*p < 0x20 || *p == 0x7f) {
			*p = *p == '\n' ? ';' : '?';
		}
	}
	return out;
}

bool
event_is_bad(const json_t *o)
{
	const char *kind = reply_text(o, "event", "");
	for (size_t i = 0; i < WEFT_ARRAY_LEN(kinds); i++) {
		if (strcmp(kinds[i].kind, kind) == 0) {
			return kinds[i].is_bad;
		}
	}
	return false;
}

char *
event_time(const json_t *o, char out[EVENT_CLOCK_MAX])
{
	time_t at = (time_t)reply_number(o, "time_s");
	struct tm tm;
	out[0] = 0;
	if (localtime_r(&at, &tm)) {
		strftime(out, EVENT_CLOCK_MAX, "%Y-%m-%d %H:%M:%S", &tm);
	}
	return out;
}

char *
event_clock(const json_t *o, char out[EVENT_CLOCK_MAX])
{
	const char *blank = strchr(event_time(o, out), ' ');
	if (blank) {
		memmove(out, blank + 1, strlen(blank));
	}
	return out;
}
