/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CLI_STATUS_H
#define WEFT_CLI_STATUS_H

#include <jansson.h>

#include "base/err.h"
#include "base/mono.h"

/* A device's status (docs/control.md), the caller's. WEFT_ENOENT: no such device is running. */
WEFT_MUST_CHECK enum weft_err status_ask(const char *name, struct mono deadline, json_t **out);

#endif
