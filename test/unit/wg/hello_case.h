/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of HELLO begin with, and what a side that speaks with the one under test does. */
#ifndef WEFT_TEST_UNIT_WG_HELLO_CASE_H
#define WEFT_TEST_UNIT_WG_HELLO_CASE_H

#include <stdbool.h>
#include <stdint.h>

#include "wg/hello.h"

#define S WEFT_NS_PER_S
#define MS WEFT_NS_PER_MS
#define US WEFT_NS_PER_US
#define HOUR (3600 * S)
#define T0 (1000 * S)

#define CHACHA WIRE_EXT_CIPHER_CHACHA20_POLY1305
#define AES WIRE_EXT_CIPHER_AES_256_GCM
#define FEC WIRE_EXT_FEATURE_FEC

#define UNKN WG_HELLO_STATE_UNKNOWN
#define ASKS WG_HELLO_STATE_ASKING
#define AGRD WG_HELLO_STATE_AGREED
#define STCK WG_HELLO_STATE_STOCK
#define NONE WG_HELLO_STATE_OFF

enum sends {
	NOTHING,
	A_REQUEST,
	AN_ANSWER,
};

struct asked {
	int64_t last, end; /* request, and when it was given up */
	unsigned requests;
};

extern const struct wg_hello_config case_here;

static inline struct mono
at(int64_t ns)
{
	return (struct mono){ns};
}

struct wire_ext_hello case_hello(bool is_answer, uint32_t echo_us);
void case_takes_request(struct wg_hello *h, int64_t now, uint64_t session);
void case_takes_nothing(struct wg_hello *h, int64_t now);
/* An answer to the request that left in that session at `sent`. */
bool case_answered(struct wg_hello *h, int64_t now, uint64_t session, int64_t sent);
void case_begin(struct wg_hello *h, int64_t now);
/* A packet of the peer's arrives, of that counter less 1. */
void case_arrive(struct wg_hello *h, int64_t now, uint64_t session, uint64_t end);
/* Lets the asking of a session end, with packets arriving all the time. */
struct asked case_run_until_given_up(struct wg_hello *h, uint64_t session);
/* The peer was heard in an earlier session. */
void case_become_known(struct wg_hello *h, int64_t now);
void case_begin_known(struct wg_hello *h, int64_t now);
enum sends case_take(struct wg_hello *h, int64_t now);

#endif
