/* SPDX-License-Identifier: Apache-2.0 */
/* A node together with its configuration, kept up to date: names of endpoints are looked up,
 * changes of the interface followed, another configuration put in the place of the first.
 *
 * Lives on a loop of its owner: descriptors are watched there, and what is due by time runs in
 * keeper_turn(). Nothing here waits for a name server.
 *
 * Threads: the loop's. */
#ifndef WEFT_NODE_KEEPER_H
#define WEFT_NODE_KEEPER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mono.h"
#include "crypto/aead.h"

struct conf;
struct keeper;
struct left_keeper;
struct node;
struct os_loop;
struct os_netns;

/* Descriptors that a keeper may watch at once, name servers' among them. */
#define KEEPER_WATCHES_MAX 40

struct keeper_config {
	const char *name;      /* of the interface */
	struct conf *conf;     /* taken over by success; NULL = a device without configuration */
	const struct log *log; /* copied */
	unsigned workers;      /* 0: as the configuration says, else auto */
	bool has_aead;         /* aead overrides the configuration */
	enum aead_backend aead;
	const char *state_dir;          /* for the last timestamp sent; NULL = not persisted */
	const struct left_keeper *left; /* outlives the keeper: what outlives us is noted
					   by it (node/left.h); NULL */
	struct os_netns *netns;         /* of the interface; NULL = this thread's */
	bool has_news;                  /* node_take_news() is going to be called */
	bool no_tun;                    /* a veth pair instead of /dev/net/tun; with netns alone */
	/* The node is there, with its threads, and nothing is configured: what must come before the
	 * first packet. Its failure is keeper_new()'s; what it made is undone by the second, also
	 * when a later step fails, and then the keeper is gone. Both NULL: nothing. */
	enum weft_err (*prepare)(void *ctx, struct keeper *k);
	void (*unprepare)(void *ctx);
	/* The interface was deleted: the node does nothing any more. Must not free the keeper. */
	void (*gone)(void *ctx);
	/* node_take_news() may have something; NULL = nobody asks. Must not free the keeper. */
	void (*news)(void *ctx);
	void *ctx;
};

/* Creates the node and puts the configuration into it. On failure nothing is left, conf is still
 * the caller's, and the log says why. Endpoints by name come later, and are no failure. */
WEFT_MUST_CHECK enum weft_err keeper_new(
	const struct keeper_config *c, struct os_loop *loop, struct keeper **out);
/* Takes back what was changed outside the interface, and ends the node. */
void keeper_free(struct keeper *k);
/* The same; the configuration that was in force, or NULL, becomes the caller's. */
struct conf *keeper_end(struct keeper *k);

struct node *keeper_node(const struct keeper *k);
/* The one in force; NULL = none. Valid until the next keeper_reload(). */
const struct conf *keeper_conf(const struct keeper *k);

/* The name that a peer's endpoint comes from. False: from none. */
struct keeper_name {
	const char *host;     /* or the interface of a link-local address; valid as keeper_conf() */
	bool is_found;        /* it has an address now */
	bool is_asked;        /* an answer is awaited */
	enum weft_err answer; /* the last that had no address: WEFT_ENOENT, it has none,
				 WEFT_EAGAIN, none came; WEFT_OK: there was no such */
	struct mono asked_at; /* 0 = never */
};
bool keeper_name(const struct keeper *k, const uint8_t key[], struct keeper_name *out);

/* When keeper_turn() is due next. To be asked anew before each wait. */
struct mono keeper_deadline(const struct keeper *k);
void keeper_turn(struct keeper *k, struct mono now);

/* Puts another configuration in the place of the present one. What is equal in both is not
 * touched: peers keep sessions, counters and the endpoints that they roamed to, addresses stay
 * on the interface. What was changed by hand since (`wg set`) gives way. fresh is taken over by
 * success. On failure the old one is in force, the log says why, and fresh is the caller's.
 * Workers, Offload and Aead keep what they were at the start. */
WEFT_MUST_CHECK enum weft_err keeper_reload(struct keeper *k, struct conf *fresh);

#endif
