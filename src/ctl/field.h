/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of a peer, by the names that docs/control.md gives it: one table behind status and
 * metrics. Nothing is allocated and no tree is built, so that 10,000 peers are told of in
 * milliseconds. */
#ifndef WEFT_CTL_FIELD_H
#define WEFT_CTL_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ctl_peer;
struct wg_time;
struct writer;

enum ctl_value_kind {
	CTL_VALUE_NONE, /* unknown: null in JSON */
	CTL_VALUE_BOOL,
	CTL_VALUE_COUNT,
	CTL_VALUE_MILLI, /* thousandths */
	CTL_VALUE_REAL,  /* finite */
	CTL_VALUE_TEXT,
};

#define CTL_VALUE_TEXT_MAX 96 /* of one that is made, with the final NUL */

struct ctl_value {
	enum ctl_value_kind kind;
	union {
		bool is_true;
		uint64_t count;
		int64_t milli;
		double real;
		const char *text; /* of the value's own, the peer, or for ever */
	};
	char own[CTL_VALUE_TEXT_MAX];
};

struct ctl_field;

/* "fec.rx.lost"; NULL: there is none of that name. */
const struct ctl_field *ctl_field_find(const char *path);
/* False: such a peer does not have it. */
bool ctl_field_read(const struct ctl_field *f, const struct ctl_peer *p, struct wg_time now,
	struct ctl_value *out);

/* What ctl_field_write_peer() and ctl_value_write_number() write at most. */
#define CTL_PEER_TEXT_MAX 6144
#define CTL_NUMBER_TEXT_MAX 32

/* All fields of a peer as a JSON object, without its last brace and without "allowed_ips". */
void ctl_field_write_peer(struct writer *w, const struct ctl_peer *p, struct wg_time now);
/* A whole number, or one of at most 15 digits with a point or an exponent if has_point. False:
 * true or false is 1 or 0; a text or none writes nothing. */
void ctl_value_write_number(struct writer *w, const struct ctl_value *v, bool has_point);

#endif
