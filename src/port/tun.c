/* SPDX-License-Identifier: Apache-2.0 */
/* The TUN port: one readv() or writev() a frame, the virtio_net_hdr apart from the bytes.
 *
 * A joined frame that the kernel refuses (EINVAL) is split again and written packet by packet;
 * from then on nothing of its kind is joined, for as long as the port lives. */
#include "port/tun.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "os/error.h"
#include "pkt/gso.h"
#include "wire/vnet.h"

#define BAD_FRAMES_MAX 16u /* malformed ones skipped in one receive */
#define IOV_MAX_HERE 1024  /* UIO_MAXIOV */
/* What a packet takes beside its headers and payload when it is split off: padding and the room
 * around it. */
#define SPLIT_EXTRA_BYTES 64u

/* The packets of a joined frame, made anew. */
struct split {
	uint8_t *linear;
	uint8_t *buf;
	struct gso_seg *segs;
	size_t n;
};

struct port_tun {
	struct port base;
	int fd;
	bool has_vnet;
	const struct os_tun_calls *calls;
	const struct log *log;

	struct iovec iov[IOV_MAX_HERE];
};

static struct port_tun *
self_of(struct port *p)
{
	return WEFT_CONTAINER_OF(p, struct port_tun, base);
}

/* Reads one frame. Returns bytes of it, or -1 with errno. */
static ssize_t
read_frame(const struct port_tun *t, uint8_t hdr[VNET_HDR_LEN], uint8_t *buf, size_t cap)
{
	struct iovec iov[2] = {
		{.iov_base = hdr, .iov_len = VNET_HDR_LEN}, {.iov_base = buf, .iov_len = cap}};
	ssize_t skip = t->has_vnet ? VNET_HDR_LEN : 0;
	ssize_t n;
	do {
		n = t->has_vnet ? t->calls->readv(t->calls->ctx, t->fd, iov, 2)
				: t->calls->readv(t->calls->ctx, t->fd, iov + 1, 1);
	} while (n < 0 && errno == EINTR);
	return n < skip ? (n < 0 ? n : 0) : n - skip;
}

static enum weft_err
receive(struct port *base, uint8_t *buf, size_t cap, struct frame *f)
{
	struct port_tun *t = self_of(base);
	for (unsigned i = 0; i < BAD_FRAMES_MAX; i++) {
		uint8_t hdr[VNET_HDR_LEN] = {0};
		ssize_t n = read_frame(t, hdr, buf, cap);
		if (n < 0) {
			/* EBADFD, or EFAULT when it happens during the call: deleted. */
			return errno == EFAULT ? WEFT_ECLOSED : os_error(errno);
		}
		*f = (struct frame){.data = buf, .len = (uint32_t)n};
		base->stats.rx_frames++;
		base->stats.rx_bytes += (uint64_t)n;
		if (vnet_decode(hdr, f) == WEFT_OK) {
			return WEFT_OK;
		}
		base->stats.drops.n[DROP_TX_OFFLOAD]++;
	}
	return WEFT_EAGAIN;
}

/* Returns 0 or the errno. */
static int
write_pieces(struct port_tun *t, const struct gro_frame *f, const struct gro_piece *pieces)
{
	uint8_t hdr[VNET_HDR_LEN];
	int n = 0;
	weft_dassert(f->n < IOV_MAX_HERE);
	if (t->has_vnet) {
		vnet_encode(f, hdr);
		t->iov[n++] = (struct iovec){.iov_base = hdr, .iov_len = sizeof(hdr)};
	}
	for (uint32_t i = 0; i < f->n; i++) {
		t->iov[n++] = (struct iovec){.iov_base = pieces[i].data, .iov_len = pieces[i].len};
	}
	ssize_t r;
	do {
		r = t->calls->writev(t->calls->ctx, t->fd, t->iov, n);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? errno : 0;
}

static void
count_written(struct port_tun *t, uint32_t packets, uint32_t bytes, int errnum)
{
	struct port_stats *s = &t->base.stats;
	switch (errnum) {
	case 0:
		s->tx_frames++;
		s->tx_bytes += bytes;
		return;
	case EIO: /* not up */
	case EBADFD:
		s->drops.n[DROP_PORT_DOWN] += packets;
		return;
	case EAGAIN:
	case ENOBUFS:
	case ENOMEM:
		s->drops.n[DROP_PORT_FULL] += packets;
		return;
	default:
		s->drops.n[DROP_PORT_ERROR] += packets;
		return;
	}
}

static bool *
cap_of(struct port *p, enum frame_gso gso)
{
	switch (gso) {
	case FRAME_GSO_TCP4:
		return &p->caps.has_tcp4;
	case FRAME_GSO_TCP6:
		return &p->caps.has_tcp6;
	case FRAME_GSO_UDP4:
		return &p->caps.has_udp4;
	case FRAME_GSO_UDP6:
		return &p->caps.has_udp6;
	case FRAME_GSO_NONE:
		break;
	}
	return NULL;
}

static void
split_fini(struct split *s)
{
	free(s->linear);
	free(s->buf);
	free(s->segs);
}

/* False when it cannot be done. Memory is taken here, since this happens once in the life of a
 * port: what is refused is not joined again. */
static bool
split_init(struct split *s, const struct gro_frame *f, const struct gro_piece *pieces)
{
	size_t cap = f->len + (size_t)f->packets * (f->hdr_len + SPLIT_EXTRA_BYTES);
	*s = (struct split){.linear = malloc(f->len),
		.buf = malloc(cap),
		.segs = calloc(f->packets, sizeof(*s->segs))};
	if (!s->linear || !s->buf || !s->segs) {
		return false;
	}
	size_t at = 0;
	for (uint32_t i = 0; i < f->n; i++) {
		weft_assert(at + pieces[i].len <= f->len);
		memcpy(s->linear + at, pieces[i].data, pieces[i].len);
		at += pieces[i].len;
	}
	struct frame whole = {.data = s->linear,
		.len = f->len,
		.gso = f->gso,
		.gso_size = f->gso_size,
		.hdr_len = f->hdr_len,
		.needs_csum = f->needs_csum,
		.csum_start = f->csum_start,
		.csum_offset = f->csum_offset};
	struct gso_arena a = {.buf = s->buf, .cap = cap, .segs = s->segs, .segs_cap = f->packets};
	enum drop_reason why;
	s->n = gso_split(&whole, UINT16_MAX, &a, &why);
	return s->n > 0;
}

static void
write_singly(struct port_tun *t, const struct gro_frame *f, const struct gro_piece *pieces)
{
	struct split s;
	t->base.stats.join_off_count++;
	if (!split_init(&s, f, pieces)) {
		t->base.stats.drops.n[DROP_PORT_ERROR] += f->packets;
		split_fini(&s);
		return;
	}
	for (size_t i = 0; i < s.n; i++) {
		struct gro_piece piece = {
			.data = s.buf + s.segs[i].off + GSO_HEADROOM, .len = s.segs[i].len};
		struct gro_frame one = {.len = s.segs[i].len, .n = 1, .packets = 1};
		count_written(t, 1, one.len, write_pieces(t, &one, &piece));
	}
	split_fini(&s);
}

static void
write_frame(struct port_tun *t, const struct gro_frame *f, const struct gro_piece *pieces)
{
	bool *can_join = cap_of(&t->base, f->gso);
	if (can_join && !*can_join) {
		write_singly(t, f, pieces); /* joined before the refusal of this batch */
		return;
	}
	int errnum = write_pieces(t, f, pieces);
	if (errnum != EINVAL || !can_join) {
		count_written(t, f->packets, f->len, errnum);
		return;
	}
	static const char *const kinds[] = {[FRAME_GSO_TCP4] = "IPv4 TCP",
		[FRAME_GSO_TCP6] = "IPv6 TCP",
		[FRAME_GSO_UDP4] = "IPv4 UDP",
		[FRAME_GSO_UDP6] = "IPv6 UDP"};
	*can_join = false;
	log_warn(t->log, "the kernel refuses joined %s packets: written singly from now on",
		kinds[f->gso]);
	write_singly(t, f, pieces);
}

static void
send_frames(struct port *base, const struct gro_out *out)
{
	struct port_tun *t = self_of(base);
	for (size_t i = 0; i < out->frames_n; i++) {
		const struct gro_frame *f = &out->frames[i];
		write_frame(t, f, out->pieces + f->first);
	}
}

static void
close_port(struct port *base)
{
	free(self_of(base));
}

static const struct port_ops ops = {.receive = receive, .send = send_frames, .close = close_port};

enum weft_err
port_tun_new(const struct port_tun_config *c, struct port **out)
{
	struct port_tun *t = calloc(1, sizeof(*t));
	if (!t) {
		return WEFT_ENOMEM;
	}
	bool has_tso = c->offload >= OS_TUN_OFFLOAD_TSO;
	bool has_uso = c->offload >= OS_TUN_OFFLOAD_USO;
	t->base = (struct port){.ops = &ops,
		.caps = {.has_tcp4 = has_tso,
			.has_tcp6 = has_tso,
			.has_udp4 = has_uso,
			.has_udp6 = has_uso},
		.mtu = c->mtu};
	t->fd = c->fd;
	t->has_vnet = c->offload != OS_TUN_OFFLOAD_NONE;
	t->calls = c->calls ? c->calls : &os_tun_calls_real;
	t->log = c->log;
	*out = &t->base;
	return WEFT_OK;
}

int
port_tun_fd(const struct port *p)
{
	return WEFT_CONTAINER_OF(p, const struct port_tun, base)->fd;
}
