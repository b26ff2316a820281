/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration files in canonical form. */
#include <stdlib.h>
#include <string.h>

#include "wire/conf_edit.h"
#include "wire/conf_lines.h"

struct format {
	struct conf_lines lines;
	struct conf_buffer out;
	struct conf_report *none; /* nobody reads it: the text has no faults */
	bool is_gap;              /* an empty line is due before the next one with text */
};

/* The comment of a line, without blanks at its end. */
static void
put_comment(struct format *f, const struct conf_line *l)
{
	size_t end = l->content_end;
	while (end > l->comment && conf_char_is_blank(f->lines.text[end - 1])) {
		end--;
	}
	conf_buffer_add(&f->out, f->lines.text + l->comment, end - l->comment);
}

static void
end_line(struct format *f, const struct conf_line *l)
{
	if (l->comment < l->content_end) {
		conf_buffer_text(&f->out, " ");
		put_comment(f, l);
	}
	conf_buffer_text(&f->out, "\n");
}

static void
put_item_text(struct format *f, const struct conf_value *item)
{
	struct ip_prefix p;
	char text[IP_PREFIX_TEXT_MAX];
	bool is_prefix = item->key->id == CONF_KEY_ALLOWED_IPS
				 ? conf_value_allowed(f->none, item, &p)
				 : item->key->id == CONF_KEY_ADDRESS &&
					   conf_value_address(f->none, item, &p);
	if (is_prefix) {
		conf_buffer_text(&f->out, ip_prefix_format(&p, text));
	} else {
		conf_buffer_add(&f->out, item->p, item->len);
	}
}

static void
put_value(struct format *f, const struct conf_line *l)
{
	struct conf_value v = {
		.p = f->lines.text + l->value, .len = l->value_end - l->value, .key = l->key};
	struct conf_value item;
	enum conf_key_id id = l->key->id;
	bool is_allowed = id == CONF_KEY_ALLOWED_IPS;
	if (!is_allowed && id != CONF_KEY_ADDRESS && id != CONF_KEY_DNS) {
		conf_buffer_add(&f->out, v.p, v.len);
		return;
	}
	for (bool is_first = true; conf_value_next(&v, !is_allowed, &item);) {
		item.key = l->key;
		if (item.len > 0) {
			conf_buffer_text(&f->out, is_first ? "" : ", ");
			put_item_text(f, &item);
			is_first = false;
		}
	}
}

static void
put_item(struct format *f, const struct conf_line *l)
{
	conf_buffer_text(&f->out, l->key->name);
	conf_buffer_text(&f->out, " =");
	if (l->value < l->value_end) {
		conf_buffer_text(&f->out, " ");
		size_t before = f->out.len;
		put_value(f, l);
		/* Nothing but commas. */
		f->out.len -= f->out.len == before && before > 0 ? 1 : 0;
	}
	end_line(f, l);
}

/* Comments right above a section belong to it, and the gap stands before them. */
static bool
leads_to_section(const struct format *f, size_t i)
{
	const struct conf_line *v = f->lines.v;
	while (i < f->lines.n && v[i].kind == CONF_LINE_BLANK && v[i].comment < v[i].content_end) {
		i++;
	}
	return i < f->lines.n && v[i].kind == CONF_LINE_SECTION;
}

static void
put_line(struct format *f, size_t i, bool *was_comment)
{
	const struct conf_line *l = &f->lines.v[i];
	bool is_comment = l->kind == CONF_LINE_BLANK && l->comment < l->content_end;
	if (l->kind == CONF_LINE_BLANK && !is_comment) {
		f->is_gap = true;
		*was_comment = false;
		return;
	}
	f->is_gap |= !*was_comment && leads_to_section(f, i);
	if (f->is_gap && f->out.len > 0) {
		conf_buffer_text(&f->out, "\n");
	}
	f->is_gap = false;
	*was_comment = is_comment;
	if (is_comment) {
		put_comment(f, l);
		conf_buffer_text(&f->out, "\n");
	} else if (l->kind == CONF_LINE_SECTION) {
		conf_buffer_text(
			&f->out, l->section == CONF_SECTION_PEER ? "[Peer]" : "[Interface]");
		end_line(f, l);
	} else {
		put_item(f, l);
	}
}

enum weft_err
conf_format(const char *text, size_t len, char **out, size_t *out_len)
{
	struct format f = {.out = CONF_BUFFER_EMPTY};
	struct conf *c;
	f.none = calloc(1, sizeof(*f.none));
	if (!f.none) {
		return WEFT_ENOMEM;
	}
	enum weft_err e = conf_parse(text, len, NULL, &c, f.none);
	if (!e) {
		conf_free(c);
		e = conf_lines_cut(text, len, &f.lines);
	}
	if (!e) {
		bool was_comment = false;
		for (size_t i = 0; i < f.lines.n; i++) {
			put_line(&f, i, &was_comment);
		}
		conf_lines_fini(&f.lines);
		e = f.out.has_memory ? WEFT_OK : WEFT_ENOMEM;
	}
	free(f.none);
	if (e) {
		conf_buffer_fini(&f.out);
		return e;
	}
	*out = f.out.p;
	*out_len = f.out.len;
	return WEFT_OK;
}
