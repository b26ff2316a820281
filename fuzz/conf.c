/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration files: no crash, places within the file, and no message with a key in it. */
#include <ctype.h>
#include <string.h>

#include "base/assert.h"
#include "fuzz.h"
#include "wire/conf.h"
#include "wire/conf_edit.h"

static void
check_report(const struct conf_report *r, size_t len)
{
	weft_assert(r->n <= CONF_NOTES_MAX && r->errors + r->warnings >= r->n);
	for (size_t i = 0; i < r->n; i++) {
		const struct conf_note *n = &r->notes[i];
		weft_assert(n->pos.line >= 1 && n->pos.line <= len + 1);
		weft_assert(n->pos.column >= 1 && n->pos.column <= len + 1);
		weft_assert(n->text[0] && memchr(n->text, 0, sizeof(n->text)));
		/* The longest word of a message is PersistentKeepalive. */
		size_t run = 0;
		for (const char *p = n->text; *p; p++) {
			run = isalnum((unsigned char)*p) || *p == '+' || *p == '/' ? run + 1 : 0;
			weft_assert(run < 20);
		}
	}
}

/* What was read can be written: canonical text is read again and stays as it is, and a device
 * without peers leaves none. */
static void
check_texts(const char *text, size_t len)
{
	static struct conf_report report;
	static const struct conf_state empty = {0};
	char *once, *twice;
	size_t once_len, twice_len;
	struct conf *c;
	weft_assert(conf_format(text, len, &once, &once_len) == WEFT_OK);
	weft_assert(conf_format(once, once_len, &twice, &twice_len) == WEFT_OK);
	weft_assert(once_len == twice_len && memcmp(once, twice, once_len) == 0);
	conf_text_free(once, once_len);
	conf_text_free(twice, twice_len);
	weft_assert(conf_edit(text, len, &empty, &once, &once_len) == WEFT_OK);
	weft_assert(conf_parse(once, once_len, NULL, &c, &report) == WEFT_OK && c->peers_n == 0);
	conf_free(c);
	conf_text_free(once, once_len);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct conf_report report;
	for (int is_lenient = 0; is_lenient < 2; is_lenient++) {
		const struct conf_options options = {.is_lenient = is_lenient};
		struct conf *c = NULL;
		enum weft_err e = conf_parse((const char *)data, len, &options, &c, &report);
		weft_assert((e == WEFT_OK) == (c != NULL));
		weft_assert(e == WEFT_OK || e == WEFT_EPARSE || e == WEFT_ENOMEM);
		weft_assert(e != WEFT_EPARSE || report.errors > 0);
		if (c && !is_lenient) {
			check_texts((const char *)data, len);
		}
		if (c) {
			weft_assert(conf_lint(c, c->interface.private_key, &report) != WEFT_EPARSE);
		}
		check_report(&report, len);
		conf_free(c);
	}
	return 0;
}
