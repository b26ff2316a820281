/* SPDX-License-Identifier: Apache-2.0 */
/* Events of a device (docs/control.md, watch) in words. */
#ifndef WEFT_CLI_EVENT_H
#define WEFT_CLI_EVENT_H

#include <jansson.h>
#include <stdbool.h>

#define EVENT_TEXT_MAX 512
#define EVENT_CLOCK_MAX 32

/* "peer gw (xTIBA5rb): session is up, at 192.0.2.1:51820". Returns out. */
char *event_text(const json_t *o, char out[EVENT_TEXT_MAX]);
/* Does it tell of something bad? */
bool event_is_bad(const json_t *o);
/* "1970-01-01 12:34:56": its time here. Returns out. */
char *event_time(const json_t *o, char out[EVENT_CLOCK_MAX]);
/* The same without the day. */
char *event_clock(const json_t *o, char out[EVENT_CLOCK_MAX]);

#endif
