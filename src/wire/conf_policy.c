/* SPDX-License-Identifier: Apache-2.0 */
/* Values of Fec and Cipher, and what peers have by default. */
#include <stdio.h>
#include <string.h>

#include "wire/conf_internal.h"

static const char *const cipher_words[] = {
	[CONF_CIPHER_AUTO] = "auto",
	[CONF_CIPHER_CHACHA20_POLY1305] = "chacha20poly1305",
	[CONF_CIPHER_AES_256_GCM] = "aes-256-gcm",
};

/* "30%", "30 %", "30". Saturates. False: something else. */
static bool
parse_percent(const struct conf_value *v, uint32_t *out)
{
	struct conf_value digits = *v;
	if (digits.len > 0 && digits.p[digits.len - 1] == '%') {
		digits.len--;
		digits = conf_value_trim(digits);
	}
	uint32_t n = 0;
	for (size_t i = 0; i < digits.len; i++) {
		if (digits.p[i] < '0' || digits.p[i] > '9') {
			return false;
		}
		n = n > 1000000 ? n : n * 10 + (uint32_t)(digits.p[i] - '0');
	}
	*out = n;
	return digits.len > 0;
}

static bool
parse_fec(const struct conf_value *v, struct conf_policy *out)
{
	uint32_t percent = 0;
	bool is_off = conf_value_is(v, "off"), is_auto = conf_value_is(v, "auto");
	if (!is_off && !is_auto &&
		(!parse_percent(v, &percent) || percent < 1 || percent > CONF_FEC_PERCENT_MAX)) {
		return false;
	}
	out->fec = is_off ? CONF_FEC_OFF : is_auto ? CONF_FEC_AUTO : CONF_FEC_FIXED;
	out->fec_percent = (uint8_t)percent;
	return true;
}

static bool
parse_cipher(const struct conf_value *v, struct conf_policy *out)
{
	for (unsigned i = 0; i < WEFT_ARRAY_LEN(cipher_words); i++) {
		if (conf_value_is(v, cipher_words[i])) {
			out->cipher = (enum conf_cipher)i;
			return true;
		}
	}
	return false;
}

bool
conf_fec_parse(const char *text, size_t len, struct conf_policy *out)
{
	return parse_fec(&(const struct conf_value){.p = text, .len = len}, out);
}

bool
conf_cipher_parse(const char *text, size_t len, struct conf_policy *out)
{
	return parse_cipher(&(const struct conf_value){.p = text, .len = len}, out);
}

char *
conf_fec_format(const struct conf_policy *p, char out[CONF_FEC_TEXT_MAX])
{
	if (p->fec == CONF_FEC_FIXED) {
		snprintf(out, CONF_FEC_TEXT_MAX, "%u%%", p->fec_percent);
	} else {
		snprintf(out, CONF_FEC_TEXT_MAX, "%s", p->fec == CONF_FEC_AUTO ? "auto" : "off");
	}
	return out;
}

const char *
conf_cipher_text(enum conf_cipher c)
{
	return cipher_words[c];
}

bool
conf_value_fec(struct conf_report *r, const struct conf_value *v, struct conf_policy *out)
{
	char quote[CONF_QUOTE_MAX];
	uint32_t percent;
	if (parse_fec(v, out)) {
		return true;
	}
	conf_value_quote(v, quote);
	if (parse_percent(v, &percent)) {
		return conf_value_refuse(r, v, "%sis not within 1%% to %d%%%s", quote,
			CONF_FEC_PERCENT_MAX, percent == 0 ? "; off turns it off" : "");
	}
	bool is_yes = conf_value_is(v, "on") || conf_value_is(v, "true") || conf_value_is(v, "yes");
	return conf_value_refuse(r, v, "%sis neither off, auto nor a share like 30%%%s", quote,
		is_yes ? "; did you mean auto?" : "");
}

/* Which cipher begins like that? */
static const char *
guess_cipher(const struct conf_value *v)
{
	const struct conf_value head = {.p = v->p, .len = v->len < 3 ? v->len : 3};
	return conf_value_is(&head, "aes")   ? "; did you mean aes-256-gcm?"
	       : conf_value_is(&head, "cha") ? "; did you mean chacha20poly1305?"
					     : "";
}

bool
conf_value_cipher(struct conf_report *r, const struct conf_value *v, struct conf_policy *out)
{
	char quote[CONF_QUOTE_MAX];
	if (parse_cipher(v, out)) {
		return true;
	}
	return conf_value_refuse(r, v, "%sis neither auto, chacha20poly1305 nor aes-256-gcm%s",
		conf_value_quote(v, quote), guess_cipher(v));
}

void
conf_policy_spread(struct conf *c)
{
	const struct conf_policy *from = &c->interface.policy;
	for (size_t i = 0; i < c->peers_n; i++) {
		struct conf_policy *to = &c->peers[i].policy;
		if (!to->extensions_pos.line) {
			to->has_extensions = from->has_extensions;
		}
		if (!to->fec_pos.line) {
			to->fec = from->fec;
			to->fec_percent = from->fec_percent;
		}
		if (!to->fec_delay_pos.line) {
			to->fec_delay_ms = from->fec_delay_ms;
		}
		if (!to->cipher_pos.line) {
			to->cipher = from->cipher;
		}
	}
}
