/* SPDX-License-Identifier: Apache-2.0 */
/* Names of routing tables, as `ip route` knows them. */
#ifndef WEFT_NODE_TABLE_H
#define WEFT_NODE_TABLE_H

#include <stdint.h>

#include "base/err.h"

/* The files of iproute2, and its folder of further ones, in the order in which they are asked. */
#define TABLE_FILES "/etc/iproute2/rt_tables, /etc/iproute2/rt_tables.d/*.conf"

/* The number behind a name. root: what stands before "/etc" and "/usr", "" outside of tests.
 * WEFT_ENOENT: nobody knows it. */
WEFT_MUST_CHECK enum weft_err table_by_name(const char *root, const char *name, uint32_t *number);

#endif
