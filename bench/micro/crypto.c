/* SPDX-License-Identifier: Apache-2.0 */
/* Sealing and opening of packets under one key, alone and in batches of one super-frame. */
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "crypto/aead.h"

#define PACKETS 90 /* worked on in turn: 130 KB of the longest, which the L2 cache holds */
#define BATCH 45   /* what a super-frame of 64 KB makes */
#define SLOT 1472

static const uint32_t sizes[] = {64, 256, 1280, 1420};

struct crypto_work {
	struct aead *aead;
	struct aead_key key;
	const char *cipher_name;
	uint8_t *memory;
	struct aead_op ops[PACKETS];
	size_t batch;
	size_t right; /* packets opened */
	uint64_t counter;
};

static void
seal_all(void *ctx)
{
	struct crypto_work *w = ctx;
	for (size_t i = 0; i < PACKETS; i++) {
		w->ops[i].counter = w->counter++;
	}
	for (size_t i = 0; i < PACKETS; i += w->batch) {
		aead_seal(w->aead, &w->key, w->ops + i, w->batch);
	}
}

static void
open_all(void *ctx)
{
	struct crypto_work *w = ctx;
	w->right = 0;
	for (size_t i = 0; i < PACKETS; i += w->batch) {
		w->right += aead_open(w->aead, &w->key, w->ops + i, w->batch);
	}
}

static void
nothing(void *ctx)
{
	(void)ctx;
}

static void
run_one(struct bench *b, struct crypto_work *w, uint32_t size)
{
	static const struct bench_steps seal = {nothing, seal_all}, open = {seal_all, open_all};
	char series[64], seal_plot[48], open_plot[48];
	struct bench_label l = {
		.series = series, .x_name = "bytes a packet", .x = size, .unit = "ns/packet"};
	for (size_t i = 0; i < PACKETS; i++) {
		w->ops[i] = (struct aead_op){.data = w->memory + i * SLOT, .len = size};
	}
	snprintf(series, sizeof(series), "%s, batch of %zu", aead_backend_name(w->aead), w->batch);
	snprintf(seal_plot, sizeof(seal_plot), "seal, %s", w->cipher_name);
	snprintf(open_plot, sizeof(open_plot), "open, %s", w->cipher_name);
	l.plot = seal_plot;
	bench_time_steps(b, &l, &seal, w, PACKETS);
	bench_use(b, w->ops[PACKETS - 1].data[size]);
	l.plot = open_plot;
	bench_time_steps(b, &l, &open, w, PACKETS);
	if (w->right != PACKETS) {
		bench_fail(b, "%s opened %zu of %d packets", series, w->right, PACKETS);
	}
}

static void
run_backend(struct bench *b, enum aead_backend backend, const char *name, struct crypto_work *w)
{
	static const size_t batches[] = {1, BATCH};
	enum weft_err e = aead_new(backend, &w->aead);
	if (e) {
		bench_note(b, "without %s: %s", name, weft_err_text(e));
		return;
	}
	for (size_t k = 0; k < WEFT_ARRAY_LEN(batches); k++) {
		w->batch = batches[k];
		for (size_t i = 0; i < WEFT_ARRAY_LEN(sizes); i++) {
			run_one(b, w, sizes[i]);
		}
	}
	aead_free(w->aead);
}

static void
run_cipher(struct bench *b, enum aead_cipher cipher, const char *name, struct crypto_work *w)
{
	uint8_t key[AEAD_KEY_LEN];
	struct rng rng;
	rng_init(&rng, 1);
	rng_fill(&rng, key, sizeof(key));
	rng_fill(&rng, w->memory, PACKETS * SLOT);
	aead_key_init(&w->key, cipher, key);
	w->cipher_name = name;
	run_backend(b, AEAD_BACKEND_LIBCRYPTO, "libcrypto", w);
	run_backend(b, AEAD_BACKEND_IPSEC_MB, "ipsec-mb", w);
	aead_key_fini(&w->key);
}

void
bench_crypto(struct bench *b)
{
	struct crypto_work w = {.memory = malloc(PACKETS * SLOT)};
	if (!w.memory) {
		bench_fail(b, "out of memory");
		return;
	}
	run_cipher(b, AEAD_CIPHER_CHACHA20_POLY1305, "ChaCha20-Poly1305", &w);
	run_cipher(b, AEAD_CIPHER_AES_256_GCM, "AES-256-GCM", &w);
	if (!aead_has_fast_aes()) {
		bench_note(b, "this CPU has no instructions for AES-GCM");
	}
	free(w.memory);
}
