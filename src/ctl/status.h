/* SPDX-License-Identifier: Apache-2.0 */
/* A device's state as JSON: everything but the keys that are secret. */
#ifndef WEFT_CTL_STATUS_H
#define WEFT_CTL_STATUS_H

#include <jansson.h>
#include <stdint.h>

struct ctl_peer;
struct node;
struct wg_time;

/* "device", "link", "port", "drops", "peer_count". NULL: out of memory. */
json_t *ctl_status_device(struct node *n, const char *version);
/* A peer without its "allowed_ips". NULL: out of memory. */
json_t *ctl_status_peer(const struct ctl_peer *p, struct wg_time now);

#endif
