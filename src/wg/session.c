/* SPDX-License-Identifier: Apache-2.0 */
#include "wg/session.h"

#include <stdlib.h>

#include "base/assert.h"
#include "crypto/secret.h"
#include "wire/ext.h"

/* A responder leaves renewal to the initiator, unless that has missed all its chances: then
 * both may be responders of what they send on, after initiations that crossed. */
#define RESPONDER_REKEY_NS (WG_REJECT_AFTER_TIME_NS - 2 * WG_REKEY_TIMEOUT_NS)

enum weft_err
wg_session_new(struct wg_peer *peer, struct mono now, bool is_initiator,
	const struct wg_noise_keys *keys, struct wg_session **out)
{
	struct wg_session *s = aligned_alloc(_Alignof(struct wg_session), sizeof(*s));
	if (!s) {
		return WEFT_ENOMEM;
	}
	s->born = now;
	s->initiated = now;
	s->id = 0;
	s->local_index = 0;
	s->remote_index = 0;
	s->is_initiator = is_initiator;
	s->is_confirmed = is_initiator;
	atomic_init(&s->refs, 1);
	atomic_init(&s->next_counter, 0);
	atomic_flag_clear(&s->is_window_taken);
	wg_replay_init(&s->window);
	s->taken = 0;
	aead_key_init(
		&s->send[AEAD_CIPHER_CHACHA20_POLY1305], AEAD_CIPHER_CHACHA20_POLY1305, keys->send);
	aead_key_init(
		&s->recv[AEAD_CIPHER_CHACHA20_POLY1305], AEAD_CIPHER_CHACHA20_POLY1305, keys->recv);
	aead_key_init(&s->send[AEAD_CIPHER_AES_256_GCM], AEAD_CIPHER_AES_256_GCM, keys->send_aes);
	aead_key_init(&s->recv[AEAD_CIPHER_AES_256_GCM], AEAD_CIPHER_AES_256_GCM, keys->recv_aes);
	atomic_init(&s->send_cipher, AEAD_CIPHER_CHACHA20_POLY1305);
	atomic_init(&s->is_aes_allowed, false);
	wg_peer_get(peer);
	s->peer = peer;
	*out = s;
	return WEFT_OK;
}

void
wg_session_get(struct wg_session *s)
{
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
}

void
wg_session_put(struct wg_session *s)
{
	if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1) {
		return;
	}
	struct wg_peer *peer = s->peer;
	for (size_t i = 0; i < AEAD_CIPHER_COUNT; i++) {
		aead_key_fini(&s->send[i]);
		aead_key_fini(&s->recv[i]);
	}
	free(s);
	wg_peer_put(peer);
}

bool
wg_session_take_counters(struct wg_session *s, uint32_t n, uint64_t *first)
{
	uint64_t at = atomic_load_explicit(&s->next_counter, memory_order_relaxed);
	/* Not a plain addition: failing ones would add up and wrap, and a counter used twice
	 * would repeat a nonce. */
	do {
		if (at >= WG_REJECT_AFTER_MESSAGES || n > WG_REJECT_AFTER_MESSAGES - at) {
			return false;
		}
	} while (!atomic_compare_exchange_weak_explicit(
		&s->next_counter, &at, at + n, memory_order_relaxed, memory_order_relaxed));
	*first = at;
	return true;
}

bool
wg_session_wants_rekey(const struct wg_session *s, uint64_t counter, struct mono now)
{
	int64_t age_ns = mono_diff_ns(now, s->born);
	return counter > WG_REKEY_AFTER_MESSAGES ||
	       age_ns >= (s->is_initiator ? WG_REKEY_AFTER_TIME_NS : RESPONDER_REKEY_NS);
}

bool
wg_session_can_open(const struct wg_session *s, struct mono now)
{
	return !wg_session_is_too_old(s, now);
}

struct wg_peer *
wg_session_peer(const struct wg_session *s)
{
	return s->peer;
}

const struct aead_key *
wg_session_send_key(const struct wg_session *s)
{
	/* Relaxed, here and below: the keys themselves do not change. */
	return &s->send[atomic_load_explicit(&s->send_cipher, memory_order_relaxed)];
}

void
wg_session_set_send_cipher(struct wg_session *s, enum aead_cipher cipher)
{
	atomic_store_explicit(&s->send_cipher, (uint8_t)cipher, memory_order_relaxed);
}

const struct aead_key *
wg_session_recv_key(const struct wg_session *s, enum aead_cipher cipher)
{
	bool is_allowed = cipher == AEAD_CIPHER_CHACHA20_POLY1305 ||
			  atomic_load_explicit(&s->is_aes_allowed, memory_order_relaxed);
	return is_allowed ? &s->recv[cipher] : NULL;
}

void
wg_session_allow_cipher(struct wg_session *s, enum aead_cipher cipher)
{
	if (cipher == AEAD_CIPHER_AES_256_GCM) {
		atomic_store_explicit(&s->is_aes_allowed, true, memory_order_relaxed);
	}
}

uint64_t
wg_session_id(const struct wg_session *s)
{
	return s->id;
}

bool
wg_session_is_initiator(const struct wg_session *s)
{
	return s->is_initiator;
}

uint32_t
wg_session_remote_index(const struct wg_session *s)
{
	return s->remote_index;
}

static void
take_window(struct wg_session *s)
{
	while (atomic_flag_test_and_set_explicit(&s->is_window_taken, memory_order_acquire)) {
		WEFT_CPU_RELAX();
	}
}

static void
release_window(struct wg_session *s)
{
	atomic_flag_clear_explicit(&s->is_window_taken, memory_order_release);
}

/* An IP packet, and not a frame that two weft nodes exchange among themselves. */
static bool
is_data(const struct aead_op *op)
{
	return op->len > 0 && !wire_ext_is_frame(op->data, op->len);
}

void
wg_session_window_pass(
	struct wg_session *s, struct aead_op *ops, size_t n, struct wg_session_passed *out)
{
	*out = (struct wg_session_passed){0};
	take_window(s);
	for (size_t i = 0; i < n; i++) {
		if (!ops[i].ok) {
			continue;
		}
		if (ops[i].counter >= WG_REJECT_AFTER_MESSAGES ||
			!wg_replay_take(&s->window, ops[i].counter)) {
			ops[i].ok = false;
			out->replays++;
			continue;
		}
		out->packets++;
		out->bytes += ops[i].len + WG_OVERHEAD;
		out->has_data |= is_data(&ops[i]);
	}
	s->taken += out->packets;
	release_window(s);
}

void
wg_session_count_arrivals(struct wg_session *s, uint64_t *expected, uint64_t *arrived)
{
	take_window(s);
	*expected += s->window.end;
	*arrived += s->taken;
	release_window(s);
}

bool
wg_session_mark(struct wg_session *s, uint64_t counter)
{
	if (counter >= WG_REJECT_AFTER_MESSAGES) {
		return false;
	}
	take_window(s);
	bool is_new = wg_replay_take(&s->window, counter);
	release_window(s);
	return is_new;
}
