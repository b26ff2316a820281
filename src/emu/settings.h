/* SPDX-License-Identifier: Apache-2.0 */
/* What one direction of an emulated link does to packets, and how that is written.
 *
 * The same spelling serves the command line (`--loss 5%`), a list for one direction
 * (`--ab "loss 5% delay 3ms"`) and a script (`at 5s ab.loss 15%`). */
#ifndef WEFT_EMU_SETTINGS_H
#define WEFT_EMU_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct emu_error;
struct emu_text;

/* Two states, good and bad, with a step before each packet (Gilbert-Elliott). Independent loss
 * is the model that never leaves good. */
struct emu_loss {
	double to_bad, to_good; /* probability of the step, a packet */
	double in_bad, in_good; /* probability of loss in the state */
};

enum emu_jitter_shape {
	EMU_JITTER_UNIFORM, /* delay - ns .. delay + ns */
	EMU_JITTER_NORMAL,  /* standard deviation ns */
};

struct emu_jitter {
	int64_t ns; /* 0: none */
	enum emu_jitter_shape shape;
	bool may_reorder; /* otherwise a packet waits for the ones before it */
};

/* A share of packets is held back so that later ones overtake: by a time, or until that many
 * later ones have passed. */
struct emu_reorder {
	double share;
	int64_t extra_ns;                    /* 0: by distance */
	uint32_t distance_min, distance_max; /* drawn uniformly */
};

struct emu_corrupt {
	double share;
	uint32_t bits; /* flipped in a corrupted packet */
};

/* Limit of what waits before the rated line: one of the two is set, the other 0. */
struct emu_queue_limit {
	uint64_t bytes;
	int64_t ns; /* at the rate: bytes / rate */
};

struct emu_settings {
	struct emu_loss loss;
	int64_t delay_ns;
	struct emu_jitter jitter;
	struct emu_reorder reorder;
	double duplicate; /* share of packets that arrive twice */
	struct emu_corrupt corrupt;
	uint64_t rate_bps; /* 0: no limit */
	struct emu_queue_limit queue;
	uint32_t mtu; /* longer packets vanish without a word; 0: no limit */
};

enum emu_key {
	EMU_KEY_LOSS,
	EMU_KEY_LOSS_GILBERT,
	EMU_KEY_LOSS_ELLIOTT,
	EMU_KEY_DELAY,
	EMU_KEY_JITTER,
	EMU_KEY_REORDER,
	EMU_KEY_DUPLICATE,
	EMU_KEY_CORRUPT,
	EMU_KEY_RATE,
	EMU_KEY_QUEUE,
	EMU_KEY_MTU,
	EMU_KEY_COUNT
};

/* Directions: a set. */
#define EMU_AB 1u
#define EMU_BA 2u
#define EMU_BOTH (EMU_AB | EMU_BA)

struct emu_assign {
	enum emu_key key;
	unsigned dirs; /* EMU_AB, EMU_BA or both */
	union {
		struct emu_loss loss;
		int64_t delay_ns;
		struct emu_jitter jitter;
		struct emu_reorder reorder;
		double duplicate;
		struct emu_corrupt corrupt;
		uint64_t rate_bps;
		struct emu_queue_limit queue;
		uint32_t mtu;
	} u;
};

/* A perfect link: every field zero but the queue, which is 50 ms for when a rate comes. */
extern const struct emu_settings emu_settings_default;

/* "loss-gilbert"; NULL out of range. */
const char *emu_key_name(enum emu_key key);
/* The form of its value, as in "RATE,BURST", for help. */
const char *emu_key_form(enum emu_key key);

/* Reads one value (all of text). On failure fills error: WEFT_EPARSE. */
WEFT_MUST_CHECK enum weft_err emu_assign_parse(enum emu_key key, const char *text, size_t len,
	struct emu_assign *out, struct emu_error *error);

/* Reads "[ab.|ba.]key value" (or key=value) at a statement's cursor; dirs is what is meant
 * without a prefix. Failure is in t. */
void emu_assign_read(struct emu_text *t, unsigned dirs, struct emu_assign *out);

/* Reads a list of such items, as of `--ab`, and applies it to both[0] (a to b) and both[1].
 * On failure both is unchanged. */
WEFT_MUST_CHECK enum weft_err emu_settings_parse(const char *text, size_t len, unsigned dirs,
	struct emu_settings both[2], struct emu_error *error);

void emu_settings_assign(struct emu_settings both[2], const struct emu_assign *a);

#endif
