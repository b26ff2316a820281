/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a reply of the control socket. What is missing, or of another kind, reads as
 * nothing: a device may be older than this program. */
#ifndef WEFT_CLI_REPLY_H
#define WEFT_CLI_REPLY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

const char *reply_text(const json_t *o, const char *name, const char *otherwise);
int64_t reply_count(const json_t *o, const char *name);
double reply_number(const json_t *o, const char *name);
bool reply_is_true(const json_t *o, const char *name);
/* Present, and not null? */
bool reply_has(const json_t *o, const char *name);

#endif
