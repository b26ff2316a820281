/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `weft forward` share: the forwarder, its rules with their counters, and the
 * two kinds of traffic. One thread with one loop. */
#ifndef WEFT_CLI_FORWARD_H
#define WEFT_CLI_FORWARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mono.h"
#include "base/timerwheel.h"
#include "cli/forward_rule.h"
#include "cli/overlay.h"

struct forward;
struct forward_udp;
struct os_loop;
struct os_resolver;
struct pumps;

#define FORWARD_RULES_MAX 256
#define FORWARD_CONNECTIONS_DEFAULT 4096
#define FORWARD_CONNECTIONS_MAX 100000
#define FORWARD_FLOWS_MAX 4096
#define FORWARD_CONNECT_S 30
#define FORWARD_UDP_TIMEOUT_S 60
#define FORWARD_ADDRS_MAX 2  /* of a host: one a family */
#define FORWARD_FRONTS_MAX 2 /* sockets that a rule listens on: one a family */

/* Timers carry what to call. */
struct forward_timer {
	struct timer timer;
	void (*due)(struct forward_timer *t);
};

struct forward_counters {
	uint64_t opened;     /* connections accepted, flows begun */
	uint64_t failed;     /* connections that could not be made; flows without room or socket */
	uint64_t cut;        /* connections that ended by a reset or an error; ICMP refusals */
	uint64_t bytes[2];   /* to the target, and from it */
	uint64_t packets[2]; /* datagrams, likewise */
	uint64_t dropped;    /* datagrams that could not be sent on */
};

/* How thick messages come at a socket of datagrams. */
struct forward_pace {
	struct list link; /* among those that rest, or alone */
	struct mono since;
	unsigned messages; /* since then */
	bool is_dense;
};

/* A socket that a rule listens on. */
struct forward_front {
	struct forward_route *route;
	int fd; /* -1: none */
	bool is_watched;
	struct endpoint at;
	struct forward_pace pace; /* of datagrams */
};

/* A rule at work. */
struct forward_route {
	struct forward *f;
	struct forward_rule rule;
	char name[FORWARD_RULE_TEXT_MAX]; /* as it is told */
	struct forward_front front[FORWARD_FRONTS_MAX];
	struct forward_counters count;
	struct log_limit fail_limit; /* of lines that tell of failures */

	/* The target's addresses; the rest where a name server is asked for them (-R). */
	struct ip_addr addrs[FORWARD_ADDRS_MAX];
	size_t addrs_n;
	bool is_numeric;
	struct mono resolved_at;
	struct list waiting;                     /* struct forward_wait */
	unsigned asked;                          /* questions that are not answered yet */
	struct ip_addr fresh[FORWARD_ADDRS_MAX]; /* answers so far */
	size_t fresh_n;
	bool has_no_answer; /* to one of them */
};

struct forward {
	struct overlay overlay;
	struct os_loop *loop;
	struct pumps *pumps;
	struct os_resolver *resolver;
	struct timerwheel timers;
	struct mono start;
	int signals; /* -1: none yet */
	bool is_verbose, is_stopping, is_reloading;

	struct forward_route *routes;
	size_t routes_n;

	struct list connections;
	size_t connections_n, connections_max;
	struct forward_timer resume; /* when accepting goes on after a want of descriptors */
	bool is_full;                /* no more connections are accepted for now */

	struct forward_udp *udp; /* NULL: no rule has UDP */
	int64_t udp_timeout_ns;
};

/* Something that waits for the target's addresses. */
struct forward_wait {
	struct list link;
	void (*ready)(struct forward_wait *w); /* the route has addrs_n of them, maybe 0 */
};

/* Looks for the target's addresses: at once (returns true; addrs_n may be 0), or w->ready is called
 * later. w NULL: it need not be told. */
bool forward_resolve(struct forward_route *r, struct forward_wait *w);

/* A line of the access log, with the time and the rule. Nothing unless -v. */
WEFT_PRINTF(2, 3) void forward_access(struct forward_route *r, const char *fmt, ...);
/* A failure; told at most so many times a minute. */
WEFT_PRINTF(2, 3) void forward_warn(struct forward_route *r, const char *fmt, ...);
/* "10.0.0.2:40312 (phone)" for an address of the overlay, the address alone for others. */
#define FORWARD_WHO_MAX (ENDPOINT_TEXT_MAX + WEFT_NAME_LEN + 4)
char *forward_who(
	const struct forward_route *r, const struct endpoint *at, char out[FORWARD_WHO_MAX]);
void forward_print_summary(const struct forward *f);

/* Opens the sockets of a route. Says what fails. */
bool forward_tcp_open(struct forward_route *r);
/* Ends every connection. */
void forward_tcp_close(struct forward *f);
void forward_tcp_resume(struct forward *f);
bool forward_udp_open(struct forward_route *r);
void forward_udp_close(struct forward *f);

/* Makes the sockets that a rule listens on. Says what fails. */
bool forward_front_open(struct forward_route *r);
void forward_front_close(struct forward_route *r);

/* A socket on its way to an address of the target: fd does not block; WEFT_OK also while a
 * connection is under way. */
WEFT_MUST_CHECK enum weft_err forward_dial(
	const struct forward_route *r, const struct ip_addr *to, int *fd, char *why, size_t cap);

#endif
