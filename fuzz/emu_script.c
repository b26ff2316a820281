/* SPDX-License-Identifier: Apache-2.0 */
/* A script of `weft emulate`; what parses is also run over a channel. */
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "emu/channel.h"
#include "emu/script.h"
#include "emu/text.h"
#include "fuzz.h"

static void
run_script(const struct emu_script *s)
{
	struct emu_settings both[2] = {emu_settings_default, emu_settings_default};
	struct emu_channel_params params = {.seed = 1, .ring_bytes = 16384, .packets_max = 32};
	struct emu_channel c;
	struct emu_packet p;
	uint8_t data[1400] = {0};
	weft_assert(emu_channel_init(&c, &params, &both[0]) == WEFT_OK);
	for (size_t i = 0; i < s->n && i < 64; i++) {
		const struct emu_step *step = &s->steps[i];
		weft_assert(i == 0 || s->steps[i - 1].at_ns <= step->at_ns);
		if (step->is_rebind) {
			continue;
		}
		emu_settings_assign(both, &step->assign);
		struct mono now = {step->at_ns};
		emu_channel_set(&c, now, &both[0]);
		for (uint32_t k = 0; k < 4; k++) {
			emu_channel_push(&c, now, data, 350 * (k + 1), k);
		}
		while (emu_channel_pop(&c, now, &p)) {
			weft_assert(!mono_is_before(now, p.due));
		}
	}
	while (emu_channel_pop(&c, MONO_NEVER, &p)) {
	}
	const struct emu_counters *n = &c.counters;
	weft_assert(n->in + n->duplicated == n->out + n->lost + n->queue_dropped + n->mtu_dropped);
	emu_channel_fini(&c);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct emu_script s;
	struct emu_error e;
	if (emu_script_parse((const char *)data, size, &s, &e) != WEFT_OK) {
		weft_assert(e.line >= 1 && e.column >= 1 && e.text[0] != 0);
		return 0;
	}
	run_script(&s);
	emu_script_fini(&s);
	return 0;
}
