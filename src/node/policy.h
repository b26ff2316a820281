/* SPDX-License-Identifier: Apache-2.0 */
/* A peer's policy as configuration files say it, and as the node has it. */
#ifndef WEFT_NODE_POLICY_H
#define WEFT_NODE_POLICY_H

#include <stdbool.h>

struct ally_policy;
struct conf_policy;

void policy_from_conf(const struct conf_policy *from, struct ally_policy *out);
/* What a peer has that nothing was said of. */
bool policy_is_default(const struct conf_policy *p);
/* Without places. */
void policy_to_conf(const struct ally_policy *from, struct conf_policy *out);

#endif
