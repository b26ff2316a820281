/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/steward.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "crypto/secret.h"

/* Bytes of a peer without its prefixes, and of a prefix. */
#define PEER_BYTES (KEY_LEN + 1 + KEY_LEN + 2 + 17 + 2 + 4 + 4)
#define PREFIX_BYTES 18
#define STATE_BYTES (1 + KEY_LEN + 2 + 4 + 4)

#define REQUEST_HEAD 10u
#define REPLY_HEAD 8u
_Static_assert(REQUEST_HEAD + WIRE_STEWARD_PATH_MAX <= WIRE_STEWARD_REQUEST_MAX &&
		       REPLY_HEAD + WIRE_STEWARD_TEXT_MAX <= WIRE_STEWARD_REPLY_MAX,
	"all fits");

#define HAS_PRIVATE_KEY 1u
#define HAS_LISTEN_PORT 2u
#define HAS_FWMARK 4u

/* --- requests and replies --- */

/* Text behind the fixed part, without a NUL. Returns its bytes. */
static size_t
put_text(uint8_t *out, const char *text, size_t cap)
{
	size_t n = strnlen(text, cap - 1);
	memcpy(out, text, n);
	return n;
}

static bool
take_text(struct reader *r, char *out, size_t cap)
{
	size_t n = reader_left(r);
	if (n >= cap || memchr(r->p, 0, n)) {
		return false;
	}
	reader_copy(r, out, n);
	out[n] = 0;
	return !r->failed;
}

size_t
wire_steward_request_encode(const struct wire_steward_request *r, uint8_t *out)
{
	out[0] = (uint8_t)r->op;
	out[1] = r->has_v4;
	store_le32(out + 2, r->number);
	store_le32(out + 6, r->value);
	return REQUEST_HEAD + put_text(out + REQUEST_HEAD, r->path, sizeof(r->path));
}

enum weft_err
wire_steward_request_decode(const void *data, size_t len, struct wire_steward_request *out)
{
	struct reader r;
	reader_init(&r, data, len);
	uint8_t op = reader_u8(&r), has_v4 = reader_u8(&r);
	out->number = reader_le32(&r);
	out->value = reader_le32(&r);
	if (r.failed || op >= WIRE_STEWARD_OP_COUNT || has_v4 > 1 ||
		!take_text(&r, out->path, sizeof(out->path)) ||
		(out->path[0] && (op != WIRE_STEWARD_READ || out->path[0] != '/'))) {
		return WEFT_EPARSE;
	}
	out->op = (enum wire_steward_op)op;
	out->has_v4 = has_v4 == 1;
	return WEFT_OK;
}

size_t
wire_steward_reply_encode(const struct wire_steward_reply *r, uint8_t *out)
{
	out[0] = (uint8_t)r->kind;
	out[1] = (uint8_t)(r->kind == WIRE_STEWARD_LINE ? r->level : 0);
	store_le16(out + 2, (uint16_t)r->result);
	store_le32(out + 4, r->number);
	return REPLY_HEAD + put_text(out + REPLY_HEAD, r->text, sizeof(r->text));
}

enum weft_err
wire_steward_reply_decode(const void *data, size_t len, struct wire_steward_reply *out)
{
	struct reader r;
	reader_init(&r, data, len);
	uint8_t kind = reader_u8(&r), level = reader_u8(&r);
	uint16_t result = reader_le16(&r);
	out->number = reader_le32(&r);
	if (r.failed || result >= WEFT_ERR_COUNT || kind >= WIRE_STEWARD_KIND_COUNT ||
		level > LOG_LEVEL_DEBUG || !take_text(&r, out->text, sizeof(out->text))) {
		return WEFT_EPARSE;
	}
	out->kind = (enum wire_steward_kind)kind;
	out->result = (enum weft_err)result;
	out->level = (enum log_level)level;
	return WEFT_OK;
}

/* --- a state --- */

static void
put_addr(struct writer *w, const struct ip_addr *a)
{
	writer_u8(w, (uint8_t)a->family);
	writer_copy(w, a->b, sizeof(a->b));
}

static void
put_peer(struct writer *w, const struct conf_state_peer *p)
{
	writer_copy(w, p->public_key, KEY_LEN);
	writer_u8(w, p->has_psk);
	writer_copy(w, p->psk, KEY_LEN);
	writer_le16(w, p->keepalive_s);
	put_addr(w, &p->addr);
	writer_le16(w, p->port);
	writer_le32(w, p->scope);
	writer_le32(w, (uint32_t)p->allowed_n);
	for (size_t i = 0; i < p->allowed_n; i++) {
		put_addr(w, &p->allowed[i].addr);
		writer_u8(w, p->allowed[i].bits);
	}
}

enum weft_err
wire_steward_state_encode(const struct conf_state *s, char **out, size_t *len)
{
	size_t n = STATE_BYTES;
	for (size_t i = 0; i < s->peers_n; i++) {
		n += PEER_BYTES + s->peers[i].allowed_n * PREFIX_BYTES;
	}
	if (n > WIRE_STEWARD_STATE_MAX) {
		return WEFT_EMSGSIZE;
	}
	char *bytes = malloc(n + 1);
	if (!bytes) {
		return WEFT_ENOMEM;
	}
	struct writer w;
	writer_init(&w, bytes, n);
	writer_u8(&w, (uint8_t)((s->has_private_key ? HAS_PRIVATE_KEY : 0) |
				(s->has_listen_port ? HAS_LISTEN_PORT : 0) |
				(s->has_fwmark ? HAS_FWMARK : 0)));
	writer_copy(&w, s->private_key, KEY_LEN);
	writer_le16(&w, s->listen_port);
	writer_le32(&w, s->fwmark);
	writer_le32(&w, (uint32_t)s->peers_n);
	for (size_t i = 0; i < s->peers_n; i++) {
		put_peer(&w, &s->peers[i]);
	}
	bytes[n] = 0;
	*out = bytes;
	*len = n;
	return WEFT_OK;
}

static bool
take_addr(struct reader *r, bool is_optional, struct ip_addr *out)
{
	uint8_t family = reader_u8(r);
	reader_copy(r, out->b, sizeof(out->b));
	out->family = (enum ip_family)family;
	if (family == IP_FAMILY_V4) {
		memset(out->b + 4, 0, sizeof(out->b) - 4);
	}
	return family == IP_FAMILY_V4 || family == IP_FAMILY_V6 ||
	       (is_optional && family == IP_FAMILY_NONE);
}

static bool
take_prefix(struct reader *r, struct ip_prefix *out)
{
	bool ok = take_addr(r, false, &out->addr);
	out->bits = reader_u8(r);
	if (!ok || r->failed || out->bits > ip_family_len(out->addr.family) * 8) {
		return false;
	}
	ip_prefix_mask(out);
	return true;
}

/* Prefixes of all peers lie in one array, whose free part is here. */
struct prefix_room {
	struct ip_prefix *next;
	size_t left;
};

static bool
take_peer(struct reader *r, struct conf_state_peer *p, struct prefix_room *room)
{
	reader_copy(r, p->public_key, KEY_LEN);
	p->has_psk = reader_u8(r) != 0;
	reader_copy(r, p->psk, KEY_LEN);
	p->keepalive_s = reader_le16(r);
	bool ok = take_addr(r, true, &p->addr);
	p->port = reader_le16(r);
	p->scope = reader_le32(r);
	size_t n = reader_le32(r);
	/* What claims the bytes of later peers for itself is caught here. */
	if (!ok || r->failed || n > room->left) {
		return false;
	}
	p->allowed = room->next;
	p->allowed_n = n;
	room->left -= n;
	for (size_t i = 0; i < n; i++) {
		if (!take_prefix(r, room->next++)) {
			return false;
		}
	}
	return true;
}

static int
compare_keys(const void *a, const void *b)
{
	const struct conf_state_peer *const *x = a, *const *y = b;
	return memcmp((*x)->public_key, (*y)->public_key, KEY_LEN);
}

/* Of n peers, is every key another? conf_edit() relies on it. */
static enum weft_err
check_keys(const struct conf_state_peer *peers, size_t n)
{
	const struct conf_state_peer **sorted = malloc((n + 1) * sizeof(const void *));
	if (!sorted) {
		return WEFT_ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		sorted[i] = &peers[i];
	}
	qsort(sorted, n, sizeof(const void *), compare_keys);
	bool is_good = true;
	for (size_t i = 1; i < n; i++) {
		is_good &= compare_keys(&sorted[i - 1], &sorted[i]) != 0;
	}
	free(sorted);
	return is_good ? WEFT_OK : WEFT_EPARSE;
}

enum weft_err
wire_steward_state_decode(const void *data, size_t len, struct conf_state *out)
{
	struct reader r;
	struct conf_state s = {0};
	reader_init(&r, data, len);
	uint8_t has = reader_u8(&r);
	s.has_private_key = (has & HAS_PRIVATE_KEY) != 0;
	s.has_listen_port = (has & HAS_LISTEN_PORT) != 0;
	s.has_fwmark = (has & HAS_FWMARK) != 0;
	reader_copy(&r, s.private_key, KEY_LEN);
	s.listen_port = reader_le16(&r);
	s.fwmark = reader_le32(&r);
	s.peers_n = reader_le32(&r);
	/* What is allocated is bound by what has come. */
	if (r.failed || has > 7 || s.peers_n > reader_left(&r) / PEER_BYTES) {
		return WEFT_EPARSE;
	}
	size_t rest = reader_left(&r) - s.peers_n * PEER_BYTES;
	struct conf_state_peer *peers = calloc(s.peers_n + 1, sizeof(*peers));
	/* The first is the array's, whether a peer has some or not: wire_steward_state_fini(). */
	struct ip_prefix *prefixes = calloc(rest / PREFIX_BYTES + 1, sizeof(*prefixes));
	struct prefix_room room = {prefixes, rest / PREFIX_BYTES};
	enum weft_err e = peers && prefixes ? WEFT_OK : WEFT_ENOMEM;
	for (size_t i = 0; i < s.peers_n && !e; i++) {
		e = take_peer(&r, &peers[i], &room) ? WEFT_OK : WEFT_EPARSE;
	}
	if (!e && reader_left(&r) > 0) {
		e = WEFT_EPARSE;
	}
	e = e ? e : check_keys(peers, s.peers_n);
	if (!e) {
		peers[s.peers_n].allowed = prefixes;
		s.peers = peers;
		*out = s;
		return WEFT_OK;
	}
	if (peers) {
		secret_wipe(peers, s.peers_n * sizeof(*peers));
	}
	free(peers);
	free(prefixes);
	secret_wipe(&s, sizeof(s));
	return e;
}

void
wire_steward_state_fini(struct conf_state *s)
{
	struct conf_state_peer *peers = (struct conf_state_peer *)s->peers;
	if (peers) {
		free((struct ip_prefix *)peers[s->peers_n].allowed);
		secret_wipe(peers, s->peers_n * sizeof(*peers));
	}
	free(peers);
	secret_wipe(s, sizeof(*s));
}
