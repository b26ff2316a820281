/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of samples: the last of each peer, and rates of the last minute. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/siphash.h"
#include "cli/event.h"
#include "cli/reply.h"
#include "cli/watch.h"

#define INDEX_FIRST 64
#define LATELY 10

static void
push(float *v, size_t n, double bits_per_s)
{
	if (n == WATCH_SAMPLES) {
		memmove(v, v + 1, (WATCH_SAMPLES - 1) * sizeof(*v));
		n--;
	}
	v[n] = (float)bits_per_s;
}

static void
push_flow(struct watch_flow *f, double in, double out)
{
	push(f->in, f->n, in);
	push(f->out, f->n, out);
	f->n += f->n < WATCH_SAMPLES;
}

/* Rates are null where there was no sample before. */
static void
feed_flow(struct watch_flow *f, const json_t *o)
{
	if (reply_has(o, "rx_bits_s")) {
		push_flow(f, reply_number(o, "rx_bits_s"), reply_number(o, "tx_bits_s"));
	}
}

/* --- peers by key --- */

/* The device says which keys there are, and it is ours. */
static size_t
slot_of(const struct watch_device *d, const char *key)
{
	static const struct siphash_key fixed = {1, 2};
	size_t at = (size_t)siphash(&fixed, key, strlen(key)) & (d->index_n - 1);
	while (d->index[at] && strcmp(d->peers[d->index[at] - 1].key, key) != 0) {
		at = (at + 1) & (d->index_n - 1);
	}
	return at;
}

static void
fill_index(struct watch_device *d)
{
	memset(d->index, 0, d->index_n * sizeof(*d->index));
	for (size_t i = 0; i < d->peers_n; i++) {
		d->index[slot_of(d, d->peers[i].key)] = (uint32_t)i + 1;
	}
}

static bool
make_room(struct watch_device *d)
{
	if (d->peers_n < d->peers_cap) {
		return true;
	}
	size_t cap = d->peers_cap ? d->peers_cap * 2 : INDEX_FIRST / 2;
	struct watch_peer *peers = realloc(d->peers, cap * sizeof(*peers));
	if (!peers) {
		return false;
	}
	d->peers = peers;
	uint32_t *index = calloc(cap * 2, sizeof(*index));
	if (!index) {
		return false;
	}
	free(d->index);
	d->index = index;
	d->index_n = cap * 2;
	d->peers_cap = cap;
	fill_index(d);
	return true;
}

/* NULL: no memory. */
static struct watch_peer *
find_or_add(struct watch_device *d, const char *key)
{
	if (d->index_n > 0) {
		uint32_t found = d->index[slot_of(d, key)];
		if (found) {
			return &d->peers[found - 1];
		}
	}
	if (!make_room(d)) {
		return NULL;
	}
	struct watch_peer *p = &d->peers[d->peers_n++];
	*p = (struct watch_peer){0};
	snprintf(p->key, sizeof(p->key), "%s", key);
	d->index[slot_of(d, p->key)] = (uint32_t)d->peers_n;
	return p;
}

static bool
is_wanted(const struct watch_device *d, const struct watch_peer *p, bool is_full)
{
	return p->key[0] && (!is_full || p->round == d->round);
}

/* Those without a key are gone, and of a full sample those that were not in it. */
static void
sweep(struct watch_device *d, bool is_full)
{
	size_t kept = 0;
	for (size_t i = 0; i < d->peers_n; i++) {
		if (!is_wanted(d, &d->peers[i], is_full)) {
			free(d->peers[i].text);
		} else if (kept++ != i) {
			d->peers[kept - 1] = d->peers[i];
		}
	}
	if (kept != d->peers_n) {
		d->peers_n = kept;
		fill_index(d);
	}
}

/* --- lines --- */

static void
begin(struct watch_device *d, const json_t *o)
{
	const json_t *gone = json_object_get(o, "gone");
	json_decref(d->coming);
	d->coming = json_incref((json_t *)(uintptr_t)o);
	d->round++;
	for (size_t i = 0; i < json_array_size(gone) && d->index_n > 0; i++) {
		const char *key = json_string_value(json_array_get(gone, i));
		uint32_t found = key ? d->index[slot_of(d, key)] : 0;
		if (found) {
			d->peers[found - 1].key[0] = 0;
		}
	}
	if (json_array_size(gone) > 0) {
		sweep(d, false);
	}
}

static bool
feed_peer(struct watch_device *d, const json_t *o, const char *text)
{
	const json_t *rx = json_object_get(json_object_get(o, "fec"), "rx");
	const char *key = reply_text(o, "public_key", "");
	struct watch_peer *p = key[0] ? find_or_add(d, key) : NULL;
	size_t len = strlen(text) + 1;
	char *copy = p ? realloc(p->text, len) : NULL;
	if (!copy) {
		return !key[0];
	}
	memcpy(copy, text, len);
	p->text = copy;
	p->round = d->round;
	snprintf(p->name, sizeof(p->name), "%s", reply_text(o, "name", ""));
	feed_flow(&p->flow, o);
	uint64_t received = (uint64_t)reply_count(rx, "received");
	uint64_t lost = (uint64_t)reply_count(rx, "lost");
	p->loss = 0;
	if (p->flow.n > 0 && received >= p->received && lost > p->lost) {
		double more = (double)(lost - p->lost);
		p->loss = more / (more + (double)(received - p->received));
	}
	p->received = received;
	p->lost = lost;
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

/* A peer that was not in the sample has not changed: nothing came and nothing left. */
static void
end(struct watch_device *d)
{
	bool is_first = !reply_has(d->coming, "elapsed_ms");
	sweep(d, reply_is_true(d->coming, "is_full"));
	for (size_t i = 0; i < d->peers_n && !is_first; i++) {
		struct watch_peer *p = &d->peers[i];
		if (p->round != d->round) {
			push_flow(&p->flow, 0, 0);
			p->loss = 0;
		}
	}
	feed_flow(&d->flow, json_object_get(d->coming, "link"));
	feed_drops(d, json_object_get(d->coming, "drops"));
	json_decref(d->status);
	d->status = d->coming;
	d->coming = NULL;
}

enum watch_step
watch_feed(struct watch_device *d, const json_t *o, const char *text)
{
	const char *kind = reply_text(o, "sample", "");
	if (strcmp(kind, "device") == 0) {
		begin(d, o);
	} else if (strcmp(kind, "peer") == 0 && d->coming) {
		return feed_peer(d, o, text) ? WATCH_STEP_MORE : WATCH_STEP_NO_MEMORY;
	} else if (strcmp(kind, "end") == 0 && d->coming) {
		end(d);
		return WATCH_STEP_WHOLE;
	}
	return WATCH_STEP_MORE;
}

void
watch_forget(struct watch_device *d)
{
	json_decref(d->status);
	json_decref(d->coming);
	for (size_t i = 0; i < d->peers_n; i++) {
		free(d->peers[i].text);
	}
	free(d->peers);
	free(d->index);
	char name[CLI_DEVICE_NAME_MAX];
	memcpy(name, d->name, sizeof(name));
	*d = (struct watch_device){0};
	memcpy(d->name, name, sizeof(name));
}

uint64_t
watch_drops(const struct watch_device *d, enum drop_reason reason)
{
	return d->drops_n == 0 ? 0 : d->drops[d->drops_n - 1][reason] - d->drops[0][reason];
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

double
watch_flow_lately(const struct watch_flow *f)
{
	double sum = 0;
	for (size_t i = f->n > LATELY ? f->n - LATELY : 0; i < f->n; i++) {
		sum += (double)f->in[i] + (double)f->out[i];
	}
	return sum;
}

void
watch_note(struct watch_events *e, const char *device, const json_t *event)
{
	char clock[EVENT_CLOCK_MAX], text[EVENT_TEXT_MAX];
	size_t at = (e->first + e->n) % WATCH_EVENTS_MAX;
	if (e->n == WATCH_EVENTS_MAX) {
		e->first = (e->first + 1) % WATCH_EVENTS_MAX;
	} else {
		e->n++;
	}
	struct watch_event *v = &e->v[at];
	snprintf(v->clock, sizeof(v->clock), "%.11s", event_clock(event, clock));
	snprintf(v->device, sizeof(v->device), "%s", device);
	snprintf(v->text, sizeof(v->text), "%.255s", event_text(event, text));
	v->is_bad = event_is_bad(event);
}

const struct watch_event *
watch_event_at(const struct watch_events *e, size_t back)
{
	return &e->v[(e->first + e->n - 1 - back) % WATCH_EVENTS_MAX];
}
