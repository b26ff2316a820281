/* SPDX-License-Identifier: Apache-2.0 */
/* Running devices, found by their sockets. */
#ifndef WEFT_CLI_DEVICE_H
#define WEFT_CLI_DEVICE_H

#include <stddef.h>

#include "base/err.h"
#include "base/mono.h"

#define CLI_DEVICE_NAME_MAX 16

struct cli_devices {
	char (*names)[CLI_DEVICE_NAME_MAX]; /* sorted; freed by cli_devices_fini() */
	size_t n, cap;
};

/* Names of all sockets in a folder; a folder that is not there has none. */
WEFT_MUST_CHECK enum weft_err cli_devices_find(const char *dir, struct cli_devices *out);
void cli_devices_fini(struct cli_devices *d);

/* When an answer of a device must be there. */
struct mono cli_device_deadline(void);
/* Says why a device did not answer. Returns CLI_FAILED. */
int cli_device_fail(const char *name, enum weft_err e);

/* "1 hour, 2 minutes, 3 seconds"; at most parts_max units. */
#define CLI_TIME_TEXT_MAX 96
char *cli_time_text(int64_t seconds, unsigned parts_max, char out[CLI_TIME_TEXT_MAX]);
/* "1.50 KiB" */
#define CLI_BYTES_TEXT_MAX 32
char *cli_bytes_text(uint64_t bytes, char out[CLI_BYTES_TEXT_MAX]);

#endif
