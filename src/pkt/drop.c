/* SPDX-License-Identifier: Apache-2.0 */
#include "pkt/drop.h"

#include <stddef.h>

#include "base/compiler.h"

/* The compiler spells the table's names in lower case, so that there is no second list. */
#define NAME_MAX 24
#define LOWER(c) ((char)((c) >= 'A' && (c) <= 'Z' ? (c) + ('a' - 'A') : (c)))
#define AT(s, i) ((i) < sizeof(s) ? LOWER((s)[(i) < sizeof(s) ? (i) : 0]) : '\0')
#define AT4(s, i) AT(s, i), AT(s, i + 1), AT(s, i + 2), AT(s, i + 3)
#define AT24(s) AT4(s, 0), AT4(s, 4), AT4(s, 8), AT4(s, 12), AT4(s, 16), AT4(s, 20)

static const struct {
	char name[NAME_MAX];
	const char *text;
} table[DROP_COUNT] = {
#define X(name, text) [DROP_##name] = {{AT24(#name)}, text},
	DROP_TABLE(X)
#undef X
};

#define X(name, text) _Static_assert(sizeof(#name) <= NAME_MAX, "name does not fit: " #name);
DROP_TABLE(X)
#undef X

const char *
drop_name(enum drop_reason r)
{
	return (size_t)r < DROP_COUNT ? table[r].name : "unknown";
}

const char *
drop_text(enum drop_reason r)
{
	return (size_t)r < DROP_COUNT ? table[r].text : "unknown";
}
