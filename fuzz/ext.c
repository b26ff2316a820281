/* SPDX-License-Identifier: Apache-2.0 */
/* An extension frame: the decoder of its type and the naive model agree, and what was decoded is
 * written and read again the same. */
#include <string.h>

#include "../test/unit/wire/ext_model.h"
#include "base/assert.h"
#include "fuzz.h"
#include "wire/ext.h"

static void
run_hello(const uint8_t *data, size_t size)
{
	struct wire_ext_hello h, model, again;
	bool is_good = wire_ext_hello_decode(data, size, &h);
	weft_assert(is_good == ext_model_hello(data, size, &model));
	if (!is_good) {
		return;
	}
	weft_assert(ext_model_same_hello(&h, &model));
	weft_assert(strlen(h.name) == h.name_len);
	uint8_t out[WIRE_EXT_HELLO_MAX];
	size_t len = wire_ext_hello_encode(&h, out, sizeof(out));
	weft_assert(len > 0 && len <= size);
	weft_assert(wire_ext_hello_decode(out, len, &again) && ext_model_same_hello(&h, &again));
}

static void
run_repair(const uint8_t *data, size_t size)
{
	struct wire_ext_repair r, model;
	bool is_good = wire_ext_repair_decode(data, size, &r);
	weft_assert(is_good == ext_model_repair(data, size, &model));
	if (!is_good) {
		return;
	}
	weft_assert(ext_model_same_repair(&r, &model));
	/* There is one way to write it, so the bytes come back. */
	uint8_t out[WIRE_EXT_REPAIR_HEADER_MAX];
	size_t len = wire_ext_repair_encode(&r, out, sizeof(out));
	weft_assert(len > 0 && data + len == r.payload && len + r.payload_len == size);
	weft_assert(memcmp(out, data, len) == 0);
}

static void
run_feedback(const uint8_t *data, size_t size)
{
	struct wire_ext_feedback f, model;
	bool is_good = wire_ext_feedback_decode(data, size, &f);
	weft_assert(is_good == ext_model_feedback(data, size, &model));
	if (!is_good) {
		return;
	}
	weft_assert(ext_model_same_feedback(&f, &model));
	uint8_t out[WIRE_EXT_FEEDBACK_MAX];
	size_t len = wire_ext_feedback_encode(&f, out, sizeof(out));
	weft_assert(len > 0 && len <= size && memcmp(out, data, len) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	switch (wire_ext_type(data, size)) {
	case WIRE_EXT_TYPE_HELLO:
		run_hello(data, size);
		break;
	case WIRE_EXT_TYPE_REPAIR:
		run_repair(data, size);
		break;
	case WIRE_EXT_TYPE_FEEDBACK:
		run_feedback(data, size);
		break;
	case WIRE_EXT_TYPE_NONE:
		break;
	}
	return 0;
}
