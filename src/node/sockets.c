/* SPDX-License-Identifier: Apache-2.0 */
#include "node/sockets.h"

#include "link/udp.h"
#include "node/node.h"
#include "os/udp.h"

/* The kernel doubles it, and a TCP flow that is faster than this machine fills it: it is the
 * delay of everything behind it. 4 MiB gave pings 3 to 5 ms under one full flow, this 1.2 to
 * 1.6, at 0.9 of the throughput (docs/decisions/receive-buffer.md). */
#define RCV_BYTES (512u * 1024u)

enum weft_err
sockets_open(const struct sockets_config *c, const struct log *log, struct link *links[])
{
	unsigned opened = 0;
	uint16_t port = c->port;
	enum weft_err e = WEFT_OK;
	for (; opened < c->n; opened++) {
		struct os_udp_config uc = {.port = port,
			.mark = c->mark,
			.is_shared = c->n > 1,
			.is_joining = opened > 0,
			.has_offload = c->has_offload,
			.rcv_bytes = RCV_BYTES};
		struct os_udp u;
		e = os_udp_open(&uc, log, &u);
		if (e) {
			break;
		}
		port = u.port;
		e = link_udp_new(&u, NULL, log, &links[opened]);
		if (e) {
			os_udp_close(&u);
			break;
		}
	}
	if (e) {
		while (opened > 0) {
			opened--;
			links[opened]->ops->close(links[opened]);
		}
	}
	return e;
}

enum weft_err
sockets_watch(struct runner *r, const struct link *l)
{
	int fds[2];
	size_t n = link_udp_fds(l, fds);
	return runner_watch_link(r, fds, n);
}

static void
unwatch(struct runner *r, const struct link *l)
{
	int fds[2];
	size_t n = link_udp_fds(l, fds);
	runner_unwatch_link(r, fds, n);
}

struct watch_ask {
	struct link *link;
	enum weft_err e;
};

static void
watch_fresh(struct runner *r, void *arg)
{
	struct watch_ask *a = arg;
	a->e = sockets_watch(r, a->link);
}

static void
unwatch_fresh(struct runner *r, void *arg)
{
	unwatch(r, arg);
}

enum weft_err
sockets_watch_all(struct runner *runners, unsigned n, struct link *links[])
{
	for (unsigned i = 0; i < n; i++) {
		struct watch_ask a = {.link = links[i]};
		runner_ask(&runners[i], watch_fresh, &a);
		if (!a.e) {
			continue;
		}
		for (unsigned k = 0; k < i; k++) {
			runner_ask(&runners[k], unwatch_fresh, links[k]);
		}
		for (unsigned k = 0; k < n; k++) {
			links[k]->ops->close(links[k]);
		}
		return a.e;
	}
	return WEFT_OK;
}

/* What arrives on the old sockets between the last look and their close is lost, some
 * microseconds' worth. */
static void
swap_link(struct runner *r, void *arg)
{
	struct link *fresh = arg;
	struct link *old = worker_swap_link(r->worker, fresh, node_time());
	unwatch(r, old);
	link_udp_sync(old);
	fresh->stats = old->stats; /* counters go on */
	old->ops->close(old);
}

void
sockets_swap_all(struct runner *runners, unsigned n, struct link *links[])
{
	for (unsigned i = 0; i < n; i++) {
		runner_ask(&runners[i], swap_link, links[i]);
	}
}

struct mark_ask {
	uint32_t mark;
	enum weft_err e;
};

static void
set_mark(struct runner *r, void *arg)
{
	struct mark_ask *a = arg;
	a->e = link_udp_set_mark(r->worker->link, a->mark);
}

enum weft_err
sockets_set_mark(struct runner *runners, unsigned n, uint32_t mark, uint32_t before)
{
	for (unsigned i = 0; i < n; i++) {
		struct mark_ask a = {.mark = mark};
		runner_ask(&runners[i], set_mark, &a);
		if (!a.e) {
			continue;
		}
		/* The ones that took it go back; they had the old mark a moment ago. The last may
		 * have taken it for one family. */
		for (unsigned k = 0; k <= i; k++) {
			struct mark_ask back = {.mark = before};
			runner_ask(&runners[k], set_mark, &back);
		}
		return a.e;
	}
	return WEFT_OK;
}
