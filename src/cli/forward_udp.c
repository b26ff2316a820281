/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams of `weft forward`. Each source that is heard at a rule's socket has a flow: a socket
 * of its own to the target, so that answers find their way back. A flow ends when it was silent
 * both ways for the timeout.
 *
 * One receive call brings up to BATCH messages, each a datagram or a UDP_GRO run; neighbours of
 * one flow and one length leave as a UDP_SEGMENT run again. Datagrams stay what they were.
 *
 * Being woken for each datagram costs as much as carrying it, here and in the node that gets it
 * singly. So a socket where they come thick rests for a moment after each turn, not watched, until
 * there is a batch. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/siphash.h"
#include "cli/cli.h"
#include "cli/forward.h"
#include "cli/forward_send.h"
#include "link/udpmsg.h"
#include "os/clock.h"
#include "os/entropy.h"
#include "os/error.h"
#include "os/fd.h"
#include "os/loop.h"
#include "os/udp.h"

#define BUCKETS 8192u /* a power of two */
#define BATCH 32u
#define STRIDE 65536u
#define ROUNDS_A_TURN 4
#define ERRORS_A_TURN 8
#define BUFFER_BYTES (4u << 20) /* of a rule's socket */
#define FLOW_BUFFER_BYTES (1u << 20)
/* Messages in a span that make a socket dense: 24,000 a second, which of full datagrams are 250
 * Mbit/s. A rest is what their delay grows by, and three of them come in that time; the sockets
 * hold more than a hundred times what comes in one at 10 Gbit/s. */
#define PACE_NS WEFT_NS_PER_MS
#define PACE_DENSE 24u
#define REST_NS (150 * WEFT_NS_PER_US)
/* A flow that was silent for so long gives way to a new one when there are too many. */
#define OLD_NS (5 * WEFT_NS_PER_S)

struct flow {
	struct list lru;
	struct flow *next; /* in its bucket */
	struct forward_front *front;
	struct endpoint from; /* src: the address that it was sent to */
	int fd;
	bool is_v6;
	bool is_stuck; /* its socket took nothing; not waited for again until it does */
	bool was_refused;
	struct mono begun, used;
	uint64_t bytes[2];
	struct forward_pace pace;
};

struct forward_udp {
	struct forward *f;
	struct list lru; /* the one that is silent longest first */
	size_t n;
	struct forward_timer idle;
	struct list resting_fronts, resting_flows;
	struct forward_timer rest; /* armed while one of them rests */
	struct siphash_key key;
	struct flow *buckets[BUCKETS];
	struct forward_send send;

	struct mmsghdr msgs[BATCH];
	struct iovec iov[BATCH];
	union link_udpmsg_name names[BATCH];
	WEFT_ALIGNED(8) uint8_t control[BATCH][LINK_UDPMSG_RX_CONTROL];
	uint8_t arena[BATCH][STRIDE]; /* touched as far as it is used */
};

static struct flow **
bucket_of(struct forward_udp *u, const struct forward_front *front, const struct endpoint *from)
{
	struct {
		const struct forward_front *front;
		uint8_t addr[16], to[16];
		uint32_t scope, port;
	} key = {.front = front, .scope = from->scope_id, .port = from->port};
	memcpy(key.addr, from->addr.b, 16);
	memcpy(key.to, from->src.b, 16);
	return &u->buckets[siphash(&u->key, &key, sizeof(key)) & (BUCKETS - 1)];
}

static struct flow *
find(struct forward_udp *u, const struct forward_front *front, const struct endpoint *from)
{
	for (struct flow *w = *bucket_of(u, front, from); w; w = w->next) {
		if (w->front == front && endpoint_is_same_remote(&w->from, from) &&
			ip_addr_is_equal(&w->from.src, &from->src)) {
			return w;
		}
	}
	return NULL;
}

static void
end_flow(struct forward_udp *u, struct flow *w, const char *why)
{
	char who[FORWARD_WHO_MAX];
	struct forward_route *r = w->front->route;
	struct flow **at = bucket_of(u, w->front, &w->from);
	forward_access(r,
		"%s: %s after %.3f s, %" PRIu64 " bytes to the target, %" PRIu64 " from it",
		forward_who(r, &w->from, who), why,
		(double)mono_diff_ns(os_clock_mono(), w->begun) / (double)WEFT_NS_PER_S,
		w->bytes[0], w->bytes[1]);
	while (*at != w) {
		at = &(*at)->next;
	}
	*at = w->next;
	list_remove(&w->lru);
	list_remove(&w->pace.link);
	os_loop_del(u->f->loop, w->fd);
	os_fd_close(&w->fd);
	free(w);
	u->n--;
}

static void
arm_idle(struct forward_udp *u)
{
	struct mono due = MONO_NEVER;
	if (!list_is_empty(&u->lru)) {
		struct flow *oldest = WEFT_CONTAINER_OF(u->lru.next, struct flow, lru);
		due = mono_add_ns(oldest->used, u->f->udp_timeout_ns);
	}
	timerwheel_arm(&u->f->timers, &u->idle.timer, due);
}

static void
idle_due(struct forward_timer *t)
{
	struct forward_udp *u = WEFT_CONTAINER_OF(t, struct forward_udp, idle);
	struct mono now = os_clock_mono();
	while (!list_is_empty(&u->lru)) {
		struct flow *oldest = WEFT_CONTAINER_OF(u->lru.next, struct flow, lru);
		if (mono_diff_ns(now, oldest->used) < u->f->udp_timeout_ns) {
			break;
		}
		end_flow(u, oldest, "silent");
	}
	arm_idle(u);
}

static void
touch(struct forward_udp *u, struct flow *w, struct mono now)
{
	w->used = now;
	list_remove(&w->lru);
	list_push_back(&u->lru, &w->lru);
}

static bool
make_room(struct forward_udp *u, struct mono now)
{
	if (u->n < FORWARD_FLOWS_MAX) {
		return true;
	}
	struct flow *oldest = WEFT_CONTAINER_OF(u->lru.next, struct flow, lru);
	if (mono_diff_ns(now, oldest->used) < OLD_NS) {
		return false;
	}
	end_flow(u, oldest, "gives way to another");
	return true;
}

static void flow_ready(void *ctx, uint32_t events);

/* Of the target's addresses the first that a socket can be made for. */
static bool
dial(struct forward_route *r, struct flow *w)
{
	char why[256] = "the name has no address";
	(void)forward_resolve(r, NULL);
	for (size_t i = 0; i < r->addrs_n; i++) {
		if (forward_dial(r, &r->addrs[i], &w->fd, why, sizeof(why)) == WEFT_OK) {
			w->is_v6 = r->addrs[i].family == IP_FAMILY_V6;
			os_udp_tune(w->fd, w->is_v6, FLOW_BUFFER_BYTES);
			return true;
		}
	}
	char who[FORWARD_WHO_MAX];
	forward_warn(r, "%s: no socket: %s", forward_who(r, &w->from, who), why);
	return false;
}

static struct flow *
begin_flow(struct forward_udp *u, struct forward_front *front, const struct endpoint *from,
	struct mono now)
{
	struct forward_route *r = front->route;
	char who[FORWARD_WHO_MAX];
	struct flow *w = make_room(u, now) ? calloc(1, sizeof(*w)) : NULL;
	if (!w) {
		r->count.failed++;
		forward_warn(
			r, "%s: no room: %zu flows are in use", forward_who(r, from, who), u->n);
		return NULL;
	}
	w->front = front;
	w->from = *from;
	w->from.src_ifindex = 0;
	w->fd = -1;
	w->begun = w->used = now;
	list_init(&w->pace.link);
	if (!dial(r, w) || os_loop_add(u->f->loop, w->fd, OS_READABLE, flow_ready, w)) {
		r->count.failed++;
		os_fd_close(&w->fd);
		free(w);
		return NULL;
	}
	struct flow **bucket = bucket_of(u, front, &w->from);
	w->next = *bucket;
	*bucket = w;
	list_push_back(&u->lru, &w->lru);
	u->n++;
	r->count.opened++;
	if (!timer_is_armed(&u->idle.timer)) {
		arm_idle(u);
	}
	forward_access(r, "%s: begins", forward_who(r, from, who));
	return w;
}

static void
note_refusal(struct flow *w)
{
	char who[FORWARD_WHO_MAX];
	struct forward_route *r = w->front->route;
	r->count.cut++;
	if (!w->was_refused) {
		w->was_refused = true;
		forward_warn(r, "%s: the target refuses: nobody listens there",
			forward_who(r, &w->from, who));
	}
}

/* After a turn that left nothing. among: where it is to rest. */
static void
rest_if_dense(struct forward_udp *u, struct forward_pace *p, int fd, struct list *among, unsigned n)
{
	struct mono now = os_clock_mono();
	int64_t span_ns = mono_diff_ns(now, p->since);
	p->messages += n;
	if (span_ns >= PACE_NS) {
		p->is_dense = p->messages >= PACE_DENSE && span_ns < 2 * PACE_NS;
		p->messages = 0;
		p->since = now;
	}
	if (p->is_dense && n > 0 && list_is_empty(&p->link) && !os_loop_mod(u->f->loop, fd, 0)) {
		list_push_back(among, &p->link);
		if (!timer_is_armed(&u->rest.timer)) {
			timerwheel_arm(&u->f->timers, &u->rest.timer, mono_add_ns(now, REST_NS));
		}
	}
}

/* Messages that wait at fd; 0: none, or an error, which is taken. */
static unsigned
receive(struct forward_udp *u, int fd, struct flow *w)
{
	for (int tries = 0; tries < ERRORS_A_TURN; tries++) {
		for (unsigned i = 0; i < BATCH; i++) {
			u->iov[i] = (struct iovec){u->arena[i], STRIDE};
			u->msgs[i].msg_hdr = (struct msghdr){.msg_name = &u->names[i],
				.msg_namelen = sizeof(u->names[i]),
				.msg_iov = &u->iov[i],
				.msg_iovlen = 1,
				.msg_control = u->control[i],
				.msg_controllen = sizeof(u->control[i])};
		}
		int n = os_udp_calls_real.recvmmsg(NULL, fd, u->msgs, BATCH, MSG_DONTWAIT);
		if (n > 0) {
			return (unsigned)n;
		}
		if (n == 0 || errno == EAGAIN) {
			return 0;
		}
		if (errno == ECONNREFUSED && w) {
			note_refusal(w);
		}
	}
	return 0;
}

/* Sends what is gathered: to the target of w, or back to its source. */
static void
send_gathered(struct forward_udp *u, struct flow *w, int way)
{
	struct forward_counters *c = &w->front->route->count;
	struct forward_sent sent;
	struct endpoint to = {.addr.family = w->is_v6 ? IP_FAMILY_V6 : IP_FAMILY_V4};
	if (way == 0) {
		forward_send_run(&u->send, w->fd, &to, true, !w->is_stuck, &sent);
		w->is_stuck = sent.is_stuck;
	} else {
		forward_send_run(&u->send, w->front->fd, &w->from, false, true, &sent);
	}
	for (unsigned i = 0; i < sent.refused; i++) {
		note_refusal(w);
	}
	c->bytes[way] += sent.bytes;
	c->packets[way] += sent.packets;
	c->dropped += sent.dropped;
	w->bytes[way] += sent.bytes;
}

static bool
gather(struct forward_udp *u, unsigned i, const struct link_udpmsg_info *info)
{
	struct forward_message m = {
		.data = u->arena[i], .len = u->msgs[i].msg_len, .seg = info->seg, .ecn = info->ecn};
	return forward_send_add(&u->send, &m);
}

static void
front_ready(void *ctx, uint32_t events)
{
	struct forward_front *front = ctx;
	struct forward_udp *u = front->route->f->udp;
	unsigned turn_n = 0;
	(void)events;
	for (int round = 0; round < ROUNDS_A_TURN; round++) {
		unsigned n = receive(u, front->fd, NULL);
		turn_n += n;
		struct mono now = os_clock_mono();
		struct flow *last = NULL;
		for (unsigned i = 0; i < n; i++) {
			struct link_udpmsg_info info;
			link_udpmsg_decode(&u->msgs[i].msg_hdr, &info);
			struct flow *w = find(u, front, &info.from);
			if (last && w != last) {
				send_gathered(u, last, 0);
				last = NULL; /* its place may be taken below */
			}
			if (!w) {
				w = begin_flow(u, front, &info.from, now);
			}
			if (!w) {
				front->route->count.dropped +=
					forward_message_count(u->msgs[i].msg_len, info.seg);
				continue;
			}
			touch(u, w, now);
			(void)gather(u, i, &info); /* there is room for a batch */
			last = w;
		}
		if (last) {
			send_gathered(u, last, 0);
		}
		if (n < BATCH) {
			rest_if_dense(u, &front->pace, front->fd, &u->resting_fronts, turn_n);
			return;
		}
	}
}

static void
flow_ready(void *ctx, uint32_t events)
{
	struct flow *w = ctx;
	struct forward_udp *u = w->front->route->f->udp;
	unsigned turn_n = 0;
	(void)events;
	for (int round = 0; round < ROUNDS_A_TURN; round++) {
		unsigned n = receive(u, w->fd, w);
		turn_n += n;
		for (unsigned i = 0; i < n; i++) {
			struct link_udpmsg_info info;
			/* A connected socket brings the target's datagrams alone. */
			link_udpmsg_decode(&u->msgs[i].msg_hdr, &info);
			(void)gather(u, i, &info);
		}
		if (n > 0) {
			touch(u, w, os_clock_mono());
			send_gathered(u, w, 1);
		}
		if (n < BATCH) {
			rest_if_dense(u, &w->pace, w->fd, &u->resting_flows, turn_n);
			return;
		}
	}
}

static void
take_all(struct list *to, struct list *from)
{
	list_init(to);
	while (!list_is_empty(from)) {
		struct list *node = from->next;
		list_remove(node);
		list_push_back(to, node);
	}
}

/* All rest to the same end. Those that rest again do so in the lists anew. */
static void
rest_due(struct forward_timer *t)
{
	struct forward_udp *u = WEFT_CONTAINER_OF(t, struct forward_udp, rest);
	struct os_loop *loop = u->f->loop;
	struct list fronts, flows;
	take_all(&fronts, &u->resting_fronts);
	take_all(&flows, &u->resting_flows);
	while (!list_is_empty(&fronts)) {
		struct forward_front *front =
			WEFT_CONTAINER_OF(fronts.next, struct forward_front, pace.link);
		list_remove(&front->pace.link);
		weft_assert(os_loop_mod(loop, front->fd, OS_READABLE) == WEFT_OK);
		front_ready(front, OS_READABLE);
	}
	while (!list_is_empty(&flows)) {
		struct flow *w = WEFT_CONTAINER_OF(flows.next, struct flow, pace.link);
		list_remove(&w->pace.link);
		weft_assert(os_loop_mod(loop, w->fd, OS_READABLE) == WEFT_OK);
		flow_ready(w, OS_READABLE);
	}
}

static struct forward_udp *
udp_new(struct forward *f)
{
	uint8_t key[SIPHASH_KEY_LEN];
	struct forward_udp *u = malloc(sizeof(*u));
	if (!u) {
		return NULL;
	}
	memset(u, 0, offsetof(struct forward_udp, arena));
	struct entropy entropy = os_entropy();
	entropy.fill(entropy.ctx, key, sizeof(key));
	siphash_key_init(&u->key, key);
	u->f = f;
	u->idle.due = idle_due;
	timer_init(&u->idle.timer);
	list_init(&u->lru);
	list_init(&u->resting_fronts);
	list_init(&u->resting_flows);
	u->rest.due = rest_due;
	timer_init(&u->rest.timer);
	return u;
}

bool
forward_udp_open(struct forward_route *r)
{
	if (!r->f->udp) {
		r->f->udp = udp_new(r->f);
	}
	if (!r->f->udp) {
		cli_fail("forward: %s", weft_err_text(WEFT_ENOMEM));
		return false;
	}
	if (!forward_front_open(r)) {
		return false;
	}
	(void)forward_resolve(r, NULL); /* so that the first datagram need not wait */
	for (size_t i = 0; i < FORWARD_FRONTS_MAX; i++) {
		struct forward_front *front = &r->front[i];
		if (front->fd < 0) {
			continue;
		}
		list_init(&front->pace.link);
		os_udp_tune(front->fd, front->at.addr.family == IP_FAMILY_V6, BUFFER_BYTES);
		if (os_loop_add(r->f->loop, front->fd, OS_READABLE, front_ready, front)) {
			cli_fail("forward: %s: %s", r->name, weft_err_text(WEFT_ENOMEM));
			return false;
		}
	}
	return true;
}

void
forward_udp_close(struct forward *f)
{
	struct forward_udp *u = f->udp;
	if (!u) {
		return;
	}
	while (!list_is_empty(&u->lru)) {
		end_flow(u, WEFT_CONTAINER_OF(u->lru.next, struct flow, lru), "ended");
	}
	timerwheel_disarm(&f->timers, &u->idle.timer);
	timerwheel_disarm(&f->timers, &u->rest.timer);
	free(u);
	f->udp = NULL;
}
