/* SPDX-License-Identifier: Apache-2.0 */
/* AEAD by Intel's multi-buffer library, a burst of packets at a time.
 *
 * Its jobs do a whole packet in one call. For ChaCha20-Poly1305 the piecewise direct calls (init,
 * update, finalize) make the Poly1305 key in a pass of its own and cost 95 ns more a packet: 243
 * against 146 ns at 64 bytes, 596 against 489 ns at 1420 bytes (AMD Zen 4). For AES-256-GCM there
 * are direct calls for a whole packet; a burst of 45 jobs costs 10 ns less a packet.
 *
 * The manager is set up without the library's self-test, which runs every algorithm it has:
 * 3.2 MiB of code stay resident for the few kilobytes that are used. One known answer of each
 * algorithm in use is checked here instead. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <intel-ipsec-mb.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/endian.h"
#include "crypto/aead_backend.h"
#include "crypto/aead_cache.h"
#include "crypto/secret.h"

/* Jobs a burst. A burst of the library takes up to 128; at 64 the jobs, nonces and tags of a
 * burst are 15 KiB and stay in the first-level cache. */
#define BURST 64

/* The functions of a manager; its job queue follows. */
#define MANAGER_HEAD_LEN offsetof(IMB_MGR, jobs)

/* An expanded AES key, 1 KiB: making one takes about as long as sealing a packet. */
struct schedule {
	WEFT_ALIGNED(64) struct gcm_key_data data; /* as the library's header asks */
};

struct schedules {
	struct schedule of[AEAD_CACHE_SLOTS];
	struct aead_cache cache;
};

struct engine {
	struct aead base;
	struct schedules seal;
	struct schedules open;
	uint8_t nonce[BURST][AEAD_NONCE_LEN];
	uint8_t tag[BURST][AEAD_TAG_LEN]; /* computed on opening */
	/* Last, and 52 KiB. Its pointers to managers of out-of-order algorithms are null. */
	IMB_MGR mgr;
};

static const struct gcm_key_data *
schedule_of(struct engine *e, struct schedules *s, const struct aead_key *k)
{
	bool is_new;
	size_t slot = aead_cache_find(&s->cache, k, &is_new);
	if (is_new) {
		IMB_AES256_GCM_PRE(&e->mgr, k->bytes, &s->of[slot].data);
	}
	return &s->of[slot].data;
}

/* The fields in which packets differ; the rest is as job_set_cipher() left it. */
static void
job_fill(IMB_JOB *j, const struct aead_op *op, const uint8_t *nonce, uint8_t *tag)
{
	j->src = op->data;
	j->dst = op->data;
	j->cipher_start_src_offset_in_bytes = 0;
	j->msg_len_to_cipher_in_bytes = op->len;
	j->hash_start_src_offset_in_bytes = 0;
	j->msg_len_to_hash_in_bytes = op->len;
	j->iv = nonce;
	j->iv_len_in_bytes = AEAD_NONCE_LEN;
	j->auth_tag_output = tag;
	j->auth_tag_output_len_in_bytes = AEAD_TAG_LEN;
}

/* expanded: what the library wants as the key of this cipher. */
static void
job_set_cipher(IMB_JOB *j, enum aead_cipher cipher, const void *expanded)
{
	j->enc_keys = expanded;
	j->dec_keys = expanded;
	j->key_len_in_bytes = AEAD_KEY_LEN;
	if (cipher == AEAD_CIPHER_AES_256_GCM) {
		j->cipher_mode = IMB_CIPHER_GCM;
		j->hash_alg = IMB_AUTH_AES_GMAC;
		j->u.GCM.aad = NULL;
		j->u.GCM.aad_len_in_bytes = 0;
	} else {
		j->cipher_mode = IMB_CIPHER_CHACHA20_POLY1305;
		j->hash_alg = IMB_AUTH_CHACHA20_POLY1305;
		j->u.CHACHA20_POLY1305.aad = NULL;
		j->u.CHACHA20_POLY1305.aad_len_in_bytes = 0;
	}
}

/* n <= BURST. */
static void
burst_run(struct engine *e, IMB_CIPHER_DIRECTION direction, const struct aead_key *k,
	struct aead_op *ops, size_t n)
{
	IMB_JOB *jobs[BURST];
	const bool is_seal = direction == IMB_DIR_ENCRYPT;
	const void *expanded = k->bytes;
	if (k->cipher == AEAD_CIPHER_AES_256_GCM) {
		expanded = schedule_of(e, is_seal ? &e->seal : &e->open, k);
	}
	uint32_t got = IMB_GET_NEXT_BURST(&e->mgr, (uint32_t)n, jobs);
	weft_assert(got == n); /* the queue is empty between calls */
	for (size_t i = 0; i < n; i++) {
		weft_dassert(ops[i].len <= UINT16_MAX);
		store_le64(e->nonce[i] + 4, ops[i].counter);
		job_set_cipher(jobs[i], k->cipher, expanded);
		job_fill(jobs[i], &ops[i], e->nonce[i],
			is_seal ? ops[i].data + ops[i].len : e->tag[i]);
		jobs[i]->cipher_direction = direction;
		jobs[i]->chain_order = is_seal ? IMB_ORDER_CIPHER_HASH : IMB_ORDER_HASH_CIPHER;
	}
	/* Unchecked: what would be checked is written above, and the checking form refuses an
	 * empty text, which a keepalive is. */
	uint32_t done = IMB_SUBMIT_BURST_NOCHECK(&e->mgr, (uint32_t)n, jobs);
	/* Jobs of these ciphers finish at once. One that did not would leave as plaintext. */
	weft_assert(done == n);
}

static void
ipsec_mb_seal(struct aead *a, const struct aead_key *k, struct aead_op *ops, size_t n)
{
	struct engine *e = (struct engine *)a;
	for (size_t i = 0; i < n; i += BURST) {
		burst_run(e, IMB_DIR_ENCRYPT, k, ops + i, n - i < BURST ? n - i : BURST);
	}
}

static size_t
ipsec_mb_open(struct aead *a, const struct aead_key *k, struct aead_op *ops, size_t n)
{
	struct engine *e = (struct engine *)a;
	size_t right = 0;
	for (size_t i = 0; i < n; i += BURST) {
		size_t run = n - i < BURST ? n - i : BURST;
		burst_run(e, IMB_DIR_DECRYPT, k, ops + i, run);
		for (size_t j = 0; j < run; j++) {
			struct aead_op *op = &ops[i + j];
			op->ok = secret_is_equal(op->data + op->len, e->tag[j], AEAD_TAG_LEN);
			right += op->ok;
		}
	}
	return right;
}

static void
schedules_wipe(struct schedules *s)
{
	for (size_t i = 0; i < AEAD_CACHE_SLOTS; i++) {
		if (aead_cache_is_used(&s->cache, i)) {
			secret_wipe(&s->of[i], sizeof(s->of[i]));
		}
	}
	aead_cache_clear(&s->cache);
}

/* The library clears what it derived for a job after it; ours are the expanded AES keys and the
 * tags that were expected. */
static void
ipsec_mb_forget(struct aead *a)
{
	struct engine *e = (struct engine *)a;
	schedules_wipe(&e->seal);
	schedules_wipe(&e->open);
	secret_wipe(e->tag, sizeof(e->tag));
}

static void
ipsec_mb_free(struct aead *a)
{
	struct engine *e = (struct engine *)a;
	secret_wipe(e, sizeof(*e));
	free(e);
}

static const struct aead_backend_ops ipsec_mb_ops = {
	.name = "ipsec-mb",
	.free = ipsec_mb_free,
	.forget = ipsec_mb_forget,
	.seal = ipsec_mb_seal,
	.open = ipsec_mb_open,
};

/* Gives a manager's functions for AVX-512 without a self-test, by the library's call for attaching
 * to a manager that another process set up. That call also writes into 150 KiB of managers for
 * algorithms that finish out of order; ours does not, so they are not kept. They are given back
 * before the engine is allocated, or the heap would keep a hole of their size for each. */
static enum weft_err
manager_head(uint8_t out[MANAGER_HEAD_LEN])
{
	IMB_MGR *whole = malloc(imb_get_mb_mgr_size());
	if (whole == NULL) {
		return WEFT_ENOMEM;
	}
	memset(whole, 0, sizeof(*whole));
	whole->features = imb_get_feature_flags();
	whole->used_arch = IMB_ARCH_AVX512;
	enum weft_err err = WEFT_ENOTSUP;
	if (imb_set_pointers_mb_mgr(whole, 0, 0) == whole && whole->get_next_burst != NULL &&
		whole->submit_burst_nocheck != NULL && whole->gcm256_pre != NULL) {
		memcpy(out, whole, MANAGER_HEAD_LEN);
		err = WEFT_OK;
	}
	free(whole);
	return err;
}

/* 100 bytes of zeros under the key 00 01 .. 1f with counter 1: the tags that libcrypto computes.
 * They cover the ciphertext, and the comparison on opening covers it again. */
static bool
is_known_answer_right(struct engine *e, enum aead_cipher cipher)
{
	static const uint8_t tags[AEAD_CIPHER_COUNT][AEAD_TAG_LEN] = {
		[AEAD_CIPHER_CHACHA20_POLY1305] = {0x9f, 0x83, 0xd8, 0xfb, 0x62, 0x6b, 0xa6, 0xef,
			0x08, 0xdd, 0x41, 0xe0, 0x47, 0x8d, 0x8c, 0xf7},
		[AEAD_CIPHER_AES_256_GCM] = {0x68, 0xa1, 0x60, 0x42, 0x00, 0x6b, 0x45, 0xa2, 0x99,
			0x11, 0xa9, 0xc1, 0xc0, 0x51, 0xe6, 0x6a},
	};
	uint8_t packet[100 + AEAD_TAG_LEN] = {0};
	struct aead_key key = {.cipher = cipher};
	struct aead_op op = {.data = packet, .len = 100, .counter = 1};
	for (size_t i = 0; i < AEAD_KEY_LEN; i++) {
		key.bytes[i] = (uint8_t)i;
	}
	ipsec_mb_seal(&e->base, &key, &op, 1);
	return memcmp(packet + 100, tags[cipher], AEAD_TAG_LEN) == 0 &&
	       ipsec_mb_open(&e->base, &key, &op, 1) == 1 && secret_is_zero(packet, 100);
}

bool
aead_ipsec_mb_is_preferred(void)
{
	/* With AVX2 alone its Poly1305 is scalar: 980 ns for 1420 bytes where libcrypto takes
	 * 915. AVX-512 without IFMA was not measured. */
	const uint64_t needs = IMB_FEATURE_AVX512_SKX | IMB_FEATURE_AVX512_IFMA;
	return (imb_get_feature_flags() & needs) == needs;
}

enum weft_err
aead_ipsec_mb_new(struct aead **out)
{
	/* manager_head() works on the manager's fields, so the library must be the one that the
	 * header is of. */
	if (imb_get_version() != IMB_VERSION_NUM ||
		(imb_get_feature_flags() & IMB_CPUFLAGS_AVX512) != IMB_CPUFLAGS_AVX512) {
		return WEFT_ENOTSUP;
	}
	uint8_t head[MANAGER_HEAD_LEN];
	enum weft_err err = manager_head(head);
	if (err != WEFT_OK) {
		return err;
	}
	struct engine *e = aligned_alloc(_Alignof(struct engine), sizeof(*e));
	if (e == NULL) {
		return WEFT_ENOMEM;
	}
	memset(e, 0, sizeof(*e)); /* the first 4 bytes of nonces stay zero */
	memcpy(&e->mgr, head, sizeof(head));
	e->base.ops = &ipsec_mb_ops;
	e->mgr.earliest_job = -1; /* an empty queue */
	e->mgr.next_job = 0;
	if (!is_known_answer_right(e, AEAD_CIPHER_CHACHA20_POLY1305) ||
		!is_known_answer_right(e, AEAD_CIPHER_AES_256_GCM)) {
		free(e);
		return WEFT_ENOTSUP;
	}
	ipsec_mb_forget(&e->base);
	*out = &e->base;
	return WEFT_OK;
}
