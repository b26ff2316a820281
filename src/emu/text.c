/* SPDX-License-Identifier: Apache-2.0 */
#include "emu/text.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/mono.h"

#define DECIMAL_INT_DIGITS_MAX 18
#define DECIMAL_FRAC_DIGITS_MAX 9
#define FOUND_BYTES_MAX 24

#define DURATION_NS_MAX (INT64_C(3600) * WEFT_NS_PER_S)
#define RATE_BPS_MAX UINT64_C(1000000000000)
#define SIZE_BYTES_MAX (UINT64_C(1) << 30)

/* whole + frac / frac_unit: exact, so that 1.1ms is 1,100,000 ns and no nanosecond less. */
struct decimal {
	uint64_t whole;
	uint64_t frac;
	uint64_t frac_unit; /* 10 ^ digits behind the point */
};

struct unit {
	const char *name; /* lower case */
	uint64_t factor;
};

static const struct unit time_units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000},
	{"s", 1000000000}, {"m", UINT64_C(60000000000)}, {NULL, 0}};
static const struct unit rate_units[] = {
	{"bit", 1}, {"kbit", 1000}, {"mbit", 1000000}, {"gbit", 1000000000}, {NULL, 0}};
static const struct unit size_units[] = {{"b", 1}, {"kb", 1000}, {"mb", 1000000},
	{"gb", 1000000000}, {"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {NULL, 0}};

void
emu_text_init(struct emu_text *t, const char *text, size_t len, struct emu_error *error)
{
	*t = (struct emu_text){
		.p = text, .end = text + len, .line_start = text, .line = 1, .error = error};
	*error = (struct emu_error){0};
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool
is_token_end(char c)
{
	return is_blank(c) || c == '\n' || c == ';' || c == '#' || c == '=';
}

static void
fail_at(struct emu_text *t, const char *at)
{
	t->failed = true;
	t->error->line = t->line;
	t->error->column = (unsigned)(at - t->line_start) + 1;
}

void
emu_text_fail(struct emu_text *t, const char *at, const char *expected)
{
	if (t->failed) {
		return;
	}
	fail_at(t, at);
	char found[FOUND_BYTES_MAX + 1];
	size_t n = 0;
	while (n < FOUND_BYTES_MAX && at + n < t->end && !is_token_end(at[n])) {
		/* What cannot be printed is not sent to a terminal. */
		found[n] = at[n] >= 0x20 && at[n] < 0x7f ? at[n] : '?';
		n++;
	}
	if (n == 0 && at < t->end && (at[0] == '=' || at[0] == ';')) {
		found[n++] = at[0];
	}
	found[n] = 0;
	if (n == 0) {
		snprintf(t->error->text, sizeof(t->error->text), "expected %s, found nothing",
			expected);
		return;
	}
	snprintf(t->error->text, sizeof(t->error->text), "expected %s, found \"%s\"", expected,
		found);
}

void
emu_text_refuse(struct emu_text *t, const char *at, const char *sentence)
{
	if (t->failed) {
		return;
	}
	fail_at(t, at);
	snprintf(t->error->text, sizeof(t->error->text), "%s", sentence);
}

void
emu_text_skip_blank(struct emu_text *t)
{
	while (!t->failed && t->p < t->end && is_blank(*t->p)) {
		t->p++;
	}
	if (!t->failed && t->p < t->end && *t->p == '#') {
		while (t->p < t->end && *t->p != '\n') {
			t->p++;
		}
	}
}

bool
emu_text_is_end_of_statement(const struct emu_text *t)
{
	return t->failed || t->p == t->end || *t->p == '\n' || *t->p == ';';
}

void
emu_text_skip_to_statement(struct emu_text *t)
{
	for (;;) {
		emu_text_skip_blank(t);
		if (t->failed || t->p == t->end || (*t->p != '\n' && *t->p != ';')) {
			return;
		}
		if (*t->p++ == '\n') {
			t->line++;
			t->line_start = t->p;
		}
	}
}

bool
emu_text_has_char(struct emu_text *t, char c)
{
	if (t->failed || t->p == t->end || *t->p != c) {
		return false;
	}
	t->p++;
	return true;
}

struct emu_text
emu_text_take_token(struct emu_text *t)
{
	struct emu_text token = *t;
	while (!t->failed && t->p < t->end && !is_token_end(*t->p)) {
		t->p++;
	}
	token.end = t->p;
	return token;
}

bool
emu_text_has_word(struct emu_text *t, const char *word)
{
	size_t n = strlen(word);
	if (t->failed || (size_t)(t->end - t->p) < n || memcmp(t->p, word, n) != 0) {
		return false;
	}
	if (t->p + n != t->end && t->p[n] != ',') {
		return false;
	}
	t->p += n;
	return true;
}

void
emu_text_finish(struct emu_text *t, const char *expected)
{
	if (!t->failed && t->p != t->end) {
		emu_text_fail(t, t->p, expected);
	}
}

static bool
is_digit(const struct emu_text *t)
{
	return t->p < t->end && *t->p >= '0' && *t->p <= '9';
}

/* Reads digits, and a point with more of them; false (and p anywhere) when there is no number
 * or one of more digits than fit. */
static bool
read_decimal(struct emu_text *t, struct decimal *d)
{
	*d = (struct decimal){.frac_unit = 1};
	int whole_digits = 0;
	for (; is_digit(t); t->p++) {
		d->whole = d->whole * 10 + (uint64_t)(*t->p - '0');
		if (++whole_digits > DECIMAL_INT_DIGITS_MAX) {
			return false;
		}
	}
	if (whole_digits == 0) {
		return false;
	}
	if (t->p < t->end && *t->p == '.') {
		t->p++;
		if (!is_digit(t)) {
			return false;
		}
		for (int i = 0; is_digit(t); t->p++) {
			if (++i > DECIMAL_FRAC_DIGITS_MAX) {
				return false;
			}
			d->frac = d->frac * 10 + (uint64_t)(*t->p - '0');
			d->frac_unit *= 10;
		}
	}
	return true;
}

/* Whether the bytes up to a comma or the end spell name, in any case. */
static bool
is_unit(const char *p, const char *end, const char *name)
{
	size_t n = strlen(name);
	if ((size_t)(end - p) < n || (p + n != end && p[n] != ',')) {
		return false;
	}
	for (size_t i = 0; i < n; i++) {
		char c = p[i] >= 'A' && p[i] <= 'Z' ? (char)(p[i] + 32) : p[i];
		if (c != name[i]) {
			return false;
		}
	}
	return true;
}

/* Passes one of the units; NULL when none stands here. */
static const struct unit *
read_unit(struct emu_text *t, const struct unit *units)
{
	for (; units->name; units++) {
		if (is_unit(t->p, t->end, units->name)) {
			t->p += strlen(units->name);
			return units;
		}
	}
	return NULL;
}

/* d x factor into *out when it is in min..max; rounds down. */
static bool
scale(const struct decimal *d, uint64_t factor, uint64_t min, uint64_t max, uint64_t *out)
{
	if (d->whole > max / factor) {
		return false;
	}
	/* Tens common to both go first: 10^9 x 6x10^10 for minutes would pass 64 bits, and
	 * without them no product passes 10^9 x 2^30. */
	uint64_t unit = d->frac_unit, rest = factor;
	while (unit > 1 && rest % 10 == 0) {
		unit /= 10;
		rest /= 10;
	}
	uint64_t v = d->whole * factor + d->frac * rest / unit;
	if (v < min || v > max) {
		return false;
	}
	*out = v;
	return true;
}

double
emu_text_share(struct emu_text *t)
{
	static const char expected[] = "a share from 0% to 100%, such as 5%";
	const char *at = t->p;
	struct decimal d;
	if (t->failed) {
		return 0;
	}
	if (!read_decimal(t, &d)) {
		emu_text_fail(t, at, expected);
		return 0;
	}
	bool is_zero = d.whole == 0 && d.frac == 0;
	bool has_sign = emu_text_has_char(t, '%');
	double v = (double)d.whole + (double)d.frac / (double)d.frac_unit;
	if ((!has_sign && !is_zero) || v > 100) {
		emu_text_fail(t, at, expected);
		return 0;
	}
	return v / 100;
}

int64_t
emu_text_duration(struct emu_text *t)
{
	static const char expected[] = "a time of up to 60m with ns, us, ms, s or m, such as 5ms";
	const char *at = t->p;
	struct decimal d;
	uint64_t ns = 0;
	if (t->failed) {
		return 0;
	}
	if (!read_decimal(t, &d)) {
		emu_text_fail(t, at, expected);
		return 0;
	}
	const struct unit *u = read_unit(t, time_units);
	bool is_zero = d.whole == 0 && d.frac == 0;
	if ((!u && !is_zero) || (u && !scale(&d, u->factor, 0, DURATION_NS_MAX, &ns))) {
		emu_text_fail(t, at, expected);
		return 0;
	}
	return (int64_t)ns;
}

uint64_t
emu_text_rate(struct emu_text *t)
{
	static const char expected[] = "a rate from 1bit to 1000gbit a second, such as 20mbit";
	const char *at = t->p;
	struct decimal d;
	uint64_t bps = 0;
	if (t->failed) {
		return 0;
	}
	/* "/s" may follow the unit, which then does not end at the comma or the end. */
	struct emu_text number = *t;
	const char *slash = memchr(t->p, '/', (size_t)(t->end - t->p));
	if (slash) {
		number.end = slash;
	}
	const struct unit *u = read_decimal(&number, &d) ? read_unit(&number, rate_units) : NULL;
	t->p = number.p;
	if (u && slash == t->p && slash + 1 < t->end && slash[1] == 's') {
		t->p += 2;
	}
	if (!u || !scale(&d, u->factor, 1, RATE_BPS_MAX, &bps)) {
		emu_text_fail(t, at, expected);
		return 0;
	}
	return bps;
}

uint64_t
emu_text_size(struct emu_text *t)
{
	static const char expected[] = "a size from 1B to 1GiB, such as 64KiB";
	const char *at = t->p;
	struct decimal d;
	uint64_t bytes = 0;
	if (t->failed) {
		return 0;
	}
	bool is_number = read_decimal(t, &d);
	const struct unit *u = is_number ? read_unit(t, size_units) : NULL;
	bool is_plain = is_number && (t->p == t->end || *t->p == ',');
	uint64_t factor = u ? u->factor : 1;
	if (!is_number || (!u && !is_plain) || !scale(&d, factor, 1, SIZE_BYTES_MAX, &bytes)) {
		emu_text_fail(t, at, expected);
		return 0;
	}
	return bytes;
}

bool
emu_text_is_duration(const struct emu_text *t)
{
	struct emu_text look = *t;
	struct decimal d;
	return !t->failed && read_decimal(&look, &d) && read_unit(&look, time_units) != NULL;
}

uint64_t
emu_text_count(struct emu_text *t, uint64_t min, uint64_t max, const char *expected)
{
	const char *at = t->p;
	struct decimal d;
	if (t->failed) {
		return 0;
	}
	if (!read_decimal(t, &d) || d.frac_unit != 1 || d.whole < min || d.whole > max) {
		emu_text_fail(t, at, expected);
		return 0;
	}
	return d.whole;
}

double
emu_text_decimal(struct emu_text *t, double min, double max, const char *expected)
{
	const char *at = t->p;
	struct decimal d;
	if (t->failed) {
		return 0;
	}
	bool is_number = read_decimal(t, &d);
	double v = (double)d.whole + (double)d.frac / (double)d.frac_unit;
	if (!is_number || v < min || v > max) {
		emu_text_fail(t, at, expected);
		return 0;
	}
	return v;
}
