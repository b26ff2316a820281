/* SPDX-License-Identifier: Apache-2.0 */
/* A node as the files of the library share it.
 *
 * Threads: the node has a control thread with a loop, on which the keeper lives. Calls of the
 * program run on the program's threads: between lib_node_enter() and lib_node_leave() what was
 * started stays. What belongs to the loop is done there by lib_node_ask(). */
#ifndef WEFT_LIB_NODE_H
#define WEFT_LIB_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"
#include "lib/config.h"
#include "lib/events.h"
#include "lib/names.h"
#include "os/thread.h"
#include "weft/dial.h"
#include "weft/node.h"

struct keeper;
struct node;
struct os_loop;
struct os_netns;

enum lib_state {
	LIB_STATE_STOPPED,
	LIB_STATE_STARTED,
	LIB_STATE_STOPPING, /* waits for its users */
};

/* Something for the control thread. */
struct lib_job {
	void (*run)(struct weft_node *n, void *arg);
	void *arg;
	bool is_done;
};

/* Lines on their way to the program. */
struct lib_log {
	struct os_mutex mutex; /* guards the rest, and is held while the program is called */
	void (*write)(void *ctx, enum weft_log_level level, const char *text);
	void *ctx;
	char last_error[400];
};

struct weft_node {
	/* Set by weft_node_new(). */
	struct log log;
	char *state_dir;
	unsigned workers, flags;
	struct os_wake stop; /* readable while stopping: ends whatever blocks */

	struct lib_log sink;
	struct events events;

	struct os_mutex life; /* one start, stop or reload at a time */
	/* Under life; and what is started, also between lib_node_enter() and lib_node_leave(). */
	struct config_text text;
	struct os_netns *netns;
	struct os_loop *loop;
	struct keeper *keeper; /* the control thread's */
	struct node *inner;
	struct os_thread control;
	struct os_wake post; /* job is set */
	bool is_gone;        /* the interface; the control thread's */

	struct os_mutex mutex; /* guards the rest; held for short */
	struct os_cond changed;
	enum lib_state state;
	unsigned users; /* between lib_node_enter() and lib_node_leave() */
	struct lib_job *job;
	struct lib_names names;
	struct ip_addr *own; /* addresses of the node */
	size_t own_n;
	uint8_t public_key[WEFT_KEY_LEN];

	struct os_mutex accepting; /* see accept.c */
};

/* WEFT_ECLOSED: not started. */
WEFT_MUST_CHECK enum weft_err lib_node_enter(struct weft_node *n);
void lib_node_leave(struct weft_node *n);
/* Runs it on the control thread and waits for its end. Between lib_node_enter() and
 * lib_node_leave(). */
void lib_node_ask(struct weft_node *n, void (*run)(struct weft_node *n, void *arg), void *arg);
/* Is it the address of the node itself, or of its loopback interface? */
bool lib_node_is_own(struct weft_node *n, const struct ip_addr *a);

/* --- control.c --- */
/* Namespace, loop, keeper and thread, from the node's text. */
WEFT_MUST_CHECK enum weft_err control_start(struct weft_node *n, struct weft_detail *why);
void control_stop(struct weft_node *n);

/* --- log.c --- */
void lib_log_init(struct weft_node *n, const struct weft_config *c);
void lib_log_fini(struct weft_node *n);
/* Error lines are kept from here on. */
void lib_log_clear(struct weft_node *n);
/* The last error line since, or other. */
void lib_log_last(struct weft_node *n, const char *other, char *out, size_t cap);

/* --- zone.c --- */
/* sin6_scope_id for an overlay address (RFC 4007, section 6): the node's interface for a link-local
 * one, else 0. Between lib_node_enter() and lib_node_leave(). */
uint32_t lib_node_zone(const struct weft_node *n, const struct ip_addr *a);

/* --- whois.c --- */
/* The rest of *out is set by the caller. False: no peer has the address. Between lib_node_enter()
 * and lib_node_leave(). */
bool whois_find(struct weft_node *n, const struct ip_addr *at, struct weft_identity *out);

#endif
