/* SPDX-License-Identifier: Apache-2.0 */
/* The frame, and the rules of device, address and drops. Those of the peer are judge_peer.c. */
#include "ctl/judge.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/key.h"

/* Drops that are older are no cause of what happens now. */
#define DROPS_NS (60 * WEFT_NS_PER_S)
/* Fewer in a spell are told, and are no loss to speak of. */
#define DROPS_FEW 10

const char *
judge_severity_name(enum judge_severity s)
{
	static const char *const names[JUDGE_SEVERITY_COUNT] = {
		[JUDGE_SEVERITY_FAULT] = "fault",
		[JUDGE_SEVERITY_LOSS] = "loss",
		[JUDGE_SEVERITY_NOTE] = "note",
	};
	return names[s];
}

/* --- findings --- */

struct judge_finding *
judge_add(struct judge_verdict *v, const char *code, enum judge_severity severity, const char *fmt,
	...)
{
	if (v->n == JUDGE_FINDINGS_MAX) {
		return NULL;
	}
	struct judge_finding *f = &v->findings[v->n++];
	*f = (struct judge_finding){.severity = severity};
	snprintf(f->code, sizeof(f->code), "%s", code);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
	if (strncmp(f->text, "peer ", 5) == 0) {
		f->text[0] = 'P'; /* it has no name */
	}
	return f;
}

void
judge_advise(struct judge_finding *f, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	if (f) {
		vsnprintf(f->advice, sizeof(f->advice), fmt, ap);
	}
	va_end(ap);
}

void
judge_show(struct judge_finding *f, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	if (f && f->evidence_n < JUDGE_EVIDENCE_MAX) {
		vsnprintf(f->evidence[f->evidence_n++], JUDGE_LINE_MAX, fmt, ap);
	}
	va_end(ap);
}

char *
judge_age(struct mono now, struct mono at, char out[JUDGE_AGE_MAX])
{
	int64_t s = mono_diff_ns(now, at) / WEFT_NS_PER_S;
	s = s < 0 ? 0 : s;
	if (at.ns == 0) {
		snprintf(out, JUDGE_AGE_MAX, "never");
	} else if (s < 120) {
		snprintf(out, JUDGE_AGE_MAX, "%" PRId64 " s", s);
	} else if (s < 120 * 60) {
		snprintf(out, JUDGE_AGE_MAX, "%" PRId64 " min", s / 60);
	} else {
		snprintf(out, JUDGE_AGE_MAX, "%" PRId64 " h", s / 3600);
	}
	return out;
}

bool
judge_is_lately(struct mono now, struct mono at, int64_t window_ns)
{
	return at.ns != 0 && mono_diff_ns(now, at) <= window_ns;
}

/* --- troubles --- */

static bool
is_of_key(const struct judge_facts *f, const struct wg_trouble *t)
{
	return memcmp(t->key, f->info.public_key, sizeof(t->key)) == 0;
}

static bool
is_at_endpoint(const struct judge_facts *f, const struct wg_trouble *t)
{
	return t->at.addr.family != IP_FAMILY_NONE &&
	       endpoint_is_same_remote(&t->at, &f->info.endpoint);
}

static const struct wg_trouble *
latest_trouble(const struct judge_facts *f, enum wg_trouble_kind kind, int64_t window_ns,
	bool (*is_meant)(const struct judge_facts *f, const struct wg_trouble *t))
{
	const struct wg_trouble *best = NULL;
	for (size_t i = 0; i < WEFT_ARRAY_LEN(f->troubles); i++) {
		for (size_t k = 0; k < f->troubles[i].n; k++) {
			const struct wg_trouble *t = &f->troubles[i].v[k];
			if (t->kind == kind && judge_is_lately(f->now, t->latest, window_ns) &&
				is_meant(f, t) &&
				(!best || mono_is_before(best->latest, t->latest))) {
				best = t;
			}
		}
	}
	return best;
}

const struct wg_trouble *
judge_trouble_of_key(const struct judge_facts *f, enum wg_trouble_kind kind, int64_t window_ns)
{
	return latest_trouble(f, kind, window_ns, is_of_key);
}

const struct wg_trouble *
judge_trouble_at(const struct judge_facts *f, enum wg_trouble_kind kind, int64_t window_ns)
{
	return latest_trouble(f, kind, window_ns, is_at_endpoint);
}

/* --- the device --- */

static void
judge_device(const struct judge_facts *f, struct judge_verdict *v)
{
	char prefix[IP_PREFIX_TEXT_MAX];
	struct judge_finding *x;
	if (!f->has_key) {
		x = judge_add(
			v, "no_key", JUDGE_SEVERITY_FAULT, "%s has no private key.", f->device);
		judge_advise(x,
			"Set PrivateKey in its file and `weft reload %s`, or "
			"`wg set %s private-key FILE`.",
			f->device, f->device);
	}
	if (!f->is_up) {
		x = judge_add(v, "interface_down", JUDGE_SEVERITY_FAULT,
			"The interface %s is down: nothing enters or leaves it.", f->device);
		judge_advise(x,
			"`ip link set %s up`. Its routes went when it was set down: `weft down %s` "
			"and `weft up %s` bring all of it back.",
			f->device, f->device, f->device);
	}
	if (f->missing_address.addr.family != IP_FAMILY_NONE) {
		ip_prefix_format(&f->missing_address, prefix);
		x = judge_add(v, "address_missing", JUDGE_SEVERITY_FAULT,
			"%s does not have the address %s that its file gives it.", f->device,
			prefix);
		judge_advise(x,
			"`ip address add %s dev %s`, and find out who took it away; a network "
			"manager that also cares for %s may.",
			prefix, f->device, f->device);
	} else if (!f->has_address) {
		x = judge_add(v, "address_missing", JUDGE_SEVERITY_FAULT,
			"%s has no address%s: packets leave with another interface's, which the "
			"other side refuses.",
			f->device,
			f->address.family == IP_FAMILY_V6   ? " of IPv6"
			: f->address.family == IP_FAMILY_V4 ? " of IPv4"
							    : "");
		judge_advise(x, "Set Address in its file, or `ip address add ADDRESS/BITS dev %s`.",
			f->device);
	}
}

/* --- the address, and the ways to what is behind the peer --- */

static void
judge_address(const struct judge_facts *f, struct judge_verdict *v)
{
	char addr[IP_ADDR_TEXT_MAX], prefix[IP_PREFIX_TEXT_MAX];
	struct judge_finding *x;
	if (f->address.family == IP_FAMILY_NONE) {
		return;
	}
	ip_addr_format(&f->address, addr);
	if (f->is_own) {
		x = judge_add(v, "own_address", JUDGE_SEVERITY_FAULT,
			"%s is an address of this machine: packets to it never leave.", addr);
		judge_advise(x, "Ask for the address of the other side. If it should be the other "
				"side's, take it from this machine.");
	}
	if (!f->has_peer) {
		x = judge_add(v, "no_peer", JUDGE_SEVERITY_FAULT,
			"%s is in no peer's AllowedIPs: packets to it are dropped.", addr);
		judge_advise(x,
			"Add it to AllowedIPs of the peer that has it, and `weft reload %s`.",
			f->device);
		if (f->near[0]) {
			judge_show(x, "the closest is %s of %s",
				ip_prefix_format(&f->near_prefix, prefix), f->near);
		}
	} else if (f->is_other_expected) {
		x = judge_add(v, "other_peer", JUDGE_SEVERITY_FAULT, "%s goes to %s and not to %s.",
			addr, f->who, f->other);
		judge_advise(x, "Add %s to AllowedIPs of %s: the longest prefix counts.", addr,
			f->other);
		judge_show(x, "%s of %s is the longest match", ip_prefix_format(&f->match, prefix),
			f->who);
		if (f->other_prefix.addr.family != IP_FAMILY_NONE) {
			judge_show(x, "%s has it in %s, which is shorter", f->other,
				ip_prefix_format(&f->other_prefix, prefix));
		}
	} else if (f->other[0]) {
		x = judge_add(v, "other_peer", JUDGE_SEVERITY_NOTE,
			"%s goes to %s; %s has it, too, in a shorter prefix.", addr, f->who,
			f->other);
		judge_advise(x, "Nothing if that is meant. Else add %s to AllowedIPs of %s.", addr,
			f->other);
		judge_show(
			x, "%s has it in %s", f->other, ip_prefix_format(&f->other_prefix, prefix));
	}
}

static void
judge_inner(const struct judge_facts *f, const struct judge_route *r, struct judge_verdict *v)
{
	char to[IP_PREFIX_TEXT_MAX], addr[IP_ADDR_TEXT_MAX];
	bool is_prefix = r->prefix.addr.family != IP_FAMILY_NONE;
	/* Many have a default route behind a peer for what is bound to the interface alone; and who
	 * turned the routes off sets his own. */
	bool is_meant = is_prefix && (f->is_table_off || r->prefix.bits == 0);
	ip_addr_format(&r->to, addr);
	if (is_prefix) {
		ip_prefix_format(&r->prefix, to);
	} else {
		snprintf(to, sizeof(to), "%s", addr);
	}
	if (r->is_ours || r->is_local) {
		return;
	}
	struct judge_finding *x;
	if (!r->is_there) {
		x = judge_add(v, "route_missing",
			is_meant ? JUDGE_SEVERITY_NOTE : JUDGE_SEVERITY_FAULT,
			"The kernel has no route to %s: packets to it do not reach %s.", to,
			f->device);
	} else {
		x = judge_add(v, "route_elsewhere",
			is_meant ? JUDGE_SEVERITY_NOTE : JUDGE_SEVERITY_FAULT,
			"The kernel sends packets to %s by %s instead of %s.", to, r->dev,
			f->device);
	}
	judge_show(x, "as `ip route get %s` shows", addr);
	judge_advise(x, "`ip route add %s dev %s`%s.", to, f->device,
		f->is_table_off ? "; Table = off in the file leaves routes to you"
		: r->is_there   ? "; if the other route is as long, take that away or change its "
				  "metric"
				: ", or `weft down` and `weft up`, which set the routes");
}

/* --- what was dropped --- */

static bool
has_code(const struct judge_verdict *v, const char *code)
{
	for (size_t i = 0; i < v->n; i++) {
		if (strcmp(v->findings[i].code, code) == 0) {
			return true;
		}
	}
	return false;
}

/* The latest of a kind, of whomever. Packets to groups are the kernel's own doing. */
static bool
is_worth_telling(const struct judge_facts *f, const struct wg_trouble *t)
{
	const uint8_t first = t->at.addr.b[0];
	(void)f;
	return t->kind != WG_TROUBLE_ROUTE ||
	       (t->at.addr.family == IP_FAMILY_V6 ? first != 0xff : first < 224);
}

/* What a reason's packets had in particular. */
static void
show_particulars(const struct wg_trouble *t, struct judge_finding *x)
{
	char at[ENDPOINT_TEXT_MAX], key[KEY_BASE64_LEN + 1];
	if (t && t->kind == WG_TROUBLE_ROUTE) {
		judge_show(x, "one was to %s", ip_addr_format(&t->at.addr, at));
	} else if (t && t->kind == WG_TROUBLE_STRANGER) {
		judge_show(x, "the key %s, from %s", key_encode_base64(t->key, key),
			endpoint_format(&t->at, at));
	} else if (t) {
		judge_show(x, "from %s", endpoint_format(&t->at, at));
	}
}

static void
judge_drop(const struct judge_facts *f, enum drop_reason r, struct judge_verdict *v)
{
	static const struct {
		enum drop_reason reason;
		enum wg_trouble_kind kind;
	} kinds[] = {{DROP_TX_ROUTE, WG_TROUBLE_ROUTE}, {DROP_HS_PEER, WG_TROUBLE_STRANGER},
		{DROP_HS_MAC1, WG_TROUBLE_MAC1}};
	const struct drop_time *t = &f->drops.of[r];
	const struct judge_drop *d = judge_drop_of(r);
	const struct wg_trouble *more = NULL;
	char code[JUDGE_CODE_MAX], age[JUDGE_AGE_MAX];
	for (size_t i = 0; i < WEFT_ARRAY_LEN(kinds); i++) {
		if (kinds[i].reason == r) {
			more = latest_trouble(f, kinds[i].kind, DROPS_NS, is_worth_telling);
		}
	}
	bool is_lately = t->n > 0 && judge_is_lately(f->now, t->latest, DROPS_NS);
	if (!is_lately || (d->code && has_code(v, d->code)) || (r == DROP_TX_ROUTE && !more)) {
		return;
	}
	snprintf(code, sizeof(code), "drop_%s", drop_name(r));
	struct judge_finding *x = judge_add(v, code,
		d->is_loss && t->n >= DROPS_FEW ? JUDGE_SEVERITY_LOSS : JUDGE_SEVERITY_NOTE,
		"%s: %" PRIu64 " on %s%s, the last %s ago.", d->meaning, t->n, f->device,
		d->is_loss ? "" : " (any peer)", judge_age(f->now, t->latest, age));
	judge_advise(x, "%s", d->advice);
	show_particulars(more, x);
}

/* Queues of this machine; its peers all suffer. */
static void
judge_overflow(const struct judge_facts *f, struct judge_verdict *v)
{
	const struct drop_time *t = &f->drops.of[DROP_LINK_RX_OVERFLOW];
	char age[JUDGE_AGE_MAX];
	if (t->n < DROPS_FEW || !judge_is_lately(f->now, t->latest, DROPS_NS)) {
		return;
	}
	struct judge_finding *x = judge_add(v, "receive_overflow", JUDGE_SEVERITY_LOSS,
		"More comes than this machine decrypts: %" PRIu64
		" datagrams were dropped at the full socket.",
		t->n);
	judge_advise(x, "%s", judge_drop_of(DROP_LINK_RX_OVERFLOW)->advice);
	judge_show(x, "link_rx_overflow: the last %s ago", judge_age(f->now, t->latest, age));
}

static void
judge_drops(const struct judge_facts *f, struct judge_verdict *v)
{
	judge_overflow(f, v);
	for (unsigned i = 0; i < DROP_COUNT; i++) {
		judge_drop(f, (enum drop_reason)i, v);
	}
}

/* --- the whole --- */

/* Stable: within a severity the rules' order stands, which is that of probability. */
static void
sort(struct judge_verdict *v)
{
	for (size_t i = 1; i < v->n; i++) {
		for (size_t k = i; k > 0 && v->findings[k].severity < v->findings[k - 1].severity;
			k--) {
			struct judge_finding x = v->findings[k];
			v->findings[k] = v->findings[k - 1];
			v->findings[k - 1] = x;
		}
	}
}

static void
summarise(const struct judge_facts *f, struct judge_verdict *v)
{
	char addr[IP_ADDR_TEXT_MAX] = "";
	bool is_sound = v->n == 0 || v->findings[0].severity == JUDGE_SEVERITY_NOTE;
	bool is_fault = v->n > 0 && v->findings[0].severity == JUDGE_SEVERITY_FAULT;
	ip_addr_format(&f->address, addr);
	if (!f->has_peer) {
		snprintf(v->summary, sizeof(v->summary), "Nothing flows to %s.", addr);
		return;
	}
	v->flows = f->can_send && is_sound;
	const char *what = v->flows   ? "Traffic flows to"
			   : is_sound ? "Nothing flows now to"
			   : is_fault ? "Nothing flows to"
				      : "Not all arrives at or from";
	if (f->address.family != IP_FAMILY_NONE) {
		snprintf(v->summary, sizeof(v->summary), "%s %s by %s.", what, addr, f->who);
	} else {
		snprintf(v->summary, sizeof(v->summary), "%s %s.", what, f->who);
	}
}

static void
tell_wellness(const struct judge_facts *f, struct judge_verdict *v)
{
	char a[JUDGE_AGE_MAX], b[JUDGE_AGE_MAX], at[ENDPOINT_TEXT_MAX];
	const struct mono born = f->info.session_born;
	if (!f->has_peer || !f->can_send) {
		return;
	}
	snprintf(v->evidence[v->evidence_n++], JUDGE_LINE_MAX,
		"the last handshake was %s ago, with %s", judge_age(f->now, born, a),
		endpoint_format(&f->info.endpoint, at));
	snprintf(v->evidence[v->evidence_n++], JUDGE_LINE_MAX,
		"last received %s ago, last sent %s ago", judge_age(f->now, f->trail.received, a),
		judge_age(f->now, f->trail.sent, b));
	snprintf(v->evidence[v->evidence_n++], JUDGE_LINE_MAX,
		"%" PRIu64 " datagrams in, %" PRIu64 " out so far", f->info.rx_packets,
		f->info.tx_packets);
}

void
judge(const struct judge_facts *f, struct judge_verdict *out)
{
	*out = (struct judge_verdict){0};
	judge_device(f, out);
	judge_address(f, out);
	if (f->has_peer) {
		for (size_t i = 0; f->is_up && i < f->inner_n; i++) {
			judge_inner(f, &f->inner[i], out);
		}
		judge_peer(f, out);
	}
	judge_drops(f, out);
	sort(out);
	summarise(f, out);
	tell_wellness(f, out);
}
