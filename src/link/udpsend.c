/* SPDX-License-Identifier: Apache-2.0 */
#include "link/udpsend.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "link/udp.h"
#include "os/error.h"

#define SEGMENTS_MAX 64u         /* UDP_MAX_SEGMENTS before Linux 6.9; 128 since */
#define PAYLOAD_BYTES_MAX 65507u /* 65,535 - 20 - 8: the smaller of the two families */
/* Long enough for a driver to take a burst, short enough for the receiving side of the same
 * thread. After it the datagrams are dropped: the inner senders are to slow down. */
#define WAIT_MS 1
#define LOG_PERIOD_S 3600

void
link_udpsend_init(struct link_udpsend *s, const struct os_udp *u, const struct os_udp_calls *calls,
	const struct log *log, struct link_stats *stats)
{
	*s = (struct link_udpsend){
		.calls = calls,
		.stats = stats,
		.log = log,
		.v4 = u->v4,
		.v6 = u->v6,
		.has_gso = u->has_gso,
		.fd = -1,
		.log_limit = {.period_ns = LOG_PERIOD_S * WEFT_NS_PER_S, .burst = 1},
	};
}

static uint32_t
datagrams_of(uint32_t len, uint16_t seg)
{
	return (len + seg - 1) / seg;
}

/* --- what does not work --- */

static bool
is_anything_refused(const struct link_udpsend *s)
{
	return s->refusals_n > 0 || s->family_off_until[0].ns || s->family_off_until[1].ns;
}

static struct mono *
family_off(struct link_udpsend *s, enum ip_family family)
{
	return &s->family_off_until[family == IP_FAMILY_V6];
}

/* Refusals whose time is over are forgotten, so that UDP_SEGMENT is tried again. */
static void
expire_refusals(struct link_udpsend *s)
{
	s->now = s->calls->now(s->calls->ctx);
	for (size_t i = s->refusals_n; i-- > 0;) {
		if (!mono_is_before(s->now, s->refusals[i].until)) {
			s->refusals[i] = s->refusals[--s->refusals_n];
		}
	}
	for (size_t i = 0; i < WEFT_ARRAY_LEN(s->family_off_until); i++) {
		if (!mono_is_before(s->now, s->family_off_until[i])) {
			s->family_off_until[i].ns = 0;
		}
	}
}

static struct link_udpsend_refusal *
find_refusal(struct link_udpsend *s, const struct ip_addr *to)
{
	for (size_t i = 0; i < s->refusals_n; i++) {
		if (ip_addr_is_equal(&s->refusals[i].to, to)) {
			return &s->refusals[i];
		}
	}
	return NULL;
}

static bool
can_segment(struct link_udpsend *s, const struct ip_addr *to, uint16_t seg)
{
	if (!s->has_gso) {
		return false;
	}
	if (WEFT_LIKELY(!is_anything_refused(s))) {
		return true;
	}
	const struct link_udpsend_refusal *r = find_refusal(s, to);
	return family_off(s, to->family)->ns == 0 && (!r || seg <= r->seg_max);
}

/* Remembers that the kernel refused by errnum what it then took singly. A segment that is longer
 * than the path (EMSGSIZE) says nothing of shorter ones. */
static void
refuse(struct link_udpsend *s, const struct link_run *run, int errnum)
{
	const struct ip_addr *to = &run->to->addr;
	s->now = s->calls->now(s->calls->ctx);
	struct mono until = mono_add_ns(s->now, LINK_UDP_GSO_RETRY_S * WEFT_NS_PER_S);
	uint16_t seg_max = errnum == EMSGSIZE ? (uint16_t)(run->seg - 1) : 0;
	struct link_udpsend_refusal *r = find_refusal(s, to);
	/* The rest of a batch was made before its first message was refused. */
	bool is_news = !r || r->seg_max != 0;
	if (!r && s->refusals_n == LINK_UDPSEND_REFUSALS) {
		is_news = family_off(s, to->family)->ns == 0;
		*family_off(s, to->family) = until;
	} else {
		if (!r) {
			r = &s->refusals[s->refusals_n++];
			*r = (struct link_udpsend_refusal){.to = *to, .seg_max = UINT16_MAX};
		}
		r->until = until;
		r->seg_max = seg_max < r->seg_max ? seg_max : r->seg_max;
	}
	if (errnum == EMSGSIZE || !is_news) {
		return;
	}
	s->stats->gso_off_count++;
	if (log_limit_take(&s->log_limit, s->now)) {
		char at[ENDPOINT_TEXT_MAX], why[OS_ERROR_TEXT_MAX];
		log_warn(s->log,
			"UDP segmentation offload to %s refused (%s): datagrams go singly, next "
			"try "
			"in %d s",
			endpoint_format(run->to, at), os_error_text(errnum, why, sizeof(why)),
			LINK_UDP_GSO_RETRY_S);
	}
}

size_t
link_udpsend_refused(const struct link_udpsend *s)
{
	size_t n = 0;
	for (size_t i = 0; i < s->refusals_n; i++) {
		n += s->refusals[i].seg_max == 0;
	}
	return n;
}

/* --- errors --- */

static enum drop_reason
reason_of(int errnum)
{
	switch (errnum) {
	case EPERM:
	case EACCES:
		return DROP_LINK_PERM;
	case ENETUNREACH:
	case EHOSTUNREACH:
	case ENETDOWN:
	case EADDRNOTAVAIL:
		return DROP_LINK_UNREACH;
	case ECONNREFUSED:
		return DROP_LINK_REFUSED;
	case EMSGSIZE:
		return DROP_LINK_MSGSIZE;
	case EAGAIN:
	case ENOBUFS:
	case ENOMEM:
		return DROP_LINK_NOBUFS;
	case EAFNOSUPPORT:
		return DROP_LINK_FAMILY;
	default:
		return DROP_LINK_ERROR;
	}
}

/* What a pinned source address that is gone gives: EINVAL, on Linux 6.x ENETUNREACH too. */
static bool
is_source_error(int errnum)
{
	return errnum == EINVAL || errnum == ENETUNREACH || errnum == EADDRNOTAVAIL;
}

/* EIO: the route's device cannot checksum; EINVAL: too many segments, or on older kernels
 * longer than the path; EMSGSIZE: the same on newer ones. */
static bool
is_segment_error(int errnum)
{
	return errnum == EIO || errnum == EINVAL || errnum == EMSGSIZE || errnum == EOPNOTSUPP;
}

static void
count_sent(struct link_udpsend *s, const struct link_udpsend_chunk *c)
{
	s->stats->tx_bytes += c->len;
	s->stats->tx_datagrams += datagrams_of(c->len, c->run->seg);
}

static void
count_dropped(struct link_udpsend *s, const struct link_udpsend_chunk *c, int errnum)
{
	s->stats->drops.n[reason_of(errnum)] += datagrams_of(c->len, c->run->seg);
	c->run->errnum = errnum;
}

/* --- one message, in whatever way works --- */

/* Returns 0 or the errno. */
static int
send_one(struct link_udpsend *s, const struct link_udpsend_chunk *c)
{
	struct link_udpmsg_head head;
	link_udpmsg_encode(&head, c->run->to, c->has_src, c->run->ecn, c->run->seg);
	struct iovec iov = {.iov_base = c->data, .iov_len = c->len};
	struct msghdr m;
	link_udpmsg_apply(&head, c->len > c->run->seg, &iov, &m);
	ssize_t r;
	do {
		s->stats->tx_calls++;
		r = s->calls->sendmsg(s->calls->ctx, s->fd, &m, MSG_NOSIGNAL);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? errno : 0;
}

static bool
has_pinned_src(const struct link_run *run)
{
	return run->to->src.family == run->to->addr.family && !run->src_cleared;
}

/* Tries a chunk that has failed with errnum again, as long as there is another way. Returns 0
 * when it was sent, or the errno of the last way; then nothing of it was sent. A chunk of
 * several datagrams is not taken apart here. */
static int
try_again(struct link_udpsend *s, const struct link_udpsend_chunk *c, int errnum)
{
	struct link_udpsend_chunk again = *c;
	bool was_refused = false;
	for (;;) {
		if (errnum == EAGAIN && s->may_wait) {
			s->may_wait = false;
			(void)s->calls->wait_writable(s->calls->ctx, s->fd, WAIT_MS);
		} else if (errnum == ECONNREFUSED && !was_refused) {
			/* The news of an earlier datagram; this one was not looked at. */
			was_refused = true;
			s->stats->drops.n[DROP_LINK_REFUSED]++;
		} else if (again.has_src && is_source_error(errnum)) {
			again.has_src = false;
		} else {
			return errnum;
		}
		errnum = send_one(s, &again);
		if (errnum == 0) {
			c->run->src_cleared |= c->has_src && !again.has_src;
			return 0;
		}
	}
}

/* The datagrams of a chunk that UDP_SEGMENT did not take. */
static void
send_singly(struct link_udpsend *s, const struct link_udpsend_chunk *c, int errnum)
{
	bool is_any_sent = false;
	for (uint32_t at = 0; at < c->len; at += c->run->seg) {
		struct link_udpsend_chunk one = *c;
		one.data = c->data + at;
		one.len = c->len - at < c->run->seg ? c->len - at : c->run->seg;
		one.has_src = has_pinned_src(c->run);
		int e = send_one(s, &one);
		if (e) {
			e = try_again(s, &one, e);
		}
		if (e) {
			count_dropped(s, &one, e);
		} else {
			count_sent(s, &one);
			is_any_sent = true;
		}
	}
	/* When nothing worked, segmentation was not what was wrong. */
	if (is_any_sent) {
		refuse(s, c->run, errnum);
	}
}

static void
send_refused(struct link_udpsend *s, const struct link_udpsend_chunk *c, int errnum)
{
	errnum = try_again(s, c, errnum);
	if (errnum == 0) {
		count_sent(s, c);
	} else if (c->len > c->run->seg && is_segment_error(errnum)) {
		send_singly(s, c, errnum);
	} else {
		count_dropped(s, c, errnum);
	}
}

/* --- batches --- */

static void
flush(struct link_udpsend *s)
{
	for (size_t i = 0; i < s->n;) {
		/* After a failure sendmmsg() tells how many went before it; asked again, it
		 * tells why. */
		s->stats->tx_calls++;
		int r = s->n - i == 1 ? (s->calls->sendmsg(s->calls->ctx, s->fd,
						 &s->msgs[i].msg_hdr, MSG_NOSIGNAL) < 0
							? -1
							: 1)
				      : s->calls->sendmmsg(s->calls->ctx, s->fd, s->msgs + i,
						(unsigned)(s->n - i), MSG_NOSIGNAL);
		if (r < 0 && errno == EINTR) {
			continue;
		}
		if (r <= 0) {
			send_refused(s, &s->chunks[i], r < 0 ? errno : EIO);
			i++;
			continue;
		}
		for (int k = 0; k < r; k++, i++) {
			count_sent(s, &s->chunks[i]);
		}
	}
	s->n = 0;
	s->heads_n = 0;
}

/* Appends a chunk; its head is that of the chunk before when both are of one run. */
static void
append(struct link_udpsend *s, struct link_run *run, uint8_t *data, uint32_t len)
{
	if (s->n == LINK_UDPSEND_BATCH) {
		flush(s);
	}
	struct link_udpsend_chunk *c = &s->chunks[s->n];
	if (s->n > 0 && s->chunks[s->n - 1].run == run) {
		*c = s->chunks[s->n - 1];
	} else {
		struct link_udpmsg_head *h = &s->heads[s->heads_n++];
		*c = (struct link_udpsend_chunk){
			.run = run, .head = h, .has_src = has_pinned_src(run)};
		link_udpmsg_encode(h, run->to, c->has_src, run->ecn, run->seg);
	}
	c->data = data;
	c->len = len;
	s->iov[s->n] = (struct iovec){.iov_base = data, .iov_len = len};
	link_udpmsg_apply(c->head, len > run->seg, &s->iov[s->n], &s->msgs[s->n].msg_hdr);
	s->n++;
}

static void
cut_run(struct link_udpsend *s, struct link_run *run)
{
	uint32_t part = run->seg;
	if (run->len > run->seg && can_segment(s, &run->to->addr, run->seg)) {
		uint32_t segments = PAYLOAD_BYTES_MAX / run->seg;
		segments = segments > SEGMENTS_MAX ? SEGMENTS_MAX : segments;
		part = (segments > 1 ? segments : 1) * run->seg;
	}
	for (uint32_t at = 0; at < run->len; at += part) {
		uint32_t left = run->len - at;
		append(s, run, run->data + at, left < part ? left : part);
	}
}

void
link_udpsend_send(struct link_udpsend *s, struct link_run *runs, size_t n)
{
	s->may_wait = true;
	if (WEFT_UNLIKELY(is_anything_refused(s))) {
		expire_refusals(s);
	}
	for (size_t i = 0; i < n; i++) {
		struct link_run *run = &runs[i];
		weft_dassert(run->seg > 0);
		run->src_cleared = false;
		run->errnum = 0;
		enum ip_family family = run->to->addr.family;
		int fd = family == IP_FAMILY_V4 ? s->v4 : family == IP_FAMILY_V6 ? s->v6 : -1;
		if (fd < 0) {
			s->stats->drops.n[DROP_LINK_FAMILY] += datagrams_of(run->len, run->seg);
			run->errnum = EAFNOSUPPORT;
			continue;
		}
		if (fd != s->fd) {
			flush(s);
			s->fd = fd;
		}
		cut_run(s, run);
	}
	flush(s);
}
