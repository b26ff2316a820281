/* SPDX-License-Identifier: Apache-2.0 */
/* AllowedIPs: longest-prefix match from an inner address to the owner of the prefix, for both
 * families.
 *
 * Lookups may run in many threads at once while no other call runs; the caller holds the lock.
 * Owners are embedded in peers and must outlive their prefixes: allowed_remove_all() before
 * the peer goes. */
#ifndef WEFT_WG_ALLOWED_H
#define WEFT_WG_ALLOWED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/list.h"

/* Ceiling of a table's memory until allowed_set_bytes_max(): some ten million prefixes. */
#define ALLOWED_BYTES_MAX (UINT64_C(1) << 30)

struct allowed;

struct allowed_owner {
	struct list prefixes; /* in order of arrival; written by allowed.c alone */
};

WEFT_MUST_CHECK enum weft_err allowed_new(struct allowed **out);
/* Owners of what is left must still exist; they end without prefixes. */
void allowed_free(struct allowed *a);
/* Insertions that would need more answer WEFT_ENOMEM; what is there stays. */
void allowed_set_bytes_max(struct allowed *a, uint64_t bytes_max);
/* Memory taken now, without the allocator's own overhead. */
uint64_t allowed_bytes(const struct allowed *a);
size_t allowed_count(const struct allowed *a);

void allowed_owner_init(struct allowed_owner *o);

/* Host bits of p are ignored. A prefix that another owner has moves to o, behind its others.
 * WEFT_EINVAL: no family, or more bits than it has. WEFT_ENOMEM: nothing has changed. */
WEFT_MUST_CHECK enum weft_err allowed_insert(
	struct allowed *a, const struct ip_prefix *p, struct allowed_owner *o);
/* False, and nothing changes, when o does not have exactly this prefix. */
bool allowed_remove(struct allowed *a, const struct ip_prefix *p, struct allowed_owner *o);
void allowed_remove_all(struct allowed *a, struct allowed_owner *o);

/* addr: 4 or 16 bytes in network order. NULL when no prefix covers it. */
struct allowed_owner *allowed_lookup(
	const struct allowed *a, enum ip_family family, const uint8_t *addr);
/* Walks the prefixes of o: *cursor = NULL starts, false ends. No change in between. */
bool allowed_next(const struct allowed_owner *o, void **cursor, struct ip_prefix *out);

#endif
