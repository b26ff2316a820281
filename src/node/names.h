/* SPDX-License-Identifier: Apache-2.0 */
/* The endpoints of a configuration that must be looked up: names of hosts, and link-local
 * addresses with the name of an interface. Brings what is found to the node's peers, both
 * families to be raced, and looks again when handshakes stay without an answer.
 *
 * Threads: the control thread's. Takes the node's lock. */
#ifndef WEFT_NODE_NAMES_H
#define WEFT_NODE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mono.h"
#include "node/name.h"
#include "wg/device.h"

struct conf;
struct node;
struct os_loop;
struct os_resolver;

/* Initiations without an answer, after which a name is looked up again: 10 s. */
#define NAMES_UNANSWERED 3

struct names_entry {
	struct name name;
	uint64_t tag; /* of its questions; no other entry ever has it */
	uint8_t key[WG_KEY_LEN];
	char *host; /* NULL: addr and scope are given */
	struct ip_addr addr;
	char scope[16];
	uint16_t port;
	uint64_t handshakes;  /* of the peer, when it was last looked at */
	enum weft_err answer; /* the last one without an address; WEFT_OK: none such since it was
				 found */
	bool has_warned;      /* since it was last found */
	struct endpoint told; /* where it was found last */
	bool must_move;       /* the endpoint was changed: a session does not keep the old one */
};

/* Names that were read and do not count yet. */
struct names_list {
	struct names_entry *v;
	size_t n;
};

struct names {
	struct node *node;
	struct log log;
	struct os_resolver *resolver;
	struct names_entry *v; /* by key, each once */
	size_t n;
	uint64_t tags;
	bool was_set;
};

WEFT_MUST_CHECK enum weft_err names_init(
	struct names *t, struct node *n, struct os_loop *loop, const struct log *log);
void names_fini(struct names *t);
/* The names of c, for names_put() or names_drop(). */
WEFT_MUST_CHECK enum weft_err names_read(
	struct names *t, const struct conf *c, struct mono now, struct names_list *out);
void names_drop(struct names_list *list);
/* The names of the list, whose peers the node has by now, in the place of those before; what is the
 * same in both keeps its state. Takes the list over. */
void names_put(struct names *t, struct names_list *list);
struct mono names_deadline(const struct names *t);
void names_turn(struct names *t, struct mono now);
/* Peers may have tried in vain: node_take_tries(). */
void names_look(struct names *t, struct mono now);
/* The name that a peer's endpoint comes from; NULL: it has none. Valid until the next names_set().
 */
const struct names_entry *names_find(const struct names *t, const uint8_t key[WG_KEY_LEN]);

#endif
