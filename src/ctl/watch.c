/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "ctl/event.h"
#include "ctl/look.h"
#include "ctl/queue.h"
#include "ctl/sample.h"
#include "node/news.h"
#include "node/node.h"
#include "os/clock.h"

/* A look without anybody who wants samples: for events that nobody tells us of. */
#define LOOK_NS (1 * WEFT_NS_PER_S)
/* Looking takes up to this share of the time: 10,000 peers take some 10 ms. */
#define LOOK_SHARE 10
/* Samples that are due so soon after a look share it: this part of their period. */
#define EARLY_SHARE 8
/* A drop of a reason is told at once, and again once in so long. */
#define DROP_NS (60 * WEFT_NS_PER_S)
#define NEWS_AT_ONCE 32
/* Peers that are added or removed between two looks: so many are told one by one. */
#define PEERS_ONE_BY_ONE 32
/* Those that went since the last sample; with more of them the next is a full one. */
#define GONE_MAX 64

enum stage {
	STAGE_NONE,
	STAGE_DEVICE,
	STAGE_PEERS,
	STAGE_END,
};

struct ctl_watcher {
	struct ctl_watch *watch;
	struct list of_watch;
	struct ctl_queue queue;
	int64_t every_ns; /* 0: no samples */
	struct mono due;
	/* The sample under way. */
	enum stage stage;
	struct sample_device device;
	size_t at;        /* row */
	size_t passed;    /* of the rows before `at`, those that went in this look */
	uint64_t since;   /* turn of the sample before */
	uint64_t turn;    /* of this one */
	uint64_t peers_n; /* lines so far */
	/* Between samples. */
	struct mono sampled; /* when the last one began; 0: never */
	struct sample_base device_base;
	struct sample_base *bases; /* by row */
	size_t bases_n, bases_cap;
	size_t bases_gone; /* of them, in this look */
	uint8_t gone[GONE_MAX][WG_KEY_LEN], told_gone[GONE_MAX][WG_KEY_LEN];
	size_t gone_n;
	bool wants_full;
};

struct change {
	uint8_t key[WG_KEY_LEN];
	char name[LOOK_NAME_MAX];
};

struct changes {
	struct change v[PEERS_ONE_BY_ONE];
	size_t n; /* may be more than there is room for */
};

struct drop_news {
	uint64_t told; /* count, when it was */
	struct mono at;
};

struct ctl_watch {
	struct ctl_watch_config config;
	struct list watchers;
	struct look look;
	bool has_looked; /* since somebody watches */
	struct mono look_at, looked;
	uint64_t news_lost;
	struct node_facts facts;
	struct node_stats stats;
	struct drop_news drops[DROP_COUNT];
	struct changes added, gone;
};

/* --- events --- */

/* Gives o up. */
static void
tell(struct ctl_watch *w, json_t *o)
{
	char *line = ctl_event_line(o);
	LIST_FOR_EACH(it, &w->watchers)
	{
		struct ctl_watcher *r = WEFT_CONTAINER_OF(it, struct ctl_watcher, of_watch);
		if (line) {
			ctl_queue_put(&r->queue, line);
		} else {
			ctl_queue_lose(&r->queue, 1);
		}
	}
	free(line);
}

static void
note(struct changes *c, const struct look_row *r)
{
	if (c->n < PEERS_ONE_BY_ONE) {
		memcpy(c->v[c->n].key, r->key, sizeof(r->key));
		memcpy(c->v[c->n].name, r->name, sizeof(r->name));
	}
	c->n++;
}

static void
tell_changes(struct ctl_watch *w, struct changes *c, const char *kind, const char *kind_of_many)
{
	int64_t now = os_clock_wall_ns();
	size_t n = c->n < PEERS_ONE_BY_ONE ? c->n : PEERS_ONE_BY_ONE;
	for (size_t i = 0; i < n; i++) {
		tell(w, ctl_event_of_peer(kind, now, c->v[i].key, c->v[i].name));
	}
	if (c->n > n) {
		json_t *o = ctl_event_make(kind_of_many, now);
		if (o && json_object_set_new(o, "count", json_integer((json_int_t)(c->n - n)))) {
			json_decref(o);
			o = NULL;
		}
		tell(w, o);
	}
	c->n = 0;
}

static void
on_added(void *ctx, const struct look_row *r)
{
	struct ctl_watch *w = ctx;
	if (w->has_looked) {
		note(&w->added, r);
	}
}

static void
on_gone(void *ctx, const struct look_row *row, size_t at)
{
	struct ctl_watch *w = ctx;
	note(&w->gone, row);
	LIST_FOR_EACH(it, &w->watchers)
	{
		struct ctl_watcher *r = WEFT_CONTAINER_OF(it, struct ctl_watcher, of_watch);
		r->passed += at < r->at;
		r->bases_gone += at < r->bases_n;
		if (r->every_ns && r->gone_n < GONE_MAX) {
			memcpy(r->gone[r->gone_n++], row->key, sizeof(row->key));
		} else {
			r->wants_full = true;
		}
	}
}

static void
on_moved(void *ctx, size_t from, size_t to)
{
	struct ctl_watch *w = ctx;
	LIST_FOR_EACH(it, &w->watchers)
	{
		struct ctl_watcher *r = WEFT_CONTAINER_OF(it, struct ctl_watcher, of_watch);
		if (from < r->bases_n) {
			r->bases[to] = r->bases[from];
		}
	}
}

static void
on_why_changed(void *ctx, const struct look_row *r, enum fec_why was)
{
	struct ctl_watch *w = ctx;
	json_t *o = ctl_event_of_peer("recovery", os_clock_wall_ns(), r->key, r->name);
	json_t *more = json_pack("{s:s, s:s, s:s}", "why", fec_why_name(r->why), "why_text",
		fec_why_text(r->why), "was", fec_why_name(was));
	if (o && (!more || json_object_update(o, more))) {
		json_decref(o);
		o = NULL;
	}
	json_decref(more);
	tell(w, o);
}

static struct look_sink
sink_of(struct ctl_watch *w)
{
	return (struct look_sink){.ctx = w,
		.added = on_added,
		.gone = on_gone,
		.moved = on_moved,
		.why_changed = on_why_changed};
}

static void
look_at_list_of(struct ctl_watch *w)
{
	const struct look_sink sink = sink_of(w);
	if (!look_at_list(&w->look, w->config.node, &sink)) {
		return;
	}
	LIST_FOR_EACH(it, &w->watchers)
	{
		struct ctl_watcher *r = WEFT_CONTAINER_OF(it, struct ctl_watcher, of_watch);
		r->at -= r->passed;
		r->bases_n -= r->bases_gone;
		r->passed = r->bases_gone = 0;
	}
}

static size_t
count_peers(struct node *n)
{
	size_t count = wg_device_peer_count(node_lock_shared(n));
	node_unlock_shared(n);
	return count;
}

/* A peer is told of as added before what it did, and as removed after that. */
static void
take_news(struct ctl_watch *w)
{
	struct node_news v[NEWS_AT_ONCE];
	char name[LOOK_NAME_MAX];
	size_t n;
	do {
		n = node_take_news(w->config.node, v, NEWS_AT_ONCE);
		if (n > 0 && w->has_looked && count_peers(w->config.node) != w->look.n) {
			look_at_list_of(w);
			tell_changes(w, &w->added, "peer_added", "peers_added");
		}
		for (size_t i = 0; i < n; i++) {
			look_name(&w->look, w->config.node, v[i].public_key, name);
			tell(w, ctl_event_of_news(&v[i], name));
		}
	} while (n == NEWS_AT_ONCE);
	tell_changes(w, &w->gone, "peer_removed", "peers_removed");
	uint64_t lost = node_news_lost(w->config.node);
	LIST_FOR_EACH(it, &w->watchers)
	{
		struct ctl_watcher *r = WEFT_CONTAINER_OF(it, struct ctl_watcher, of_watch);
		ctl_queue_lose(&r->queue, lost - w->news_lost);
	}
	w->news_lost = lost;
}

static void
tell_drops(struct ctl_watch *w, struct mono now)
{
	for (unsigned i = 0; i < DROP_COUNT; i++) {
		struct drop_news *d = &w->drops[i];
		uint64_t total = w->stats.drops.n[i];
		if (!w->has_looked) {
			*d = (struct drop_news){.told = total};
		} else if (total > d->told &&
			   (d->at.ns == 0 || mono_diff_ns(now, d->at) >= DROP_NS)) {
			tell(w, ctl_event_of_drop(os_clock_wall_ns(), (enum drop_reason)i,
					total - d->told, total));
			*d = (struct drop_news){total, now};
		}
	}
}

/* --- samples --- */

static void
begin_sample(struct ctl_watcher *r, struct mono now)
{
	struct ctl_watch *w = r->watch;
	bool is_full = r->wants_full || r->sampled.ns == 0;
	r->since = is_full ? 0 : r->turn;
	r->turn = w->look.turn;
	r->device = (struct sample_device){.facts = w->facts,
		.stats = w->stats,
		.wall_ns = os_clock_wall_ns(),
		.elapsed_ns = r->sampled.ns ? mono_diff_ns(now, r->sampled) : 0,
		.base = r->device_base,
		.peers_n = w->look.n,
		.is_full = is_full};
	if (!is_full) {
		memcpy(r->told_gone, r->gone, r->gone_n * sizeof(r->gone[0]));
		r->device.gone = (const uint8_t(*)[WG_KEY_LEN])r->told_gone;
		r->device.gone_n = r->gone_n;
	}
	r->gone_n = 0;
	r->wants_full = false;
	r->device_base = (struct sample_base){w->stats.link.rx_bytes, w->stats.link.tx_bytes};
	r->sampled = now;
	r->stage = STAGE_DEVICE;
	r->at = 0;
	r->peers_n = 0;
}

/* Without memory there are no rates. */
static struct sample_base *
base_of(struct ctl_watcher *r, size_t row)
{
	const struct look *l = &r->watch->look;
	if (row < r->bases_n) {
		return &r->bases[row];
	}
	if (r->bases_cap < l->n) {
		struct sample_base *v = realloc(r->bases, l->n * sizeof(*v));
		if (!v) {
			return NULL;
		}
		r->bases = v;
		r->bases_cap = l->n;
	}
	memset(r->bases + r->bases_n, 0, (l->n - r->bases_n) * sizeof(*r->bases));
	r->bases_n = l->n;
	return &r->bases[row];
}

static char *
peer_line(struct ctl_watcher *r, const struct look_row *row, size_t place)
{
	struct sample_base *base = base_of(r, place);
	struct sample_peer s = {.name = row->name, .elapsed_ns = base ? r->device.elapsed_ns : 0};
	(void)node_lock_shared(r->watch->config.node);
	bool is_removed = wg_peer_is_removed(row->peer);
	if (!is_removed) {
		wg_peer_info(row->peer, &s.info);
		node_ally_info(row->peer, &s.ally);
	}
	node_unlock_shared(r->watch->config.node);
	if (is_removed) {
		return NULL;
	}
	if (base) {
		s.base = *base;
		*base = (struct sample_base){s.info.rx_bytes, s.info.tx_bytes};
	}
	return ctl_sample_peer(&s);
}

/* A line that there is no memory for is left out. */
static char *
sample_line(struct ctl_watcher *r)
{
	const struct look *l = &r->watch->look;
	char *line = NULL;
	if (r->stage == STAGE_DEVICE) {
		r->stage = STAGE_PEERS;
		line = ctl_sample_device(&r->device);
	}
	while (!line && r->stage == STAGE_PEERS) {
		if (r->at >= l->n) {
			r->stage = STAGE_END;
			break;
		}
		size_t place = r->at++;
		if (l->rows[place].turn > r->since) {
			line = peer_line(r, &l->rows[place], place);
			r->peers_n += line != NULL;
		}
	}
	if (!line && r->stage == STAGE_END) {
		r->stage = STAGE_NONE;
		line = ctl_sample_end(r->peers_n);
	}
	return line;
}

static void
begin_samples(struct ctl_watch *w, struct mono now)
{
	LIST_FOR_EACH(it, &w->watchers)
	{
		struct ctl_watcher *r = WEFT_CONTAINER_OF(it, struct ctl_watcher, of_watch);
		struct mono early = mono_add_ns(now, r->every_ns / EARLY_SHARE);
		if (!r->every_ns || mono_is_before(early, r->due)) {
			continue;
		}
		/* One who has not read the last gets all that is new with the next. */
		if (r->stage == STAGE_NONE) {
			begin_sample(r, now);
		}
		struct mono next = mono_add_ns(r->due, r->every_ns);
		r->due = mono_is_before(next, now) ? mono_add_ns(now, r->every_ns) : next;
	}
}

/* --- time --- */

static struct mono
next_look(const struct ctl_watch *w)
{
	struct mono at = list_is_empty(&w->watchers) ? MONO_NEVER : mono_add_ns(w->looked, LOOK_NS);
	LIST_FOR_EACH(it, &w->watchers)
	{
		const struct ctl_watcher *r = WEFT_CONTAINER_OF(it, struct ctl_watcher, of_watch);
		at = r->every_ns ? mono_min(at, r->due) : at;
	}
	return at;
}

static void
look_now(struct ctl_watch *w, struct mono now)
{
	const struct look_sink sink = sink_of(w);
	look_at_list_of(w);
	tell_changes(w, &w->added, "peer_added", "peers_added");
	tell_changes(w, &w->gone, "peer_removed", "peers_removed");
	look_at_peers(&w->look, w->config.node, &sink);
	node_facts(w->config.node, &w->facts);
	node_stats(w->config.node, &w->stats);
	tell_drops(w, now);
	w->has_looked = true;
	w->looked = now;
	begin_samples(w, now);
	struct mono end = os_clock_mono();
	struct mono least = mono_add_ns(end, mono_diff_ns(end, now) * LOOK_SHARE);
	struct mono next = next_look(w);
	w->look_at = mono_is_before(next, least) ? least : next;
}

static void
wake(struct ctl_watch *w)
{
	LIST_FOR_EACH(it, &w->watchers)
	{
		if (ctl_watcher_has_line(WEFT_CONTAINER_OF(it, struct ctl_watcher, of_watch))) {
			w->config.wake(w->config.ctx);
			return;
		}
	}
}

struct mono
ctl_watch_deadline(const struct ctl_watch *w)
{
	return w->look_at;
}

void
ctl_watch_turn(struct ctl_watch *w, struct mono now)
{
	if (list_is_empty(&w->watchers)) {
		return;
	}
	take_news(w);
	if (!mono_is_before(now, w->look_at)) {
		look_now(w, now);
	}
	wake(w);
}

static void
set_names(struct ctl_watch *w)
{
	look_set_names(&w->look, w->config.conf ? w->config.conf(w->config.ctx) : NULL);
}

void
ctl_watch_reloaded(struct ctl_watch *w, const char *file, const char *why)
{
	if (list_is_empty(&w->watchers)) {
		return;
	}
	if (!why) {
		set_names(w);
	}
	take_news(w);
	tell(w, ctl_event_of_reload(os_clock_wall_ns(), file, why));
	w->look_at = os_clock_mono(); /* for what it changed */
	wake(w);
}

void
ctl_watch_stopping(struct ctl_watch *w)
{
	if (list_is_empty(&w->watchers)) {
		return;
	}
	take_news(w);
	tell(w, ctl_event_make("stopping", os_clock_wall_ns()));
	LIST_FOR_EACH(it, &w->watchers)
	{
		WEFT_CONTAINER_OF(it, struct ctl_watcher, of_watch)->stage = STAGE_NONE;
	}
	wake(w);
}

/* --- life --- */

enum weft_err
ctl_watch_new(const struct ctl_watch_config *c, struct ctl_watch **out)
{
	struct ctl_watch *w = calloc(1, sizeof(*w));
	if (!w) {
		return WEFT_ENOMEM;
	}
	w->config = *c;
	w->look_at = MONO_NEVER;
	list_init(&w->watchers);
	*out = w;
	return WEFT_OK;
}

static void
begin(struct ctl_watch *w)
{
	node_keep_news(w->config.node, true);
	w->news_lost = node_news_lost(w->config.node);
	w->has_looked = false;
	set_names(w);
}

static void
end(struct ctl_watch *w)
{
	node_keep_news(w->config.node, false);
	look_fini(&w->look);
	w->look_at = MONO_NEVER;
}

void
ctl_watch_end(struct ctl_watch *w)
{
	LIST_FOR_EACH(it, &w->watchers)
	{
		WEFT_CONTAINER_OF(it, struct ctl_watcher, of_watch)->stage = STAGE_NONE;
	}
	if (!list_is_empty(&w->watchers)) {
		end(w);
	}
	w->config.node = NULL;
}

void
ctl_watch_free(struct ctl_watch *w)
{
	if (!w) {
		return;
	}
	while (!list_is_empty(&w->watchers)) {
		ctl_watcher_close(
			WEFT_CONTAINER_OF(w->watchers.next, struct ctl_watcher, of_watch));
	}
	free(w);
}

enum weft_err
ctl_watcher_open(struct ctl_watch *w, unsigned every_ms, struct ctl_watcher **out)
{
	struct ctl_watcher *r = calloc(1, sizeof(*r));
	if (!r) {
		return WEFT_ENOMEM;
	}
	if (list_is_empty(&w->watchers)) {
		begin(w);
	}
	r->watch = w;
	list_push_back(&w->watchers, &r->of_watch);
	ctl_watcher_set(r, every_ms);
	*out = r;
	return WEFT_OK;
}

void
ctl_watcher_set(struct ctl_watcher *r, unsigned every_ms)
{
	struct mono now = os_clock_mono();
	r->every_ns = every_ms * WEFT_NS_PER_MS;
	r->wants_full = true;
	r->due = now;
	/* Where somebody looks often it is soon anyway. */
	r->watch->look_at = mono_min(r->watch->look_at, now);
}

void
ctl_watcher_close(struct ctl_watcher *r)
{
	if (!r) {
		return;
	}
	struct ctl_watch *w = r->watch;
	list_remove(&r->of_watch);
	ctl_queue_fini(&r->queue);
	free(r->bases);
	free(r);
	if (list_is_empty(&w->watchers) && w->config.node) {
		end(w);
	}
}

bool
ctl_watcher_has_line(const struct ctl_watcher *r)
{
	return ctl_queue_has_line(&r->queue) || r->stage != STAGE_NONE;
}

char *
ctl_watcher_take(struct ctl_watcher *r)
{
	char *line = ctl_queue_take(&r->queue);
	return line ? line : r->stage != STAGE_NONE ? sample_line(r) : NULL;
}
