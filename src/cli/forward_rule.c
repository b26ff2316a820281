/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/forward_rule.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/addr.h"
#include "base/compiler.h"

#define PARTS_MAX 4

/* A part between colons, its brackets off. */
struct part {
	const char *text;
	size_t len;
	bool is_bracketed;
};

struct parse {
	struct part part[PARTS_MAX];
	size_t n;
	enum forward_side side;
	char *why;
};

static const char *const examples[] = {
	[FORWARD_LOCAL] = "-L 8080:db:80, -L 127.0.0.1:8080:10.0.0.2:80, -L udp:5353:[fd00::2]:53",
	[FORWARD_REMOTE] =
		"-R 8080:localhost:80, -R 10.0.0.1:8080:127.0.0.1:80, -R udp:5353:[::1]:53",
};

/* Returns false. */
WEFT_PRINTF(2, 3)
static bool
refuse(struct parse *p, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(p->why, FORWARD_WHY_MAX, fmt, ap);
	va_end(ap);
	if (n > 0 && n < FORWARD_WHY_MAX) {
		snprintf(p->why + n, FORWARD_WHY_MAX - (size_t)n, "; as in %s", examples[p->side]);
	}
	return false;
}

static bool
too_many(struct parse *p)
{
	return refuse(p,
		"too many colons: [udp:][BIND:]PORT:HOST:PORT is wanted, an IPv6 address in "
		"brackets");
}

static bool
split(struct parse *p, const char *at)
{
	for (;;) {
		if (p->n == PARTS_MAX) {
			return too_many(p);
		}
		struct part *part = &p->part[p->n++];
		part->is_bracketed = *at == '[';
		size_t len = strcspn(at, part->is_bracketed ? "]" : ":");
		if (part->is_bracketed) {
			const char *close = at + len;
			if (*close != ']' || (close[1] != ':' && close[1] != 0)) {
				return refuse(
					p, "\"%.80s\": a \"]\" and then a colon are missing", at);
			}
			*part = (struct part){at + 1, len - 1, true};
			at = close + 1;
		} else {
			*part = (struct part){at, len, false};
			at += len;
		}
		if (*at == 0) {
			return true;
		}
		at++;
	}
}

static bool
take_port(
	struct parse *p, const struct part *part, const char *which, unsigned least, uint16_t *out)
{
	unsigned v = 0;
	bool ok = part->len >= 1 && part->len <= 5 && !part->is_bracketed;
	for (size_t i = 0; ok && i < part->len; i++) {
		ok = part->text[i] >= '0' && part->text[i] <= '9';
		v = v * 10 + (unsigned)(part->text[i] - '0');
	}
	if (!ok || v < least || v > 65535) {
		return refuse(p, "\"%.*s\" is no port %s: a number from %u to 65535 is wanted",
			part->len < 40 ? (int)part->len : 40, part->text, which, least);
	}
	*out = (uint16_t)v;
	return true;
}

static bool
is_host_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '-' || c == '.' || c == '_';
}

static bool
take_host(struct parse *p, const struct part *part, const char *which, char out[FORWARD_HOST_MAX])
{
	struct ip_addr a;
	int shown = part->len < 80 ? (int)part->len : 80;
	if (part->len >= FORWARD_HOST_MAX) {
		return refuse(p, "the %s \"%.*s...\" is too long", which, shown, part->text);
	}
	if (part->is_bracketed &&
		(ip_addr_parse(part->text, part->len, &a) || a.family != IP_FAMILY_V6)) {
		return refuse(p,
			"the %s \"%.*s\": no IPv6 address, and only those stand in brackets", which,
			shown, part->text);
	}
	for (size_t i = 0; i < part->len && !part->is_bracketed; i++) {
		if (!is_host_char(part->text[i])) {
			return refuse(p, "the %s \"%.*s\": neither an IP address nor a name", which,
				shown, part->text);
		}
	}
	memcpy(out, part->text, part->len);
	out[part->len] = 0;
	return true;
}

static bool
take_bind(struct parse *p, const struct part *part, struct forward_rule *out)
{
	struct ip_addr a;
	out->has_bind = true;
	if (part->len == 1 && part->text[0] == '*') {
		return true;
	}
	if (!take_host(p, part, "address to listen on", out->bind)) {
		return false;
	}
	bool is_name = part->len > 0 && ip_addr_parse(part->text, part->len, &a);
	if (is_name && (out->side == FORWARD_REMOTE || strcmp(out->bind, "localhost") != 0)) {
		return refuse(p,
			"\"%.80s\": the address to listen on is an IP address%s, or * for all",
			out->bind, out->side == FORWARD_LOCAL ? ", localhost" : "");
	}
	return true;
}

static const char *
skip_protocol(const char *text, bool *is_udp)
{
	*is_udp = strncmp(text, "udp:", 4) == 0;
	return *is_udp || strncmp(text, "tcp:", 4) == 0 ? text + 4 : text;
}

bool
forward_rule_parse(enum forward_side side, const char *text, struct forward_rule *out,
	char why[FORWARD_WHY_MAX])
{
	struct parse p = {.side = side, .why = why};
	*out = (struct forward_rule){.side = side};
	if (!split(&p, skip_protocol(text, &out->is_udp))) {
		return false;
	}
	if (p.n < 3) {
		return refuse(&p, "a part is missing: [udp:][BIND:]PORT:HOST:PORT is wanted");
	}
	const struct part *rest = p.part + (p.n - 3);
	if (p.n == 4 && !take_bind(&p, &p.part[0], out)) {
		return false;
	}
	if (!take_port(&p, &rest[0], "to listen on", 0, &out->port)) {
		return false;
	}
	if (rest[1].len == 0) {
		return refuse(&p, "the host to connect to is missing");
	}
	return take_host(&p, &rest[1], "host to connect to", out->host) &&
	       take_port(&p, &rest[2], "to connect to", 1, &out->to_port);
}

char *
forward_rule_format(const struct forward_rule *r, char out[FORWARD_RULE_TEXT_MAX])
{
	bool is_bind6 = strchr(r->bind, ':') != NULL, is_host6 = strchr(r->host, ':') != NULL;
	snprintf(out, FORWARD_RULE_TEXT_MAX, "-%c %s%s%s%s%s%u:%s%s%s:%u",
		r->side == FORWARD_LOCAL ? 'L' : 'R', r->is_udp ? "udp:" : "", is_bind6 ? "[" : "",
		r->has_bind && r->bind[0] == 0 ? "*" : r->bind, is_bind6 ? "]" : "",
		r->has_bind ? ":" : "", r->port, is_host6 ? "[" : "", r->host, is_host6 ? "]" : "",
		r->to_port);
	return out;
}
