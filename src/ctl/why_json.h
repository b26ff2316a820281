/* SPDX-License-Identifier: Apache-2.0 */
/* Facts and findings as the reply of "why" (docs/control.md). No secret is in it. */
#ifndef WEFT_CTL_WHY_JSON_H
#define WEFT_CTL_WHY_JSON_H

#include <jansson.h>
#include <stdint.h>

struct judge_facts;
struct judge_verdict;

/* NULL: out of memory. peer_name may be NULL. */
json_t *why_json(const struct judge_facts *f, const struct judge_verdict *v, const char *peer_name,
	uint32_t fwmark);

#endif
