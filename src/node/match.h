/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the engine's peers those of a configuration by their difference: what is right already
 * is not touched. The device is locked alone for one peer, and for some hundred prefixes, at a
 * time; shared for all prefixes of one peer. */
#ifndef WEFT_NODE_MATCH_H
#define WEFT_NODE_MATCH_H

#include "base/err.h"
#include "base/log.h"

struct census;
struct node;

/* Adds and changes. Endpoints are set where they differ from before's, so that a peer that
 * roamed is left where it is. before: empty for none. On failure it has stopped half-way. */
WEFT_MUST_CHECK enum weft_err match_peers(
	struct node *n, const struct census *before, const struct census *c, const struct log *log);
/* Takes away peers that c does not have, and prefixes that it does not give to their peer. Without
 * memory for that, some stay: the log says so. */
void match_prune(struct node *n, const struct census *c, const struct log *log);

#endif
