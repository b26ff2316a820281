/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `weft emulate` share: options, the emulator that runs, and the two ways in
 * and out (interfaces and a UDP relay). */
#ifndef WEFT_CLI_EMULATE_H
#define WEFT_CLI_EMULATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mono.h"
#include "emu/channel.h"
#include "emu/histogram.h"
#include "emu/script.h"
#include "emu/settings.h"

struct os_loop;

/* Index of a direction, and of the side that it comes from. */
#define EMULATE_AB 0u
#define EMULATE_BA 1u

#define EMULATE_CLIENTS_MAX 1024u

struct emulate_options {
	struct emu_settings set[2];
	struct emu_script script;
	const char *interface[2]; /* with is_udp unset */
	bool is_udp;
	struct endpoint listen; /* address IP_FAMILY_NONE: on all */
	struct endpoint to;
	unsigned clients_max;
	const char *record_path; /* NULL: none */
	uint64_t seed;
	size_t ring_bytes;     /* of each direction */
	int64_t duration_ns;   /* 0: until a signal */
	const char *json_path; /* NULL: none; "-": standard output */
	bool is_quiet;
	int64_t gather_ns;
	bool is_realtime;
};

/* What happens outside of the channel. With these counters nothing is lost unseen:
 * what a sender counts = channel.in + kernel_dropped + refused, and what a receiver counts =
 * channel.out - send_failed. kernel_dropped counts frames, which may be super-frames. */
struct emulate_io {
	uint64_t kernel_dropped; /* at the full socket, before it was read */
	uint64_t refused; /* not taken in: a super-frame that cannot be split, an empty datagram, a
			   * datagram for whose sender there is no room */
	uint64_t send_failed; /* packets that the kernel did not take */
	uint64_t rx_calls, tx_calls;
};

/* A way in and out. ctx is that of the emulator. */
struct emulate_mode {
	const char *name;
	/* Sends all that is due by now in a direction. */
	void (*flush)(void *ctx, unsigned dir, struct mono now);
	void (*rebind)(void *ctx); /* NULL: has no ports */
	/* Brings the counters of emulator.io up to date. */
	void (*sync)(void *ctx);
	void (*close)(void *ctx);
};

struct emulator {
	const struct emulate_options *options;
	struct log log;
	struct os_loop *loop;
	const struct emulate_mode *mode;
	void *ctx;
	struct emu_channel channel[2];
	struct emu_settings set[2]; /* as the script has made them */
	struct emu_histogram late[2];
	struct emulate_io io[2];
	struct mono start;
	struct mono woke_before; /* the wake-up before the last */
	struct mono look_at;     /* when the mode wants to be flushed at the latest */
	bool is_realtime;
	size_t script_at;             /* next step */
	struct emu_counters shown[2]; /* at the last line of progress */
	struct mono shown_at;
	uint64_t rebinds;
	uint16_t port;    /* of the relay, as bound */
	unsigned clients; /* of the relay, at present */
	bool is_stopping;
	const char *failure; /* why it stopped early; NULL: as asked */
};

/* Opens the two interfaces, or the relay's port, and enters the emulator's loop, mode and ctx.
 * Failures are said to the log. */
WEFT_MUST_CHECK enum weft_err emulate_interfaces_open(struct emulator *e);
WEFT_MUST_CHECK enum weft_err emulate_udp_open(struct emulator *e);

int emulate_main(int argc, char **argv);

/* Runs until a signal, the end of the duration or a failure. Returns the exit status. */
int emulate_run(const struct emulate_options *o);

/* What came in since the last call: one line on standard error, written over the one before. */
void emulate_print_progress(struct emulator *e, struct mono now);
void emulate_print_table(const struct emulator *e, struct mono now);
WEFT_MUST_CHECK enum weft_err emulate_write_json(const struct emulator *e, struct mono now);

#endif
