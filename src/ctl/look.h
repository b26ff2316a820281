/* SPDX-License-Identifier: Apache-2.0 */
/* What was seen of each peer when the device was last looked at: what is another the next time is
 * a change. One for all who watch.
 *
 * A row holds a reference to its peer, so that no other peer has its address. Rows stand in the
 * order of the device's peers, where new ones come last.
 *
 * Threads: the control thread, which alone adds and removes peers. */
#ifndef WEFT_CTL_LOOK_H
#define WEFT_CTL_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "fec/controller.h"
#include "node/ally.h"
#include "wg/device.h"

struct conf;
struct node;

/* A configuration's name, or as the other side calls itself. */
#define LOOK_NAME_MAX (WIRE_EXT_NAME_MAX + 1)

struct look_row {
	struct wg_peer *peer;
	uint8_t key[WG_KEY_LEN];
	struct endpoint endpoint;
	uint64_t rx_bytes, tx_bytes;
	int64_t handshake_wall_ns;
	uint64_t handshake_tries;
	uint32_t unanswered;
	bool has_session;
	bool was_seen; /* else all but peer and key is yet to come */
	enum ally_state state;
	enum fec_why why;
	enum aead_cipher cipher;
	uint64_t turn;            /* of the look that saw a change last */
	char name[LOOK_NAME_MAX]; /* empty: none */
	bool is_named;            /* by the configuration */
};

struct look_name {
	uint8_t key[WG_KEY_LEN];
	char text[LOOK_NAME_MAX];
};

/* Told of changes. None of them may change rows. */
struct look_sink {
	void *ctx;
	void (*added)(void *ctx, const struct look_row *r);
	/* r stood at place `at`, and stands nowhere any more. */
	void (*gone)(void *ctx, const struct look_row *r, size_t at);
	/* A row stands further ahead, since others went. */
	void (*moved)(void *ctx, size_t from, size_t to);
	void (*why_changed)(void *ctx, const struct look_row *r, enum fec_why was);
};

/* Zero-initialised, it has seen nothing. */
struct look {
	struct look_row *rows;
	size_t n, cap;
	uint64_t turn;
	struct look_name *names; /* of the configuration, by key */
	size_t names_n;
};

/* Which peers there are. Cheap: some 10 ns each. True: some were added or removed. */
bool look_at_list(struct look *l, struct node *n, const struct look_sink *s);
/* And how they are. */
void look_at_peers(struct look *l, struct node *n, const struct look_sink *s);
/* NULL: none has names. Without memory they have none. */
void look_set_names(struct look *l, const struct conf *c);
/* Of a peer that may have no row yet. Returns out. */
char *look_name(const struct look *l, struct node *n, const uint8_t key[WG_KEY_LEN],
	char out[LOOK_NAME_MAX]);
void look_fini(struct look *l);

#endif
