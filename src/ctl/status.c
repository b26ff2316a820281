/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/status.h"

#include <math.h>
#include <string.h>

#include "ctl/peers.h"
#include "node/node.h"
#include "node/policy.h"
#include "pkt/drop.h"
#include "wire/conf.h"
#include "wire/key.h"

static json_t *
key_json(bool has_key, const uint8_t key[KEY_LEN])
{
	char text[KEY_BASE64_LEN + 1];
	return has_key ? json_string(key_encode_base64(key, text)) : json_null();
}

static json_t *
count_json(uint64_t n)
{
	/* JSON numbers of jansson are signed; a counter needs centuries to get there. */
	return json_integer((json_int_t)n);
}

/* JSON readers agree on whole numbers up to 2^53 alone; milliseconds are fine enough. */
static json_t *
seconds_json(int64_t ns)
{
	return json_real((double)(ns / WEFT_NS_PER_MS) / 1000.0);
}

static json_t *
facts_json(struct node *n)
{
	struct node_facts f;
	uint8_t public_key[WG_KEY_LEN] = {0};
	node_facts(n, &f);
	bool has_key = wg_device_public_key(node_lock_shared(n), public_key);
	node_unlock_shared(n);
	return json_pack(
		"{s:s, s:o, s:I, s:i, s:b, s:i, s:I, s:i, s:s, s:{s:b, s:b, s:b, s:b}, s:o}",
		"name", f.name, "public_key", key_json(has_key, public_key), "ifindex",
		(json_int_t)f.ifindex, "mtu", (int)f.mtu, "is_up", (int)f.is_up, "listen_port",
		(int)f.listen_port, "fwmark", (json_int_t)f.fwmark, "workers", (int)f.workers,
		"aead", f.aead, "offload", "tso", (int)f.has_tso, "uso", (int)f.has_uso, "udp_gso",
		(int)f.has_udp_gso, "udp_gro", (int)f.has_udp_gro, "uptime_s",
		seconds_json(f.uptime_ns));
}

static json_t *
drops_json(const struct drop_counts *d)
{
	json_t *o = json_object();
	for (unsigned i = 0; o && i < DROP_COUNT; i++) {
		if (json_object_set_new(o, drop_name((enum drop_reason)i), count_json(d->n[i]))) {
			json_decref(o);
			return NULL;
		}
	}
	return o;
}

static json_t *
link_json(const struct link_stats *l)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "rx_bytes", count_json(l->rx_bytes),
		"rx_datagrams", count_json(l->rx_datagrams), "rx_calls", count_json(l->rx_calls),
		"tx_bytes", count_json(l->tx_bytes), "tx_datagrams", count_json(l->tx_datagrams),
		"tx_calls", count_json(l->tx_calls), "gso_off", count_json(l->gso_off_count));
}

static json_t *
port_json(const struct port_stats *p)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "rx_bytes", count_json(p->rx_bytes),
		"rx_frames", count_json(p->rx_frames), "tx_bytes", count_json(p->tx_bytes),
		"tx_frames", count_json(p->tx_frames), "join_off", count_json(p->join_off_count));
}

json_t *
ctl_status_device(struct node *n, const char *version)
{
	struct node_stats s;
	node_stats(n, &s);
	size_t peers = wg_device_peer_count(node_lock_shared(n));
	node_unlock_shared(n);
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "version", version,
		"device", facts_json(n), "link", link_json(&s.link), "port", port_json(&s.port),
		"drops", drops_json(&s.drops), "handshakes_rx", count_json(s.handshakes_rx),
		"keepalives_rx", count_json(s.keepalives_rx), "gaps", count_json(s.gaps),
		"peer_count", count_json(peers));
}

/* JSON has no infinity; what is not finite is not known. */
static json_t *
real_json(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *
ms_json(int64_t ns)
{
	return json_real((double)(ns / WEFT_NS_PER_US) / 1000.0);
}

static json_t *
policy_json(const struct ally_policy *policy)
{
	struct conf_policy c;
	char fec[CONF_FEC_TEXT_MAX];
	policy_to_conf(policy, &c);
	return json_pack("{s:b, s:s, s:i, s:s}", "extensions", (int)c.has_extensions, "fec",
		conf_fec_format(&c, fec), "fec_delay_ms", (int)c.fec_delay_ms, "cipher",
		conf_cipher_text(c.cipher));
}

static json_t *
extensions_json(const struct ally_info *a)
{
	static const char *const states[] = {
		[ALLY_STATE_UNKNOWN] = "unknown",
		[ALLY_STATE_ASKING] = "asking",
		[ALLY_STATE_AGREED] = "agreed",
		[ALLY_STATE_STOCK] = "stock",
		[ALLY_STATE_OFF] = "off",
	};
	return json_pack("{s:s, s:s}", "state", states[a->state], "name", a->name);
}

static json_t *
fec_rx_json(const struct fec_decoder_stats *r)
{
	int64_t hold_avg_ns = r->held > 0 ? (int64_t)(r->hold_ns_sum / r->held) : 0;
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
			 "s:o, s:o, s:o}",
		"received", count_json(r->received), "lost", count_json(r->lost), "runs",
		count_json(r->runs), "recovered_ahead", count_json(r->recovered_ahead),
		"recovered_answer", count_json(r->recovered_answer), "given_up",
		count_json(r->given_up), "late", count_json(r->late), "overflowed",
		count_json(r->overflowed), "repairs", count_json(r->repairs), "repairs_useless",
		count_json(r->repairs_useless), "repairs_refused", count_json(r->repairs_refused),
		"held", count_json(r->held), "hold_avg_ms", ms_json(hold_avg_ns), "hold_max_ms",
		ms_json((int64_t)r->hold_ns_max), "hold_sum_ms", ms_json((int64_t)r->hold_ns_sum),
		"unawake", count_json(r->unawake), "jumps", count_json(r->jumps));
}

/* Without a state: what is set, and why nothing is done. */
static json_t *
fec_json(const struct ally_info *a)
{
	static const char *const modes[] = {
		[FEC_MODE_OFF] = "off",
		[FEC_MODE_AUTO] = "auto",
		[FEC_MODE_FIXED] = "fixed",
	};
	const struct fec_recovery_stats *f = &a->fec;
	bool is_off = a->policy.fec.mode == FEC_MODE_OFF;
	enum fec_why why = a->has_fec ? f->why : is_off ? FEC_WHY_OFF : FEC_WHY_NOT_AGREED;
	json_t *o = json_pack("{s:s, s:s, s:s}", "mode", modes[a->policy.fec.mode], "why",
		fec_why_name(why), "why_text", fec_why_text(why));
	if (!o || !a->has_fec) {
		return o;
	}
	json_t *more = json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
		"s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"loss", real_json(f->loss), "burst", real_json(f->burst), "residual",
		real_json(f->residual), "overhead", real_json(f->overhead), "ahead_share",
		real_json(f->ahead_share), "rtt_ms",
		f->rtt_ns > 0 ? ms_json(f->rtt_ns) : json_null(), "queue_ms", ms_json(f->queue_ns),
		"sources", count_json(f->sources), "source_bytes", count_json(f->source_bytes),
		"repairs_ahead", count_json(f->repairs_ahead), "repairs_answer",
		count_json(f->repairs_answer), "repairs_tail", count_json(f->repairs_tail),
		"repair_bytes", count_json(f->repair_bytes), "feedback_tx",
		count_json(f->feedback_tx), "feedback_rx", count_json(f->feedback_rx), "ce_marked",
		count_json(f->ce_marked), "peer_lost", count_json(f->peer_lost),
		"peer_recovered_ahead", count_json(f->peer_recovered_ahead),
		"peer_recovered_answer", count_json(f->peer_recovered_answer), "peer_given_up",
		count_json(f->peer_given_up), "memory_bytes", count_json(f->memory),
		"memory_refusals", count_json(f->memory_refusals), "rx", fec_rx_json(&f->rx));
	bool ok = more && json_object_update(o, more) == 0;
	json_decref(more);
	if (!ok) {
		json_decref(o);
		return NULL;
	}
	return o;
}

static json_t *
agreed_json(const struct ally_info *a)
{
	bool is_aes = a->cipher == AEAD_CIPHER_AES_256_GCM;
	return json_pack("{s:o, s:o, s:s, s:o}", "policy", policy_json(&a->policy), "extensions",
		extensions_json(a), "cipher",
		conf_cipher_text(is_aes ? CONF_CIPHER_AES_256_GCM : CONF_CIPHER_CHACHA20_POLY1305),
		"fec", fec_json(a));
}

json_t *
ctl_status_peer(const struct ctl_peer *p, struct wg_time now)
{
	const struct wg_peer_info *i = &p->info;
	char endpoint[ENDPOINT_TEXT_MAX];
	bool has_endpoint = i->endpoint.addr.family != IP_FAMILY_NONE;
	bool had_handshake = i->last_handshake_wall_ns != 0;
	/* The wall clock may have been set back since. */
	int64_t age_ns = now.wall_ns - i->last_handshake_wall_ns;
	json_t *o = json_pack(
		"{s:o, s:b, s:s?, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
		"s:o, s:o, s:o}",
		"public_key", key_json(true, i->public_key), "has_preshared_key", (int)i->has_psk,
		"endpoint", has_endpoint ? endpoint_format(&i->endpoint, endpoint) : NULL,
		"persistent_keepalive_s", (int)i->keepalive_s, "latest_handshake_s",
		had_handshake ? seconds_json(i->last_handshake_wall_ns) : json_null(),
		"handshake_age_s",
		had_handshake ? seconds_json(age_ns > 0 ? age_ns : 0) : json_null(),
		"session_age_s",
		i->has_session ? seconds_json(mono_diff_ns(now.mono, i->session_born))
			       : json_null(),
		"rx_bytes", count_json(i->rx_bytes), "tx_bytes", count_json(i->tx_bytes),
		"rx_packets", count_json(i->rx_packets), "tx_packets", count_json(i->tx_packets),
		"handshakes", count_json(i->handshakes), "handshake_tries",
		count_json(i->handshake_tries), "stale_initiations",
		count_json(i->stale_initiations), "rejected_moves", count_json(i->rejected_moves),
		"staged_packets", count_json(i->staged_packets), "staged_bytes",
		count_json(i->staged_bytes));
	json_t *agreed = o ? agreed_json(&p->ally) : NULL;
	bool ok = agreed && json_object_update(o, agreed) == 0;
	json_decref(agreed);
	if (!ok) {
		json_decref(o);
		return NULL;
	}
	return o;
}
