/* SPDX-License-Identifier: Apache-2.0 */
/* A peer's line is written without a tree in between: there may be 10,000 of them a second. */
#include "ctl/sample.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/event.h"
#include "node/policy.h"
#include "pkt/drop.h"
#include "wire/conf.h"
#include "wire/key.h"

/* Longest line of a peer: some 900 bytes of names and numbers, and two names of 63 characters,
 * each of which may be escaped. */
#define PEER_LINE_MAX 2048

static double
rate(uint64_t now, uint64_t before, int64_t elapsed_ns)
{
	/* A peer that was removed and added again counts from zero. */
	return now >= before
		       ? 8.0 * (double)(now - before) * (double)WEFT_NS_PER_S / (double)elapsed_ns
		       : 0;
}

static json_t *
rate_json(uint64_t now, uint64_t before, int64_t elapsed_ns)
{
	return elapsed_ns > 0 ? json_integer((json_int_t)rate(now, before, elapsed_ns))
			      : json_null();
}

static json_t *
drops_json(const struct drop_counts *d)
{
	json_t *o = json_object();
	for (unsigned i = 0; o && i < DROP_COUNT; i++) {
		if (d->n[i] > 0 && json_object_set_new(o, drop_name((enum drop_reason)i),
					   json_integer((json_int_t)d->n[i]))) {
			json_decref(o);
			return NULL;
		}
	}
	return o;
}

static json_t *
gone_json(const struct sample_device *s)
{
	char text[KEY_BASE64_LEN + 1];
	json_t *a = json_array();
	for (size_t i = 0; a && i < s->gone_n; i++) {
		if (json_array_append_new(a, json_string(key_encode_base64(s->gone[i], text)))) {
			json_decref(a);
			return NULL;
		}
	}
	return a;
}

char *
ctl_sample_device(const struct sample_device *s)
{
	const struct node_facts *f = &s->facts;
	const struct link_stats *l = &s->stats.link;
	json_t *device = json_pack("{s:s, s:b, s:i, s:i, s:s, s:f}", "name", f->name, "is_up",
		(int)f->is_up, "mtu", (int)f->mtu, "listen_port", (int)f->listen_port, "aead",
		f->aead, "uptime_s", ctl_event_seconds(f->uptime_ns));
	json_t *link = json_pack("{s:I, s:I, s:o, s:o}", "rx_bytes", (json_int_t)l->rx_bytes,
		"tx_bytes", (json_int_t)l->tx_bytes, "rx_bits_s",
		rate_json(l->rx_bytes, s->base.rx_bytes, s->elapsed_ns), "tx_bits_s",
		rate_json(l->tx_bytes, s->base.tx_bytes, s->elapsed_ns));
	/* json_pack() gives up what is NULL together with the rest. */
	return ctl_event_line(json_pack("{s:s, s:f, s:o, s:b, s:I, s:o, s:o, s:o, s:o}", "sample",
		"device", "time_s", ctl_event_seconds(s->wall_ns), "elapsed_ms",
		s->elapsed_ns > 0 ? json_integer(s->elapsed_ns / WEFT_NS_PER_MS) : json_null(),
		"is_full", (int)s->is_full, "peer_count", (json_int_t)s->peers_n, "device", device,
		"link", link, "drops", drops_json(&s->stats.drops), "gone", gone_json(s)));
}

struct text {
	char *p;
	size_t len, cap;
};

WEFT_PRINTF(2, 3)
static void
put(struct text *t, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(t->p + t->len, t->cap - t->len, fmt, ap);
	va_end(ap);
	size_t room = t->cap - t->len - 1;
	t->len += n > 0 && (size_t)n < room ? (size_t)n : room;
}

/* Of printable ASCII. */
static void
put_name(struct text *t, const char *member, const char *name)
{
	put(t, "\"%s\":\"", member);
	for (; *name; name++) {
		put(t, *name == '"' || *name == '\\' ? "\\%c" : "%c", *name);
	}
	put(t, "\",");
}

static void
put_share(struct text *t, const char *member, double v)
{
	put(t, isfinite(v) ? "\"%s\":%.9g," : "\"%s\":null,", member, v);
}

static void
put_traffic(struct text *t, const struct sample_peer *s)
{
	const struct wg_peer_info *i = &s->info;
	put(t,
		"\"rx_bytes\":%" PRIu64 ",\"tx_bytes\":%" PRIu64 ",\"rx_packets\":%" PRIu64
		",\"tx_packets\":%" PRIu64 ",",
		i->rx_bytes, i->tx_bytes, i->rx_packets, i->tx_packets);
	if (s->elapsed_ns > 0) {
		put(t, "\"rx_bits_s\":%.0f,\"tx_bits_s\":%.0f,",
			rate(i->rx_bytes, s->base.rx_bytes, s->elapsed_ns),
			rate(i->tx_bytes, s->base.tx_bytes, s->elapsed_ns));
	} else {
		put(t, "\"rx_bits_s\":null,\"tx_bits_s\":null,");
	}
}

static void
put_session(struct text *t, const struct wg_peer_info *i)
{
	char endpoint[ENDPOINT_TEXT_MAX];
	if (i->endpoint.addr.family != IP_FAMILY_NONE) {
		put(t, "\"endpoint\":\"%s\",", endpoint_format(&i->endpoint, endpoint));
	} else {
		put(t, "\"endpoint\":null,");
	}
	if (i->last_handshake_wall_ns) {
		put(t, "\"latest_handshake_s\":%.3f,",
			ctl_event_seconds(i->last_handshake_wall_ns));
	} else {
		put(t, "\"latest_handshake_s\":null,");
	}
	put(t,
		"\"has_session\":%s,\"handshakes\":%" PRIu64 ",\"handshake_tries\":%" PRIu64
		",\"unanswered\":%" PRIu32 ",",
		i->has_session ? "true" : "false", i->handshakes, i->handshake_tries,
		i->unanswered);
}

static void
put_agreed(struct text *t, const struct ally_info *a)
{
	static const char *const states[] = {
		[ALLY_STATE_UNKNOWN] = "unknown",
		[ALLY_STATE_ASKING] = "asking",
		[ALLY_STATE_AGREED] = "agreed",
		[ALLY_STATE_STOCK] = "stock",
		[ALLY_STATE_OFF] = "off",
	};
	struct conf_policy c;
	char fec[CONF_FEC_TEXT_MAX];
	bool is_aes = a->cipher == AEAD_CIPHER_AES_256_GCM;
	policy_to_conf(&a->policy, &c);
	put(t, "\"extensions\":{");
	put_name(t, "name", a->name);
	put(t,
		"\"state\":\"%s\"},\"cipher\":\"%s\",\"policy\":{\"fec\":\"%s\",\"fec_delay_ms\":%"
		"u},",
		states[a->state],
		conf_cipher_text(is_aes ? CONF_CIPHER_AES_256_GCM : CONF_CIPHER_CHACHA20_POLY1305),
		conf_fec_format(&c, fec), (unsigned)c.fec_delay_ms);
}

static void
put_fec(struct text *t, const struct ally_info *a)
{
	const struct fec_recovery_stats *f = &a->fec;
	const struct fec_decoder_stats *r = &f->rx;
	bool is_off = a->policy.fec.mode == FEC_MODE_OFF;
	enum fec_why why = a->has_fec ? f->why : is_off ? FEC_WHY_OFF : FEC_WHY_NOT_AGREED;
	put(t, "\"fec\":{");
	if (a->has_fec) {
		double hold_ns = r->held > 0 ? (double)(r->hold_ns_sum / r->held) : 0;
		put_share(t, "loss", f->loss);
		put_share(t, "burst", f->burst);
		put_share(t, "residual", f->residual);
		put_share(t, "overhead", f->overhead);
		put(t,
			"\"rx\":{\"received\":%" PRIu64 ",\"lost\":%" PRIu64
			",\"given_up\":%" PRIu64 ",\"hold_avg_ms\":%.3f},",
			r->received, r->lost, r->given_up, hold_ns / (double)WEFT_NS_PER_MS);
	}
	put(t, "\"why\":\"%s\",\"why_text\":\"%s\"}", fec_why_name(why), fec_why_text(why));
}

char *
ctl_sample_peer(const struct sample_peer *s)
{
	char line[PEER_LINE_MAX], key[KEY_BASE64_LEN + 1];
	struct text t = {.p = line, .cap = sizeof(line)};
	put(&t, "{\"sample\":\"peer\",\"public_key\":\"%s\",",
		key_encode_base64(s->info.public_key, key));
	if (s->name[0]) {
		put_name(&t, "name", s->name);
	}
	put_traffic(&t, s);
	put_session(&t, &s->info);
	put_agreed(&t, &s->ally);
	put_fec(&t, &s->ally);
	put(&t, "}\n");
	return strdup(line);
}

char *
ctl_sample_end(uint64_t peers)
{
	char line[64];
	snprintf(line, sizeof(line), "{\"sample\":\"end\",\"peers\":%" PRIu64 "}\n", peers);
	return strdup(line);
}
