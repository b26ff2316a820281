/* SPDX-License-Identifier: Apache-2.0 */
/* The machine behind wg/hello.h, of one session of a peer. Only wg/hello.c and wg/hello_step.c
 * include this. */
#ifndef WEFT_WG_HELLO_STEP_H
#define WEFT_WG_HELLO_STEP_H

#include "wg/hello.h"

/* Versions of the extension frames that we speak. */
#define WG_HELLO_VERSION_MIN 1
#define WG_HELLO_VERSION_MAX WIRE_EXT_VERSION

enum wg_hello_event {
	WG_HELLO_EVENT_BEGAN_OURS,   /* as initiator */
	WG_HELLO_EVENT_BEGAN_THEIRS, /* as responder */
	WG_HELLO_EVENT_TIMER,
	WG_HELLO_EVENT_REQUEST,
	WG_HELLO_EVENT_ANSWER,  /* to a request of this session */
	WG_HELLO_EVENT_FOREIGN, /* either of these, of no version that we speak */
	WG_HELLO_EVENT_FRAME,   /* another extension frame */
	WG_HELLO_EVENT_DATA,    /* packets pass, either way */
	WG_HELLO_EVENT_OFF,
	WG_HELLO_EVENT_ON,
};

/* in: of a REQUEST or an ANSWER. */
void wg_hello_step(struct wg_hello *h, struct wg_hello_slot *s, enum wg_hello_event e,
	struct mono now, const struct wire_ext_hello *in);
/* Nothing is due in it. */
void wg_hello_enter(struct wg_hello_slot *s, enum wg_hello_state state);
/* The session is forgotten. */
void wg_hello_abandon(struct wg_hello *h, const struct wg_hello_slot *s, struct mono now);
bool wg_hello_slot_is_agreed(const struct wg_hello_slot *s);
/* When the request was sent that `in` answers; MONO_NEVER when it is an answer to nothing. */
struct mono wg_hello_request_of(const struct wg_hello_slot *s, const struct wire_ext_hello *in);
/* As HELLO tells it. */
uint32_t wg_hello_clock_us(struct mono t);

#endif
