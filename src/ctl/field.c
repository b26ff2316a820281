/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/field.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "ctl/peers.h"
#include "node/policy.h"
#include "wire/conf.h"
#include "wire/key.h"

/* How it is kept. */
enum form {
	FORM_READ, /* read() tells it */
	FORM_U16,
	FORM_U32,
	FORM_U64,
	FORM_MS, /* nanoseconds, told in milliseconds */
	FORM_REAL,
};

struct ctl_field {
	const char *path;
	enum form form;
	size_t offset;  /* in struct ctl_peer */
	bool needs_fec; /* there once loss recovery was agreed on */
	void (*read)(const struct ctl_peer *p, struct wg_time now, struct ctl_value *out);
};

static void
set_text(struct ctl_value *v, const char *text)
{
	v->kind = CTL_VALUE_TEXT;
	v->text = text;
}

static void
set_bool(struct ctl_value *v, bool is_true)
{
	v->kind = CTL_VALUE_BOOL;
	v->is_true = is_true;
}

static void
set_ns(struct ctl_value *v, int64_t ns, int64_t ns_a_unit)
{
	v->kind = CTL_VALUE_MILLI;
	v->milli = ns / (ns_a_unit / 1000);
}

static void
read_public_key(const struct ctl_peer *p, struct wg_time now, struct ctl_value *v)
{
	(void)now;
	set_text(v, key_encode_base64(p->info.public_key, v->own));
}

static void
read_has_psk(const struct ctl_peer *p, struct wg_time now, struct ctl_value *v)
{
	(void)now;
	set_bool(v, p->info.has_psk);
}

static void
read_endpoint(const struct ctl_peer *p, struct wg_time now, struct ctl_value *v)
{
	(void)now;
	if (p->info.endpoint.addr.family != IP_FAMILY_NONE) {
		set_text(v, endpoint_format(&p->info.endpoint, v->own));
	}
}

static void
read_latest_handshake(const struct ctl_peer *p, struct wg_time now, struct ctl_value *v)
{
	(void)now;
	if (p->info.last_handshake_wall_ns != 0) {
		set_ns(v, p->info.last_handshake_wall_ns, WEFT_NS_PER_S);
	}
}

static void
read_handshake_age(const struct ctl_peer *p, struct wg_time now, struct ctl_value *v)
{
	/* The wall clock may have been set back since. */
	int64_t age_ns = now.wall_ns - p->info.last_handshake_wall_ns;
	if (p->info.last_handshake_wall_ns != 0) {
		set_ns(v, age_ns > 0 ? age_ns : 0, WEFT_NS_PER_S);
	}
}

static void
read_session_age(const struct ctl_peer *p, struct wg_time now, struct ctl_value *v)
{
	if (p->info.has_session) {
		set_ns(v, mono_diff_ns(now.mono, p->info.session_born), WEFT_NS_PER_S);
	}
}

static void
read_policy_extensions(const struct ctl_peer *p, struct wg_time now, struct ctl_value *v)
{
	(void)now;
	set_bool(v, p->ally.policy.has_extensions);
}

static void
read_policy_fec(const struct ctl_peer *p, struct wg_time now, struct ctl_value *v)
{
	struct conf_policy c;
	_Static_assert(CONF_FEC_TEXT_MAX <= CTL_VALUE_TEXT_MAX, "the text has no room");
	(void)now;
	policy_to_conf(&p->ally.policy, &c);
	set_text(v, conf_fec_format(&c, v->own));
}

static void
read_policy_fec_delay(const struct ctl_peer *p, struct wg_time now, struct ctl_value *v)
{
	struct conf_policy c;
	(void)now;
	policy_to_conf(&p->ally.policy, &c);
	v->kind = CTL_VALUE_COUNT;
	v->count = c.fec_delay_ms;
}

static void
read_policy_cipher(const struct ctl_peer *p, struct wg_time now, struct ctl_value *v)
{
	struct conf_policy c;
	(void)now;
	policy_to_conf(&p->ally.policy, &c);
	set_text(v, conf_cipher_text(c.cipher));
}

static void
read_state(const struct ctl_peer *p, struct wg_time now, struct ctl_value *v)
{
	static const char *const states[] = {
		[ALLY_STATE_UNKNOWN] = "unknown",
		[ALLY_STATE_ASKING] = "asking",
		[ALLY_STATE_AGREED] = "agreed",
		[ALLY_STATE_STOCK] = "stock",
		[ALLY_STATE_OFF] = "off",
	};
	(void)now;
	set_text(v, states[p->ally.state]);
}

static void
read_name(const struct ctl_peer *p, struct wg_time now, struct ctl_value *v)
{
	(void)now;
	set_text(v, p->ally.name);
}

static void
read_cipher(const struct ctl_peer *p, struct wg_time now, struct ctl_value *v)
{
	bool is_aes = p->ally.cipher == AEAD_CIPHER_AES_256_GCM;
	(void)now;
	set_text(v,
		conf_cipher_text(is_aes ? CONF_CIPHER_AES_256_GCM : CONF_CIPHER_CHACHA20_POLY1305));
}

static void
read_fec_mode(const struct ctl_peer *p, struct wg_time now, struct ctl_value *v)
{
	static const char *const modes[] = {
		[FEC_MODE_OFF] = "off",
		[FEC_MODE_AUTO] = "auto",
		[FEC_MODE_FIXED] = "fixed",
	};
	(void)now;
	set_text(v, modes[p->ally.policy.fec.mode]);
}

/* Without a state: why nothing is done. */
static enum fec_why
why_of(const struct ally_info *a)
{
	bool is_off = a->policy.fec.mode == FEC_MODE_OFF;
	return a->has_fec ? a->fec.why : is_off ? FEC_WHY_OFF : FEC_WHY_NOT_AGREED;
}

static void
read_fec_why(const struct ctl_peer *p, struct wg_time now, struct ctl_value *v)
{
	(void)now;
	set_text(v, fec_why_name(why_of(&p->ally)));
}

static void
read_fec_why_text(const struct ctl_peer *p, struct wg_time now, struct ctl_value *v)
{
	(void)now;
	set_text(v, fec_why_text(why_of(&p->ally)));
}

static void
read_fec_rtt(const struct ctl_peer *p, struct wg_time now, struct ctl_value *v)
{
	(void)now;
	if (p->ally.fec.rtt_ns > 0) {
		set_ns(v, p->ally.fec.rtt_ns, WEFT_NS_PER_MS);
	}
}

static void
read_hold_avg(const struct ctl_peer *p, struct wg_time now, struct ctl_value *v)
{
	const struct fec_decoder_stats *r = &p->ally.fec.rx;
	(void)now;
	set_ns(v, r->held > 0 ? (int64_t)(r->hold_ns_sum / r->held) : 0, WEFT_NS_PER_MS);
}

#define READ(path, read)                                                                           \
	{                                                                                          \
		path, FORM_READ, 0, false, read                                                    \
	}
#define KEPT(path, form, member)                                                                   \
	{                                                                                          \
		path, form, offsetof(struct ctl_peer, member), false, NULL                         \
	}
#define FEC(path, form, member)                                                                    \
	{                                                                                          \
		path, form, offsetof(struct ctl_peer, ally.fec.member), true, NULL                 \
	}
#define FEC_READ(path, read)                                                                       \
	{                                                                                          \
		path, FORM_READ, 0, true, read                                                     \
	}

/* Members of one object stand together. */
static const struct ctl_field fields[] = {
	READ("public_key", read_public_key),
	READ("has_preshared_key", read_has_psk),
	READ("endpoint", read_endpoint),
	KEPT("persistent_keepalive_s", FORM_U16, info.keepalive_s),
	READ("latest_handshake_s", read_latest_handshake),
	READ("handshake_age_s", read_handshake_age),
	READ("session_age_s", read_session_age),
	KEPT("rx_bytes", FORM_U64, info.rx_bytes),
	KEPT("tx_bytes", FORM_U64, info.tx_bytes),
	KEPT("rx_packets", FORM_U64, info.rx_packets),
	KEPT("tx_packets", FORM_U64, info.tx_packets),
	KEPT("handshakes", FORM_U64, info.handshakes),
	KEPT("handshake_tries", FORM_U64, info.handshake_tries),
	KEPT("stale_initiations", FORM_U64, info.stale_initiations),
	KEPT("rejected_moves", FORM_U64, info.rejected_moves),
	KEPT("staged_packets", FORM_U32, info.staged_packets),
	KEPT("staged_bytes", FORM_U32, info.staged_bytes),
	READ("policy.extensions", read_policy_extensions),
	READ("policy.fec", read_policy_fec),
	READ("policy.fec_delay_ms", read_policy_fec_delay),
	READ("policy.cipher", read_policy_cipher),
	READ("extensions.state", read_state),
	READ("extensions.name", read_name),
	READ("cipher", read_cipher),
	READ("fec.mode", read_fec_mode),
	READ("fec.why", read_fec_why),
	READ("fec.why_text", read_fec_why_text),
	FEC("fec.loss", FORM_REAL, loss),
	FEC("fec.burst", FORM_REAL, burst),
	FEC("fec.residual", FORM_REAL, residual),
	FEC("fec.overhead", FORM_REAL, overhead),
	FEC("fec.ahead_share", FORM_REAL, ahead_share),
	FEC_READ("fec.rtt_ms", read_fec_rtt),
	FEC("fec.queue_ms", FORM_MS, queue_ns),
	FEC("fec.sources", FORM_U64, sources),
	FEC("fec.source_bytes", FORM_U64, source_bytes),
	FEC("fec.repairs_ahead", FORM_U64, repairs_ahead),
	FEC("fec.repairs_answer", FORM_U64, repairs_answer),
	FEC("fec.repairs_tail", FORM_U64, repairs_tail),
	FEC("fec.repair_bytes", FORM_U64, repair_bytes),
	FEC("fec.feedback_tx", FORM_U64, feedback_tx),
	FEC("fec.feedback_rx", FORM_U64, feedback_rx),
	FEC("fec.ce_marked", FORM_U64, ce_marked),
	FEC("fec.peer_lost", FORM_U64, peer_lost),
	FEC("fec.peer_recovered_ahead", FORM_U64, peer_recovered_ahead),
	FEC("fec.peer_recovered_answer", FORM_U64, peer_recovered_answer),
	FEC("fec.peer_given_up", FORM_U64, peer_given_up),
	FEC("fec.memory_bytes", FORM_U64, memory),
	FEC("fec.memory_refusals", FORM_U64, memory_refusals),
	FEC("fec.rx.received", FORM_U64, rx.received),
	FEC("fec.rx.lost", FORM_U64, rx.lost),
	FEC("fec.rx.runs", FORM_U64, rx.runs),
	FEC("fec.rx.recovered_ahead", FORM_U64, rx.recovered_ahead),
	FEC("fec.rx.recovered_answer", FORM_U64, rx.recovered_answer),
	FEC("fec.rx.given_up", FORM_U64, rx.given_up),
	FEC("fec.rx.late", FORM_U64, rx.late),
	FEC("fec.rx.overflowed", FORM_U64, rx.overflowed),
	FEC("fec.rx.repairs", FORM_U64, rx.repairs),
	FEC("fec.rx.repairs_useless", FORM_U64, rx.repairs_useless),
	FEC("fec.rx.repairs_refused", FORM_U64, rx.repairs_refused),
	FEC("fec.rx.held", FORM_U64, rx.held),
	FEC_READ("fec.rx.hold_avg_ms", read_hold_avg),
	FEC("fec.rx.hold_max_ms", FORM_MS, rx.hold_ns_max),
	FEC("fec.rx.hold_sum_ms", FORM_MS, rx.hold_ns_sum),
	FEC("fec.rx.unawake", FORM_U64, rx.unawake),
	FEC("fec.rx.jumps", FORM_U64, rx.jumps),
};

const struct ctl_field *
ctl_field_find(const char *path)
{
	for (size_t i = 0; i < WEFT_ARRAY_LEN(fields); i++) {
		if (strcmp(fields[i].path, path) == 0) {
			return &fields[i];
		}
	}
	return NULL;
}

static uint64_t
kept_count(enum form form, const void *at)
{
	uint64_t n64;
	uint32_t n32;
	uint16_t n16;
	switch (form) {
	case FORM_U16:
		memcpy(&n16, at, sizeof(n16));
		return n16;
	case FORM_U32:
		memcpy(&n32, at, sizeof(n32));
		return n32;
	default:
		memcpy(&n64, at, sizeof(n64));
		return n64;
	}
}

bool
ctl_field_read(const struct ctl_field *f, const struct ctl_peer *p, struct wg_time now,
	struct ctl_value *out)
{
	const void *at = (const char *)p + f->offset;
	if (f->needs_fec && !p->ally.has_fec) {
		return false;
	}
	out->kind = CTL_VALUE_NONE;
	switch (f->form) {
	case FORM_READ:
		f->read(p, now, out);
		break;
	case FORM_REAL:
		memcpy(&out->real, at, sizeof(out->real));
		/* JSON has no infinity; what is not finite is not known. */
		out->kind = isfinite(out->real) ? CTL_VALUE_REAL : CTL_VALUE_NONE;
		break;
	case FORM_MS:
		set_ns(out, (int64_t)kept_count(FORM_U64, at), WEFT_NS_PER_MS);
		break;
	case FORM_U16:
	case FORM_U32:
	case FORM_U64:
		out->kind = CTL_VALUE_COUNT;
		out->count = kept_count(f->form, at);
		break;
	}
	return true;
}

static void
put(struct writer *w, const char *text)
{
	writer_copy(w, text, strlen(text));
}

/* Hand-made: printf() is four times as slow, and a scrape of many peers is numbers. */
static void
put_count(struct writer *w, uint64_t n)
{
	char digits[20];
	size_t at = sizeof(digits);
	do {
		digits[--at] = (char)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	writer_copy(w, digits + at, sizeof(digits) - at);
}

/* Without zeros at the end. */
static void
put_milli(struct writer *w, int64_t milli, bool has_point)
{
	uint64_t n = milli < 0 ? 0 - (uint64_t)milli : (uint64_t)milli;
	unsigned rest = (unsigned)(n % 1000);
	char text[4] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10),
		(char)('0' + rest % 10)};
	size_t len = sizeof(text);
	while (len > 1 && text[len - 1] == '0') {
		len--;
	}
	put(w, milli < 0 ? "-" : "");
	put_count(w, n / 1000);
	if (len > 1) {
		writer_copy(w, text, len);
	} else if (has_point) {
		put(w, ".0");
	}
}

static void
put_real(struct writer *w, double real, bool has_point)
{
	char text[CTL_NUMBER_TEXT_MAX];
	snprintf(text, sizeof(text) - 2, "%.15g", real);
	if (has_point && !strpbrk(text, ".e")) {
		memcpy(text + strlen(text), ".0", 3);
	}
	put(w, text);
}

void
ctl_value_write_number(struct writer *w, const struct ctl_value *v, bool has_point)
{
	switch (v->kind) {
	case CTL_VALUE_BOOL:
		put(w, v->is_true ? "1" : "0");
		break;
	case CTL_VALUE_COUNT:
		put_count(w, v->count);
		break;
	case CTL_VALUE_MILLI:
		put_milli(w, v->milli, has_point);
		break;
	case CTL_VALUE_REAL:
		put_real(w, v->real, has_point);
		break;
	case CTL_VALUE_NONE:
	case CTL_VALUE_TEXT:
		break;
	}
}

/* Texts are of ourselves, or names of printable ASCII. */
static void
put_string(struct writer *w, const char *text)
{
	put(w, "\"");
	for (const char *p = text; *p; p++) {
		put(w, *p == '"' || *p == '\\' ? "\\" : "");
		writer_copy(w, p, 1);
	}
	put(w, "\"");
}

static void
put_value(struct writer *w, const struct ctl_value *v)
{
	switch (v->kind) {
	case CTL_VALUE_NONE:
		put(w, "null");
		break;
	case CTL_VALUE_BOOL:
		put(w, v->is_true ? "true" : "false");
		break;
	case CTL_VALUE_TEXT:
		put_string(w, v->text);
		break;
	case CTL_VALUE_COUNT:
	case CTL_VALUE_MILLI:
	case CTL_VALUE_REAL:
		ctl_value_write_number(w, v, true);
		break;
	}
}

/* Bytes of "fec.rx." that both paths begin with. */
static size_t
common_folders(const char *a, const char *b)
{
	size_t common = 0;
	for (size_t i = 0; a[i] && a[i] == b[i]; i++) {
		common = a[i] == '.' ? i + 1 : common;
	}
	return common;
}

/* Ends the objects that path is not in any more, begins those that it is in; then its name. */
static void
put_name(struct writer *w, const char *before, const char *path)
{
	size_t common = common_folders(before, path);
	bool is_first = before[0] == 0;
	for (const char *p = before + common; (p = strchr(p, '.')) != NULL; p++) {
		put(w, "}");
	}
	path += common;
	for (const char *dot; (dot = strchr(path, '.')) != NULL; path = dot + 1) {
		put(w, is_first ? "\"" : ",\"");
		writer_copy(w, path, (size_t)(dot - path));
		put(w, "\":{");
		is_first = true;
	}
	put(w, is_first ? "\"" : ",\"");
	put(w, path);
	put(w, "\":");
}

void
ctl_field_write_peer(struct writer *w, const struct ctl_peer *p, struct wg_time now)
{
	struct ctl_value v;
	const char *before = "";
	put(w, "{");
	for (size_t i = 0; i < WEFT_ARRAY_LEN(fields); i++) {
		if (ctl_field_read(&fields[i], p, now, &v)) {
			put_name(w, before, fields[i].path);
			put_value(w, &v);
			before = fields[i].path;
		}
	}
	for (const char *c = before; (c = strchr(c, '.')) != NULL; c++) {
		put(w, "}");
	}
}
