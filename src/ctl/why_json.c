/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/why_json.h"

#include "ctl/judge.h"
#include "wire/key.h"

static json_t *
lines_json(const char (*lines)[JUDGE_LINE_MAX], size_t n)
{
	json_t *v = json_array();
	for (size_t i = 0; v && i < n; i++) {
		if (json_array_append_new(v, json_string(lines[i]))) {
			json_decref(v);
			return NULL;
		}
	}
	return v;
}

static json_t *
findings_json(const struct judge_verdict *v)
{
	json_t *all = json_array();
	for (size_t i = 0; all && i < v->n; i++) {
		const struct judge_finding *x = &v->findings[i];
		if (json_array_append_new(
			    all, json_pack("{s:s, s:s, s:s, s:s, s:o}", "code", x->code, "severity",
					 judge_severity_name(x->severity), "text", x->text,
					 "advice", x->advice, "evidence",
					 lines_json(x->evidence, x->evidence_n)))) {
			json_decref(all);
			return NULL;
		}
	}
	return all;
}

static json_t *
age_json(const struct judge_facts *f, struct mono at)
{
	if (at.ns == 0) {
		return json_null();
	}
	return json_real((double)(mono_diff_ns(f->now, at) / WEFT_NS_PER_MS) / 1000.0);
}

static json_t *
drop_times_json(const struct judge_facts *f)
{
	json_t *all = json_object();
	for (unsigned i = 0; all && i < DROP_COUNT; i++) {
		const struct drop_time *t = &f->drops.of[i];
		if (t->n > 0 && json_object_set_new(all, drop_name((enum drop_reason)i),
					json_pack("{s:I, s:o, s:o}", "n", (json_int_t)t->n,
						"first_age_s", age_json(f, t->first),
						"latest_age_s", age_json(f, t->latest)))) {
			json_decref(all);
			return NULL;
		}
	}
	return all;
}

static json_t *
endpoint_json(const struct endpoint *e)
{
	char text[ENDPOINT_TEXT_MAX];
	return e->addr.family != IP_FAMILY_NONE ? json_string(endpoint_format(e, text))
						: json_null();
}

static json_t *
why_facts_json(const struct judge_facts *f)
{
	const struct wg_peer_trail *t = &f->trail;
	json_t *o = json_pack("{s:b, s:b, s:i, s:o}", "is_up", (int)f->is_up, "has_key",
		(int)f->has_key, "mtu", (int)f->mtu, "drops", drop_times_json(f));
	if (!o || !f->has_peer) {
		return o;
	}
	json_t *peer = json_pack(
		"{s:o, s:b, s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:i, s:I, s:I, "
		"s:I, s:I}",
		"endpoint", endpoint_json(&f->info.endpoint), "has_session", (int)f->can_send,
		"session_age_s", age_json(f, f->can_send ? f->info.session_born : (struct mono){0}),
		"received_age_s", age_json(f, t->received), "sent_age_s", age_json(f, t->sent),
		"unanswered_since_age_s", age_json(f, t->unanswered_since), "tries",
		(int)f->info.unanswered, "trying_since_age_s", age_json(f, t->trying_since),
		"gave_up_age_s", age_json(f, t->gave_up), "called_age_s", age_json(f, t->called),
		"calls_unused", (int)t->calls_unused, "expected", (json_int_t)t->expected,
		"arrived", (json_int_t)t->arrived, "rx_packets", (json_int_t)f->info.rx_packets,
		"tx_packets", (json_int_t)f->info.tx_packets);
	if (!peer || json_object_set_new(o, "peer", peer)) {
		json_decref(o);
		return NULL;
	}
	if (f->has_outer &&
		json_object_set_new(o, "path",
			json_pack("{s:b, s:s, s:i}", "has_route", (int)f->outer.is_there,
				"interface", f->outer.dev, "mtu", (int)f->outer.mtu))) {
		json_decref(o);
		return NULL;
	}
	return o;
}

static json_t *
target_json(const struct judge_facts *f, const char *peer_name)
{
	char addr[IP_ADDR_TEXT_MAX], key[KEY_BASE64_LEN + 1];
	bool is_address = f->address.family != IP_FAMILY_NONE;
	return json_pack("{s:s?, s:s?, s:s?}", "address",
		is_address ? ip_addr_format(&f->address, addr) : NULL, "public_key",
		f->has_peer ? key_encode_base64(f->info.public_key, key) : NULL, "name", peer_name);
}

json_t *
why_json(const struct judge_facts *f, const struct judge_verdict *v, const char *peer_name,
	uint32_t fwmark)
{
	return json_pack("{s:s, s:o, s:b, s:s, s:o, s:o, s:o, s:{s:b, s:o, s:I}}", "device",
		f->device, "target", target_json(f, peer_name), "flows", (int)v->flows, "summary",
		v->summary, "evidence", lines_json(v->evidence, v->evidence_n), "findings",
		findings_json(v), "facts", why_facts_json(f), "probe", "is_wanted",
		(int)judge_wants_probe(f), "endpoint", endpoint_json(&f->info.endpoint), "fwmark",
		(json_int_t)fwmark);
}
