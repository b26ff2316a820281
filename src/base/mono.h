/* SPDX-License-Identifier: Apache-2.0 */
/* A point in time. Nanoseconds of CLOCK_BOOTTIME in a real node, of virtual time in the
 * simulator. Durations are bare int64_t with their unit in the name. */
#ifndef WEFT_BASE_MONO_H
#define WEFT_BASE_MONO_H

#include <stdbool.h>
#include <stdint.h>

#define WEFT_NS_PER_US INT64_C(1000)
#define WEFT_NS_PER_MS INT64_C(1000000)
#define WEFT_NS_PER_S INT64_C(1000000000)

struct mono {
	int64_t ns; /* 0 means "never" where a field says so */
};

#define MONO_NEVER ((struct mono){INT64_MAX})

static inline struct mono
mono_add_ns(struct mono t, int64_t ns)
{
	return (struct mono){t.ns + ns};
}

static inline int64_t
mono_diff_ns(struct mono later, struct mono earlier)
{
	return later.ns - earlier.ns;
}

static inline bool
mono_is_before(struct mono a, struct mono b)
{
	return a.ns < b.ns;
}

static inline struct mono
mono_min(struct mono a, struct mono b)
{
	return a.ns < b.ns ? a : b;
}

#endif
