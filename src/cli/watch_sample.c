/* SPDX-License-Identifier: Apache-2.0 */
/* Two samples of a device, and what changed between them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/reply.h"
#include "cli/watch.h"

static void
push(float *v, size_t n, double bits_per_s)
{
	if (n == WATCH_SAMPLES) {
		memmove(v, v + 1, (WATCH_SAMPLES - 1) * sizeof(*v));
		n--;
	}
	v[n] = (float)bits_per_s;
}

/* elapsed_ns 0: the first sample. */
static void
feed_flow(struct watch_flow *f, uint64_t in, uint64_t out, int64_t elapsed_ns)
{
	if (elapsed_ns > 0) {
		double per_s = 8.0 * WEFT_NS_PER_S / (double)elapsed_ns;
		push(f->in, f->n, (double)(in - f->in_bytes) * per_s);
		push(f->out, f->n, (double)(out - f->out_bytes) * per_s);
		f->n += f->n < WATCH_SAMPLES;
	}
	f->in_bytes = in;
	f->out_bytes = out;
}

static void
feed_peer(struct watch_peer *p, const json_t *json, int64_t elapsed_ns)
{
	const json_t *rx = json_object_get(json_object_get(json, "fec"), "rx");
	uint64_t received = (uint64_t)reply_count(rx, "received");
	uint64_t lost = (uint64_t)reply_count(rx, "lost");
	uint64_t in = (uint64_t)reply_count(json, "rx_bytes");
	uint64_t out = (uint64_t)reply_count(json, "tx_bytes");

	/* Removed and added again it counts from zero. */
	if (in < p->flow.in_bytes || out < p->flow.out_bytes) {
		p->flow = (struct watch_flow){0};
		elapsed_ns = 0;
	}
	feed_flow(&p->flow, in, out, elapsed_ns);
	p->loss = 0;
	if (elapsed_ns > 0 && received >= p->received && lost > p->lost) {
		double more = (double)(lost - p->lost);
		p->loss = more / (more + (double)(received - p->received));
	}
	p->received = received;
	p->lost = lost;
	p->json = json;
}

/* The peer of that key among the old ones. Few come and go between two samples: it stands at
 * *hint, or shortly behind. */
static const struct watch_peer *
find(const struct watch_peer *old, size_t n, const char *key, size_t *hint)
{
	for (size_t i = 0; i < n; i++) {
		size_t at = (*hint + i) % n;
		if (strcmp(old[at].key, key) == 0) {
			*hint = at + 1;
			return &old[at];
		}
	}
	return NULL;
}

static bool
feed_peers(struct watch_device *d, const json_t *peers, int64_t elapsed_ns)
{
	size_t n = json_array_size(peers), hint = 0;
	struct watch_peer *v = calloc(n + 1, sizeof(*v));
	if (!v) {
		return false;
	}
	for (size_t i = 0; i < n; i++) {
		const json_t *json = json_array_get(peers, i);
		const char *key = reply_text(json, "public_key", "");
		const struct watch_peer *old = find(d->peers, d->peers_n, key, &hint);
		if (old) {
			v[i] = *old;
		}
		snprintf(v[i].key, sizeof(v[i].key), "%s", key);
		feed_peer(&v[i], json, old ? elapsed_ns : 0);
	}
	free(d->peers);
	d->peers = v;
	d->peers_n = n;
	return true;
}

static void
feed_drops(struct watch_device *d, const json_t *drops)
{
	if (d->drops_n == WATCH_DROP_SAMPLES + 1) {
		memmove(d->drops[0], d->drops[1], WATCH_DROP_SAMPLES * sizeof(d->drops[0]));
		d->drops_n--;
	}
	for (unsigned i = 0; i < DROP_COUNT; i++) {
		d->drops[d->drops_n][i] =
			(uint64_t)reply_count(drops, drop_name((enum drop_reason)i));
	}
	d->drops_n++;
}

static void
forget(struct watch_device *d)
{
	json_decref(d->status);
	free(d->peers);
	char name[CLI_DEVICE_NAME_MAX];
	memcpy(name, d->name, sizeof(name));
	*d = (struct watch_device){0};
	memcpy(d->name, name, sizeof(name));
}

bool
watch_feed(struct watch_device *d, json_t *status, struct mono now)
{
	if (!status) {
		forget(d);
		return true;
	}
	const json_t *link = json_object_get(status, "link");
	uint64_t in = (uint64_t)reply_count(link, "rx_bytes");
	uint64_t out = (uint64_t)reply_count(link, "tx_bytes");
	if (in < d->flow.in_bytes || out < d->flow.out_bytes) {
		forget(d); /* another process under that name */
	}
	int64_t elapsed_ns = d->status ? mono_diff_ns(now, d->at) : 0;
	if (!feed_peers(d, json_object_get(status, "peers"), elapsed_ns)) {
		json_decref(status);
		return false;
	}
	feed_flow(&d->flow, in, out, elapsed_ns);
	feed_drops(d, json_object_get(status, "drops"));
	json_decref(d->status);
	d->status = status;
	d->at = now;
	return true;
}

uint64_t
watch_drops(const struct watch_device *d, enum drop_reason reason)
{
	return d->drops_n == 0 ? 0 : d->drops[d->drops_n - 1][reason] - d->drops[0][reason];
}

void
watch_device_fini(struct watch_device *d)
{
	forget(d);
}

double
watch_flow_in(const struct watch_flow *f)
{
	return f->n > 0 ? (double)f->in[f->n - 1] : 0;
}

double
watch_flow_out(const struct watch_flow *f)
{
	return f->n > 0 ? (double)f->out[f->n - 1] : 0;
}
