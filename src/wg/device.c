/* SPDX-License-Identifier: Apache-2.0 */
#include "wg/engine.h"

#include <stdlib.h>
#include <string.h>

#include "crypto/crypto.h"
#include "crypto/secret.h"

#define STAGED_BYTES_DEFAULT (1u << 20)

enum weft_err
wg_device_new(const struct wg_device_config *c, struct wg_device **out)
{
	struct wg_device *d = calloc(1, sizeof(*d));
	if (!d) {
		return WEFT_ENOMEM;
	}
	uint8_t keys[2][SIPHASH_KEY_LEN];
	c->entropy.fill(c->entropy.ctx, keys, sizeof(keys));
	enum weft_err e = crypto_new(&d->crypto);
	if (e) {
		goto undo_alloc;
	}
	e = allowed_new(&d->allowed);
	if (e) {
		goto undo_crypto;
	}
	e = wg_index_init(&d->index);
	if (e) {
		goto undo_allowed;
	}
	e = wg_roster_init(&d->roster, keys[0]);
	if (e) {
		goto undo_index;
	}
	d->entropy = c->entropy;
	wg_limiter_init(&d->limiter, keys[1]);
	wg_load_init(&d->load);
	wg_stage_pool_init(
		&d->stage_pool, c->staged_bytes ? c->staged_bytes : STAGED_BYTES_DEFAULT);
	wg_stamp_init(&d->stamp, c->stamp_s);
	timerwheel_init(&d->wheel, (struct mono){0});
	list_init(&d->todo);
	*out = d;
	return WEFT_OK;

undo_index:
	wg_index_fini(&d->index);
undo_allowed:
	allowed_free(d->allowed);
undo_crypto:
	crypto_free(d->crypto);
undo_alloc:
	free(d);
	return e;
}

void
wg_device_free(struct wg_device *d)
{
	if (!d) {
		return;
	}
	for (struct wg_peer *p; (p = wg_peer_next(d, NULL));) {
		wg_peer_remove(d, p);
	}
	wg_roster_fini(&d->roster);
	wg_index_fini(&d->index);
	allowed_free(d->allowed);
	crypto_free(d->crypto);
	secret_wipe(d, sizeof(*d));
	free(d);
}

/* What depends on the old key ends. */
static void
forget_key(struct wg_device *d, struct wg_peer *p)
{
	wg_keyring_clear(d, p);
	secret_wipe(p->remote.shared, sizeof(p->remote.shared));
	p->remote.has_shared = false;
	p->jar = (struct wg_cookie_jar){0};
	p->initiation_ns = -WG_REKEY_TIMEOUT_NS;
	wg_timers_stop(&p->timers);
	wg_agenda_cancel(p, WG_TODO_SESSION | WG_TODO_INITIATION | WG_TODO_KEEPALIVE);
	wg_peer_arm(d, p);
}

void
wg_device_set_private_key(struct wg_device *d, const uint8_t key[WG_KEY_LEN])
{
	LIST_FOR_EACH(it, &d->roster.peers)
	{
		forget_key(d, WEFT_CONTAINER_OF(it, struct wg_peer, of_device));
	}
	if (wg_noise_identity_set(d->crypto, &d->identity, key) || !d->identity.has_key) {
		return;
	}
	wg_cookie_checker_set_key(d->crypto, &d->checker, d->identity.public_key);
	struct wg_peer *self = wg_roster_find(&d->roster, d->identity.public_key);
	if (self) {
		wg_peer_remove(d, self);
	}
}

bool
wg_device_public_key(const struct wg_device *d, uint8_t out[WG_KEY_LEN])
{
	if (d->identity.has_key) {
		memcpy(out, d->identity.public_key, WG_KEY_LEN);
	}
	return d->identity.has_key;
}

bool
wg_device_private_key(const struct wg_device *d, uint8_t out[WG_KEY_LEN])
{
	if (d->identity.has_key) {
		memcpy(out, d->identity.private_key, WG_KEY_LEN);
	}
	return d->identity.has_key;
}

enum weft_err
wg_peer_add(struct wg_device *d, const uint8_t key[WG_KEY_LEN], struct wg_peer **out)
{
	if (d->identity.has_key && memcmp(key, d->identity.public_key, WG_KEY_LEN) == 0) {
		return WEFT_EINVAL;
	}
	if (wg_roster_find(&d->roster, key)) {
		return WEFT_EEXIST;
	}
	if (d->roster.n >= WG_PEERS_MAX) {
		return WEFT_ENOMEM;
	}
	struct wg_peer *p;
	enum weft_err e = wg_peer_new(&p);
	if (e) {
		return e;
	}
	memcpy(p->remote.public_key, key, WG_KEY_LEN);
	p->timers.jitter_ns = wg_device_jitter_ns(d);
	p->timers.is_up = d->is_up;
	wg_roster_add(&d->roster, p);
	*out = p;
	return WEFT_OK;
}

void
wg_peer_remove(struct wg_device *d, struct wg_peer *p)
{
	wg_roster_remove(&d->roster, p);
	allowed_remove_all(d->allowed, &p->allowed);
	wg_keyring_clear(d, p);
	d->lost_packets += wg_stage_clear(&d->stage_pool, &p->stage);
	wg_agenda_cancel(p, UINT32_MAX);
	timerwheel_disarm(&d->wheel, &p->timer);
	atomic_store_explicit(&p->is_removed, true, memory_order_release);
	wg_peer_put(p);
}

struct wg_peer *
wg_peer_find(const struct wg_device *d, const uint8_t key[WG_KEY_LEN])
{
	return wg_roster_find(&d->roster, key);
}

struct wg_peer *
wg_peer_next(const struct wg_device *d, struct wg_peer *p)
{
	const struct list *next = p ? p->of_device.next : d->roster.peers.next;
	return next == &d->roster.peers ? NULL : WEFT_CONTAINER_OF(next, struct wg_peer, of_device);
}

size_t
wg_device_peer_count(const struct wg_device *d)
{
	return d->roster.n;
}

void
wg_peer_set_keepalive(struct wg_device *d, struct wg_peer *p, uint16_t seconds, struct wg_time now,
	struct wg_out *out)
{
	bool was_off = p->timers.persistent_s == 0;
	wg_timers_set_persistent(&p->timers, seconds, d->is_up, now.mono);
	wg_peer_arm(d, p);
	if (was_off && seconds && d->is_up && p->endpoint.addr.family != IP_FAMILY_NONE) {
		wg_agenda_add(d, p, WG_TODO_KEEPALIVE);
	}
	wg_agenda_run(d, now, out);
}

void
wg_peer_renew(struct wg_device *d, struct wg_peer *p, struct wg_time now, struct wg_out *out)
{
	d->now = mono_is_before(d->now, now.mono) ? now.mono : d->now;
	if (wg_peer_can_send(p, now.mono)) {
		wg_agenda_renew(d, p, now.mono);
	}
	wg_agenda_run(d, now, out);
}

void
wg_device_set_up(struct wg_device *d, bool is_up, struct wg_time now, struct wg_out *out)
{
	bool is_rising = is_up && !d->is_up;
	d->is_up = is_up;
	d->now = mono_is_before(d->now, now.mono) ? now.mono : d->now;
	LIST_FOR_EACH(it, &d->roster.peers)
	{
		struct wg_peer *p = WEFT_CONTAINER_OF(it, struct wg_peer, of_device);
		uint16_t seconds = p->timers.persistent_s;
		wg_timers_set_persistent(&p->timers, seconds, is_up, now.mono);
		wg_peer_arm(d, p);
		if (is_rising && seconds && p->endpoint.addr.family != IP_FAMILY_NONE) {
			wg_agenda_add(d, p, WG_TODO_KEEPALIVE);
		}
	}
	wg_agenda_run(d, now, out);
}

bool
wg_device_is_under_load(const struct wg_device *d, struct mono now)
{
	return wg_load_is_high(&d->load, now);
}

enum weft_err
wg_peer_allow(struct wg_device *d, struct wg_peer *p, const struct ip_prefix *prefix)
{
	return allowed_insert(d->allowed, prefix, &p->allowed);
}

bool
wg_peer_disallow(struct wg_device *d, struct wg_peer *p, const struct ip_prefix *prefix)
{
	return allowed_remove(d->allowed, prefix, &p->allowed);
}

void
wg_peer_disallow_all(struct wg_device *d, struct wg_peer *p)
{
	allowed_remove_all(d->allowed, &p->allowed);
}

void
wg_peer_stage(struct wg_device *d, struct wg_peer *p, const uint8_t *packet, size_t len,
	struct wg_out *out)
{
	if (p->endpoint.addr.family == IP_FAMILY_NONE && !p->next) {
		out->drops->n[DROP_TX_ENDPOINT]++;
		return;
	}
	out->drops->n[DROP_TX_STAGED] += wg_stage_push(&d->stage_pool, &p->stage, packet, len);
}

bool
wg_peer_unstage(struct wg_device *d, struct wg_peer *p, uint8_t *packet, size_t cap, size_t *len)
{
	return wg_stage_take(&d->stage_pool, &p->stage, packet, cap, len);
}

void
wg_peer_clear_src(struct wg_device *d, struct wg_peer *p)
{
	(void)d;
	p->endpoint.src = (struct ip_addr){0};
	p->endpoint.src_ifindex = 0;
}

int32_t
wg_device_jitter_ns(struct wg_device *d)
{
	uint32_t r;
	d->entropy.fill(d->entropy.ctx, &r, sizeof(r));
	return (int32_t)((uint64_t)r * WG_REKEY_TIMEOUT_JITTER_NS >> 32);
}

void
wg_peer_arm(struct wg_device *d, struct wg_peer *p)
{
	struct mono due = wg_timers_deadline(&p->timers);
	if (p->expire_ns) {
		due = mono_min(due, (struct mono){p->expire_ns});
	}
	if (p->rival) {
		due = mono_min(due, p->rival->due);
	}
	p->timers.armed_ns = due.ns;
	timerwheel_arm(&d->wheel, &p->timer, due);
}

void
wg_device_note_trouble(struct wg_device *d, enum wg_trouble_kind kind, const uint8_t *key,
	const struct endpoint *at)
{
	struct wg_trouble what = {.kind = kind, .at = *at};
	if (key) {
		memcpy(what.key, key, sizeof(what.key));
	}
	wg_troubles_note(&d->troubles, &what, d->now);
}

const struct wg_troubles *
wg_device_troubles(const struct wg_device *d)
{
	return &d->troubles;
}

void
wg_peer_move_endpoint(struct wg_device *d, struct wg_peer *p, const struct endpoint *from)
{
	bool is_move = !endpoint_is_same_remote(from, &p->endpoint);
	if (is_move) {
		p->moved_from = p->endpoint;
		wg_device_note_trouble(d, WG_TROUBLE_MOVE, p->remote.public_key, from);
	}
	p->endpoint = *from;
	if (is_move) {
		wg_agenda_add(d, p, WG_TODO_ENDPOINT);
	}
}
