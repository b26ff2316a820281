/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON form, schema "weft-bench-1" in README.md: written by `weft bench` and by bench/net,
 * read by `weft bench report`. */
#include "bench/report.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "os/file.h"

#define FILE_BYTES_MAX (64u << 20)

static void
set_text(json_t *object, const char *key, const char *text)
{
	if (text) {
		json_object_set_new(object, key, json_string(text));
	}
}

static json_t *
row_to_json(const struct report_row *row)
{
	json_t *o = json_object(), *rounds = json_array();
	set_text(o, "bench", row->bench);
	set_text(o, "plot", row->plot);
	set_text(o, "contender", row->series);
	set_text(o, "x_name", row->x_name);
	if (row->x_text) {
		set_text(o, "x", row->x_text);
	} else if (row->x_name) {
		json_object_set_new(o, "x", json_real(row->x));
	}
	set_text(o, "unit", row->unit);
	set_text(o, "better", row->more_is_better ? "more" : "less");
	json_object_set_new(o, "median", json_real(row->median));
	json_object_set_new(o, "min", json_real(row->min));
	json_object_set_new(o, "max", json_real(row->max));
	for (size_t i = 0; i < row->rounds_n; i++) {
		json_array_append_new(rounds, json_real(row->rounds[i]));
	}
	json_object_set_new(o, "rounds", rounds);
	return o;
}

enum weft_err
report_to_json(const struct report *r, const char *path)
{
	json_t *doc = json_object(), *machine = json_object();
	json_t *results = json_array(), *notes = json_array();
	set_text(doc, "schema", REPORT_SCHEMA);
	set_text(doc, "bench", r->title);
	set_text(doc, "version", r->version);
	set_text(doc, "command", r->command);
	set_text(doc, "time", r->time);
	set_text(machine, "cpu", r->cpu);
	json_object_set_new(machine, "cores", json_integer(r->cores));
	set_text(machine, "kernel", r->kernel);
	set_text(machine, "system", r->system);
	json_object_set_new(doc, "machine", machine);
	for (size_t i = 0; i < r->notes_n; i++) {
		json_t *note = json_object();
		set_text(note, "bench", r->notes[i].bench);
		set_text(note, "text", r->notes[i].text);
		json_array_append_new(notes, note);
	}
	json_object_set_new(doc, "notes", notes);
	for (size_t i = 0; i < r->rows_n; i++) {
		if (!r->rows[i].is_derived) {
			json_array_append_new(results, row_to_json(&r->rows[i]));
		}
	}
	json_object_set_new(doc, "results", results);

	char *text = json_dumps(doc, JSON_INDENT(1) | JSON_REAL_PRECISION(10));
	json_decref(doc);
	weft_assert(text);
	size_t len = strlen(text);
	text[len] = '\n'; /* in place of the NUL */
	enum weft_err e = os_file_write(path, text, len + 1, 0644);
	free(text);
	return e;
}

static const char *
text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static void
take_text(char **to, const json_t *object, const char *key)
{
	const char *text = text_of(object, key);
	if (text) {
		free(*to);
		*to = strdup(text);
		weft_assert(*to);
	}
}

/* bench/net says in one sentence what a row is: "TCP, 1 stream, A to B" is point "1 stream, A
 * to B" of the diagram "TCP". A sentence without comma is a diagram of its own, without x. */
static const char *
split_sentence(const char *what, char *head, size_t cap)
{
	const char *comma = strstr(what, ", ");
	size_t n = comma ? (size_t)(comma - what) : strlen(what);
	snprintf(head, cap, "%.*s", (int)n, what);
	return comma ? comma + 2 : NULL;
}

/* Rows that bench/net derives: how many times the value of a base. */
static void
add_ratios(struct report *r, const json_t *o, const char *bench, const struct bench_label *of)
{
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)o, key, value)
	{
		if (strncmp(key, "times_", 6) != 0 || !json_is_number(value)) {
			continue;
		}
		char plot[160], base[64];
		snprintf(base, sizeof(base), "%s", key + 6);
		for (char *p = base; *p; p++) {
			*p = *p == '_' ? '-' : *p;
		}
		snprintf(plot, sizeof(plot), "%s: ratio to %s", of->plot, base);
		struct bench_label l = *of;
		l.plot = plot;
		l.unit = "times";
		double v = json_number_value(value);
		report_add(r, bench, &l, &v, 1)->is_derived = true;
	}
}

static size_t
values_of(const json_t *o, double **out)
{
	json_t *rounds = json_object_get(o, "rounds"), *median = json_object_get(o, "median");
	size_t n = json_array_size(rounds);
	double *values = calloc(n + 1, sizeof(*values));
	weft_assert(values);
	*out = values;
	for (size_t i = 0; i < n; i++) {
		if (!json_is_number(json_array_get(rounds, i))) {
			return 0;
		}
		values[i] = json_number_value(json_array_get(rounds, i));
	}
	if (n == 0 && json_is_number(median)) {
		values[n++] = json_number_value(median);
	}
	return n;
}

/* False when something is missing. head: room for the plot's title. */
static bool
label_of(const json_t *o, struct bench_label *l, char *head, size_t cap)
{
	const char *what = text_of(o, "what"), *better = text_of(o, "better");
	const json_t *x = json_object_get(o, "x");
	*l = (struct bench_label){
		.plot = text_of(o, "plot"),
		.series = text_of(o, "contender"),
		.x_name = text_of(o, "x_name"),
		.x_text = json_string_value(x),
		.x = json_number_value(x),
		.unit = text_of(o, "unit"),
		.more_is_better = better && strcmp(better, "more") == 0,
	};
	if (!l->plot && what) {
		l->x_text = split_sentence(what, head, cap);
		l->plot = head;
	}
	return l->plot && l->series && l->unit;
}

static const char *
bench_of(const struct report *r, const json_t *o)
{
	const char *bench = text_of(o, "bench");
	return bench ? bench : r->title;
}

static bool
rows_from_json(struct report *r, const json_t *doc)
{
	const json_t *results = json_object_get(doc, "results"), *o;
	size_t i;
	struct bench_label l;
	char head[160];
	json_array_foreach(results, i, o)
	{
		double *values;
		size_t n = values_of(o, &values);
		bool is_row = n > 0 && label_of(o, &l, head, sizeof(head));
		if (is_row) {
			report_add(r, bench_of(r, o), &l, values, n);
		}
		free(values);
		if (!is_row) {
			return false;
		}
	}
	/* Ratios last, so that they are drawn below what they are taken from. */
	json_array_foreach(results, i, o)
	{
		if (label_of(o, &l, head, sizeof(head))) {
			add_ratios(r, o, bench_of(r, o), &l);
		}
	}
	return json_is_array(results);
}

static void
notes_from_json(struct report *r, const json_t *doc)
{
	const json_t *o;
	size_t i;
	json_array_foreach(json_object_get(doc, "notes"), i, o)
	{
		if (text_of(o, "text")) {
			report_add_note(r, bench_of(r, o), text_of(o, "text"));
		}
	}
	json_array_foreach(json_object_get(doc, "failures"), i, o)
	{
		if (json_string_value(o)) {
			char text[256];
			snprintf(text, sizeof(text), "failed: %s", json_string_value(o));
			report_add_note(r, r->title, text);
		}
	}
}

enum weft_err
report_from_json(struct report *r, const char *path, char *why, size_t why_cap)
{
	char *text;
	size_t len;
	enum weft_err e = os_file_read(path, FILE_BYTES_MAX, &text, &len);
	if (e) {
		snprintf(why, why_cap, "%s", weft_err_text(e));
		return e;
	}
	json_error_t error;
	json_t *doc = json_loadb(text, len, 0, &error);
	free(text);
	if (!doc) {
		snprintf(why, why_cap, "line %d: %s", error.line, error.text);
		return WEFT_EPARSE;
	}
	const char *schema = text_of(doc, "schema");
	e = WEFT_EPARSE;
	if (!schema || strcmp(schema, REPORT_SCHEMA) != 0) {
		snprintf(why, why_cap, "its schema is not " REPORT_SCHEMA);
	} else {
		const json_t *machine = json_object_get(doc, "machine");
		take_text(&r->title, doc, "bench");
		take_text(&r->command, doc, "command");
		take_text(&r->time, doc, "time");
		take_text(&r->version, doc, "version");
		take_text(&r->cpu, machine, "cpu");
		take_text(&r->kernel, machine, "kernel");
		take_text(&r->system, machine, "system");
		r->cores = (unsigned)json_integer_value(json_object_get(machine, "cores"));
		if (rows_from_json(r, doc)) {
			notes_from_json(r, doc);
			e = WEFT_OK;
		} else {
			snprintf(why, why_cap,
				"result %zu has no contender, unit or values, or neither plot nor "
				"what",
				r->rows_n);
		}
	}
	json_decref(doc);
	return e;
}
