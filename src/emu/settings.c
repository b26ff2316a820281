/* SPDX-License-Identifier: Apache-2.0 */
#include "emu/settings.h"

#include <string.h>

#include "base/assert.h"
#include "base/mono.h"
#include "emu/text.h"

#define DISTANCE_MAX 10000u
#define BURST_MAX 1e6

const struct emu_settings emu_settings_default = {.queue = {.ns = 50 * WEFT_NS_PER_MS}};

static const struct {
	const char *name;
	const char *form;
} keys[EMU_KEY_COUNT] = {
	[EMU_KEY_LOSS] = {"loss", "SHARE"},
	[EMU_KEY_LOSS_GILBERT] = {"loss-gilbert", "SHARE,BURST"},
	[EMU_KEY_LOSS_ELLIOTT] = {"loss-elliott", "TO-BAD,TO-GOOD,IN-BAD,IN-GOOD"},
	[EMU_KEY_DELAY] = {"delay", "TIME"},
	[EMU_KEY_JITTER] = {"jitter", "TIME[,uniform|normal][,unordered]"},
	[EMU_KEY_REORDER] = {"reorder", "SHARE,TIME|COUNT[-COUNT]"},
	[EMU_KEY_DUPLICATE] = {"duplicate", "SHARE"},
	[EMU_KEY_CORRUPT] = {"corrupt", "SHARE[,BITS]"},
	[EMU_KEY_RATE] = {"rate", "RATE"},
	[EMU_KEY_QUEUE] = {"queue", "SIZE|TIME"},
	[EMU_KEY_MTU] = {"mtu", "BYTES"},
};

const char *
emu_key_name(enum emu_key key)
{
	return (unsigned)key < EMU_KEY_COUNT ? keys[key].name : NULL;
}

const char *
emu_key_form(enum emu_key key)
{
	return (unsigned)key < EMU_KEY_COUNT ? keys[key].form : NULL;
}

static void
take_comma(struct emu_text *t, const char *expected)
{
	if (!t->failed && !emu_text_has_char(t, ',')) {
		emu_text_fail(t, t->p, expected);
	}
}

/* The share r of packets in bad with a mean stay of b packets: leaving has probability 1/b, and
 * the balance r to_good = (1 - r) to_bad gives the way in. */
static struct emu_loss
read_gilbert(struct emu_text *t)
{
	const char *at = t->p;
	double share = emu_text_share(t);
	take_comma(t, "a comma and the mean burst in packets, such as 5%,4");
	double burst = emu_text_decimal(
		t, 1, BURST_MAX, "a mean burst of 1 to 1000000 packets, such as 4");
	if (t->failed || share == 0) {
		return (struct emu_loss){0};
	}
	if (share >= 1 || share / (1 - share) > burst) {
		emu_text_refuse(t, at,
			"so much loss needs longer bursts: the burst must be at least "
			"share / (1 - share)");
		return (struct emu_loss){0};
	}
	return (struct emu_loss){
		.to_good = 1 / burst, .to_bad = share / (1 - share) / burst, .in_bad = 1};
}

static struct emu_loss
read_elliott(struct emu_text *t)
{
	static const char comma[] = "a comma and the next of TO-BAD,TO-GOOD,IN-BAD,IN-GOOD";
	struct emu_loss l = {.to_bad = emu_text_share(t)};
	take_comma(t, comma);
	l.to_good = emu_text_share(t);
	take_comma(t, comma);
	l.in_bad = emu_text_share(t);
	take_comma(t, comma);
	l.in_good = emu_text_share(t);
	return l;
}

static struct emu_jitter
read_jitter(struct emu_text *t)
{
	struct emu_jitter j = {.ns = emu_text_duration(t)};
	while (emu_text_has_char(t, ',')) {
		if (emu_text_has_word(t, "normal")) {
			j.shape = EMU_JITTER_NORMAL;
		} else if (emu_text_has_word(t, "uniform")) {
			j.shape = EMU_JITTER_UNIFORM;
		} else if (emu_text_has_word(t, "unordered")) {
			j.may_reorder = true;
		} else {
			emu_text_fail(t, t->p, "uniform, normal or unordered");
		}
	}
	return j;
}

static struct emu_reorder
read_reorder(struct emu_text *t)
{
	static const char expected[] =
		"a time, such as 3ms, or a distance of 1 to 10000 packets, such as 3 or 3-30";
	struct emu_reorder r = {.share = emu_text_share(t)};
	if (!t->failed && t->p == t->end && r.share == 0) {
		return r;
	}
	take_comma(t, "a comma and how far, such as 1%,3ms or 1%,5");
	if (emu_text_is_duration(t)) {
		const char *at = t->p;
		r.extra_ns = emu_text_duration(t);
		if (!t->failed && r.extra_ns == 0) {
			emu_text_fail(t, at, expected);
		}
		return r;
	}
	r.distance_min = (uint32_t)emu_text_count(t, 1, DISTANCE_MAX, expected);
	r.distance_max = r.distance_min;
	if (emu_text_has_char(t, '-')) {
		r.distance_max = (uint32_t)emu_text_count(t, r.distance_min, DISTANCE_MAX,
			"the largest distance, not below the smallest and at most 10000");
	}
	return r;
}

static struct emu_corrupt
read_corrupt(struct emu_text *t)
{
	struct emu_corrupt c = {.share = emu_text_share(t), .bits = 1};
	if (emu_text_has_char(t, ',')) {
		c.bits = (uint32_t)emu_text_count(t, 1, 1000, "1 to 1000 bits to flip");
	}
	return c;
}

static struct emu_queue_limit
read_queue(struct emu_text *t)
{
	static const char expected[] = "a size, such as 64KiB, or a time at the rate, such as 50ms";
	if (emu_text_is_duration(t)) {
		const char *at = t->p;
		struct emu_queue_limit q = {.ns = emu_text_duration(t)};
		if (!t->failed && q.ns == 0) {
			emu_text_fail(t, at, expected);
		}
		return q;
	}
	return (struct emu_queue_limit){.bytes = emu_text_size(t)};
}

static bool
can_be_none(enum emu_key key)
{
	return key != EMU_KEY_QUEUE;
}

/* "none" is the value that turns a thing off, whichever it is. */
static void
read_value(struct emu_text *t, struct emu_assign *a)
{
	memset(&a->u, 0, sizeof(a->u));
	if (can_be_none(a->key) && emu_text_has_word(t, "none")) {
		emu_text_finish(t, "the end of the value");
		return;
	}
	switch (a->key) {
	case EMU_KEY_LOSS:
		a->u.loss.in_good = emu_text_share(t);
		break;
	case EMU_KEY_LOSS_GILBERT:
		a->u.loss = read_gilbert(t);
		break;
	case EMU_KEY_LOSS_ELLIOTT:
		a->u.loss = read_elliott(t);
		break;
	case EMU_KEY_DELAY:
		a->u.delay_ns = emu_text_duration(t);
		break;
	case EMU_KEY_JITTER:
		a->u.jitter = read_jitter(t);
		break;
	case EMU_KEY_REORDER:
		a->u.reorder = read_reorder(t);
		break;
	case EMU_KEY_DUPLICATE:
		a->u.duplicate = emu_text_share(t);
		break;
	case EMU_KEY_CORRUPT:
		a->u.corrupt = read_corrupt(t);
		break;
	case EMU_KEY_RATE:
		a->u.rate_bps = emu_text_rate(t);
		break;
	case EMU_KEY_QUEUE:
		a->u.queue = read_queue(t);
		break;
	case EMU_KEY_MTU:
		a->u.mtu = (uint32_t)emu_text_count(
			t, 28, 65535, "a length of 28 to 65535 bytes, such as 1400");
		break;
	case EMU_KEY_COUNT:
		weft_assert(a->key != EMU_KEY_COUNT);
	}
	emu_text_finish(t, "the end of the value");
}

enum weft_err
emu_assign_parse(enum emu_key key, const char *text, size_t len, struct emu_assign *out,
	struct emu_error *error)
{
	struct emu_text t;
	emu_text_init(&t, text, len, error);
	struct emu_assign a = {.key = key, .dirs = EMU_BOTH};
	read_value(&t, &a);
	if (t.failed) {
		return WEFT_EPARSE;
	}
	*out = a;
	return WEFT_OK;
}

static bool
is_token(const struct emu_text *token, const char *word)
{
	size_t n = strlen(word);
	return (size_t)(token->end - token->p) == n && memcmp(token->p, word, n) == 0;
}

static void
read_key(struct emu_text *t, struct emu_assign *out)
{
	struct emu_text token = emu_text_take_token(t);
	const char *at = token.p;
	if (token.end - token.p > 3 && token.p[2] == '.') {
		if (memcmp(token.p, "ab", 2) == 0) {
			out->dirs = EMU_AB;
			token.p += 3;
		} else if (memcmp(token.p, "ba", 2) == 0) {
			out->dirs = EMU_BA;
			token.p += 3;
		}
	}
	for (unsigned k = 0; k < EMU_KEY_COUNT; k++) {
		if (is_token(&token, keys[k].name)) {
			out->key = (enum emu_key)k;
			return;
		}
	}
	emu_text_fail(t, at,
		"loss, loss-gilbert, loss-elliott, delay, jitter, reorder, duplicate, corrupt, "
		"rate, queue or mtu");
}

void
emu_assign_read(struct emu_text *t, unsigned dirs, struct emu_assign *out)
{
	*out = (struct emu_assign){.dirs = dirs};
	read_key(t, out);
	emu_text_skip_blank(t);
	if (emu_text_has_char(t, '=')) {
		emu_text_skip_blank(t);
	}
	struct emu_text value = emu_text_take_token(t);
	if (t->failed) {
		return;
	}
	read_value(&value, out);
	t->failed = value.failed;
}

enum weft_err
emu_settings_parse(const char *text, size_t len, unsigned dirs, struct emu_settings both[2],
	struct emu_error *error)
{
	struct emu_text t;
	struct emu_settings result[2] = {both[0], both[1]};
	emu_text_init(&t, text, len, error);
	for (emu_text_skip_to_statement(&t); !t.failed && t.p != t.end;
		emu_text_skip_to_statement(&t)) {
		struct emu_assign a;
		emu_assign_read(&t, dirs, &a);
		if (!t.failed) {
			emu_settings_assign(result, &a);
		}
	}
	if (t.failed) {
		return WEFT_EPARSE;
	}
	both[0] = result[0];
	both[1] = result[1];
	return WEFT_OK;
}

static void
assign_one(struct emu_settings *s, const struct emu_assign *a)
{
	switch (a->key) {
	case EMU_KEY_LOSS:
	case EMU_KEY_LOSS_GILBERT:
	case EMU_KEY_LOSS_ELLIOTT:
		s->loss = a->u.loss;
		break;
	case EMU_KEY_DELAY:
		s->delay_ns = a->u.delay_ns;
		break;
	case EMU_KEY_JITTER:
		s->jitter = a->u.jitter;
		break;
	case EMU_KEY_REORDER:
		s->reorder = a->u.reorder;
		break;
	case EMU_KEY_DUPLICATE:
		s->duplicate = a->u.duplicate;
		break;
	case EMU_KEY_CORRUPT:
		s->corrupt = a->u.corrupt;
		break;
	case EMU_KEY_RATE:
		s->rate_bps = a->u.rate_bps;
		break;
	case EMU_KEY_QUEUE:
		s->queue = a->u.queue;
		break;
	case EMU_KEY_MTU:
		s->mtu = a->u.mtu;
		break;
	case EMU_KEY_COUNT:
		weft_assert(a->key != EMU_KEY_COUNT);
	}
}

void
emu_settings_assign(struct emu_settings both[2], const struct emu_assign *a)
{
	if (a->dirs & EMU_AB) {
		assign_one(&both[0], a);
	}
	if (a->dirs & EMU_BA) {
		assign_one(&both[1], a);
	}
}
