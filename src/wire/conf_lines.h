/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration file cut into lines whose parts are known by place, so that some can be changed
 * and the rest stays as it is, byte for byte. */
#ifndef WEFT_WIRE_CONF_LINES_H
#define WEFT_WIRE_CONF_LINES_H

#include "wire/conf_internal.h"

enum conf_line_kind {
	CONF_LINE_BLANK, /* nothing, or a comment */
	CONF_LINE_SECTION,
	CONF_LINE_ITEM,
};

#define CONF_LINE_NO_PEER SIZE_MAX

/* A text that grows; to be wiped. */
struct conf_buffer {
	char *p;
	size_t len, cap;
	bool has_memory;
};
#define CONF_BUFFER_EMPTY ((struct conf_buffer){.has_memory = true})
void conf_buffer_add(struct conf_buffer *b, const char *p, size_t len);
void conf_buffer_text(struct conf_buffer *b, const char *text);
void conf_buffer_fini(struct conf_buffer *b);

/* Offsets into the text. */
struct conf_line {
	enum conf_line_kind kind;
	enum conf_section section;   /* that it is in, or begins */
	const struct conf_key *key;  /* of an item; NULL: unknown */
	size_t peer;                 /* number of its [Peer] section, or CONF_LINE_NO_PEER */
	size_t at, content_end, end; /* content_end: before '\r' and '\n' */
	size_t comment;              /* of '#'; content_end without one */
	size_t value, value_end;     /* of an item */
	/* What becomes of it. */
	bool is_removed;
	char *fresh;              /* takes the place of value; NULL: it stays */
	struct conf_buffer after; /* lines behind it, each with its end */
};

struct conf_lines {
	const char *text;
	size_t len, begin; /* begin: behind a byte order mark */
	const char *eol;   /* as the first line ends */
	struct conf_line *v;
	size_t n, cap;
	bool has_memory;
};

/* The text is one that conf_parse() has taken, and must outlive it. WEFT_ENOMEM. */
WEFT_MUST_CHECK enum weft_err conf_lines_cut(const char *text, size_t len, struct conf_lines *out);
/* Wipes and frees. */
void conf_lines_fini(struct conf_lines *l);
/* Allocated, with a NUL; to be wiped by the caller. NULL: no memory. */
char *conf_lines_join(const struct conf_lines *l, size_t *len);
/* Both copy text; memory that is wanting is noted in has_memory. */
void conf_line_set(struct conf_lines *l, struct conf_line *line, const char *text);
void conf_line_add(struct conf_lines *l, struct conf_line *line, const char *text);

#endif
