/* SPDX-License-Identifier: Apache-2.0 */
/* The frames of docs/protocol.md parsed a second time: byte by offset, bit by bit, without
 * cursors, masks or early ends. Also says whether two decoded frames are the same. */
#ifndef WEFT_TEST_WIRE_EXT_MODEL_H
#define WEFT_TEST_WIRE_EXT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/ext.h"

bool ext_model_hello(const uint8_t *d, size_t n, struct wire_ext_hello *out);
bool ext_model_repair(const uint8_t *d, size_t n, struct wire_ext_repair *out);
bool ext_model_feedback(const uint8_t *d, size_t n, struct wire_ext_feedback *out);

bool ext_model_same_hello(const struct wire_ext_hello *a, const struct wire_ext_hello *b);
/* Payloads are compared by content. */
bool ext_model_same_repair(const struct wire_ext_repair *a, const struct wire_ext_repair *b);
bool ext_model_same_feedback(const struct wire_ext_feedback *a, const struct wire_ext_feedback *b);

#endif
