/* SPDX-License-Identifier: Apache-2.0 */
/* A device's state as JSON, without its peers (ctl/field.h) and without the keys that are secret.
 */
#ifndef WEFT_CTL_STATUS_H
#define WEFT_CTL_STATUS_H

#include <jansson.h>
#include <stdint.h>

struct node;

/* "device", "link", "port", "drops", "peer_count". NULL: out of memory. */
json_t *ctl_status_device(struct node *n, const char *version);

#endif
