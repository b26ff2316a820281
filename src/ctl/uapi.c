/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/uapi.h"

#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"
#include "ctl/peers.h"
#include "ctl/server.h"
#include "node/node.h"

enum phase {
	PHASE_HEAD, /* the device */
	PHASE_PEERS,
	PHASE_ERRNO,
};

/* Of a client. */
struct session {
	struct uapi_decoder decoder;
	size_t held; /* of the decoder, as counted in ctl_uapi.held */
	/* The reply. */
	enum uapi_kind kind;
	int error;
	bool is_last;
	enum phase phase;
	struct ctl_peers peers;
	struct ctl_peer peer;
	size_t allowed_at; /* next prefix of peer */
};

struct ctl_uapi {
	struct node *node;
	struct ctl_server *server;
	size_t held;
};

static void
count_held(struct ctl_uapi *u, struct session *s)
{
	u->held += s->decoder.request.cap - s->held;
	s->held = s->decoder.request.cap;
}

static enum ctl_step
begin_reply(struct ctl_uapi *u, struct session *s)
{
	const struct uapi_request *r = &s->decoder.request;
	s->kind = r->kind;
	s->error = r->error;
	s->phase = PHASE_ERRNO;
	if (s->error == 0 && s->kind == UAPI_SET) {
		s->error = ctl_uapi_apply(u->node, r);
	} else if (s->error == 0) {
		s->error = ctl_peers_take(u->node, &s->peers) ? UAPI_ENOMEM : 0;
		s->phase = s->error ? PHASE_ERRNO : PHASE_HEAD;
	}
	uapi_decoder_next(&s->decoder);
	count_held(u, s);
	return CTL_STEP_REPLY;
}

static enum ctl_step
receive(void *ctx, void *state, const char *data, size_t len, size_t *used)
{
	struct ctl_uapi *u = ctx;
	struct session *s = state;
	enum uapi_step step = uapi_decoder_feed(&s->decoder, data, len, used);
	count_held(u, s);
	if (step == UAPI_STEP_MORE && u->held > CTL_UAPI_HELD_MAX) {
		s->decoder.request.error = UAPI_ENOMEM;
		step = UAPI_STEP_BROKEN;
	}
	if (step == UAPI_STEP_MORE) {
		return CTL_STEP_MORE;
	}
	s->is_last = step == UAPI_STEP_BROKEN;
	return begin_reply(u, s);
}

static void
encode_device(struct ctl_uapi *u, struct writer *w)
{
	struct node_facts facts;
	struct uapi_device_info d = {0};
	node_facts(u->node, &facts);
	d.has_private_key = wg_device_private_key(node_lock_shared(u->node), d.private_key);
	node_unlock_shared(u->node);
	d.listen_port = facts.listen_port;
	d.fwmark = facts.fwmark;
	uapi_encode_device(w, &d);
	secret_wipe(&d, sizeof(d));
}

static void
encode_peer(const struct ctl_peer *peer, struct writer *w)
{
	const struct wg_peer_info *i = &peer->info;
	struct uapi_peer_info p = {.endpoint = i->endpoint,
		.last_handshake_s = i->last_handshake_wall_ns / WEFT_NS_PER_S,
		.last_handshake_ns = i->last_handshake_wall_ns % WEFT_NS_PER_S,
		.rx_bytes = i->rx_bytes,
		.tx_bytes = i->tx_bytes,
		.keepalive_s = i->keepalive_s};
	memcpy(p.public_key, i->public_key, KEY_LEN);
	memcpy(p.psk, peer->psk, KEY_LEN);
	uapi_encode_peer(w, &p);
	secret_wipe(&p, sizeof(p));
}

/* Prefixes of the peer at hand, then the next peer. */
static void
encode_peers(struct ctl_uapi *u, struct session *s, struct writer *w)
{
	while ((size_t)(w->end - w->p) >= UAPI_ENCODE_MAX) {
		if (s->allowed_at < s->peer.allowed_n) {
			uapi_encode_allowed(w, &s->peer.allowed[s->allowed_at++]);
			continue;
		}
		enum weft_err e = ctl_peers_next(u->node, &s->peers, &s->peer);
		if (e) {
			s->error = e == WEFT_ENOENT ? 0 : UAPI_ENOMEM;
			s->phase = PHASE_ERRNO;
			return;
		}
		s->allowed_at = 0;
		encode_peer(&s->peer, w);
	}
}

static enum ctl_step
produce(void *ctx, void *state, struct writer *w)
{
	struct ctl_uapi *u = ctx;
	struct session *s = state;
	switch (s->phase) {
	case PHASE_HEAD:
		encode_device(u, w);
		s->phase = PHASE_PEERS;
		return CTL_STEP_MORE;
	case PHASE_PEERS:
		encode_peers(u, s, w);
		return CTL_STEP_MORE;
	case PHASE_ERRNO:
		break;
	}
	uapi_encode_errno(w, s->kind, s->error);
	return s->is_last ? CTL_STEP_CLOSE : CTL_STEP_DONE;
}

static void
end_reply(struct session *s)
{
	ctl_peers_fini(&s->peers);
	ctl_peer_fini(&s->peer);
	s->allowed_at = 0;
}

static void
sent(void *ctx, void *state)
{
	(void)ctx;
	end_reply(state);
}

static void
fini(void *ctx, void *state)
{
	struct session *s = state;
	end_reply(s);
	uapi_decoder_fini(&s->decoder);
	count_held(ctx, s);
}

static const struct ctl_protocol protocol = {
	.state_bytes = sizeof(struct session),
	.receive = receive,
	.produce = produce,
	.sent = sent,
	.fini = fini,
};

enum weft_err
ctl_uapi_open(struct node *n, struct os_loop *loop, const char *path, const struct log *log,
	struct ctl_uapi **out)
{
	struct ctl_uapi *u = calloc(1, sizeof(*u));
	if (!u) {
		return WEFT_ENOMEM;
	}
	u->node = n;
	const struct ctl_server_config config = {.loop = loop,
		.path = path,
		.folder_mode = 0755,
		.mode = 0600,
		.protocol = &protocol,
		.ctx = u,
		.log = log};
	enum weft_err e = ctl_server_open(&config, &u->server);
	if (e) {
		free(u);
		return e;
	}
	*out = u;
	return WEFT_OK;
}

void
ctl_uapi_leave_file(struct ctl_uapi *u)
{
	ctl_server_leave_file(u->server);
}

void
ctl_uapi_close(struct ctl_uapi *u)
{
	if (!u) {
		return;
	}
	ctl_server_close(u->server);
	free(u);
}
