/* SPDX-License-Identifier: Apache-2.0 */
/* The emulator's life: channels, script, signals, and the loop that sends what is due. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/emulate.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/loop.h"
#include "os/precise.h"
#include "os/signal.h"

#define SPIN_NS (60 * WEFT_NS_PER_US)
#define SPIN_WAIT_NS (1200 * WEFT_NS_PER_US)
#define PROGRESS_NS WEFT_NS_PER_S

/* Of the memory of a direction; shorter packets than this on average run out of slots first. */
#define BYTES_A_SLOT 256
#define SLOTS_MIN 1024u

static void
print_log(void *ctx, enum log_level level, const char *text)
{
	(void)ctx;
	fprintf(stderr, "weft emulate: %s%s\n", level == LOG_LEVEL_WARN ? "warning: " : "", text);
}

static void
rebind(struct emulator *e)
{
	if (e->mode->rebind) {
		e->mode->rebind(e->ctx);
		e->rebinds++;
	}
}

struct signals {
	struct emulator *e;
	int fd;
};

static void
signal_ready(void *ctx, uint32_t events)
{
	struct signals *s = ctx;
	enum os_signal which;
	(void)events;
	while (os_signal_take(s->fd, &which) == WEFT_OK) {
		if (which == OS_SIGNAL_STOP) {
			s->e->is_stopping = true;
		} else if (which == OS_SIGNAL_USER) {
			rebind(s->e);
		}
	}
}

static void
run_script(struct emulator *e, struct mono now)
{
	const struct emu_script *s = &e->options->script;
	int64_t elapsed_ns = mono_diff_ns(now, e->start);
	bool has_changed = false;
	for (; e->script_at < s->n && s->steps[e->script_at].at_ns <= elapsed_ns; e->script_at++) {
		const struct emu_step *step = &s->steps[e->script_at];
		if (step->is_rebind) {
			rebind(e);
		} else {
			emu_settings_assign(e->set, &step->assign);
			has_changed = true;
		}
	}
	for (unsigned dir = 0; dir < 2 && has_changed; dir++) {
		emu_channel_set(&e->channel[dir], now, &e->set[dir]);
	}
}

/* When to wake up if nothing arrives. Packets due soon after now wait for each other: waking up
 * for each of 80,000 a second would cost a processor. */
static struct mono
deadline(const struct emulator *e, struct mono now, struct mono progress_at)
{
	struct mono due =
		mono_min(emu_channel_next(&e->channel[0]), emu_channel_next(&e->channel[1]));
	struct mono gather = mono_add_ns(now, e->options->gather_ns);
	struct mono at = mono_is_before(due, gather) ? gather : due;
	if (e->script_at < e->options->script.n) {
		at = mono_min(
			at, mono_add_ns(e->start, e->options->script.steps[e->script_at].at_ns));
	}
	if (e->options->duration_ns > 0) {
		at = mono_min(at, mono_add_ns(e->start, e->options->duration_ns));
	}
	if (e->is_stopping) {
		return now; /* found out while flushing */
	}
	return mono_min(mono_min(at, e->look_at), progress_at);
}

static bool
is_over(const struct emulator *e, struct mono now)
{
	return e->is_stopping || (e->options->duration_ns > 0 &&
					 mono_diff_ns(now, e->start) >= e->options->duration_ns);
}

/* A timer wakes a sleeping virtual machine some 60 us late. What comes alone is met with open
 * eyes instead, which after waits of SPIN_WAIT_NS and more is one part in twenty of the time. */
static void
wait_until(struct emulator *e, struct mono at)
{
	struct mono now = os_clock_mono();
	if (at.ns == MONO_NEVER.ns || mono_diff_ns(at, now) < SPIN_WAIT_NS) {
		os_loop_wait(e->loop, at);
		return;
	}
	os_loop_wait(e->loop, mono_add_ns(at, -SPIN_NS));
	now = os_clock_mono();
	if (mono_diff_ns(at, now) > SPIN_NS) {
		return; /* something arrived */
	}
	while (mono_is_before(now, at)) {
		now = os_clock_mono();
	}
}

/* Under dense traffic something arrives all the time. Then it sleeps a while before it looks:
 * the kernel notes when each frame came, so this costs no precision in what has a delay. */
static void
wait(struct emulator *e, struct mono woke, struct mono progress_at)
{
	struct mono now = os_clock_mono();
	int64_t gather_ns = e->options->gather_ns;
	bool is_dense = mono_diff_ns(woke, e->woke_before) < 2 * gather_ns;
	int64_t rest_ns = gather_ns - mono_diff_ns(now, woke);
	e->woke_before = woke;
	if (is_dense && rest_ns > 0) {
		os_clock_sleep_ns(rest_ns);
	}
	wait_until(e, deadline(e, os_clock_mono(), progress_at));
}

static void
loop(struct emulator *e)
{
	bool has_progress = !e->options->is_quiet && os_fd_is_terminal(2);
	e->start = e->shown_at = os_clock_mono();
	struct mono now = e->start;
	struct mono progress_at = has_progress ? mono_add_ns(now, PROGRESS_NS) : MONO_NEVER;
	while (!is_over(e, now)) {
		run_script(e, now);
		e->mode->flush(e->ctx, EMULATE_AB, now);
		e->mode->flush(e->ctx, EMULATE_BA, now);
		if (!mono_is_before(now, progress_at)) {
			emulate_print_progress(e, now);
			progress_at = mono_add_ns(progress_at, PROGRESS_NS);
		}
		wait(e, now, progress_at);
		now = os_clock_mono();
	}
	if (has_progress) {
		fputc('\n', stderr);
	}
}

static enum weft_err
open_channels(struct emulator *e)
{
	const struct emulate_options *o = e->options;
	for (unsigned dir = 0; dir < 2; dir++) {
		/* The mode has said what its packets look like. */
		struct emu_channel_params p = e->channel[dir].params;
		size_t slots = o->ring_bytes / BYTES_A_SLOT;
		p.seed = o->seed * 2 + dir;
		p.ring_bytes = o->ring_bytes;
		p.packets_max = slots > SLOTS_MIN ? (uint32_t)slots : SLOTS_MIN;
		enum weft_err err = emu_channel_init(&e->channel[dir], &p, &e->set[dir]);
		if (err) {
			return err;
		}
	}
	return WEFT_OK;
}

/* Tells that packets are carried from now on. */
static void
announce(const struct emulator *e)
{
	const struct emulate_options *o = e->options;
	char listen[IP_ADDR_TEXT_MAX] = "*", to[ENDPOINT_TEXT_MAX];
	if (o->is_quiet) {
		return;
	}
	if (o->is_udp) {
		if (o->listen.addr.family != IP_FAMILY_NONE) {
			ip_addr_format(&o->listen.addr, listen);
		}
		printf("relaying %s port %u <-> %s", listen, e->port, endpoint_format(&o->to, to));
	} else {
		printf("emulating %s <-> %s", o->interface[0], o->interface[1]);
	}
	printf(", seed %" PRIu64 "\n", o->seed);
	fflush(stdout);
}

static void
finish(struct emulator *e)
{
	struct mono now = os_clock_mono();
	e->mode->sync(e->ctx);
	if (!e->options->is_quiet) {
		emulate_print_table(e, now);
	}
	if (e->options->json_path && emulate_write_json(e, now)) {
		log_error(&e->log, "cannot write %s", e->options->json_path);
		e->failure = "";
	}
}

static enum weft_err
set_up(struct emulator *e, struct signals *s)
{
	const struct emulate_options *o = e->options;
	os_precise_timers();
	if (o->is_realtime) {
		/* A relay may be run by anybody; then it is as punctual as it can be. */
		e->is_realtime = os_precise_schedule() == WEFT_OK;
	}
	enum weft_err err = o->is_udp ? emulate_udp_open(e) : emulate_interfaces_open(e);
	if (err) {
		return err;
	}
	err = open_channels(e);
	if (!err) {
		err = os_signal_open(&s->fd);
	}
	if (!err) {
		err = os_loop_add(e->loop, s->fd, OS_READABLE, signal_ready, s);
	}
	if (err) {
		log_error(&e->log, "cannot start: %s", weft_err_text(err));
	}
	return err;
}

int
emulate_run(const struct emulate_options *o)
{
	/* About 10 KiB of histograms and state. */
	struct emulator e = {.options = o,
		.log = {.sink = print_log, .level = LOG_LEVEL_WARN},
		.set = {o->set[0], o->set[1]},
		.look_at = MONO_NEVER};
	struct signals s = {.e = &e, .fd = -1};
	/* Before anything is open, so that a signal never ends it without its report. */
	os_signal_block_all();
	enum weft_err err = set_up(&e, &s);
	if (!err) {
		announce(&e);
		loop(&e);
		finish(&e);
		if (e.failure && e.failure[0]) {
			log_error(&e.log, "%s", e.failure);
		}
	}
	if (e.mode) {
		e.mode->close(e.ctx);
	}
	emu_channel_fini(&e.channel[0]);
	emu_channel_fini(&e.channel[1]);
	os_fd_close(&s.fd);
	os_loop_free(e.loop);
	return err || e.failure ? 1 : 0;
}
