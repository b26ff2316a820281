/* SPDX-License-Identifier: Apache-2.0 */
#include "attacker.h"

#include <stdlib.h>
#include <string.h>

#include "wg/cookie.h"
#include "wg/replay.h"
#include "wire/wg.h"

void
sim_attacker_init(struct sim_attacker *a, struct sim_report *report, struct sim_host *hosts,
	unsigned n, uint64_t seed)
{
	*a = (struct sim_attacker){.report = report, .hosts = hosts, .n = n};
	rng_init(&a->chance, seed);
	a->records = malloc(SIM_RECORDS_MAX * sizeof(*a->records));
}

void
sim_attacker_fini(struct sim_attacker *a)
{
	free(a->records);
	free(a->by_counter);
}

void
sim_attacker_watch_window(struct sim_attacker *a)
{
	a->by_counter = calloc(SIM_WINDOW_RECORDS, sizeof(*a->by_counter));
}

static void
keep(struct sim_record *r, unsigned host, const struct sim_datagram *d)
{
	r->host = host;
	r->from = d->from;
	r->len = d->len;
	memcpy(r->bytes, d->bytes, d->len);
}

void
sim_attacker_tap(void *ctx, unsigned host, const struct sim_datagram *d)
{
	struct sim_attacker *a = ctx;
	/* What a node did not read is not old to it. Overflow would be such a case, and a sleeper
	 * may be killed before it reads. */
	if (d->sender == SIM_NOBODY || !sim_host_is_live(&a->hosts[host]) ||
		d->len > SIM_RECORD_BYTES_MAX) {
		return;
	}
	enum wire_wg_type type = wire_wg_type(d->bytes, d->len);
	if (a->by_counter && host == 0 && type == WIRE_WG_TYPE_DATA && d->len >= 32) {
		uint64_t at = wire_wg_data_counter(d->bytes) % SIM_WINDOW_RECORDS;
		keep(&a->by_counter[at], host, d);
	}
	/* Handshakes are rare and dear: half of the places are theirs. */
	a->seen++;
	unsigned half = SIM_RECORDS_MAX / 2;
	unsigned at = (unsigned)rng_below(&a->chance, half);
	if (a->records_n < SIM_RECORDS_MAX) {
		at = a->records_n++;
	} else if (type != WIRE_WG_TYPE_DATA) {
		at += half;
	} else if (rng_is_hit(&a->chance, 0.7)) {
		return;
	}
	keep(&a->records[at], host, d);
}

static struct endpoint
address_of_nobody(struct sim_attacker *a)
{
	uint64_t r = rng_u64(&a->chance);
	return (struct endpoint){
		.addr = {IP_FAMILY_V4, {198, 51, (uint8_t)(100 + r % 2), (uint8_t)(r >> 8)}},
		.port = (uint16_t)(1024 + (r >> 16) % 60000)};
}

/* The datagram arrives, and the node does what it does about it. */
static void
hit(struct sim_attacker *a, unsigned host, const struct endpoint *from, const uint8_t *data,
	uint32_t len)
{
	struct sim_host *h = &a->hosts[host];
	struct endpoint before[SIM_HOSTS_MAX];
	struct wg_peer *peers[SIM_HOSTS_MAX];
	for (unsigned i = 0; i < a->n; i++) {
		peers[i] = sim_host_peer(h, i);
		if (peers[i]) {
			before[i] = wg_peer_endpoint(peers[i]);
		}
	}
	if (!sim_net_inject(h->net, host, from, data, len) || !sim_host_is_live(h)) {
		return;
	}
	sim_host_turn(h);
	for (unsigned i = 0; i < a->n; i++) {
		struct wg_peer *p = sim_host_peer(h, i);
		struct endpoint after = p ? wg_peer_endpoint(p) : (struct endpoint){0};
		sim_check(a->report, !p || endpoint_is_same_remote(&before[i], &after),
			"a replayed message of type %u moved host %u's endpoint of host %u",
			data[0], host, i);
	}
}

void
sim_attacker_replay(struct sim_attacker *a)
{
	if (a->records_n == 0) {
		return;
	}
	const struct sim_record *r = &a->records[rng_below(&a->chance, a->records_n)];
	unsigned host =
		rng_is_hit(&a->chance, 0.9) ? r->host : (unsigned)rng_below(&a->chance, a->n);
	struct endpoint from = rng_is_hit(&a->chance, 0.7) ? address_of_nobody(a) : r->from;
	if (host == r->host && !sim_host_is_live(&a->hosts[host])) {
		return; /* it could be somebody's first message for a new life's first moment */
	}
	a->replays++;
	sim_trace(
		a->report, "type %u of %u bytes is replayed to host %u", r->bytes[0], r->len, host);
	hit(a, host, &from, r->bytes, r->len);
}

void
sim_attacker_replay_window(struct sim_attacker *a)
{
	const struct sim_record *newest = NULL;
	uint64_t end = 0;
	for (unsigned i = 0; i < SIM_WINDOW_RECORDS; i++) {
		const struct sim_record *r = &a->by_counter[i];
		if (r->len && wire_wg_data_counter(r->bytes) >= end) {
			newest = r;
			end = wire_wg_data_counter(r->bytes) + 1;
		}
	}
	for (int64_t far = WG_REPLAY_WINDOW - 80; newest && far < WG_REPLAY_WINDOW + 80; far++) {
		uint64_t counter = end - (uint64_t)far;
		const struct sim_record *r = &a->by_counter[counter % SIM_WINDOW_RECORDS];
		if ((uint64_t)far > end || !r->len || wire_wg_data_counter(r->bytes) != counter) {
			continue;
		}
		struct endpoint from = address_of_nobody(a);
		a->window_replays++;
		hit(a, 0, &from, r->bytes, r->len);
	}
}

void
sim_attacker_forge(struct sim_attacker *a, struct crypto *crypto, unsigned host)
{
	uint8_t msg[WIRE_WG_INITIATION_LEN];
	struct wg_cookie_jar jar = {0};
	struct endpoint from = address_of_nobody(a);
	rng_fill(&a->chance, msg, sizeof(msg));
	store_le32(msg, WIRE_WG_TYPE_INITIATION);
	wg_cookie_jar_sign(
		crypto, &jar, a->hosts[host].public_key, a->report->now, msg, sizeof(msg));
	a->forged++;
	sim_net_inject(a->hosts[host].net, host, &from, msg, sizeof(msg));
}
