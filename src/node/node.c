/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "link/udp.h"
#include "node/ally.h"
#include "node/crew.h"
#include "node/device.h"
#include "node/news.h"
#include "node/runner.h"
#include "node/sockets.h"
#include "node/stamp.h"
#include "node/stats.h"
#include "node/troubles.h"
#include "os/clock.h"
#include "os/entropy.h"
#include "os/process.h"

#define MAIL_MSGS_MAX 64
#define MAIL_EVENTS_MAX 64
/* Up to this many processors one worker a device is best: a hand-off costs more than it wins
 * while the two ends of a flow and the applications want the same cores. */
#define AUTO_SINGLE_CPUS 2
#define AUTO_WORKERS_MAX 4

struct node {
	struct node_device
		dev; /* the interface in the kernel; control writes its name under the lock */
	struct log log;
	struct wg_device *device;
	struct os_rwlock lock; /* guards device, mail, and what its comment in wg/device.h says */
	struct wg_out mail;
	size_t mail_told;              /* of its events; under the lock */
	struct drop_counts mail_drops; /* under the lock */
	_Atomic uint16_t listen_port;
	_Atomic int64_t deadline_ns;
	uint32_t fwmark;
	unsigned workers;
	struct crew *crew;
	struct allies allies;
	struct troubles troubles;
	struct drop_times mail_dropped;   /* of mail_drops; under the lock */
	struct drop_times device_dropped; /* by the interface; control's, as is looked_at */
	struct mono looked_at;
	struct runner runners[NODE_WORKERS_MAX];
	unsigned runners_n;
	char host_name[WIRE_EXT_NAME_MAX + 1];
	struct stamp stamp;
	bool has_offload;
	const char *aead_name;
	struct mono born;
	struct news news;
	struct os_wake wake;      /* for the control thread: news, and what follows */
	_Atomic bool has_stamp;   /* written, not yet synced */
	_Atomic bool has_session; /* a new one since node_take_session() */
	_Atomic bool has_tries;   /* in vain, since node_take_tries() */
	_Atomic bool is_gone;
	bool is_port_fixed; /* it was asked for */
};

struct wg_time
node_time(void)
{
	return (struct wg_time){.mono = os_clock_mono(), .wall_ns = os_clock_wall_ns()};
}

static void
wake_runner(void *ctx, unsigned i)
{
	struct node *n = ctx;
	if (i < n->runners_n) {
		runner_wake(&n->runners[i]);
	}
}

static void
on_closed(void *ctx)
{
	struct node *n = ctx;
	atomic_store(&n->is_gone, true);
	os_wake_signal(&n->wake);
}

/* The engine's news. With the lock held alone. */
static void
on_event(void *ctx, const struct wg_event *e, struct wg_time now)
{
	struct node *n = ctx;
	if (e->kind == WG_EVENT_STAMP) {
		stamp_save(&n->stamp, e->value, &n->log);
		atomic_store(&n->has_stamp, true);
		os_wake_signal(&n->wake);
		return;
	}
	if (news_tell(&n->news, n->dev.name, e, now)) {
		os_wake_signal(&n->wake);
	}
	if (e->kind == WG_EVENT_SESSION && !atomic_exchange(&n->has_session, true)) {
		os_wake_signal(&n->wake);
	}
	if (e->kind == WG_EVENT_HANDSHAKE && e->value >= NODE_TRIES_MIN &&
		!atomic_exchange(&n->has_tries, true)) {
		os_wake_signal(&n->wake);
	}
}

static unsigned
choose_workers(unsigned wanted)
{
	if (wanted > 0) {
		return wanted < NODE_WORKERS_MAX ? wanted : NODE_WORKERS_MAX;
	}
	unsigned cpus = os_process_cpus();
	if (cpus <= AUTO_SINGLE_CPUS) {
		return 1;
	}
	return cpus / 2 < AUTO_WORKERS_MAX ? cpus / 2 : AUTO_WORKERS_MAX;
}

static enum weft_err
init_engine(struct node *n)
{
	struct wg_device_config c = {.entropy = os_entropy(), .stamp_s = n->stamp.seconds};
	n->mail = (struct wg_out){.msgs = malloc(MAIL_MSGS_MAX * sizeof(struct wg_msg)),
		.msgs_cap = MAIL_MSGS_MAX,
		.events = malloc(MAIL_EVENTS_MAX * sizeof(struct wg_event)),
		.events_cap = MAIL_EVENTS_MAX,
		.drops = &n->mail_drops};
	if (!n->mail.msgs || !n->mail.events) {
		return WEFT_ENOMEM;
	}
	return wg_device_new(&c, &n->device);
}

static enum weft_err
open_links(const struct node *n, uint16_t port, uint32_t mark, struct link *links[])
{
	struct sockets_config c = {
		.n = n->workers, .port = port, .mark = mark, .has_offload = n->has_offload};
	return sockets_open(&c, &n->log, links);
}

/* Takes the link over, on failure too. */
static enum weft_err
add_worker(struct node *n, struct link *link, enum aead_backend aead)
{
	unsigned i = n->runners_n;
	struct port *port;
	int port_fd;
	enum weft_err e = node_device_port(&n->dev, i, &n->log, &port, &port_fd);
	if (e) {
		goto undo_link;
	}
	struct worker_config wc = {
		.env = {.device = n->device,
			.lock = &n->lock,
			.mail = &n->mail,
			.event = on_event,
			.ctx = n,
			.listen_port = &n->listen_port,
			.deadline_ns = &n->deadline_ns,
			.wake = wake_runner,
			.crew = n->crew,
			.allies = &n->allies,
			.troubles = &n->troubles},
		.link = link,
		.port = port,
		.aead = aead,
		.index = i,
	};
	struct worker *w;
	e = worker_new(&wc, &w);
	if (e) {
		goto undo_port;
	}
	struct runner *r = &n->runners[i];
	e = runner_init(r, w);
	if (e) {
		worker_free(w);
		return e;
	}
	r->closed = on_closed;
	r->ctx = n;
	n->runners_n++; /* stop_workers() frees it from now on */
	n->aead_name = aead_backend_name(w->aead);
	e = runner_watch_port(r, port_fd);
	return e ? e : sockets_watch(r, link);

undo_port:
	port->ops->close(port);
undo_link:
	link->ops->close(link);
	return e;
}

static void
stop_workers(struct node *n)
{
	/* All threads first: they wake and help each other to the last. */
	for (unsigned i = 0; i < n->runners_n; i++) {
		runner_stop(&n->runners[i]);
	}
	while (n->runners_n > 0) {
		runner_fini(&n->runners[--n->runners_n]);
	}
}

static enum weft_err
start_workers(struct node *n, const struct node_config *c)
{
	struct link *links[NODE_WORKERS_MAX];
	enum weft_err e = open_links(n, 0, 0, links);
	if (e) {
		return e;
	}
	atomic_store(&n->listen_port, link_udp_port(links[0]));
	unsigned given = 0;
	for (; given < n->workers && !e; given++) {
		e = add_worker(n, links[given], c->aead);
	}
	if (e) {
		for (unsigned i = given; i < n->workers; i++) {
			links[i]->ops->close(links[i]);
		}
		stop_workers(n);
		return e;
	}
	for (unsigned i = 0; i < n->runners_n; i++) {
		e = runner_start(&n->runners[i]);
		if (e) {
			stop_workers(n);
			return e;
		}
	}
	return WEFT_OK;
}

enum weft_err
node_new(const struct node_config *c, struct node **out)
{
	struct node *n = calloc(1, sizeof(*n));
	if (!n) {
		return WEFT_ENOMEM;
	}
	n->log = *c->log;
	n->workers = choose_workers(c->workers);
	n->has_offload = c->has_offload;
	n->born = n->looked_at = os_clock_mono();
	news_init(&n->news, c->log, c->has_news);
	atomic_init(&n->deadline_ns, INT64_MAX);
	os_rwlock_init(&n->lock);
	troubles_init(&n->troubles);
	os_process_host_name(n->host_name, sizeof(n->host_name));
	allies_init(&n->allies, n->host_name, NODE_MTU_DEFAULT);
	stamp_load(&n->stamp, c->state_dir, c->name, &n->log);

	enum weft_err e = os_wake_init(&n->wake);
	if (e) {
		goto undo_node;
	}
	e = node_device_open(&n->dev, c, n->workers);
	if (e) {
		goto undo_wake;
	}
	n->allies.mtu = n->dev.mtu;
	e = init_engine(n);
	if (e) {
		goto undo_device;
	}
	if (n->workers > 1) {
		e = crew_new(n->workers, wake_runner, n, &n->crew);
		if (e) {
			goto undo_device;
		}
	}
	e = start_workers(n, c);
	if (e) {
		goto undo_crew;
	}
	*out = n;
	return WEFT_OK;

undo_crew:
	if (n->crew) {
		crew_free(n->crew);
	}
undo_device:
	if (n->device) {
		wg_device_free(n->device);
	}
	free(n->mail.msgs);
	free(n->mail.events);
	node_device_close(&n->dev);
undo_wake:
	os_wake_fini(&n->wake);
undo_node:
	stamp_fini(&n->stamp);
	news_fini(&n->news);
	allies_fini(&n->allies);
	troubles_fini(&n->troubles);
	os_rwlock_fini(&n->lock);
	free(n);
	return e;
}

void
node_free(struct node *n)
{
	stop_workers(n);
	if (n->crew) {
		crew_free(n->crew);
	}
	while (n->mail.events_n > 0) {
		wg_peer_put(n->mail.events[--n->mail.events_n].peer);
	}
	allies_fini(&n->allies);
	troubles_fini(&n->troubles);
	wg_device_free(n->device);
	node_device_close(&n->dev);
	free(n->mail.msgs);
	free(n->mail.events);
	news_fini(&n->news);
	stamp_fini(&n->stamp);
	os_wake_fini(&n->wake);
	os_rwlock_fini(&n->lock);
	free(n);
}

enum weft_err
node_set_policy(struct node *n, struct wg_peer *p, const struct ally_policy *policy)
{
	struct ally *a = ally_of(&n->allies, p);
	if (!a) {
		return WEFT_ENOMEM;
	}
	struct wg_time now = node_time();
	bool wants_session;
	if (ally_set_policy(&n->allies, a, policy, now.mono, &wants_session)) {
		wake_runner(n, 0);
	}
	if (wants_session) {
		wg_peer_renew(n->device, p, now, &n->mail);
	}
	return WEFT_OK;
}

void
node_ally_info(const struct wg_peer *p, struct ally_info *out)
{
	ally_info(p, out);
}

struct wg_device *
node_lock(struct node *n, struct wg_out **out)
{
	os_rwlock_write_lock(&n->lock);
	n->mail_told = n->mail.events_n;
	*out = &n->mail;
	return n->device;
}

/* Tells what control's calls into the engine brought up. Sessions stay in the mail, since only a
 * worker can send what waited for them. */
static void
tell_news(struct node *n, struct wg_time now)
{
	size_t kept = n->mail_told;
	for (size_t i = n->mail_told; i < n->mail.events_n; i++) {
		const struct wg_event *e = &n->mail.events[i];
		on_event(n, e, now);
		if (e->kind == WG_EVENT_SESSION) {
			wg_peer_get(e->peer);
			n->mail.events[kept++] = *e;
		}
	}
	n->mail.events_n = kept;
}

void
node_unlock(struct node *n)
{
	struct wg_time now = node_time();
	tell_news(n, now);
	drop_times_look(&n->mail_dropped, &n->mail_drops, now.mono);
	/* Worker 0 takes the mail when it ticks, if nobody was faster; due now if there is some. */
	bool has_mail = n->mail.msgs_n > 0 || n->mail.events_n > 0;
	int64_t deadline = has_mail ? 0 : wg_device_deadline(n->device).ns;
	int64_t before = atomic_exchange(&n->deadline_ns, deadline);
	os_rwlock_write_unlock(&n->lock);
	if (deadline < before) {
		wake_runner(n, 0);
	}
}

const struct wg_device *
node_lock_shared(struct node *n)
{
	os_rwlock_read_lock(&n->lock);
	return n->device;
}

void
node_unlock_shared(struct node *n)
{
	os_rwlock_read_unlock(&n->lock);
}

static enum weft_err
move_sockets(struct node *n, uint16_t port)
{
	struct link *links[NODE_WORKERS_MAX];
	enum weft_err e = open_links(n, port, n->fwmark, links);
	if (e) {
		return e;
	}
	/* All that can fail comes first: then all workers swap, or none. */
	e = sockets_watch_all(n->runners, n->runners_n, links);
	if (e) {
		return e;
	}
	struct node_news news = {.kind = NODE_NEWS_PORT, .to.port = link_udp_port(links[0])};
	atomic_store(&n->listen_port, news.to.port);
	sockets_swap_all(n->runners, n->runners_n, links);
	node_put_news(n, &news);
	return WEFT_OK;
}

enum weft_err
node_set_listen_port(struct node *n, uint16_t port)
{
	enum weft_err e = WEFT_OK;
	if (port == 0 || port != atomic_load(&n->listen_port)) {
		e = move_sockets(n, port);
	}
	if (!e) {
		n->is_port_fixed = port != 0;
	}
	return e;
}

enum weft_err
node_renew_port(struct node *n)
{
	return n->is_port_fixed ? WEFT_EEXIST : move_sockets(n, 0);
}

enum weft_err
node_set_fwmark(struct node *n, uint32_t mark)
{
	enum weft_err e = sockets_set_mark(n->runners, n->runners_n, mark, n->fwmark);
	if (!e) {
		n->fwmark = mark;
	}
	return e;
}

struct thread_call {
	void (*call)(void *ctx);
	void *ctx;
};

static void
run_call(struct runner *r, void *arg)
{
	const struct thread_call *c = arg;
	(void)r;
	c->call(c->ctx);
}

void
node_call_on_threads(struct node *n, void (*call)(void *ctx), void *ctx)
{
	struct thread_call c = {call, ctx};
	for (unsigned i = 0; i < n->runners_n; i++) {
		runner_ask(&n->runners[i], run_call, &c);
	}
}

int
node_event_fd(const struct node *n)
{
	return n->wake.fd;
}

void
node_take_events(struct node *n)
{
	os_wake_clear(&n->wake);
	if (atomic_exchange(&n->has_stamp, false)) {
		stamp_sync(&n->stamp, &n->log);
	}
}

bool
node_is_gone(const struct node *n)
{
	return atomic_load(&n->is_gone);
}

bool
node_has_session(const struct node *n)
{
	return atomic_load(&n->has_session);
}

void
node_take_session(struct node *n)
{
	atomic_store(&n->has_session, false);
}

bool
node_take_tries(struct node *n)
{
	return atomic_exchange(&n->has_tries, false);
}

size_t
node_take_news(struct node *n, struct node_news *v, size_t cap)
{
	return news_take(&n->news, v, cap);
}

uint64_t
node_news_lost(struct node *n)
{
	return news_lost(&n->news);
}

void
node_put_news(struct node *n, const struct node_news *v)
{
	struct node_news timed = *v;
	timed.wall_ns = v->wall_ns ? v->wall_ns : os_clock_wall_ns();
	if (news_put(&n->news, &timed)) {
		os_wake_signal(&n->wake);
	}
}

void
node_keep_news(struct node *n, bool is_kept)
{
	news_keep(&n->news, is_kept);
}

struct mtu_ask {
	uint16_t mtu;
};

static void
set_mtu(struct runner *r, void *arg)
{
	r->worker->port->mtu = ((struct mtu_ask *)arg)->mtu;
}

int
node_monitor_fd(const struct node *n)
{
	return node_device_monitor_fd(&n->dev);
}

void
node_monitor(struct node *n)
{
	struct node_device was = n->dev, is = n->dev;
	if (node_device_read_news(&is, &n->log) == WEFT_ECLOSED) {
		on_closed(n);
		return;
	}
	if (is.is_up == was.is_up && is.mtu == was.mtu && strcmp(is.name, was.name) == 0) {
		return;
	}
	struct wg_out *out;
	struct wg_device *d = node_lock(n, &out);
	n->dev = is; /* workers read the name with the lock held */
	n->allies.mtu = is.mtu;
	if (is.is_up != was.is_up) {
		wg_device_set_up(d, is.is_up, node_time(), out);
	}
	node_unlock(n);
	if (is.mtu != was.mtu) {
		struct mtu_ask a = {is.mtu};
		for (unsigned i = 0; i < n->runners_n; i++) {
			runner_ask(&n->runners[i], set_mtu, &a);
		}
	}
}

const struct node_device *
node_device_of(const struct node *n)
{
	return &n->dev;
}

void
node_stats(struct node *n, struct node_stats *out)
{
	*out = (struct node_stats){0};
	for (unsigned i = 0; i < n->runners_n; i++) {
		runner_ask(&n->runners[i], stats_take, out);
	}
	os_rwlock_read_lock(&n->lock);
	stats_add_drops(&out->drops, &n->mail_drops);
	os_rwlock_read_unlock(&n->lock);
	out->drops.n[DROP_TX_QUEUE] += node_device_dropped(&n->dev);
}

void
node_look(struct node *n)
{
	struct drop_counts c = {0};
	c.n[DROP_TX_QUEUE] = node_device_dropped(&n->dev);
	drop_times_look(&n->device_dropped, &c, n->looked_at);
	n->looked_at = os_clock_mono();
}

void
node_drop_times(struct node *n, struct drop_times *out)
{
	*out = (struct drop_times){0};
	for (unsigned i = 0; i < n->runners_n; i++) {
		runner_ask(&n->runners[i], stats_take_times, out);
	}
	os_rwlock_read_lock(&n->lock);
	drop_times_merge(out, &n->mail_dropped);
	os_rwlock_read_unlock(&n->lock);
	node_look(n);
	drop_times_merge(out, &n->device_dropped);
}

void
node_troubles(struct node *n, struct wg_troubles *out)
{
	troubles_copy(&n->troubles, &out[0]);
	out[1] = *wg_device_troubles(node_lock_shared(n));
	node_unlock_shared(n);
}

static void
take_facts(struct runner *r, void *arg)
{
	struct node_facts *f = arg;
	f->has_udp_gso = link_udp_has_gso(r->worker->link);
	f->has_udp_gro = link_udp_has_gro(r->worker->link);
	f->has_tso = r->worker->port->caps.has_tcp4;
	f->has_uso = r->worker->port->caps.has_udp4;
}

void
node_facts(struct node *n, struct node_facts *out)
{
	*out = (struct node_facts){.ifindex = n->dev.ifindex,
		.mtu = n->dev.mtu,
		.is_up = n->dev.is_up,
		.listen_port = atomic_load(&n->listen_port),
		.is_port_fixed = n->is_port_fixed,
		.fwmark = n->fwmark,
		.workers = n->workers,
		.aead = n->aead_name,
		.uptime_ns = mono_diff_ns(os_clock_mono(), n->born)};
	memcpy(out->name, n->dev.name, sizeof(out->name));
	runner_ask(&n->runners[0], take_facts, out);
}
