/* SPDX-License-Identifier: Apache-2.0 */
/* One running device: engine, workers, interface and sockets joined.
 *
 * Threads: the owner's control thread calls everything here; workers run on threads of the
 * node. The engine is reached between node_lock() and node_unlock() (alone) or between
 * node_lock_shared() and node_unlock_shared() (together with the workers). The lock is held
 * for short: an enumeration of many peers lets it go every few hundred. */
#ifndef WEFT_NODE_NODE_H
#define WEFT_NODE_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/log.h"
#include "crypto/aead.h"
#include "link/link.h"
#include "port/port.h"
#include "wg/device.h"

#define NODE_NAME_MAX 16 /* IFNAMSIZ, with the final NUL */
#define NODE_WORKERS_MAX 16
#define NODE_MTU_DEFAULT 1420

struct node;
struct node_device;
struct os_netns;

struct node_config {
	const char *name; /* of the interface */
	const struct log *log;
	unsigned workers; /* 1..NODE_WORKERS_MAX; 0 = auto */
	enum aead_backend aead;
	bool has_offload;      /* false: no vnet offloads on the interface */
	uint16_t mtu;          /* 0 = NODE_MTU_DEFAULT */
	const char *state_dir; /* for the last timestamp sent; NULL = not persisted */
	/* A private namespace for the interface, which must outlive the node; NULL = the caller's
	 * own. The sockets to peers are the caller's own in any case. */
	struct os_netns *netns;
	bool has_news; /* node_take_news() will be called; else none are kept, until
			  node_keep_news() */
	bool no_tun;   /* with netns: a veth pair at once, as where there is no TUN */
};

/* Creates the interface and the sockets, starts the workers. The interface is down and has no
 * key, as `wg set` expects of a fresh device. On failure says why in the log.
 * WEFT_EPERM: no CAP_NET_ADMIN; WEFT_ENOENT: no /dev/net/tun; WEFT_EEXIST: name taken. */
WEFT_MUST_CHECK enum weft_err node_new(const struct node_config *c, struct node **out);
/* Stops the workers and removes the interface. */
void node_free(struct node *n);

/* Runs call on each thread of the node, one after the other, and waits for it. */
void node_call_on_threads(struct node *n, void (*call)(void *ctx), void *ctx);

/* Readable when there is something for the control thread: then node_take_events(), and
 * node_is_gone() tells whether the node ended by itself (its interface was deleted). */
int node_event_fd(const struct node *n);
void node_take_events(struct node *n);
bool node_is_gone(const struct node *n);
/* Has a session come up since node_take_session()? The first one makes node_event_fd() readable. */
bool node_has_session(const struct node *n);
void node_take_session(struct node *n);
/* Has a peer been called NODE_TRIES_MIN times or more without an answer, since the last call? Then
 * node_event_fd() is readable, too. */
#define NODE_TRIES_MIN 3
bool node_take_tries(struct node *n);

struct node_news; /* node/news.h */
/* What happened, the oldest first, at most cap of it; returns how many. It makes node_event_fd()
 * readable when there was none before: take until there is none. What found the queue full is
 * lost, and counted since the start. */
size_t node_take_news(struct node *n, struct node_news *v, size_t cap);
uint64_t node_news_lost(struct node *n);
/* News that the control thread makes itself. */
void node_put_news(struct node *n, const struct node_news *v);
/* Somebody begins to take them, and gets none of before; or nobody does any more. */
void node_keep_news(struct node *n, bool is_kept);

/* Readable when the kernel has news of the interface: then node_monitor() follows renames, up
 * and down, and MTU changes. */
int node_monitor_fd(const struct node *n);
void node_monitor(struct node *n);
/* The interface: its netlink handle belongs to the control thread. */
const struct node_device *node_device_of(const struct node *n);

/* [excl] access to the engine. What engine calls put into the returned vector is sent by
 * node_unlock(). */
struct wg_device *node_lock(struct node *n, struct wg_out **out);
void node_unlock(struct node *n);
/* [shared] access. */
const struct wg_device *node_lock_shared(struct node *n);
void node_unlock_shared(struct node *n);
/* The time to pass to engine calls. */
struct wg_time node_time(void);

/* port 0 = any free one. On failure the old sockets stay: WEFT_EADDRINUSE and others. Not
 * under the lock. */
WEFT_MUST_CHECK enum weft_err node_set_listen_port(struct node *n, uint16_t port);
/* Another free port, unless the present one was asked for: WEFT_EEXIST. Not under the lock. */
WEFT_MUST_CHECK enum weft_err node_renew_port(struct node *n);
/* mark 0 = none. Applies to the open sockets at once and to later ones. Not under the lock. */
WEFT_MUST_CHECK enum weft_err node_set_fwmark(struct node *n, uint32_t mark);

struct ally_policy;
struct ally_info;
/* What to agree on with a peer beyond WireGuard. Under node_lock(). */
WEFT_MUST_CHECK enum weft_err node_set_policy(
	struct node *n, struct wg_peer *p, const struct ally_policy *policy);
/* Under either lock. */
void node_ally_info(const struct wg_peer *p, struct ally_info *out);

/* What show and status need of the device. */
struct node_facts {
	char name[NODE_NAME_MAX]; /* as it is now: a rename is followed */
	uint32_t ifindex;
	uint16_t mtu;
	bool is_up;
	uint16_t listen_port;
	bool is_port_fixed; /* it was asked for */
	uint32_t fwmark;
	unsigned workers;
	const char *aead;      /* backend's name */
	bool has_tso, has_uso; /* offloads active on the interface */
	bool has_udp_gso, has_udp_gro;
	int64_t uptime_ns;
};
void node_facts(struct node *n, struct node_facts *out);

/* Sums over the workers; drops hold every reason. */
struct node_stats {
	struct link_stats link;   /* .drops unused here */
	struct port_stats port;   /* .drops unused here */
	struct drop_counts drops; /* of engine, link, port and workers together */
	uint64_t handshakes_rx, keepalives_rx;
	uint64_t gaps; /* how often it was stopped, or the machine suspended, when it was to run */
};
struct drop_times;
struct wg_troubles;
/* When what was dropped, all workers together. What the interface dropped is dated by the look
 * before the one that saw it: no earlier. */
void node_drop_times(struct node *n, struct drop_times *out);
/* On the control thread, now and then: looks what the interface has dropped, so that it can be
 * dated. */
void node_look(struct node *n);
/* What went wrong lately: two tables, of the workers and of the engine. */
void node_troubles(struct node *n, struct wg_troubles *out);
/* On the control thread: asks the kernel for what the interface dropped. */
void node_stats(struct node *n, struct node_stats *out);

#endif
