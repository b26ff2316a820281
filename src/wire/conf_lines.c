/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/conf_lines.h"

#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"

void
conf_buffer_add(struct conf_buffer *b, const char *p, size_t len)
{
	if (b->has_memory && b->cap - b->len < len + 1) {
		size_t cap = b->cap ? b->cap : 256;
		while (cap - b->len < len + 1) {
			cap *= 2;
		}
		char *bigger = malloc(cap);
		if (bigger && b->p) {
			memcpy(bigger, b->p, b->len);
			secret_wipe(b->p, b->len);
			free(b->p);
		}
		b->has_memory = bigger != NULL;
		b->p = bigger ? bigger : b->p;
		b->cap = bigger ? cap : b->cap;
	}
	if (b->has_memory) {
		memcpy(b->p + b->len, p, len);
		b->len += len;
		b->p[b->len] = 0;
	}
}

void
conf_buffer_text(struct conf_buffer *b, const char *text)
{
	conf_buffer_add(b, text, strlen(text));
}

void
conf_buffer_fini(struct conf_buffer *b)
{
	if (b->p) {
		secret_wipe(b->p, b->len);
		free(b->p);
	}
	*b = CONF_BUFFER_EMPTY;
}

static struct conf_value
part(const struct conf_lines *l, size_t from, size_t to)
{
	return conf_value_trim((struct conf_value){.p = l->text + from, .len = to - from});
}

static void
read_section(struct conf_line *line, const struct conf_value *content, size_t *peers)
{
	/* The parser has taken it: blanks aside it is one of the two. */
	size_t i = 1;
	while (i < content->len && conf_char_is_blank(content->p[i])) {
		i++;
	}
	line->kind = CONF_LINE_SECTION;
	bool is_peer = i < content->len && (content->p[i] | 0x20) == 'p';
	line->section = is_peer ? CONF_SECTION_PEER : CONF_SECTION_INTERFACE;
	line->peer = is_peer ? (*peers)++ : CONF_LINE_NO_PEER;
}

static void
read_line(const struct conf_lines *l, struct conf_line *line, size_t *peers)
{
	const char *hash = memchr(l->text + line->at, '#', line->content_end - line->at);
	line->comment = hash ? (size_t)(hash - l->text) : line->content_end;
	struct conf_value content = part(l, line->at, line->comment);
	if (content.len == 0) {
		line->kind = CONF_LINE_BLANK;
		return;
	}
	if (content.p[0] == '[') {
		read_section(line, &content, peers);
		return;
	}
	line->kind = CONF_LINE_ITEM;
	const char *equals = memchr(content.p, '=', content.len);
	size_t split = equals ? (size_t)(equals - l->text) : line->comment;
	struct conf_value name = part(l, line->at, split);
	line->key = conf_key_find(name.p, name.len);
	struct conf_value value = part(l, equals ? split + 1 : split, line->comment);
	line->value = (size_t)(value.p - l->text);
	line->value_end = line->value + value.len;
}

enum weft_err
conf_lines_cut(const char *text, size_t len, struct conf_lines *out)
{
	static const char bom[] = "\xef\xbb\xbf";
	struct conf_lines l = {.text = text, .len = len, .eol = "\n", .has_memory = true};
	enum conf_section section = CONF_SECTION_NONE;
	size_t peer = CONF_LINE_NO_PEER, peers = 0;
	l.begin = len >= 3 && memcmp(text, bom, 3) == 0 ? 3 : 0;
	for (size_t at = l.begin; at < len;) {
		struct conf_line *v = conf_grow(l.v, l.n, &l.cap, sizeof(*v));
		if (!v) {
			conf_lines_fini(&l);
			return WEFT_ENOMEM;
		}
		l.v = v;
		struct conf_line *line = &l.v[l.n++];
		const char *end = memchr(text + at, '\n', len - at);
		*line = (struct conf_line){
			.at = at, .section = section, .peer = peer, .after = CONF_BUFFER_EMPTY};
		line->end = end ? (size_t)(end - text) + 1 : len;
		line->content_end = end ? line->end - 1 : len;
		if (line->content_end > at && text[line->content_end - 1] == '\r') {
			line->content_end--;
			l.eol = l.n == 1 ? "\r\n" : l.eol;
		}
		read_line(&l, line, &peers);
		section = line->section;
		peer = line->peer;
		at = line->end;
	}
	*out = l;
	return WEFT_OK;
}

static void
drop(char **text)
{
	if (*text) {
		secret_wipe(*text, strlen(*text));
		free(*text);
		*text = NULL;
	}
}

void
conf_lines_fini(struct conf_lines *l)
{
	for (size_t i = 0; i < l->n; i++) {
		drop(&l->v[i].fresh);
		conf_buffer_fini(&l->v[i].after);
	}
	free(l->v);
	*l = (struct conf_lines){0};
}

void
conf_line_set(struct conf_lines *l, struct conf_line *line, const char *text)
{
	drop(&line->fresh);
	line->fresh = strdup(text);
	l->has_memory &= line->fresh != NULL;
}

void
conf_line_add(struct conf_lines *l, struct conf_line *line, const char *text)
{
	conf_buffer_text(&line->after, text);
	conf_buffer_text(&line->after, l->eol);
	l->has_memory &= line->after.has_memory;
}

static void
join_line(const struct conf_lines *l, const struct conf_line *line, struct conf_buffer *b)
{
	const char *t = l->text;
	if (line->is_removed) {
		/* What a person wrote stays. */
		if (line->kind == CONF_LINE_ITEM && line->comment < line->content_end) {
			conf_buffer_add(b, t + line->comment, line->end - line->comment);
		}
	} else if (line->fresh) {
		bool has_blank = line->value > line->at && conf_char_is_blank(t[line->value - 1]);
		bool is_empty = line->value == line->value_end;
		conf_buffer_add(b, t + line->at, line->value - line->at);
		conf_buffer_text(b, has_blank ? "" : is_empty ? " " : "");
		conf_buffer_text(b, line->fresh);
		/* A comment right behind an empty value needs its blank. */
		conf_buffer_text(b, is_empty && line->comment == line->value &&
						    line->comment < line->content_end
					    ? " "
					    : "");
		conf_buffer_add(b, t + line->value_end, line->end - line->value_end);
	} else {
		conf_buffer_add(b, t + line->at, line->end - line->at);
	}
	if (line->after.len > 0) {
		if (b->len > 0 && b->p[b->len - 1] != '\n') {
			conf_buffer_text(b, l->eol);
		}
		conf_buffer_add(b, line->after.p, line->after.len);
	}
}

char *
conf_lines_join(const struct conf_lines *l, size_t *len)
{
	struct conf_buffer b = CONF_BUFFER_EMPTY;
	conf_buffer_add(&b, l->text, l->begin);
	for (size_t i = 0; i < l->n; i++) {
		join_line(l, &l->v[i], &b);
	}
	if (!l->has_memory || !b.has_memory) {
		conf_buffer_fini(&b);
		return NULL;
	}
	*len = b.len;
	return b.p;
}
