/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/forward_send.h"

#include <errno.h>

#include "base/assert.h"
#include "os/udp.h"

#define RUN_DATAGRAMS_MAX 64u
/* Longer ones than the gso_max_size that a node sets at its interface, 61,000 with headers, would
 * be cut by the kernel, and cost what single datagrams cost. */
#define RUN_BYTES_MAX 60000u
#define ERRORS_MAX 8u
/* A full socket is emptied by the tunnel within this, unless nobody answers there. */
#define PATIENCE_MS 5

uint32_t
forward_message_count(uint32_t len, uint32_t seg)
{
	return seg && len > seg ? (len + seg - 1) / seg : 1;
}

static bool
can_join(const struct forward_run *r, const struct forward_message *m, uint32_t seg, uint32_t n)
{
	return !r->is_closed && r->ecn == m->ecn && r->seg > 0 && m->len > 0 && seg <= r->seg &&
	       (n == 1 || seg == r->seg) && r->datagrams + n <= RUN_DATAGRAMS_MAX &&
	       r->len + m->len <= RUN_BYTES_MAX;
}

bool
forward_send_add(struct forward_send *s, const struct forward_message *m)
{
	if (s->iov_n == FORWARD_SEND_MESSAGES) {
		return false;
	}
	uint32_t n = forward_message_count(m->len, m->seg);
	uint32_t seg = n > 1 ? m->seg : m->len;
	struct forward_run *r = s->runs_n ? &s->runs[s->runs_n - 1] : NULL;
	if (!r || !can_join(r, m, seg, n)) {
		r = &s->runs[s->runs_n++];
		*r = (struct forward_run){.iov_at = s->iov_n, .seg = seg, .ecn = m->ecn};
	}
	s->iov[s->iov_n++] = (struct iovec){m->data, m->len};
	r->iov_n++;
	r->len += m->len;
	r->datagrams += n;
	r->is_closed = seg < r->seg || m->len % (seg ? seg : 1) != 0;
	return true;
}

struct sending {
	struct forward_send *s;
	const struct os_udp_calls *calls;
	int fd;
	bool is_connected, can_wait;
	unsigned errors; /* in a row */
	struct forward_sent *out;
};

enum outcome {
	OUTCOME_AGAIN, /* the same once more */
	OUTCOME_DROP,  /* this message cannot be sent */
	OUTCOME_STOP,  /* nothing can be sent for now */
	OUTCOME_SINGLY,
};

static enum outcome
judge(struct sending *g, int error, bool is_gso)
{
	if (error == EAGAIN || error == ENOBUFS) {
		if (g->can_wait && g->calls->wait_writable(g->calls->ctx, g->fd, PATIENCE_MS) &&
			++g->errors < ERRORS_MAX) {
			return OUTCOME_AGAIN;
		}
		g->out->is_stuck = true;
		return OUTCOME_STOP;
	}
	if (error == ECONNREFUSED) {
		g->out->refused++;
		return ++g->errors < ERRORS_MAX ? OUTCOME_AGAIN : OUTCOME_DROP;
	}
	if (error == EINTR) {
		return OUTCOME_AGAIN;
	}
	/* Longer than the way takes in one piece, or a device without checksums: singly they may
	 * be cut into fragments, or summed. */
	if (is_gso &&
		(error == EINVAL || error == EMSGSIZE || error == EIO || error == EOPNOTSUPP)) {
		return OUTCOME_SINGLY;
	}
	return OUTCOME_DROP;
}

static void
count(struct forward_sent *out, const struct forward_run *r)
{
	out->bytes += r->len;
	out->packets += r->datagrams;
}

/* One datagram. False: stop. */
static bool
send_single(struct sending *g, const struct msghdr *m, uint32_t len)
{
	for (;;) {
		if (g->calls->sendmsg(g->calls->ctx, g->fd, m, MSG_DONTWAIT) >= 0) {
			g->out->bytes += len;
			g->out->packets++;
			g->errors = 0;
			return true;
		}
		enum outcome o = judge(g, errno, false);
		if (o != OUTCOME_AGAIN) {
			g->out->dropped++;
			return o != OUTCOME_STOP;
		}
	}
}

static bool
send_singly(struct sending *g, size_t i)
{
	struct forward_send *s = g->s;
	const struct forward_run *r = &s->runs[i];
	struct msghdr m = s->msgs[i].msg_hdr;
	struct iovec iov;
	uint32_t done = 0;
	m.msg_iov = &iov;
	m.msg_iovlen = 1;
	m.msg_controllen = s->heads[i].plain_len;
	m.msg_control = m.msg_controllen ? s->heads[i].control : NULL;
	for (size_t k = 0; k < r->iov_n; k++) {
		const struct iovec *from = &s->iov[r->iov_at + k];
		for (size_t at = 0; at < from->iov_len || (at == 0 && from->iov_len == 0);) {
			size_t left = from->iov_len - at;
			iov.iov_base = (uint8_t *)from->iov_base + at;
			iov.iov_len = left < r->seg ? left : r->seg;
			done++;
			if (!send_single(g, &m, (uint32_t)iov.iov_len)) {
				g->out->dropped += r->datagrams - done;
				return false;
			}
			at += iov.iov_len ? iov.iov_len : 1;
		}
	}
	return true;
}

static void
prepare(struct sending *g, const struct endpoint *to)
{
	struct forward_send *s = g->s;
	for (size_t i = 0; i < s->runs_n; i++) {
		struct forward_run *r = &s->runs[i];
		bool is_gso = r->datagrams > 1;
		link_udpmsg_encode(&s->heads[i], to, !g->is_connected, r->ecn, (uint16_t)r->seg);
		link_udpmsg_apply(&s->heads[i], is_gso, &s->iov[r->iov_at], &s->msgs[i].msg_hdr);
		s->msgs[i].msg_hdr.msg_iovlen = r->iov_n;
		if (g->is_connected) {
			s->msgs[i].msg_hdr.msg_name = NULL;
			s->msgs[i].msg_hdr.msg_namelen = 0;
		}
	}
}

/* How many from there on can go in one call. */
static size_t
batch_of(const struct forward_send *s, size_t at)
{
	size_t n = 0;
	while (at + n < s->runs_n && (s->runs[at + n].datagrams == 1 || !s->has_no_gso)) {
		n++;
	}
	return n;
}

static void
drop_rest(struct sending *g, size_t at)
{
	for (; at < g->s->runs_n; at++) {
		g->out->dropped += g->s->runs[at].datagrams;
	}
}

/* Sends runs from there on; returns where to go on. */
static size_t
send_next(struct sending *g, size_t at)
{
	struct forward_send *s = g->s;
	size_t n = batch_of(s, at);
	enum outcome o = OUTCOME_SINGLY;
	if (n > 0) {
		int sent = g->calls->sendmmsg(
			g->calls->ctx, g->fd, &s->msgs[at], (unsigned)n, MSG_DONTWAIT);
		for (int i = 0; i < sent; i++) {
			count(g->out, &s->runs[at + (size_t)i]);
		}
		if (sent > 0) {
			g->errors = 0;
			return at + (size_t)sent;
		}
		int error = errno;
		o = judge(g, error, s->runs[at].datagrams > 1);
		s->has_no_gso |= o == OUTCOME_SINGLY && (error == EIO || error == EOPNOTSUPP);
	}
	switch (o) {
	case OUTCOME_AGAIN:
		return at;
	case OUTCOME_DROP:
		g->out->dropped += s->runs[at].datagrams;
		return at + 1;
	case OUTCOME_SINGLY:
		if (send_singly(g, at)) {
			return at + 1;
		}
		at++;
		break;
	case OUTCOME_STOP:
		break;
	}
	drop_rest(g, at);
	return s->runs_n;
}

void
forward_send_run(struct forward_send *s, int fd, const struct endpoint *to, bool is_connected,
	bool can_wait, struct forward_sent *out)
{
	struct sending g = {.s = s,
		.calls = s->calls ? s->calls : &os_udp_calls_real,
		.fd = fd,
		.is_connected = is_connected,
		.can_wait = can_wait,
		.out = out};
	*out = (struct forward_sent){0};
	prepare(&g, to);
	for (size_t at = 0; at < s->runs_n;) {
		at = send_next(&g, at);
	}
	s->iov_n = s->runs_n = 0;
}
