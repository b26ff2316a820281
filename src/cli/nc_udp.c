/* SPDX-License-Identifier: Apache-2.0 */
/* UDP of `weft nc`: each read of standard input is a datagram, each datagram a write. */
#include <errno.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/nc.h"
#include "os/clock.h"
#include "os/error.h"
#include "os/fd.h"
#include "os/inet.h"
#include "os/udp.h"
#include "weft/dial.h"

#define INPUT_BYTES 16384u
#define PROBE_NS WEFT_NS_PER_S

struct talk {
	struct nc *n;
	int net;
	int in; /* -1: it has ended, or is not to be read */
	bool is_connected;
	bool has_peer;
	struct os_inet_name peer; /* who is answered, where the socket is not connected */
	char data[65536];
};

enum next {
	NEXT_GO_ON,
	NEXT_FAILED,
};

static enum next
say_error(int errnum)
{
	char text[OS_ERROR_TEXT_MAX];
	cli_fail("nc: %s", errnum == ECONNREFUSED ? "refused: nobody listens there"
						  : os_error_text(errnum, text, sizeof(text)));
	return NEXT_FAILED;
}

static enum next
send_one(struct talk *t, size_t len)
{
	struct iovec iov = {t->data, len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	if (!t->is_connected) {
		m.msg_name = &t->peer.at;
		m.msg_namelen = t->peer.len;
	}
	while (os_udp_calls_real.sendmsg(NULL, t->net, &m, MSG_DONTWAIT) < 0) {
		if (errno != EAGAIN) {
			return say_error(errno);
		}
		if (nc_wait(t->n, t->net, true, MONO_NEVER)) {
			return NEXT_FAILED;
		}
	}
	return NEXT_GO_ON;
}

static enum next
read_input(struct talk *t)
{
	size_t len;
	int errnum = 0;
	enum weft_err e = os_stream_read(t->in, t->data, INPUT_BYTES, &len, &errnum);
	if (e == WEFT_EAGAIN) {
		return NEXT_GO_ON;
	}
	if (e) {
		return say_error(errnum);
	}
	if (len == 0) {
		t->in = -1;
		return NEXT_GO_ON;
	}
	return send_one(t, len);
}

static enum next
write_output(struct talk *t, size_t len)
{
	for (size_t at = 0, done; at < len;) {
		enum weft_err e = os_fd_write(1, t->data + at, len - at, &done);
		if (e == WEFT_EAGAIN) {
			e = nc_wait(t->n, 1, true, MONO_NEVER);
			done = 0;
		}
		if (e) {
			return NEXT_FAILED;
		}
		at += done;
	}
	return NEXT_GO_ON;
}

static bool
is_same(const struct os_inet_name *a, const struct os_inet_name *b)
{
	struct endpoint x = {0}, y = {0};
	return os_inet_read((const struct sockaddr *)&a->at, a->len, &x.addr, &x.port) &&
	       os_inet_read((const struct sockaddr *)&b->at, b->len, &y.addr, &y.port) &&
	       endpoint_is_same_remote(&x, &y);
}

/* Who speaks first is the peer; with -k it is who speaks last. False: a stranger. */
static bool
meet(struct talk *t, const struct os_inet_name *from)
{
	if (t->is_connected || (t->has_peer && is_same(from, &t->peer))) {
		return true;
	}
	if (t->has_peer && !t->n->o->is_kept) {
		return false;
	}
	t->peer = *from;
	t->has_peer = true;
	nc_say_peer(t->n, "datagrams from", (const struct sockaddr *)&from->at, from->len);
	return true;
}

static enum next
receive(struct talk *t)
{
	struct os_inet_name from = {0};
	struct iovec iov = {t->data, sizeof(t->data)};
	struct mmsghdr m = {.msg_hdr = {.msg_name = &from.at,
				    .msg_namelen = sizeof(from.at),
				    .msg_iov = &iov,
				    .msg_iovlen = 1}};
	if (os_udp_calls_real.recvmmsg(NULL, t->net, &m, 1, MSG_DONTWAIT) < 1) {
		return errno == EAGAIN ? NEXT_GO_ON : say_error(errno);
	}
	from.len = m.msg_hdr.msg_namelen;
	return meet(t, &from) ? write_output(t, m.msg_len) : NEXT_GO_ON;
}

static int
run(struct talk *t)
{
	enum next next = NEXT_GO_ON;
	while (next == NEXT_GO_ON) {
		int in = t->is_connected || t->has_peer ? t->in : -1;
		const int wakes[] = {t->n->signals, in};
		size_t woken;
		enum weft_err e = os_inet_wait(t->net, false, wakes, 2, nc_deadline(t->n), &woken);
		if (e) {
			return e == WEFT_ETIMEDOUT ? CLI_OK : cli_fail("nc: %s", weft_err_text(e));
		}
		if (woken == 0) {
			return CLI_FAILED;
		}
		next = woken == 1 ? read_input(t) : receive(t);
		/* What is received must not keep what is to be sent waiting. */
		if (woken == 2 && next == NEXT_GO_ON && in >= 0 &&
			os_fd_wait(in, false, os_clock_mono()) == WEFT_OK) {
			next = read_input(t);
		}
	}
	return CLI_FAILED;
}

/* An empty datagram, and a while for the refusal of it. */
static int
probe(struct talk *t)
{
	struct mono until =
		t->n->o->wait_ns ? nc_deadline(t->n) : mono_add_ns(os_clock_mono(), PROBE_NS);
	if (send_one(t, 0) == NEXT_FAILED) {
		return CLI_FAILED;
	}
	enum weft_err e = nc_wait(t->n, t->net, false, until);
	if (e == WEFT_ECANCELED) {
		return CLI_FAILED;
	}
	int errnum = e ? 0 : os_stream_take_error(t->net);
	return errnum ? (say_error(errnum), CLI_FAILED) : CLI_OK;
}

int
nc_udp(struct nc *n)
{
	struct talk t = {.n = n, .net = -1, .in = n->o->is_deaf ? -1 : 0};
	int rc;
	if (n->o->is_listening) {
		struct weft_dial_options o = {.size = sizeof(o), .flags = WEFT_NONBLOCK};
		struct weft_detail why = {.size = sizeof(why)};
		char target[NC_TARGET_MAX];
		if (weft_packet(n->overlay.node, nc_network(n), nc_target(n, target), &o, &t.net,
			    &why)) {
			return cli_fail("nc: %s", why.text);
		}
		overlay_announce(&n->overlay);
		nc_say_listening(n, t.net);
	} else {
		if (nc_dial(n, &t.net)) {
			return CLI_FAILED;
		}
		t.is_connected = true;
	}
	rc = n->o->is_probe ? probe(&t) : run(&t);
	os_fd_close(&t.net);
	return rc;
}
