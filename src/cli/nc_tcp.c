/* SPDX-License-Identifier: Apache-2.0 */
/* TCP of `weft nc`: a pump between the standard streams and a connection. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/nc.h"
#include "cli/pump.h"
#include "os/clock.h"
#include "os/error.h"
#include "os/fd.h"
#include "os/inet.h"
#include "os/loop.h"
#include "weft/dial.h"

#define WATCHES (PUMP_WATCHES + 2)
/* At the end what was written must reach the peer before the node goes. Without progress for so
 * long it does not. */
#define DRAIN_NS (5 * WEFT_NS_PER_S)
#define DRAIN_LOOK_NS (2 * WEFT_NS_PER_MS)

struct session {
	struct nc *n;
	struct os_loop *loop;
	struct pumps *pumps;
	struct pump *pump;  /* NULL: it has ended */
	int silent[2];      /* -d: what is read instead of standard input; -1: none */
	bool ends_with_net; /* nobody will end standard input */
	bool has_signal;
	struct pump_result result;
	uint64_t bytes; /* when there was traffic last */
	struct mono idle_at;
};

static void
pump_ended(void *ctx, const struct pump_result *r)
{
	struct session *s = ctx;
	s->result = *r;
	s->pump = NULL;
}

static void
signal_ready(void *ctx, uint32_t events)
{
	struct session *s = ctx;
	(void)events;
	s->has_signal = true;
}

/* A standard stream as the pump may have it. A pipe must be closed for its end to be seen, so it is
 * handed over whole, unless further connections need it. */
static enum weft_err
take_stream(const struct session *s, int fd, int *out)
{
	enum os_stream_kind kind = os_stream_kind(fd);
	bool is_whole = !s->n->o->is_kept && (kind == OS_STREAM_PIPE || kind == OS_STREAM_FILE);
	return is_whole ? os_stream_take(fd, out) : os_stream_copy(fd, out);
}

static enum weft_err
take_input(struct session *s, int *out)
{
	size_t cap;
	if (!s->n->o->is_deaf) {
		return take_stream(s, 0, out);
	}
	enum weft_err e = os_stream_pipe(1, s->silent, &cap);
	return e ? e : os_stream_copy(s->silent[0], out);
}

static enum weft_err
open_session(struct session *s, int net)
{
	struct pump_config c = {.end = {{-1, -1}, {net, net}}, .done = pump_ended, .ctx = s};
	s->ends_with_net = s->n->o->is_deaf || os_fd_is_terminal(0);
	enum weft_err e = os_loop_new(WATCHES, &s->loop);
	if (!e) {
		e = pumps_new(s->loop, &s->pumps);
	}
	if (!e) {
		e = os_loop_add(s->loop, s->n->signals, OS_READABLE, signal_ready, s);
	}
	if (!e) {
		e = take_input(s, &c.end[PUMP_A].in);
	}
	if (!e) {
		e = take_stream(s, 1, &c.end[PUMP_A].out);
	}
	if (!e) {
		e = pump_new(s->pumps, &c, &s->pump);
	}
	if (e) {
		os_fd_close(&c.end[PUMP_A].in);
		os_fd_close(&c.end[PUMP_A].out);
	}
	return e;
}

/* Returns false when -w has passed without traffic. */
static bool
has_traffic(struct session *s, struct mono now)
{
	uint64_t bytes = pump_bytes(s->pump, PUMP_A) + pump_bytes(s->pump, PUMP_B);
	if (bytes != s->bytes || s->idle_at.ns == 0) {
		s->bytes = bytes;
		s->idle_at = nc_deadline(s->n);
	}
	return mono_is_before(now, s->idle_at);
}

static void
run_pump(struct session *s)
{
	while (s->pump && !s->has_signal) {
		struct mono until = pumps_run(s->pumps, os_clock_mono());
		if (!s->pump) {
			return;
		}
		if (!has_traffic(s, os_clock_mono()) ||
			(s->ends_with_net && pump_has_ended(s->pump, PUMP_B))) {
			pump_close(s->pump);
			s->pump = NULL;
			return;
		}
		os_loop_wait(s->loop, mono_min(until, s->idle_at));
	}
}

static void
drain(struct nc *n, int net)
{
	size_t last = 0, left;
	struct mono until = MONO_NEVER;
	while ((left = os_stream_unsent(net)) > 0) {
		struct mono now = os_clock_mono();
		if (left != last) {
			last = left;
			until = mono_add_ns(now, DRAIN_NS);
		}
		if (!mono_is_before(now, until) ||
			nc_wait(n, n->signals, false, mono_add_ns(now, DRAIN_LOOK_NS)) !=
				WEFT_ETIMEDOUT) {
			return;
		}
	}
}

static int
say_result(const struct session *s)
{
	char text[OS_ERROR_TEXT_MAX];
	if (s->has_signal) {
		return CLI_FAILED;
	}
	if (!s->result.err) {
		return CLI_OK;
	}
	/* Who reads our output may have had enough. */
	if (s->result.end == PUMP_A && s->result.err == WEFT_ECLOSED) {
		return CLI_FAILED;
	}
	return cli_fail("nc: %s: %s",
		s->result.end == PUMP_A ? "standard input or output" : "the connection",
		s->result.os_errno ? os_error_text(s->result.os_errno, text, sizeof(text))
				   : weft_err_text(s->result.err));
}

/* Takes net over. *has_signal: it was ended by one. */
static int
serve_one(struct nc *n, int net, bool *has_signal)
{
	struct session s = {.n = n, .silent = {-1, -1}};
	int mine = -1, rc;
	os_stream_tune(net);
	enum weft_err e = os_stream_copy(net, &mine);
	if (!e) {
		e = open_session(&s, net);
	}
	if (e) {
		os_fd_close(&net);
		rc = cli_fail("nc: %s", weft_err_text(e));
	} else {
		run_pump(&s);
		if (s.pump) {
			pump_close(s.pump);
		}
		if (!s.result.err) {
			os_stream_finish(mine);
			drain(n, mine);
		}
		rc = say_result(&s);
	}
	*has_signal = s.has_signal;
	os_fd_close(&mine);
	os_fd_close(&s.silent[0]);
	os_fd_close(&s.silent[1]);
	pumps_free(s.pumps);
	os_loop_free(s.loop);
	return rc;
}

static enum weft_err
accept_one(struct nc *n, int listen_fd, int *fd)
{
	struct weft_dial_options o = {.size = sizeof(o), .flags = WEFT_NONBLOCK};
	struct endpoint at = {0};
	struct os_inet_name name;
	enum weft_err e;
	do {
		e = nc_wait(n, listen_fd, false, MONO_NEVER);
		if (!e) {
			e = weft_accept(n->overlay.node, listen_fd, &o, fd, NULL);
		}
	} while (e == WEFT_EAGAIN);
	if (!e && os_inet_peer(*fd, &at.addr, &at.port) == WEFT_OK) {
		os_inet_name(&at.addr, at.port, 0, &name);
		nc_say_peer(n, "connection from", (const struct sockaddr *)&name.at, name.len);
	}
	return e;
}

static int
serve_all(struct nc *n)
{
	struct weft_dial_options o = {.size = sizeof(o), .flags = WEFT_NONBLOCK};
	struct weft_detail why = {.size = sizeof(why)};
	char target[NC_TARGET_MAX];
	int listen_fd, fd, rc = CLI_OK;
	bool has_signal = false;
	if (weft_listen(
		    n->overlay.node, nc_network(n), nc_target(n, target), &o, &listen_fd, &why)) {
		return cli_fail("nc: %s", why.text);
	}
	overlay_announce(&n->overlay);
	nc_say_listening(n, listen_fd);
	do {
		enum weft_err e = accept_one(n, listen_fd, &fd);
		if (e) {
			rc = e == WEFT_ECANCELED ? CLI_FAILED
						 : cli_fail("nc: %s", weft_err_text(e));
			break;
		}
		if (!n->o->is_kept) {
			os_fd_close(&listen_fd);
		}
		rc = serve_one(n, fd, &has_signal);
	} while (n->o->is_kept && !has_signal);
	os_fd_close(&listen_fd);
	return rc;
}

int
nc_tcp(struct nc *n)
{
	int fd;
	bool has_signal;
	if (n->o->is_listening) {
		return serve_all(n);
	}
	if (nc_dial(n, &fd)) {
		return CLI_FAILED;
	}
	if (n->o->is_probe) {
		/* A peer that never hears of the end would wait for it for ever. */
		os_stream_finish(fd);
		drain(n, fd);
		os_fd_close(&fd);
		return CLI_OK;
	}
	return serve_one(n, fd, &has_signal);
}
