/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of one peer: its endpoint and the way there, keys, handshakes, the session. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl/judge.h"
#include "os/error.h"
#include "wg/timer.h"
#include "wire/key.h"

/* Handshakes are tried again every 5 s for 90 s: what was seen with them is of now. */
#define LATELY_NS (150 * WEFT_NS_PER_S)
/* What the data path meets goes on, or is over. */
#define DATA_NS (60 * WEFT_NS_PER_S)
#define SEND_NS (20 * WEFT_NS_PER_S)
/* An answer to a handshake takes a round trip; this is longer than that of a satellite. */
#define ANSWER_NS (1 * WEFT_NS_PER_S)
/* Who receives data answers within KEEPALIVE_TIMEOUT. */
#define SILENT_NS (WG_KEEPALIVE_TIMEOUT_NS + 1 * WEFT_NS_PER_S)
#define UNUSED_CALLS_MIN 2
#define LOSS_PACKETS_MIN 200
#define LOSS_PERCENT_MIN 2
#define OUTER_BYTES_V4 (20 + 8 + WG_OVERHEAD)
#define OUTER_BYTES_V6 (40 + 8 + WG_OVERHEAD)

static bool
has_gap(const struct judge_facts *f, struct mono at, int64_t ns)
{
	return at.ns != 0 && mono_diff_ns(f->now, at) >= ns;
}

/* Initiations stay without an answer, or did until they were given up. */
static bool
is_calling(const struct judge_facts *f)
{
	bool has_given_up = judge_is_lately(f->now, f->trail.gave_up, LATELY_NS) && !f->can_send;
	return (f->info.unanswered > 0 && has_gap(f, f->trail.trying_since, ANSWER_NS)) ||
	       has_given_up;
}

static bool
is_silent(const struct judge_facts *f)
{
	return f->can_send && has_gap(f, f->trail.unanswered_since, SILENT_NS);
}

static bool
is_well(const struct judge_facts *f)
{
	return f->can_send && !is_calling(f) && !is_silent(f);
}

/* A session that was made since shows that it is over. */
static bool
has_healed(const struct judge_facts *f, const struct wg_trouble *t)
{
	return f->can_send && !mono_is_before(f->info.session_born, t->latest);
}

static const char *
errno_name(int errnum)
{
	static const struct {
		int errnum;
		const char *name;
	} names[] = {{EPERM, "EPERM"}, {EACCES, "EACCES"}, {ENETUNREACH, "ENETUNREACH"},
		{EHOSTUNREACH, "EHOSTUNREACH"}, {ENETDOWN, "ENETDOWN"},
		{EADDRNOTAVAIL, "EADDRNOTAVAIL"}, {ECONNREFUSED, "ECONNREFUSED"},
		{EMSGSIZE, "EMSGSIZE"}, {ENOBUFS, "ENOBUFS"}, {EAGAIN, "EAGAIN"},
		{ENOMEM, "ENOMEM"}, {EAFNOSUPPORT, "EAFNOSUPPORT"}, {EINVAL, "EINVAL"}};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
		if (names[i].errnum == errnum) {
			return names[i].name;
		}
	}
	return "another error";
}

static bool
is_unreachable(int errnum)
{
	return errnum == ENETUNREACH || errnum == EHOSTUNREACH || errnum == ENETDOWN ||
	       errnum == EADDRNOTAVAIL;
}

static bool
is_forbidden(int errnum)
{
	return errnum == EPERM || errnum == EACCES;
}

static bool
has_fault(const struct judge_verdict *v, size_t from)
{
	for (size_t i = from; i < v->n; i++) {
		if (v->findings[i].severity == JUDGE_SEVERITY_FAULT) {
			return true;
		}
	}
	return false;
}

/* --- what the peer is for --- */

static void
judge_allowed(const struct judge_facts *f, struct judge_verdict *v)
{
	char prefix[IP_PREFIX_TEXT_MAX];
	struct judge_finding *x;
	if (f->taken.addr.family != IP_FAMILY_NONE) {
		ip_prefix_format(&f->taken, prefix);
		x = judge_add(v, "allowed_ip_taken",
			f->allowed_n == 0 ? JUDGE_SEVERITY_FAULT : JUDGE_SEVERITY_LOSS,
			"%s of %s belongs to %s now: an address has one peer, and the later word "
			"counts.",
			prefix, f->who, f->taken_by);
		judge_advise(x,
			"Take %s out of AllowedIPs of one of the two, and `weft reload %s`.",
			prefix, f->device);
	} else if (f->allowed_n == 0) {
		x = judge_add(v, "no_allowed_ips", JUDGE_SEVERITY_FAULT,
			"%s has no AllowedIPs: nothing is sent to it, and nothing from it is "
			"taken.",
			f->who);
		judge_advise(x,
			"Set AllowedIPs to its address in the overlay, and `weft reload %s`.",
			f->device);
	}
}

/* --- the way to its endpoint --- */

static void
judge_no_endpoint(const struct judge_facts *f, struct judge_verdict *v)
{
	struct judge_finding *x;
	char age[JUDGE_AGE_MAX];
	if (f->info.endpoint.addr.family != IP_FAMILY_NONE) {
		return;
	}
	if (f->has_name && !f->name.is_found) {
		x = judge_add(v, "name_unresolved", JUDGE_SEVERITY_FAULT,
			"The endpoint's name %s has no address: %s.", f->name.host,
			f->name.answer == WEFT_ENOENT   ? "there is no such name"
			: f->name.answer == WEFT_EAGAIN ? "no name server answers"
							: "the answer is awaited");
		if (f->name.answer == WEFT_ENOENT) {
			judge_advise(x,
				"Correct Endpoint in the file, or the name in the DNS; "
				"`getent hosts %s` shows what this machine knows.",
				f->name.host);
		} else {
			judge_advise(x,
				"Look at /etc/resolv.conf and whether its servers answer "
				"(`getent hosts %s`), or set Endpoint to an address. It is "
				"asked again at least every minute.",
				f->name.host);
		}
		judge_show(x, "asked %s ago", judge_age(f->now, f->name.asked_at, age));
		return;
	}
	x = judge_add(v, "no_endpoint", JUDGE_SEVERITY_FAULT,
		"%s has no endpoint: this side waits until it speaks first, and it has not.",
		f->who);
	judge_advise(x,
		"Have it send something (PersistentKeepalive = 25 over there does), or set "
		"its Endpoint here. If it tries and nothing comes, look at the firewall and "
		"the port forwarding of this side.");
}

static void
judge_outer(const struct judge_facts *f, struct judge_verdict *v)
{
	char addr[IP_ADDR_TEXT_MAX], age[JUDGE_AGE_MAX];
	const struct wg_trouble *loop = judge_trouble_at(f, WG_TROUBLE_LOOP, DATA_NS);
	struct judge_finding *x;
	if (!f->has_outer) {
		return;
	}
	ip_addr_format(&f->outer.to, addr);
	if (f->outer.is_ours || (loop && !has_healed(f, loop))) {
		x = judge_add(v, "endpoint_loop", JUDGE_SEVERITY_FAULT,
			"The endpoint %s is routed into the tunnel itself: its datagrams never "
			"leave.",
			addr);
		judge_advise(x,
			"Give it a route of its own: `ip route add %s via GATEWAY`. With a default "
			"route in the tunnel, leave Table = auto, which keeps them apart by "
			"FwMark.",
			addr);
		if (loop) {
			judge_show(x, "the last came back %s ago",
				judge_age(f->now, loop->latest, age));
		}
	} else if (!f->outer.is_there) {
		x = judge_add(v, "endpoint_unreachable", JUDGE_SEVERITY_FAULT,
			"This machine has no route to the endpoint %s.", addr);
		judge_advise(x,
			"Look at the network of this machine: `ip route get %s`. Is the cable in, "
			"the Wi-Fi up, a default route there?",
			addr);
	}
}

/* There is room in a session for so much of a path's MTU. */
static void
judge_mtu(const struct judge_facts *f, bool is_refused, struct judge_verdict *v)
{
	unsigned outer = f->outer.to.family == IP_FAMILY_V6 ? OUTER_BYTES_V6 : OUTER_BYTES_V4;
	bool is_known =
		f->has_outer && f->outer.is_there && !f->outer.is_ours && f->outer.mtu > outer;
	bool is_over = is_known && f->mtu + outer > f->outer.mtu;
	if (!is_over && !is_refused) {
		return;
	}
	struct judge_finding *x = judge_add(v, "mtu", JUDGE_SEVERITY_LOSS,
		"The MTU of %s, %u, is too large for the path to %s%s.", f->device, f->mtu, f->who,
		is_refused ? ": long datagrams are refused"
			   : ": long datagrams go in fragments, which many networks drop");
	if (is_over) {
		judge_advise(x, "Set MTU = %u in the file, or `ip link set %s mtu %u` for now.",
			f->outer.mtu - outer, f->device, f->outer.mtu - outer);
		judge_show(x, "the path by %s takes %u bytes, of which the tunnel needs %u",
			f->outer.dev, f->outer.mtu, outer);
	} else {
		judge_advise(x, "Set a smaller MTU in the file: 1280 fits nearly everywhere.");
		judge_show(x, "sends failed with EMSGSIZE");
	}
}

static void
judge_sends(const struct judge_facts *f, struct judge_verdict *v)
{
	const struct wg_trouble *t = judge_trouble_at(f, WG_TROUBLE_SEND, LATELY_NS);
	char to[ENDPOINT_TEXT_MAX], why[OS_ERROR_TEXT_MAX], age[JUDGE_AGE_MAX];
	struct judge_finding *x = NULL;
	if (!t || has_healed(f, t) ||
		(is_well(f) && !judge_is_lately(f->now, t->latest, SEND_NS))) {
		judge_mtu(f, false, v);
		return;
	}
	endpoint_format(&t->at, to);
	os_error_text(t->errnum, why, sizeof(why));
	if (is_forbidden(t->errnum)) {
		x = judge_add(v, "firewall", JUDGE_SEVERITY_FAULT,
			"A firewall of this machine refuses datagrams to %s: %s (%s).", to,
			errno_name(t->errnum), why);
		judge_advise(x,
			"Allow UDP to %s in the output hook: `nft list ruleset` or `iptables -S "
			"OUTPUT` shows the rule.",
			to);
	} else if (is_unreachable(t->errnum) && f->has_outer && f->outer.is_there) {
		x = judge_add(v, "endpoint_unreachable", JUDGE_SEVERITY_FAULT,
			"Sending to %s fails: %s (%s).", to, errno_name(t->errnum), why);
		judge_advise(x, "Look at `ip route get %s` and at a firewall that rejects.", to);
	} else if (!is_unreachable(t->errnum) && t->errnum != EMSGSIZE) {
		x = judge_add(v, "send_error", JUDGE_SEVERITY_LOSS, "Sending to %s fails: %s (%s).",
			to, errno_name(t->errnum), why);
		judge_advise(x, "%s",
			t->errnum == EAFNOSUPPORT
				? judge_drop_of(DROP_LINK_FAMILY)->advice
				: "If it is ENOBUFS or EAGAIN, less at a time; else the kernel's "
				  "log (dmesg) may say more.");
	}
	judge_show(x, "the last failed %s ago", judge_age(f->now, t->latest, age));
	judge_mtu(f, t->errnum == EMSGSIZE, v);
}

/* --- keys --- */

static enum judge_severity
severity_by_session(const struct judge_facts *f)
{
	return is_well(f) ? JUDGE_SEVERITY_NOTE : JUDGE_SEVERITY_FAULT;
}

static void
judge_psk(const struct judge_facts *f, struct judge_verdict *v)
{
	const struct wg_trouble *t = judge_trouble_of_key(f, WG_TROUBLE_RESPONSE, LATELY_NS);
	char age[JUDGE_AGE_MAX];
	if (!t || has_healed(f, t)) {
		return;
	}
	struct judge_finding *x = judge_add(v, "psk_mismatch", JUDGE_SEVERITY_FAULT,
		"%s answers, but not with our preshared key: PresharedKey differs on the two "
		"sides.",
		f->who);
	judge_advise(x, "%s. Both sides need the same line, or none; `weft reload` after it.",
		f->info.has_psk ? "One is set here: set the same over there"
				: "None is set here: take it away over there, or set it here");
	judge_show(x, "%" PRIu64 " answers did not authenticate, the last %s ago", t->n,
		judge_age(f->now, t->latest, age));
}

static void
judge_keys(const struct judge_facts *f, struct judge_verdict *v)
{
	const struct wg_trouble *mac1 = judge_trouble_at(f, WG_TROUBLE_MAC1, LATELY_NS);
	const struct wg_trouble *stranger = judge_trouble_at(f, WG_TROUBLE_STRANGER, LATELY_NS);
	char at[ENDPOINT_TEXT_MAX], key[KEY_BASE64_LEN + 1], age[JUDGE_AGE_MAX];
	struct judge_finding *x;
	if (stranger && !has_healed(f, stranger)) {
		key_encode_base64(stranger->key, key);
		x = judge_add(v, "other_key_there", severity_by_session(f),
			"The machine at the endpoint of %s calls with the key %s, which is not "
			"configured.",
			f->who, key);
		judge_advise(x,
			"If that is its key now, put it into PublicKey of its [Peer], and "
			"`weft reload %s`.",
			f->device);
		judge_show(x, "%" PRIu64 " handshakes from %s, the last %s ago", stranger->n,
			endpoint_format(&stranger->at, at),
			judge_age(f->now, stranger->latest, age));
	}
	if (mac1 && !has_healed(f, mac1)) {
		x = judge_add(v, "other_key_here", severity_by_session(f),
			"The machine at the endpoint of %s has another public key for this device "
			"than it has.",
			f->who);
		judge_advise(x,
			"Put the key that `wg show %s public-key` gives into PublicKey of "
			"the [Peer] over there.",
			f->device);
		judge_show(x, "%" PRIu64 " handshakes from %s, the last %s ago", mac1->n,
			endpoint_format(&mac1->at, at), judge_age(f->now, mac1->latest, age));
	}
}

/* --- one key, two places --- */

static void
add_places(const struct judge_facts *f, const struct endpoint *a, const struct endpoint *b,
	struct judge_verdict *v)
{
	char here[ENDPOINT_TEXT_MAX], there[ENDPOINT_TEXT_MAX];
	struct judge_finding *x = judge_add(v, "key_in_two_places", JUDGE_SEVERITY_LOSS,
		"The key of %s is in use at two places: %s and %s. They take the session from each "
		"other.",
		f->who, endpoint_format(a, here), endpoint_format(b, there));
	judge_advise(x,
		"A key is one machine's: make another with `weft genkey` for the second, and "
		"a [Peer] of its own here. If it is one machine, it has two ways to here "
		"and changes between them: fix one.");
}

/* Two places that it came to twice or more each. */
static bool
judge_flaps(const struct judge_facts *f, struct judge_verdict *v)
{
	const struct wg_trouble *places[2];
	size_t n = 0;
	for (size_t i = 0; i < WEFT_ARRAY_LEN(f->troubles); i++) {
		for (size_t k = 0; k < f->troubles[i].n && n < 2; k++) {
			const struct wg_trouble *t = &f->troubles[i].v[k];
			if (t->kind == WG_TROUBLE_MOVE && t->n >= 2 &&
				memcmp(t->key, f->info.public_key, sizeof(t->key)) == 0 &&
				judge_is_lately(f->now, t->latest, DATA_NS)) {
				places[n++] = t;
			}
		}
	}
	if (n == 2) {
		add_places(f, &places[0]->at, &places[1]->at, v);
	}
	return n == 2;
}

static void
judge_stale(const struct judge_facts *f, struct judge_verdict *v)
{
	const struct wg_trouble *t = judge_trouble_of_key(f, WG_TROUBLE_STALE, LATELY_NS);
	char at[ENDPOINT_TEXT_MAX], age[JUDGE_AGE_MAX];
	bool has_flaps = judge_flaps(f, v);
	if (!t || has_flaps) {
		return;
	}
	bool is_elsewhere = !ip_addr_is_equal(&t->at.addr, &f->info.endpoint.addr);
	if (f->can_send && is_elsewhere) {
		add_places(f, &f->info.endpoint, &t->at, v);
		judge_show(&v->findings[v->n - 1],
			"the one with the older clock is refused; the last %s ago",
			judge_age(f->now, t->latest, age));
		return;
	}
	if (has_healed(f, t)) {
		return;
	}
	struct judge_finding *x = judge_add(v, "stale_timestamp",
		f->can_send ? JUDGE_SEVERITY_LOSS : JUDGE_SEVERITY_FAULT,
		"Handshakes of %s are refused: their time is older than that of one before. Its "
		"clock went backward, or its key was used elsewhere by a clock that is ahead.",
		f->who);
	judge_advise(x,
		"Set the clock over there (`timedatectl`, NTP). If it is right now and was "
		"ahead before, `weft down %s` and `weft up %s` here forget the old time.",
		f->device, f->device);
	judge_show(x, "%" PRIu64 " from %s, the last %s ago", t->n, endpoint_format(&t->at, at),
		judge_age(f->now, t->latest, age));
}

/* --- handshakes --- */

static void
judge_probe(const struct judge_facts *f, struct judge_verdict *v)
{
	char to[ENDPOINT_TEXT_MAX], why[OS_ERROR_TEXT_MAX];
	struct judge_finding *x;
	if (!f->is_probed || f->probe_errnum == 0) {
		return;
	}
	endpoint_format(&f->info.endpoint, to);
	os_error_text(f->probe_errnum, why, sizeof(why));
	if (f->probe_errnum == ECONNREFUSED) {
		x = judge_add(v, "port_closed", JUDGE_SEVERITY_FAULT,
			"Nobody listens at %s: the port is closed, or a firewall there rejects.",
			to);
		judge_advise(x,
			"Start WireGuard over there, or correct the port of Endpoint here. If "
			"it runs, let its firewall accept UDP to that port.");
		judge_show(x, "a datagram sent there came back as port unreachable");
	} else if (is_unreachable(f->probe_errnum) || is_forbidden(f->probe_errnum)) {
		x = judge_add(v, "host_unreachable", JUDGE_SEVERITY_FAULT,
			"%s cannot be reached: %s (%s).", to, errno_name(f->probe_errnum), why);
		judge_advise(x,
			"Is the machine on, and is that its address? A router or firewall on "
			"the way may reject, too: `ping` and `traceroute` show how far it "
			"goes.");
		judge_show(x, "a datagram sent there came back with that error");
	}
}

static void
show_tries(const struct judge_facts *f, struct judge_finding *x)
{
	char since[JUDGE_AGE_MAX], last[JUDGE_AGE_MAX];
	if (f->info.unanswered > 0) {
		judge_show(x, "%u %s within %s, the last %s ago", f->info.unanswered,
			f->info.unanswered == 1 ? "try" : "tries",
			judge_age(f->now, f->trail.trying_since, since),
			judge_age(f->now, f->trail.tried, last));
	} else {
		judge_show(x, "given up %s ago, after %u tries",
			judge_age(f->now, f->trail.gave_up, since), f->trail.gave_up_tries);
	}
}

static void
judge_no_answer(const struct judge_facts *f, struct judge_verdict *v)
{
	char to[ENDPOINT_TEXT_MAX], age[JUDGE_AGE_MAX];
	endpoint_format(&f->info.endpoint, to);
	struct judge_finding *x = judge_add(v, "no_answer", JUDGE_SEVERITY_FAULT,
		"%s does not answer handshakes that are sent to %s.", f->who, to);
	judge_advise(x,
		"Over there, in this order: does WireGuard run, and with port %u; does the "
		"firewall "
		"(and the router before it) let UDP in to that port; does its [Peer] have this "
		"device's public key (`wg show %s public-key` here); is its own key the one that "
		"is "
		"configured here? And is %s still its address?",
		f->info.endpoint.port, f->device, to);
	show_tries(f, x);
	if (f->has_name) {
		judge_show(x, "%s is from the name %s, asked %s ago", to, f->name.host,
			judge_age(f->now, f->name.asked_at, age));
	}
	if (f->is_probed) {
		judge_show(x, "no error comes back from there: nothing rejects, all is swallowed");
	}
}

/* The peer's handshakes come, and our answers lead to nothing. */
static void
judge_incomplete(const struct judge_facts *f, struct judge_verdict *v)
{
	char age[JUDGE_AGE_MAX];
	if (f->can_send || f->trail.calls_unused < UNUSED_CALLS_MIN ||
		!judge_is_lately(f->now, f->trail.called, LATELY_NS)) {
		return;
	}
	struct judge_finding *x = judge_add(v, "handshake_incomplete", JUDGE_SEVERITY_FAULT,
		"%s calls and is answered, but does not go on: our answers do not reach it%s.",
		f->who, f->info.has_psk ? ", or its PresharedKey is another" : "");
	judge_advise(x,
		"Over there, let UDP from this machine in; on the way, look for a NAT or "
		"firewall that drops answers. %s `weft why` over there tells which.",
		f->info.has_psk ? "Compare PresharedKey on both sides."
				: "A PresharedKey that is set over there alone does the same.");
	judge_show(x, "%u handshakes were answered in vain, the last %s ago", f->trail.calls_unused,
		judge_age(f->now, f->trail.called, age));
}

static void
judge_handshakes(const struct judge_facts *f, struct judge_verdict *v, size_t first)
{
	const struct wg_trouble *cookie = judge_trouble_of_key(f, WG_TROUBLE_COOKIE, LATELY_NS);
	char age[JUDGE_AGE_MAX];
	judge_incomplete(f, v);
	if (!is_calling(f)) {
		return;
	}
	if (cookie && !has_healed(f, cookie)) {
		struct judge_finding *x = judge_add(v, "peer_under_load", JUDGE_SEVERITY_FAULT,
			"%s is under load and puts handshakes off until they bring its cookie.",
			f->who);
		judge_advise(x, "Wait: the next try, within 5 s, brings it. If it lasts, somebody "
				"floods that machine with handshakes.");
		judge_show(
			x, "the last cookie came %s ago", judge_age(f->now, cookie->latest, age));
	}
	if (!has_fault(v, first)) {
		judge_probe(f, v);
	}
	if (!has_fault(v, first)) {
		judge_no_answer(f, v);
	} else {
		show_tries(f, &v->findings[v->n - 1]);
	}
}

/* --- the session --- */

static void
judge_silence(const struct judge_facts *f, struct judge_verdict *v)
{
	char age[JUDGE_AGE_MAX];
	struct judge_finding *x;
	if (is_silent(f) && !is_calling(f)) {
		judge_age(f->now, f->trail.unanswered_since, age);
		x = judge_add(v, "silent", JUDGE_SEVERITY_FAULT,
			"Since %s ago %s has not answered what is sent to it.", age, f->who);
		judge_advise(x, "It may be off or have lost its network, or the way there has "
				"changed. A new handshake begins now by itself; ask again in some "
				"seconds.");
	} else if (!f->can_send && !is_calling(f) && f->info.unanswered > 0) {
		x = judge_add(v, "calling", JUDGE_SEVERITY_NOTE,
			"There is no session with %s yet: a handshake was just sent.", f->who);
		judge_advise(x, "Ask again in a second: its answer may be under way.");
		judge_show(x, "last sent: %s ago", judge_age(f->now, f->trail.tried, age));
	} else if (!f->can_send && !is_calling(f)) {
		x = judge_add(v, "idle", JUDGE_SEVERITY_NOTE,
			"There is no session with %s, and nothing asks for one.", f->who);
		judge_advise(x,
			"Send something to it, `ping` say, and ask again: a session is made "
			"with the first packet.");
		judge_show(x, "last sent: %s%s", judge_age(f->now, f->trail.sent, age),
			f->trail.sent.ns ? " ago" : "");
	}
}

static void
judge_sources(const struct judge_facts *f, struct judge_verdict *v)
{
	char addr[IP_ADDR_TEXT_MAX], age[JUDGE_AGE_MAX];
	for (size_t i = 0; i < f->sources_n; i++) {
		const struct judge_source *s = &f->sources[i];
		if (!judge_is_lately(f->now, s->latest, DATA_NS)) {
			continue;
		}
		ip_addr_format(&s->addr, addr);
		struct judge_finding *x = judge_add(v, "source_refused", JUDGE_SEVERITY_LOSS,
			"%s sends packets from %s, which is %s%s: they are dropped.", f->who, addr,
			s->owner[0] ? "in AllowedIPs of " : "in nobody's AllowedIPs", s->owner);
		judge_advise(x,
			"If %s is behind it, add it to its AllowedIPs here and `weft reload %s`; "
			"else correct the source over there (its Address, or a missing NAT).",
			addr, f->device);
		judge_show(x, "the last %s ago", judge_age(f->now, s->latest, age));
	}
}

static void
judge_loss(const struct judge_facts *f, struct judge_verdict *v)
{
	const struct wg_peer_trail *t = &f->trail;
	bool is_on = f->ally.has_fec;
	if (!f->can_send || is_on || t->expected < LOSS_PACKETS_MIN || t->arrived >= t->expected) {
		return;
	}
	uint64_t lost = t->expected - t->arrived;
	if (lost * 100 < t->expected * LOSS_PERCENT_MIN) {
		return;
	}
	struct judge_finding *x = judge_add(v, "loss", JUDGE_SEVERITY_LOSS,
		"%" PRIu64 " %% of what %s sends is lost on the way, and loss recovery is off.",
		lost * 100 / t->expected, f->who);
	char key[KEY_BASE64_LEN + 1];
	if (f->ally.policy.fec.mode == FEC_MODE_OFF || !f->ally.policy.has_extensions) {
		judge_advise(x,
			"`weft set %s peer %s %sfec auto`, or take Fec = off out of the file; "
			"on both sides.",
			f->device, key_encode_base64(f->info.public_key, key),
			f->ally.policy.has_extensions ? "" : "extensions on ");
	} else {
		judge_advise(x,
			"It is on here, and not over there: with weft there, and without Fec "
			"= off, it is recovered. Plain WireGuard cannot.");
	}
	judge_show(x, "%" PRIu64 " of %" PRIu64 " messages of the present keys did not come", lost,
		t->expected);
}

void
judge_peer(const struct judge_facts *f, struct judge_verdict *v)
{
	size_t first = v->n;
	judge_allowed(f, v);
	size_t first_of_way = v->n;
	judge_no_endpoint(f, v);
	judge_outer(f, v);
	judge_sends(f, v);
	judge_psk(f, v);
	judge_keys(f, v);
	judge_stale(f, v);
	judge_handshakes(f, v, first_of_way);
	if (!has_fault(v, first)) {
		judge_silence(f, v);
	}
	judge_sources(f, v);
	judge_loss(f, v);
}

bool
judge_wants_probe(const struct judge_facts *f)
{
	return f->has_peer && !f->is_probed && is_calling(f) && f->has_outer && f->outer.is_there &&
	       !f->outer.is_ours;
}
