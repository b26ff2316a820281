/* SPDX-License-Identifier: Apache-2.0 */
/* Lines and sections of a configuration file. */
#include "wire/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"
#include "wire/conf_edit.h"
#include "wire/conf_internal.h"

static const struct conf_options options_default = {0};

static void
free_texts(struct conf_texts *t)
{
	for (size_t i = 0; i < t->n; i++) {
		/* A hook may hold a password. */
		secret_wipe(t->v[i].text, strlen(t->v[i].text));
		free(t->v[i].text);
	}
	free(t->v);
}

void
conf_free(struct conf *c)
{
	if (!c) {
		return;
	}
	for (size_t i = 0; i < c->peers_n; i++) {
		free(c->peers[i].allowed.v);
		free(c->peers[i].endpoint.host);
		free(c->peers[i].name);
	}
	if (c->peers) {
		secret_wipe(c->peers, c->peers_n * sizeof(*c->peers));
		free(c->peers);
	}
	for (size_t i = 0; i < CONF_HOOK_COUNT; i++) {
		free_texts(&c->interface.hooks[i]);
	}
	free_texts(&c->interface.dns);
	free_texts(&c->interface.dns_search);
	free(c->interface.addresses.v);
	secret_wipe(c, sizeof(*c));
	free(c);
}

/* Length of the UTF-8 sequence at p (RFC 3629), 0 when it is none; the code point goes to
 * *out. */
static size_t
utf8_take(const char *p, size_t len, uint32_t *out)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	uint8_t c = (uint8_t)p[0];
	size_t n = c < 0x80             ? 1
		   : (c & 0xe0) == 0xc0 ? 2
		   : (c & 0xf0) == 0xe0 ? 3
		   : (c & 0xf8) == 0xf0 ? 4
					: 0;
	if (n == 0 || n > len) {
		return 0;
	}
	uint32_t v = n == 1 ? c : c & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if (((uint8_t)p[i] & 0xc0) != 0x80) {
			return 0;
		}
		v = (v << 6) | ((uint8_t)p[i] & 0x3fu);
	}
	*out = v;
	bool is_surrogate = v >= 0xd800 && v <= 0xdfff;
	return v < least[n] || v > 0x10ffff || is_surrogate ? 0 : n;
}

static const char *
code_point_name(uint32_t c)
{
	static const struct {
		uint32_t c;
		const char *name;
	} names[] = {{0xa0, "a no-break space"}, {0x2007, "a blank of another kind"},
		{0x2009, "a blank of another kind"}, {0x200b, "an invisible blank"},
		{0x200c, "invisible"}, {0x200d, "invisible"}, {0x2013, "a dash, not '-'"},
		{0x2014, "a dash, not '-'"}, {0x2018, "a typographic quote"},
		{0x2019, "a typographic quote"}, {0x201c, "a typographic quote"},
		{0x201d, "a typographic quote"}, {0x202f, "a no-break space"},
		{0x2060, "invisible"}, {0x3000, "a wide blank"}, {0xfeff, "a byte order mark"},
		{0xff1d, "a wide sign, not '='"}};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
		if (names[i].c == c) {
			return names[i].name;
		}
	}
	return "only ASCII is allowed here";
}

/* Refuses what is not UTF-8 and, unless any is allowed, what is not ASCII. */
static bool
check_characters(struct conf_reader *p, const struct conf_value *v, bool is_any_allowed)
{
	for (size_t i = 0; i < v->len;) {
		uint32_t c;
		size_t n = utf8_take(v->p + i, v->len - i, &c);
		struct conf_value at = *v;
		at.pos.column += (uint32_t)i;
		if (n == 0) {
			return conf_value_refuse(p->report, &at, "byte 0x%02x is not UTF-8",
				(unsigned)(uint8_t)v->p[i]);
		}
		if (c >= 0x80 && !is_any_allowed) {
			return conf_value_refuse(
				p->report, &at, "character U+%04X: %s", c, code_point_name(c));
		}
		i += n;
	}
	return true;
}

static void
end_section(struct conf_reader *p)
{
	if (p->peer && !p->has_seen_public_key) {
		conf_note_add(p->report, CONF_SEVERITY_ERROR, p->peer->pos, 0, "PublicKey",
			"this [Peer] has none");
	}
	p->peer = NULL;
}

static void
begin_interface(struct conf_reader *p, struct conf_pos pos)
{
	struct conf_pos *first = &p->conf->interface.pos;
	p->section = CONF_SECTION_INTERFACE;
	if (first->line == 0) {
		*first = pos;
		return;
	}
	conf_note_add(p->report, CONF_SEVERITY_WARNING, pos, first->line, "[Interface]",
		"there is one already, in line %u; the two are taken together", first->line);
}

static void
begin_peer(struct conf_reader *p, struct conf_pos pos)
{
	struct conf *c = p->conf;
	p->section = CONF_SECTION_PEER;
	p->has_seen_public_key = false;
	if (c->peers_n == CONF_PEERS_MAX) {
		conf_note_add(p->report, CONF_SEVERITY_ERROR, pos, 0, "[Peer]",
			"more than %u peers", CONF_PEERS_MAX);
		p->section = CONF_SECTION_UNKNOWN;
		return;
	}
	struct conf_peer *v = conf_grow(c->peers, c->peers_n, &c->peers_cap, sizeof(*v));
	if (!v) {
		p->has_memory = false;
		return;
	}
	c->peers = v;
	p->peer = &c->peers[c->peers_n++];
	*p->peer = (struct conf_peer){.pos = pos, .policy = CONF_POLICY_DEFAULT};
}

/* "[Peer" and "[Peers]" are meant to be [Peer]: what follows is read as such, so that one fault
 * gives one message. */
static enum conf_section
guess_section(const char *name, size_t len)
{
	const struct conf_value head = {.p = name, .len = len < 4 ? len : 4};
	return conf_value_is(&head, "inte")   ? CONF_SECTION_INTERFACE
	       : conf_value_is(&head, "peer") ? CONF_SECTION_PEER
					      : CONF_SECTION_UNKNOWN;
}

static void
refuse_section(struct conf_reader *p, const struct conf_value *line, const char *name, size_t len)
{
	char shown[CONF_NOTE_KEY_MAX];
	const char *origin = conf_section_origin(name, len);
	enum conf_section near = guess_section(name, len);
	enum conf_severity severity = CONF_SEVERITY_ERROR;

	if (p->options->is_lenient && near == CONF_SECTION_UNKNOWN) {
		severity = CONF_SEVERITY_WARNING;
	}
	conf_value_name(line, NULL, shown);
	conf_note_add(p->report, severity, line->pos, 0, shown, "%sis an unknown section; %s%s",
		shown[0] ? "" : "this ",
		origin                         ? "it belongs to a file of "
		: near == CONF_SECTION_UNKNOWN ? "there are [Interface] and [Peer]"
		: near == CONF_SECTION_PEER    ? "did you mean [Peer]?"
					       : "did you mean [Interface]?",
		origin ? origin : "");
}

static void
read_section(struct conf_reader *p, const struct conf_value *line)
{
	/* Blanks inside are passed over, as wg(8) does; 9 letters are in the longest name. */
	char name[9];
	size_t n = 0, end = 1;
	bool is_long = false;

	end_section(p);
	while (end < line->len && line->p[end] != ']') {
		char c = line->p[end++];
		if (conf_char_is_blank(c)) {
			continue;
		}
		is_long |= n == sizeof(name);
		name[n < sizeof(name) ? n++ : 0] = c;
	}
	const struct conf_value v = {.p = name, .len = is_long ? 0 : n};
	bool is_interface = conf_value_is(&v, "interface"), is_peer = conf_value_is(&v, "peer");
	enum conf_section section = is_interface ? CONF_SECTION_INTERFACE
				    : is_peer    ? CONF_SECTION_PEER
						 : guess_section(line->p + 1, end - 1);
	if (end == line->len) {
		conf_value_refuse(p->report, line, "the ']' of a section is missing");
	} else if (end + 1 < line->len) {
		conf_value_refuse(p->report, line, "text follows the ']' of a section");
	} else if (!is_interface && !is_peer) {
		refuse_section(p, line, line->p + 1, end - 1);
	}
	p->section = section;
	if (section == CONF_SECTION_INTERFACE) {
		begin_interface(p, line->pos);
	} else if (section == CONF_SECTION_PEER) {
		begin_peer(p, line->pos);
	}
}

static const char *
section_name(enum conf_section s)
{
	return s == CONF_SECTION_PEER ? "[Peer]" : "[Interface]";
}

/* name and value never reach the message unless they cannot be a piece of a key: a wrapped key
 * looks like a line with an unknown name and an empty value. */
static void
refuse_key(struct conf_reader *p, const struct conf_value *name, bool has_value)
{
	char shown[CONF_NOTE_KEY_MAX] = "";
	const char *origin = conf_key_origin(name->p, name->len);
	const struct conf_key *near = origin ? NULL : conf_key_near(name->p, name->len, p->section);

	if (has_value) {
		conf_value_name(name, near, shown);
	}
	bool is_elsewhere = near && !conf_key_belongs(near, p->section);
	conf_note_add(p->report,
		p->options->is_lenient ? CONF_SEVERITY_WARNING : CONF_SEVERITY_ERROR, name->pos, 0,
		shown, "%sis an unknown key%s%s%s%s%s", shown[0] ? "" : "this ",
		near     ? "; did you mean "
		: origin ? " of "
			 : "",
		near     ? near->name
		: origin ? origin
			 : "",
		is_elsewhere ? " of " : "", is_elsewhere ? section_name(near->section) : "",
		near     ? "?"
		: origin ? ", another protocol"
			 : "");
}

/* A '#' ends a hook as it ends every line for the stock tools, also inside quotes, where a
 * shell would not see a comment. */
static void
warn_of_cut_hook(struct conf_reader *p, const struct conf_value *v, const struct conf_value *line)
{
	char quote = 0;
	for (size_t i = 0; i < v->len; i++) {
		char c = v->p[i];
		if (quote ? c == quote : c == '"' || c == '\'') {
			quote = quote ? 0 : c;
		}
	}
	const char *hash = line->p + line->len;
	bool is_glued = v->len > 0 && !conf_char_is_blank(hash[-1]);
	if (quote || is_glued) {
		struct conf_pos pos = {line->pos.line, line->pos.column + (uint32_t)line->len};
		conf_note_add(p->report, CONF_SEVERITY_WARNING, pos, 0, v->key->name,
			"the '#' %s begins a comment and cuts the command off here",
			quote ? "inside quotes" : "behind a word");
	}
}

static void
read_assignment(struct conf_reader *p, struct conf_value name, struct conf_value value,
	bool has_comment, const struct conf_value *line)
{
	const struct conf_key *key = conf_key_find(name.p, name.len);

	if (!check_characters(p, &name, false)) {
		return;
	}
	if (!key) {
		refuse_key(p, &name, value.len > 0);
		return;
	}
	value.key = key;
	if (!conf_key_belongs(key, p->section)) {
		conf_note_add(p->report, CONF_SEVERITY_ERROR, name.pos, 0, key->name,
			"belongs in %s, this is %s", section_name(key->section),
			section_name(p->section));
		return;
	}
	bool is_hook = (key->traits & CONF_TRAIT_HOOK) != 0;
	if (name.len != strlen(key->name)) {
		conf_note_add(p->report, CONF_SEVERITY_WARNING, name.pos, 0, key->name,
			"blanks inside the name are passed over");
	}
	if (is_hook && has_comment) {
		warn_of_cut_hook(p, &value, line);
	}
	if (!check_characters(p, &value, is_hook)) {
		return;
	}
	if (value.len > 0) {
		conf_item_read(p, &value);
	} else if (!(key->traits & CONF_TRAIT_MAY_BE_EMPTY)) {
		conf_value_refuse(p->report, &value, "no value; remove the line or give one");
	}
	if (key->id == CONF_KEY_PUBLIC_KEY) {
		p->has_seen_public_key = true;
	}
}

/* As other programs write comments. */
static bool
is_foreign_comment(const struct conf_value *line)
{
	return line->p[0] == ';' || line->p[0] == '/';
}

static void
refuse_outside(struct conf_reader *p, const struct conf_value *line, const struct conf_key *key)
{
	if (p->has_said_outside) {
		return;
	}
	p->has_said_outside = true;
	if (key) {
		conf_note_add(p->report, CONF_SEVERITY_ERROR, line->pos, 0, key->name,
			"stands before any section; put %s above it", section_name(key->section));
		return;
	}
	conf_value_refuse(p->report, line, "text before any section; %s",
		is_foreign_comment(line) ? "a comment begins with '#'"
					 : "a WireGuard file begins with [Interface]");
}

static void
refuse_no_equals(struct conf_reader *p, const struct conf_value *line)
{
	size_t n = 0;
	while (n < line->len && !conf_char_is_blank(line->p[n]) && line->p[n] != ':') {
		n++;
	}
	const struct conf_key *key = conf_key_find(line->p, n);
	if (!check_characters(p, line, false)) {
		return;
	}
	if (key) {
		conf_note_add(p->report, CONF_SEVERITY_ERROR, line->pos, 0, key->name,
			"no '=' in this line; write %s = VALUE", key->name);
	} else {
		conf_value_refuse(p->report, line, "no '=' in this line%s",
			is_foreign_comment(line) ? "; a comment begins with '#'"
						 : "; one is KEY = VALUE");
	}
}

/* line: without its end. */
static void
read_line(struct conf_reader *p, struct conf_value line)
{
	const char *nul = memchr(line.p, 0, line.len);
	if (nul) {
		line.pos.column += (uint32_t)(nul - line.p);
		conf_value_refuse(p->report, &line, "a NUL byte; the file is damaged or not text");
		return;
	}
	const char *hash = memchr(line.p, '#', line.len);
	if (hash) {
		line.len = (size_t)(hash - line.p);
	}
	struct conf_value content = conf_value_trim(line);
	if (content.len == 0) {
		return;
	}
	if (content.p[0] == '[') {
		if (check_characters(p, &content, false)) {
			read_section(p, &content);
		}
		return;
	}
	if (p->section == CONF_SECTION_UNKNOWN) {
		return;
	}
	const char *equals = memchr(content.p, '=', content.len);
	struct conf_value name = content;
	if (equals) {
		name.len = (size_t)(equals - content.p);
		name = conf_value_trim(name);
	}
	if (p->section == CONF_SECTION_NONE) {
		refuse_outside(p, &content, equals ? conf_key_find(name.p, name.len) : NULL);
		return;
	}
	if (!equals) {
		refuse_no_equals(p, &content);
		return;
	}
	/* The value reaches to the end of the line for now: an empty one then stands behind the
	 * blanks that end it. */
	size_t offset = (size_t)(equals + 1 - line.p);
	struct conf_value value = {.p = equals + 1,
		.len = line.len - offset,
		.pos = {line.pos.line, line.pos.column + (uint32_t)offset}};
	read_assignment(p, name, conf_value_trim(value), hash != NULL, &line);
}

static bool
is_utf16(const char *text, size_t len)
{
	return len >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0);
}

static void
read_lines(struct conf_reader *p, const char *text, size_t len)
{
	static const char bom[] = "\xef\xbb\xbf";
	size_t at = len >= 3 && memcmp(text, bom, 3) == 0 ? 3 : 0;

	for (uint32_t number = 1; at < len && p->has_memory; number++) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t n = end ? (size_t)(end - text) - at : len - at;
		struct conf_value line = {.p = text + at, .len = n, .pos = {number, 1}};
		if (n > 0 && line.p[n - 1] == '\r') {
			line.len--;
		}
		read_line(p, line);
		at += n + 1;
	}
	end_section(p);
}

enum weft_err
conf_parse(const char *text, size_t len, const struct conf_options *options, struct conf **out,
	struct conf_report *report)
{
	const struct conf_pos start = {1, 1};
	struct conf_reader p = {.options = options ? options : &options_default,
		.report = report,
		.has_memory = true};

	report->n = report->errors = report->warnings = 0;
	if (len > CONF_BYTES_MAX || is_utf16(text, len)) {
		conf_note_add(report, CONF_SEVERITY_ERROR, start, 0, NULL,
			len > CONF_BYTES_MAX ? "the file is over 64 MiB"
					     : "the file is UTF-16; save it as UTF-8");
		return WEFT_EPARSE;
	}
	p.conf = calloc(1, sizeof(*p.conf));
	if (!p.conf) {
		return WEFT_ENOMEM;
	}
	p.conf->text_sum = conf_text_sum(text, len);
	p.conf->interface.has_offload = true;
	p.conf->interface.policy = CONF_POLICY_DEFAULT;
	read_lines(&p, text, len);
	conf_policy_spread(p.conf);
	conf_names_check(&p);
	if (p.conf->interface.pos.line == 0 && report->errors == 0) {
		conf_note_add(report, CONF_SEVERITY_ERROR, start, 0, "[Interface]",
			"the file has no such section%s",
			p.conf->peers_n == 0 ? "; it is empty or a comment" : "");
	}
	conf_report_sort(report);
	if (!p.has_memory || report->errors > 0) {
		conf_free(p.conf);
		return p.has_memory ? WEFT_EPARSE : WEFT_ENOMEM;
	}
	*out = p.conf;
	return WEFT_OK;
}
