/* SPDX-License-Identifier: Apache-2.0 */
#include "emu/script.h"

#include <stdlib.h>
#include <string.h>

#include "emu/text.h"

/* Inserts behind the steps of equal time. Scripts are mostly in order, so this seldom moves. */
static void
insert(struct emu_script *s, const struct emu_step *step)
{
	size_t i = s->n++;
	for (; i > 0 && s->steps[i - 1].at_ns > step->at_ns; i--) {
		s->steps[i] = s->steps[i - 1];
	}
	s->steps[i] = *step;
}

static bool
has_token(struct emu_text *t, const char *word)
{
	struct emu_text look = *t;
	struct emu_text token = emu_text_take_token(&look);
	size_t n = strlen(word);
	if (t->failed || (size_t)(token.end - token.p) != n || memcmp(token.p, word, n) != 0) {
		return false;
	}
	*t = look;
	return true;
}

static void
read_statement(struct emu_text *t, struct emu_script *s)
{
	if (!has_token(t, "at")) {
		emu_text_fail(t, t->p, "\"at\" and a time");
		return;
	}
	emu_text_skip_blank(t);
	struct emu_text time = emu_text_take_token(t);
	int64_t at_ns = emu_text_duration(&time);
	emu_text_finish(&time, "the end of the time");
	t->failed = time.failed;
	emu_text_skip_blank(t);
	if (!t->failed && emu_text_is_end_of_statement(t)) {
		emu_text_fail(t, t->p, "a setting and its value, or rebind");
	}
	while (!emu_text_is_end_of_statement(t)) {
		struct emu_step step = {.at_ns = at_ns};
		if (s->n == EMU_SCRIPT_STEPS_MAX) {
			emu_text_refuse(t, t->p, "more than 4096 changes");
			return;
		}
		if (has_token(t, "rebind")) {
			step.is_rebind = true;
		} else {
			emu_assign_read(t, EMU_BOTH, &step.assign);
		}
		if (!t->failed) {
			insert(s, &step);
		}
		emu_text_skip_blank(t);
	}
}

enum weft_err
emu_script_parse(const char *text, size_t len, struct emu_script *out, struct emu_error *error)
{
	struct emu_text t;
	struct emu_script s = {.steps = calloc(EMU_SCRIPT_STEPS_MAX, sizeof(*s.steps))};
	if (!s.steps) {
		return WEFT_ENOMEM;
	}
	emu_text_init(&t, text, len, error);
	emu_text_skip_to_statement(&t);
	while (!t.failed && t.p != t.end) {
		read_statement(&t, &s);
		emu_text_skip_to_statement(&t);
	}
	if (t.failed) {
		emu_script_fini(&s);
		return WEFT_EPARSE;
	}
	*out = s;
	return WEFT_OK;
}

void
emu_script_fini(struct emu_script *s)
{
	free(s->steps);
	*s = (struct emu_script){0};
}
