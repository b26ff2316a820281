/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams of the relay as a pcap file of raw IP packets (LINKTYPE_RAW), in the order in which
 * they came in. IP and UDP headers are made up from the addresses. */
#ifndef WEFT_CLI_EMULATE_RECORD_H
#define WEFT_CLI_EMULATE_RECORD_H

#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"

struct emulate_record;

WEFT_MUST_CHECK enum weft_err emulate_record_open(const char *path, struct emulate_record **out);
/* The file is complete after this. WEFT_EIO: some write failed. NULL is fine. */
WEFT_MUST_CHECK enum weft_err emulate_record_close(struct emulate_record *r);
/* Where the families of from and to differ, to is written as the unspecified address. */
void emulate_record_add(struct emulate_record *r, int64_t wall_ns, const struct endpoint *from,
	const struct endpoint *to, const uint8_t *data, uint16_t len);

#endif
