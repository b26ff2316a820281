/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `weft proxy` share. One thread with one loop.
 *
 * A client's life:
 *
 *   accepted -> TALKING (its request comes in) -> DIALING (names, then each address in turn)
 *            -> PUMPING, after the bytes that are still owed to the target: SENDING
 *            -> or ASSOCIATED (datagrams, until the connection ends)
 *   a refusal -> LINGERING, until it was read
 *
 * Bytes behind the request stay in the kernel until the pump takes them, so nothing of ours is in
 * the way of what follows. */
#ifndef WEFT_CLI_PROXY_H
#define WEFT_CLI_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/list.h"
#include "base/mono.h"
#include "base/timerwheel.h"
#include "cli/overlay.h"
#include "cli/proxy_names.h"
#include "cli/proxy_users.h"
#include "os/dgram.h"
#include "wire/http_connect.h"
#include "wire/socks.h"

struct os_loop;
struct proxy;
struct proxy_client;
struct proxy_relay;
struct pump;
struct pumps;

#define PROXY_LISTENS_MAX 16
#define PROXY_CLIENTS_DEFAULT 1024
#define PROXY_CLIENTS_MAX 100000
#define PROXY_REQUEST_NS (30 * WEFT_NS_PER_S) /* for all of a request to come */
#define PROXY_CONNECT_NS                                                                           \
	(15 * WEFT_NS_PER_S)                /* for all addresses of a target, its name as well     \
					     */
#define PROXY_IDLE_NS (300 * WEFT_NS_PER_S) /* of datagrams */
#define PROXY_LINGER_NS (2 * WEFT_NS_PER_S)
#define PROXY_WHY_MAX 400

struct proxy_listen {
	struct proxy *proxy;
	struct endpoint at;
	bool is_http;
	int fd; /* -1: none yet */
	bool is_watched;
};

struct proxy {
	struct overlay overlay;
	enum weft_log_level level;
	struct os_loop *loop;
	struct pumps *pumps;
	struct proxy_names *names;
	struct proxy_users users;
	bool has_users;
	struct timerwheel timers;
	struct mono now; /* of this turn */
	struct proxy_listen listens[PROXY_LISTENS_MAX];
	size_t listens_n;
	struct list clients;
	size_t clients_n, clients_max;
	int signal_fd;
	struct timer resume; /* descriptors ran out */
	bool is_paused, is_stopping;
	/* A datagram with room for its header before it. */
	uint8_t datagram[SOCKS_ANSWER_HEADER_MAX + OS_DGRAM_MAX];
};

enum proxy_state {
	PROXY_TALKING,
	PROXY_DIALING,
	PROXY_SENDING,
	PROXY_PUMPING,
	PROXY_ASSOCIATED,
	PROXY_LINGERING,
};

/* The protocol that a client speaks. */
struct proxy_protocol {
	size_t in_max;
	/* Bytes may have come; to be read until there are none. */
	void (*readable)(struct proxy_client *c);
	/* The target is connected: tells the client, and goes on to SENDING or PUMPING. */
	void (*connected)(struct proxy_client *c);
	/* The target cannot be connected. Tells the client and lingers. */
	void (*failed)(struct proxy_client *c, enum weft_err e, const char *why);
};
extern const struct proxy_protocol proxy_socks, proxy_http;

struct proxy_timer {
	struct timer timer;
	void (*expired)(struct proxy_timer *t);
};

struct proxy_client {
	struct proxy *proxy;
	struct list link;
	enum proxy_state state;
	const struct proxy_protocol *protocol;
	struct proxy_timer timer; /* of the state */
	int fd;                   /* -1: the pump's */
	struct endpoint from;
	uint8_t *in; /* the message so far; protocol->in_max bytes; NULL once dialing begins */
	size_t in_len, need;
	unsigned step; /* of the protocol */

	/* The target. */
	struct socks_target to;
	struct proxy_ask ask;
	struct ip_addr addrs[PROXY_ADDRS_MAX];
	size_t addrs_n, tried_n;
	struct mono patience; /* the end of PROXY_CONNECT_NS */
	int out;              /* -1: none, or the pump's */
	enum weft_err err;    /* of the last address that failed */
	char why[PROXY_WHY_MAX];
	bool is_connect; /* HTTP: CONNECT */
	char *head;      /* HTTP: what the target gets first; NULL: nothing */
	size_t head_len, head_at;

	struct pump *pump;
	struct proxy_relay *relay;
};

/* --- proxy.c --- */
WEFT_PRINTF(3, 4)
void proxy_log(const struct proxy *p, enum weft_log_level level, const char *fmt, ...);

/* --- proxy_client.c --- */
/* Accepts what waits at a listening socket. */
void proxy_accept(void *ctx, uint32_t events);
void proxy_resume(struct proxy *p);
/* The message is not needed any more. It may hold a password. */
void proxy_client_drop_in(struct proxy_client *c);
/* Ends it at once, whatever it does. */
void proxy_client_free(struct proxy_client *c);
/* Reads up to c->need bytes of the message. True: there are so many; else c may be gone. */
bool proxy_client_read(struct proxy_client *c);
/* A short message to the client. False: it is gone. */
bool proxy_client_write(struct proxy_client *c, const void *data, size_t len);
/* The last message is written: ends when the client has read it. */
void proxy_client_linger(struct proxy_client *c);
void proxy_client_arm(
	struct proxy_client *c, struct mono due, void (*expired)(struct proxy_timer *t));
/* Hands both ends to a pump. */
void proxy_client_pump(struct proxy_client *c);
/* "10.0.0.2:80", "name:80" */
#define PROXY_TARGET_TEXT_MAX 320
char *proxy_target_text(const struct socks_target *to, char out[PROXY_TARGET_TEXT_MAX]);

/* --- proxy_dial.c --- */
/* To c->to. The end is a call of the protocol. */
void proxy_dial(struct proxy_client *c);
/* Of a name without an address. Returns out. */
char *proxy_no_name(
	const struct proxy *p, const char *host, enum weft_err e, char out[PROXY_WHY_MAX]);

/* --- proxy_udp.c --- */
/* A relay for the client, whose datagrams come from port; 0: from whichever the first comes.
 * *bound: where it listens. */
WEFT_MUST_CHECK enum weft_err proxy_relay_new(
	struct proxy_client *c, uint16_t port, struct endpoint *bound);
void proxy_relay_free(struct proxy_relay *r);

#endif
