/* SPDX-License-Identifier: Apache-2.0 */
/* What status says of a peer's extensions and loss recovery, in words. */
#ifndef WEFT_CLI_RECOVERY_H
#define WEFT_CLI_RECOVERY_H

#include <jansson.h>
#include <stdbool.h>

#define RECOVERY_TEXT_MAX 240

/* Each takes a peer of a status reply, and returns out. */
/* "agreed with gw1, sends in aes-256-gcm" */
char *recovery_extensions(const json_t *peer, char out[RECOVERY_TEXT_MAX]);
/* "auto within 20 ms: loss is rare, ..." : what is set, and why it is on or off now. */
bool recovery_has_why(const json_t *peer);
char *recovery_why(const json_t *peer, char out[RECOVERY_TEXT_MAX]);
/* The sending direction, as the other side reports it; the receiving one, as seen here. */
char *recovery_out(const json_t *peer, char out[RECOVERY_TEXT_MAX]);
char *recovery_in(const json_t *peer, char out[RECOVERY_TEXT_MAX]);
/* Is there a state of it, so that recovery_out() and recovery_in() have something to say? */
bool recovery_is_running(const json_t *peer);

#endif
