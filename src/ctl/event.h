/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to a device, as the objects that watchers of the control socket get. */
#ifndef WEFT_CTL_EVENT_H
#define WEFT_CTL_EVENT_H

#include <jansson.h>
#include <stdint.h>

#include "pkt/drop.h"
#include "wg/device.h"

struct node_news;

/* A time in seconds, in whole milliseconds. */
double ctl_event_seconds(int64_t wall_ns);

/* Each gives an object with "event" and "time_s", or NULL for want of memory. name: of the peer;
 * empty for none. */
json_t *ctl_event_make(const char *kind, int64_t wall_ns);
json_t *ctl_event_of_peer(
	const char *kind, int64_t wall_ns, const uint8_t key[WG_KEY_LEN], const char *name);
json_t *ctl_event_of_news(const struct node_news *v, const char *name);
/* file: NULL = the one at hand. why: NULL = it is in force. */
json_t *ctl_event_of_reload(int64_t wall_ns, const char *file, const char *why);
/* more: since it was last told, of total. */
json_t *ctl_event_of_drop(int64_t wall_ns, enum drop_reason reason, uint64_t more, uint64_t total);
/* A line of it, to be freed; the object is given up. NULL: no memory, or no object. */
char *ctl_event_line(json_t *o);

#endif
