/* SPDX-License-Identifier: Apache-2.0 */
#include "quick/resolv.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK "# weft "
#define BLOCK "# weft device "
#define SUM_DIGITS 16
#define HEAD_MAX 200

static const char before_words[2][8] = {"none", "kept"};

/* FNV-1a: against editors, not against forgers. */
static uint64_t
sum(const char *p, size_t len)
{
	uint64_t h = 0xcbf29ce484222325u;
	for (size_t i = 0; i < len; i++) {
		h = (h ^ (uint8_t)p[i]) * 0x100000001b3u;
	}
	return h;
}

static size_t
line_len(const char *p, size_t len)
{
	const char *end = memchr(p, '\n', len);
	return end ? (size_t)(end - p) + 1 : len;
}

static bool
begins(const char *p, size_t len, const char *with)
{
	size_t n = strlen(with);
	return len >= n && memcmp(p, with, n) == 0;
}

/* A file that is written in place ends with empty lines for a moment; who is killed then leaves
 * them. */
static size_t
trimmed(const char *text, size_t len)
{
	while (len > 1 && text[len - 1] == '\n' && text[len - 2] == '\n') {
		len--;
	}
	return len;
}

enum resolv_kind
resolv_look(const char *text, size_t len)
{
	len = trimmed(text, len);
	size_t head = line_len(text, len), n = strlen(MARK);
	char digits[SUM_DIGITS + 1];
	if (!begins(text, len, MARK)) {
		return RESOLV_FOREIGN;
	}
	snprintf(digits, sizeof(digits), "%016" PRIx64, sum(text + head, len - head));
	return head > n + SUM_DIGITS && memcmp(text + n, digits, SUM_DIGITS) == 0 ? RESOLV_OURS
										  : RESOLV_CHANGED;
}

bool
resolv_has_before(const char *text, size_t len)
{
	size_t n = strlen(MARK) + SUM_DIGITS + 1;
	return len > n && begins(text + n, len - n, before_words[true]);
}

/* Of a line that begins a block. */
static bool
is_of(const char *line, size_t len, const char *name)
{
	size_t n = strlen(BLOCK), k = strlen(name);
	return len == n + k + 1 && memcmp(line + n, name, k) == 0;
}

bool
resolv_has_device(const char *text, size_t len, const char *name)
{
	for (size_t at = 0; at < len;) {
		size_t n = line_len(text + at, len - at);
		if (begins(text + at, n, BLOCK) && is_of(text + at, n, name)) {
			return true;
		}
		at += n;
	}
	return false;
}

char *
resolv_edit(const char *text, size_t len, const char *name, const char *lines, bool has_before,
	size_t *blocks)
{
	size_t cap =
		HEAD_MAX + len + strlen(BLOCK) + strlen(name) + (lines ? strlen(lines) : 0) + 2;
	char *body = malloc(cap), *out = malloc(cap + HEAD_MAX);
	size_t used = 0;
	len = text ? trimmed(text, len) : 0;
	*blocks = 0;
	if (!body || !out) {
		free(body);
		free(out);
		return NULL;
	}
	if (lines) {
		used = (size_t)snprintf(body, cap, "%s%s\n%s", BLOCK, name, lines);
		++*blocks;
	}
	bool is_kept = false; /* what stands before the first block is the head */
	for (size_t at = 0; at < len;) {
		size_t n = line_len(text + at, len - at);
		if (begins(text + at, n, BLOCK)) {
			is_kept = !is_of(text + at, n, name);
			*blocks += is_kept;
		}
		if (is_kept) {
			memcpy(body + used, text + at, n);
			used += n;
		}
		at += n;
	}
	int head = snprintf(out, HEAD_MAX,
		MARK "%016" PRIx64 " %s: written while devices with DNS are up; %s\n",
		sum(body, used), before_words[has_before],
		has_before ? "the file of before is resolv.conf.before-weft and comes back"
			   : "there was none before");
	memcpy(out + head, body, used);
	out[(size_t)head + used] = 0;
	free(body);
	return out;
}
