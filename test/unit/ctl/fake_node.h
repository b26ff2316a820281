/* SPDX-License-Identifier: Apache-2.0 */
/* A node of engine alone, without interface, sockets and workers, behind the calls of
 * node/node.h; and a control thread that serves both sockets of it. */
#ifndef WEFT_TEST_UNIT_CTL_FAKE_NODE_H
#define WEFT_TEST_UNIT_CTL_FAKE_NODE_H

#include <stdatomic.h>

#include "ctl/control.h"
#include "ctl/path.h"
#include "ctl/uapi.h"
#include "node/ally.h"
#include "node/news.h"
#include "node/node.h"
#include "os/loop.h"
#include "os/thread.h"

struct node {
	struct wg_device *device;
	struct os_rwlock lock;
	struct wg_out out;
	struct wg_msg msgs[64];
	struct wg_event events[64];
	struct drop_counts drops;
	uint16_t port;
	uint32_t mark;
	enum weft_err port_err, mark_err; /* what the next change gives */
	unsigned policies_left;           /* so many can be set before memory runs out */
	unsigned port_changes, mark_changes;
	atomic_uint holds; /* of the device alone */
	struct node_stats stats;
	struct news news;
	struct os_wake wake;          /* of the control thread */
	void (*_Atomic action)(void); /* that it is to do; NULL: it has done it */

	struct log log;
	struct os_loop *loop;
	struct os_thread thread;
	bool has_stopped;
	struct ctl_uapi *uapi;
	struct ctl_control *control;
	char folder[64];
	char uapi_path[CTL_PATH_MAX], control_path[CTL_PATH_MAX];
	atomic_uint stops;
	atomic_uint reloads;    /* and 100 for one with a file */
	atomic_uint stale_news; /* of peers that are gone */
};

/* Sockets in a folder of their own. */
void fake_node_init(struct node *n);
void fake_node_start(struct node *n); /* the control thread */
void fake_node_fini(struct node *n);
/* Ends the control thread, so that its part may be played. */
void fake_node_stop(struct node *n);
/* On the control thread; returns when it is done. */
void fake_node_do(struct node *n, void (*action)(void));
/* From any thread. */
void fake_node_tell(struct node *n, const struct node_news *v);
/* A peer with public key {i, i >> 8, ..., 9} and one prefix. */
void fake_node_add_peer(struct node *n, unsigned i);
size_t fake_node_peers(struct node *n);
/* What node_ally_info() tells of a peer, for the test to change: under node_lock(). */
struct ally_info *fake_node_ally(struct wg_peer *p);

#endif
