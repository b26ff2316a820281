/* SPDX-License-Identifier: Apache-2.0 */
#include "node/ally.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "wg/device.h"

#define SWEEP_NS WEFT_NS_PER_S
/* A session whose HELLO has no answer yet sends no frames: when to look again. */
#define UNAGREED_NS WEFT_NS_PER_MS
/* Longest packet that is protected: of interfaces with a larger MTU, the others go without. */
#define PACKET_MAX 9000u
#define DATAGRAM_MAX 65507u
/* Longer than any hold. */
#define RECOVERY_ENDS_NS (100 * WEFT_NS_PER_MS)

void
allies_init(struct allies *t, const char *self, uint16_t mtu)
{
	*t = (struct allies){
		.self = self, .mtu = mtu, .budget = {.bytes_max = ALLIES_RECOVERY_BYTES_MAX}};
	list_init(&t->all);
	list_init(&t->active);
	os_mutex_init(&t->mutex);
	atomic_init(&t->deadline_ns, INT64_MAX);
}

uint16_t
allies_frame_max(const struct allies *t)
{
	return (uint16_t)((t->mtu < PACKET_MAX ? t->mtu : PACKET_MAX) + ALLY_REPAIR_EXTRA_BYTES);
}

static void
forget(struct allies *t, struct ally *a)
{
	list_remove(&a->of_table);
	os_mutex_lock(&t->mutex);
	list_remove(&a->of_active);
	os_mutex_unlock(&t->mutex);
	if (a->recovery) {
		fec_recovery_free(a->recovery);
	}
	os_mutex_fini(&a->mutex);
	wg_peer_set_ally(a->peer, NULL);
	wg_peer_put(a->peer);
	free(a);
}

void
allies_fini(struct allies *t)
{
	LIST_FOR_EACH_SAFE(it, tmp, &t->all)
	{
		forget(t, WEFT_CONTAINER_OF(it, struct ally, of_table));
	}
	os_mutex_fini(&t->mutex);
}

void
allies_sweep(struct allies *t, struct mono now)
{
	if (mono_diff_ns(now, t->swept_at) < SWEEP_NS) {
		return;
	}
	t->swept_at = now;
	LIST_FOR_EACH_SAFE(it, tmp, &t->all)
	{
		struct ally *a = WEFT_CONTAINER_OF(it, struct ally, of_table);
		if (wg_peer_is_removed(a->peer)) {
			forget(t, a);
		}
	}
}

/* --- agreement --- */

static bool
wants_aes(const struct ally *a)
{
	switch (a->policy.cipher) {
	case ALLY_CIPHER_AUTO:
		return aead_has_fast_aes();
	case ALLY_CIPHER_CHACHA20_POLY1305:
		return false;
	case ALLY_CIPHER_AES_256_GCM:
		return true;
	}
	return false;
}

static bool
wants_fec(const struct ally *a)
{
	return a->policy.has_extensions && a->policy.fec.mode != FEC_MODE_OFF;
}

static struct wg_hello_config
offer_of(const struct allies *t, const struct ally *a)
{
	return (struct wg_hello_config){
		.is_off = !a->policy.has_extensions,
		.features = wants_fec(a) ? WIRE_EXT_FEATURE_FEC : 0,
		.ciphers = (uint8_t)(WIRE_EXT_CIPHER_CHACHA20_POLY1305 |
				     (wants_aes(a) ? WIRE_EXT_CIPHER_AES_256_GCM : 0)),
		.datagram_max = DATAGRAM_MAX,
		.name = t->self,
	};
}

/* What its decoders hold is on its way with the next tick, and nothing is held any more; for a
 * moment it goes on listening. */
static void
end_recovery(struct ally *a, struct mono now)
{
	if (a->recovery && a->ends_at.ns == INT64_MAX) {
		fec_recovery_set_hold(a->recovery, false);
		a->ends_at = mono_add_ns(now, RECOVERY_ENDS_NS);
	}
}

struct ally *
ally_of(struct allies *t, struct wg_peer *p)
{
	struct ally *a = wg_peer_ally(p);
	if (a) {
		return a;
	}
	a = calloc(1, sizeof(*a));
	if (!a) {
		return NULL;
	}
	a->policy = ALLY_POLICY_DEFAULT;
	a->deadline = MONO_NEVER;
	a->ends_at = MONO_NEVER;
	list_init(&a->of_active);
	os_mutex_init(&a->mutex);
	struct wg_hello_config offer = offer_of(t, a);
	wg_hello_init(&a->hello, &offer);
	wg_peer_get(p);
	a->peer = p;
	list_push_back(&t->all, &a->of_table);
	wg_peer_set_ally(p, a);
	return a;
}

/* A HELLO that offers a cipher must not leave before we are ready to receive it. */
static void
begin_session(struct ally *a, struct wg_session *s, bool is_asking, struct mono now)
{
	if (a->policy.has_extensions && wants_aes(a)) {
		wg_session_allow_cipher(s, AEAD_CIPHER_AES_256_GCM);
	}
	wg_hello_session(&a->hello, now, wg_session_id(s), is_asking);
}

bool
ally_set_policy(struct allies *t, struct ally *a, const struct ally_policy *policy, struct mono now,
	bool *wants_session)
{
	os_mutex_lock(&a->mutex);
	struct wg_hello_config before = offer_of(t, a);
	a->policy = *policy;
	struct wg_hello_config offer = offer_of(t, a);
	wg_hello_configure(&a->hello, now, &offer);
	bool is_stock = wg_hello_state(&a->hello, 0) == WG_HELLO_STATE_STOCK;
	*wants_session =
		offer.is_off != before.is_off ||
		(!is_stock && !offer.is_off &&
			(offer.ciphers != before.ciphers || offer.features != before.features));
	if (!wants_fec(a)) {
		end_recovery(a, now);
	} else if (a->recovery) {
		fec_recovery_set_policy(a->recovery, &a->policy.fec);
	}
	struct wg_session *s = wg_peer_session(a->peer);
	if (s) {
		if (!policy->has_extensions || !wants_aes(a)) {
			wg_session_set_send_cipher(s, AEAD_CIPHER_CHACHA20_POLY1305);
		}
		begin_session(a, s, wg_session_is_initiator(s), now);
	}
	bool is_earlier = ally_rearm(t, a, now);
	os_mutex_unlock(&a->mutex);
	return is_earlier;
}

bool
allies_session(struct allies *t, struct wg_peer *p, struct mono now)
{
	struct wg_session *s = wg_peer_session(p);
	struct ally *a = s ? ally_of(t, p) : NULL;
	if (!a) {
		return false;
	}
	os_mutex_lock(&a->mutex);
	begin_session(a, s, wg_session_is_initiator(s), now);
	bool is_earlier = ally_rearm(t, a, now);
	os_mutex_unlock(&a->mutex);
	return is_earlier;
}

/* What the two agreed on takes effect in this session, unless the policy has changed since. */
static void
take_terms(struct allies *t, struct ally *a, struct mono now, struct wg_session *s)
{
	struct wg_hello_terms terms;
	if (!wg_hello_agreed(&a->hello, wg_session_id(s), &terms)) {
		return;
	}
	bool is_aes = terms.cipher == WIRE_EXT_CIPHER_AES_256_GCM && wants_aes(a);
	wg_session_set_send_cipher(
		s, is_aes ? AEAD_CIPHER_AES_256_GCM : AEAD_CIPHER_CHACHA20_POLY1305);
	if (!wg_hello_is_newest(&a->hello, wg_session_id(s))) {
		return; /* a late answer of an older session, which may have other terms */
	}
	if (terms.name[0]) {
		memcpy(a->name, terms.name, sizeof(a->name));
	}
	if (!(terms.features & WIRE_EXT_FEATURE_FEC) || !wants_fec(a)) {
		end_recovery(a, now);
		return;
	}
	a->ends_at = MONO_NEVER;
	if (a->recovery) {
		fec_recovery_set_hold(a->recovery, true);
	} else {
		struct fec_recovery_config c = {.policy = a->policy.fec,
			.packet_max = (uint16_t)(allies_frame_max(t) - ALLY_REPAIR_EXTRA_BYTES),
			.frame_max = allies_frame_max(t),
			.budget = &t->budget};
		if (fec_recovery_new(&c, &a->recovery)) {
			a->recovery = NULL; /* no memory: the session goes on without */
			return;
		}
	}
	if (terms.rtt_ns > 0) {
		fec_recovery_set_path(a->recovery, now, terms.rtt_ns, terms.clock_diff_us);
	}
}

bool
ally_hello(struct allies *t, struct ally *a, struct mono now, struct wg_session *s,
	const uint8_t *data, size_t len)
{
	struct wire_ext_hello h;
	if (!a->policy.has_extensions || !wire_ext_hello_decode(data, len, &h)) {
		return false;
	}
	/* It may come with the first message of a session, before the news of that. */
	begin_session(a, s, wg_session_is_initiator(s), now);
	(void)wg_hello_frame_in(&a->hello, now, wg_session_id(s), &h);
	take_terms(t, a, now, s);
	return true;
}

size_t
ally_take_hello(
	struct ally *a, struct mono now, struct wg_session **session, uint8_t *out, size_t cap)
{
	struct wire_ext_hello h;
	uint64_t id;
	wg_hello_tick(&a->hello, now);
	if (wg_hello_is_silent(&a->hello)) {
		end_recovery(a, now);
	}
	if (a->recovery && !mono_is_before(now, a->ends_at)) {
		fec_recovery_free(a->recovery);
		a->recovery = NULL;
		a->ends_at = MONO_NEVER;
	}
	while (wg_hello_take(&a->hello, now, &id, &h)) {
		struct wg_session *s = wg_peer_session_by_id(a->peer, id, now);
		if (s) {
			*session = s;
			return wire_ext_hello_encode(&h, out, cap);
		}
	}
	return 0;
}

bool
ally_may_send_frames(const struct ally *a, uint64_t session)
{
	struct wg_hello_terms terms;
	return a->recovery && a->ends_at.ns == INT64_MAX &&
	       wg_hello_agreed(&a->hello, session, &terms) &&
	       (terms.features & WIRE_EXT_FEATURE_FEC);
}

bool
ally_takes_frame(struct allies *t, struct ally *a, struct mono now, struct wg_session *s)
{
	if (ally_may_send_frames(a, wg_session_id(s))) {
		return true;
	}
	if (wg_hello_frame_in(&a->hello, now, wg_session_id(s), NULL)) {
		take_terms(t, a, now, s);
	}
	return ally_may_send_frames(a, wg_session_id(s));
}

/* --- time --- */

static struct mono
due_at(struct ally *a, struct mono now)
{
	struct mono at = wg_hello_deadline(&a->hello);
	if (!a->recovery) {
		return at;
	}
	struct mono frames = fec_recovery_deadline(a->recovery);
	uint64_t id = fec_recovery_due_session(a->recovery, now, 0);
	if (id && !ally_may_send_frames(a, id) && frames.ns <= now.ns) {
		frames = mono_add_ns(now, UNAGREED_NS);
	}
	return mono_min(mono_min(at, frames), a->ends_at);
}

bool
ally_rearm(struct allies *t, struct ally *a, struct mono now)
{
	struct mono at = due_at(a, now);
	bool is_earlier = false;
	os_mutex_lock(&t->mutex);
	if (at.ns == INT64_MAX) {
		list_remove(&a->of_active);
	} else if (a->deadline.ns == INT64_MAX) {
		list_push_back(&t->active, &a->of_active);
	}
	a->deadline = at;
	if (at.ns < atomic_load_explicit(&t->deadline_ns, memory_order_relaxed)) {
		atomic_store_explicit(&t->deadline_ns, at.ns, memory_order_relaxed);
		is_earlier = true;
	}
	os_mutex_unlock(&t->mutex);
	return is_earlier;
}

struct mono
allies_deadline(const struct allies *t)
{
	return (struct mono){atomic_load_explicit(&t->deadline_ns, memory_order_relaxed)};
}

size_t
allies_due(struct allies *t, struct mono now, struct wg_peer **out, size_t cap)
{
	size_t n = 0;
	struct mono next = MONO_NEVER;
	os_mutex_lock(&t->mutex);
	LIST_FOR_EACH(it, &t->active)
	{
		const struct ally *a = WEFT_CONTAINER_OF(it, struct ally, of_active);
		if (n < cap && !mono_is_before(now, a->deadline)) {
			wg_peer_get(a->peer);
			out[n++] = a->peer;
		} else {
			next = mono_min(next, a->deadline);
		}
	}
	/* Those handed out are armed anew by whoever deals with them. */
	atomic_store_explicit(&t->deadline_ns, next.ns, memory_order_relaxed);
	os_mutex_unlock(&t->mutex);
	return n;
}

static enum ally_state
state_of(const struct ally *a, const struct wg_session *s)
{
	if (!a->policy.has_extensions) {
		return ALLY_STATE_OFF;
	}
	switch (wg_hello_state(&a->hello, s ? wg_session_id(s) : 0)) {
	case WG_HELLO_STATE_AGREED:
		return s ? ALLY_STATE_AGREED : ALLY_STATE_UNKNOWN;
	case WG_HELLO_STATE_STOCK:
		return ALLY_STATE_STOCK;
	case WG_HELLO_STATE_OFF:
		return ALLY_STATE_OFF;
	case WG_HELLO_STATE_UNKNOWN:
	case WG_HELLO_STATE_ASKING:
	case WG_HELLO_STATE_COUNT:
		break;
	}
	return s ? ALLY_STATE_ASKING : ALLY_STATE_UNKNOWN;
}

void
ally_info(const struct wg_peer *p, struct ally_info *out)
{
	struct ally *a = wg_peer_ally(p);
	const struct wg_session *s = wg_peer_session(p);
	*out = (struct ally_info){.policy = ALLY_POLICY_DEFAULT,
		.cipher = s ? wg_session_send_key(s)->cipher : AEAD_CIPHER_CHACHA20_POLY1305};
	if (!a) {
		return;
	}
	os_mutex_lock(&a->mutex);
	out->policy = a->policy;
	out->state = state_of(a, s);
	memcpy(out->name, a->name, sizeof(out->name));
	if (a->recovery) {
		out->has_fec = true;
		fec_recovery_stats(a->recovery, &out->fec);
	}
	os_mutex_unlock(&a->mutex);
}
