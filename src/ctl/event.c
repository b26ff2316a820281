/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/event.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/mono.h"
#include "node/news.h"
#include "wire/key.h"

double
ctl_event_seconds(int64_t wall_ns)
{
	return (double)(wall_ns / WEFT_NS_PER_MS) / 1000.0;
}

json_t *
ctl_event_make(const char *kind, int64_t wall_ns)
{
	return json_pack("{s:s, s:f}", "event", kind, "time_s", ctl_event_seconds(wall_ns));
}

/* Gives o up for NULL unless all is well. */
static json_t *
check(json_t *o, bool ok)
{
	if (!ok) {
		json_decref(o);
		return NULL;
	}
	return o;
}

/* What is no UTF-8 is left out: names of files may hold anything. */
static bool
add_text(json_t *o, const char *name, const char *text)
{
	json_t *v = json_string(text);
	return json_object_set_new(o, name, v ? v : json_null()) == 0;
}

json_t *
ctl_event_of_peer(
	const char *kind, int64_t wall_ns, const uint8_t key[WG_KEY_LEN], const char *name)
{
	char text[KEY_BASE64_LEN + 1];
	json_t *o = ctl_event_make(kind, wall_ns);
	bool ok = o && add_text(o, "public_key", key_encode_base64(key, text));
	return check(o, ok && (!name[0] || add_text(o, "name", name)));
}

static bool
add_endpoint(json_t *o, const char *name, const struct endpoint *at)
{
	char text[ENDPOINT_TEXT_MAX];
	bool is_known = at->addr.family != IP_FAMILY_NONE;
	return !is_known || add_text(o, name, endpoint_format(at, text));
}

json_t *
ctl_event_of_news(const struct node_news *v, const char *name)
{
	static const char *const kinds[] = {
		[NODE_NEWS_PEER_UP] = "peer_up",
		[NODE_NEWS_PEER_DOWN] = "peer_down",
		[NODE_NEWS_ENDPOINT_MOVED] = "endpoint_moved",
		[NODE_NEWS_ERROR] = "error",
		[NODE_NEWS_NAME_FOUND] = "name_resolved",
		[NODE_NEWS_NAME_FAILED] = "name_failed",
		[NODE_NEWS_PORT] = "listen_port",
	};
	json_t *o;
	bool ok;
	switch (v->kind) {
	case NODE_NEWS_PEER_UP:
	case NODE_NEWS_PEER_DOWN:
	case NODE_NEWS_ENDPOINT_MOVED:
		o = ctl_event_of_peer(kinds[v->kind], v->wall_ns, v->public_key, name);
		ok = o && add_endpoint(o, "endpoint", &v->to);
		return check(o, ok && add_endpoint(o, "from", &v->from));
	case NODE_NEWS_NAME_FOUND:
	case NODE_NEWS_NAME_FAILED:
		o = ctl_event_of_peer(kinds[v->kind], v->wall_ns, v->public_key, name);
		ok = o && add_text(o, "host", v->text);
		return check(o, ok && add_endpoint(o, "endpoint", &v->to));
	case NODE_NEWS_PORT:
		o = ctl_event_make(kinds[v->kind], v->wall_ns);
		ok = o && json_object_set_new(o, "port", json_integer(v->to.port)) == 0;
		return check(o, ok);
	case NODE_NEWS_ERROR:
		break;
	}
	o = ctl_event_make(kinds[NODE_NEWS_ERROR], v->wall_ns);
	return check(o, o && add_text(o, "text", v->text));
}

json_t *
ctl_event_of_reload(int64_t wall_ns, const char *file, const char *why)
{
	json_t *o = ctl_event_make(why ? "reload_refused" : "reload", wall_ns);
	bool ok = o && (!file || add_text(o, "file", file));
	return check(o, ok && (!why || add_text(o, "text", why)));
}

json_t *
ctl_event_of_drop(int64_t wall_ns, enum drop_reason reason, uint64_t more, uint64_t total)
{
	json_t *o = ctl_event_make("drop", wall_ns);
	bool ok = o && add_text(o, "reason", drop_name(reason)) &&
		  add_text(o, "text", drop_text(reason)) &&
		  json_object_set_new(o, "count", json_integer((json_int_t)more)) == 0;
	return check(
		o, ok && json_object_set_new(o, "total", json_integer((json_int_t)total)) == 0);
}

char *
ctl_event_line(json_t *o)
{
	char *text = o ? json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
	json_decref(o);
	if (!text) {
		return NULL;
	}
	size_t len = strlen(text);
	char *line = realloc(text, len + 2);
	if (!line) {
		free(text);
		return NULL;
	}
	memcpy(line + len, "\n", 2);
	return line;
}
