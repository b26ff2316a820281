/* SPDX-License-Identifier: Apache-2.0 */
/* Why traffic to a peer or an address does not flow: the operation "why" of the control socket.
 *
 * Gathers the facts of device, engine and kernel for ctl/judge.h. */
#ifndef WEFT_CTL_WHY_H
#define WEFT_CTL_WHY_H

#include <jansson.h>

struct keeper;
struct node;

/* The reply, or an object with "error"; NULL: out of memory. keeper NULL: no configuration. */
json_t *ctl_why(struct node *n, const struct keeper *keeper, const json_t *request);

#endif
