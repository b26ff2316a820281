/* SPDX-License-Identifier: Apache-2.0 */
/* Agreement with one peer on weft's extensions, by HELLO frames (docs/protocol.md, section 5.1).
 *
 * Owns, for each of the last sessions, what was asked, answered and agreed in it, and for the
 * peer, whether it is worth asking. Knows nothing of keys and packets: a session is a number that
 * the caller never uses twice (0 is none), and a HELLO is a struct that the caller seals and
 * opens. An agreement is its session's: a new one begins without, whatever held before.
 *
 * No I/O, no clock, no randomness, no locks. After every call that is given the time,
 * wg_hello_take() may have something, and wg_hello_deadline() may have changed. */
#ifndef WEFT_WG_HELLO_H
#define WEFT_WG_HELLO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mono.h"
#include "wire/ext.h"

/* As many as a peer has that can carry packets: previous, current, next. */
#define WG_HELLO_SESSIONS 3
/* Requests a session to a peer that was never heard: a stranger. */
#define WG_HELLO_STRANGER_TRIES 3
#define WG_HELLO_SILENCE_NS (3600 * WEFT_NS_PER_S)
/* Sessions in a row in which a stranger may be silent while packets of its own get lost. Without
 * loss one will do. */
#define WG_HELLO_PATIENCE 3
/* Requests in a row to a peer that was heard before, until its silence is taken for ignorance after
 * all. At a loss of a half so many fail by chance once in 10^8. */
#define WG_HELLO_UNANSWERED_MAX 64
#define WG_HELLO_ANSWERS_MAX 100 /* a session: more than anybody asks */
#define WG_HELLO_REMEMBERED 8    /* requests whose answers count, the last ones of a session */
/* A responder that nobody asked. A known peer sends four requests in a second: it may have been
 * told to be silent towards us, or take us for stock, so it is asked in turn. A stranger's last
 * request leaves at 1 s, and is given up at 3 s. */
#define WG_HELLO_OVERDUE_NS WEFT_NS_PER_S
#define WG_HELLO_UNASKED_NS (4 * WEFT_NS_PER_S)

/* Of one session. */
enum wg_hello_state {
	WG_HELLO_STATE_UNKNOWN, /* nothing said: the other side is the one to ask */
	WG_HELLO_STATE_ASKING,  /* requests are under way */
	WG_HELLO_STATE_AGREED,
	WG_HELLO_STATE_STOCK, /* was silent, did not ask, speaks no version of ours, or is not asked
				 again yet */
	WG_HELLO_STATE_OFF,   /* by configuration */
	WG_HELLO_STATE_COUNT
};
const char *wg_hello_state_name(enum wg_hello_state s); /* "agreed" */

struct wg_hello_config {
	bool is_off;           /* Extensions = off: neither asks nor answers */
	uint8_t ciphers;       /* bits of WIRE_EXT_CIPHER_: opened and wanted */
	uint32_t features;     /* bits of WIRE_EXT_FEATURE_ */
	uint16_t datagram_max; /* as in struct wire_ext_hello */
	const char *name;      /* copied; cut to fit, what is not printable becomes '-'; or NULL */
};

/* What holds in a session. */
struct wg_hello_terms {
	uint8_t version;
	uint8_t cipher;        /* the bit of WIRE_EXT_CIPHER_ to seal with */
	uint16_t datagram_max; /* of the peer; 0 = not said */
	uint32_t features;     /* that both have */
	int64_t rtt_ns;        /* of the exchange; 0 = unknown: only who asked learns it */
	int64_t clock_diff_us; /* the peer's clock less ours, -2^31..2^31 - 1; 0 without rtt_ns */
	char name[WIRE_EXT_NAME_MAX + 1]; /* of the peer */
};

/* The fields are wg/hello.c's own. */
struct wg_hello_slot {
	uint64_t session; /* 0 = free */
	enum wg_hello_state state;
	bool is_initiator;
	bool is_presumed; /* ASKING, AGREED: terms are what frames of its gave away, no HELLO */
	bool has_data, has_data_in; /* since the last request: either way, towards us */
	uint8_t tries, answers, sent_n;
	uint8_t ciphers; /* offered in this session, and so */
	uint32_t features;
	struct mono due;                       /* the next try, or the end of trying or waiting */
	struct mono wanted;                    /* since when a HELLO is to be sent; or MONO_NEVER */
	int64_t gap_ns;                        /* to the next try of a known peer; 0 = none yet */
	struct mono sent[WG_HELLO_REMEMBERED]; /* requests, as a ring; MONO_NEVER = none */
	uint64_t in_n, in_end;       /* messages received, and the highest counter + 1 of them */
	struct mono arrived;         /* the request to be answered, ... */
	uint32_t echo_us;            /* ... and its clock */
	struct wg_hello_terms terms; /* AGREED */
};

struct wg_hello {
	struct wg_hello_slot slots[WG_HELLO_SESSIONS]; /* the newest first */
	bool is_off;
	uint8_t ciphers;
	uint16_t datagram_max;
	uint32_t features;
	bool is_known;         /* it was heard, and has not been silent for too long since */
	uint8_t unanswered;    /* requests since it was heard last, while it was there */
	uint8_t patience;      /* silent sessions until a stranger is stock, 1..WG_HELLO_PATIENCE */
	struct mono ask_after; /* taken for stock until then; 0 = never */
	uint8_t name_len;
	char name[WIRE_EXT_NAME_MAX];
};

void wg_hello_init(struct wg_hello *h, const struct wg_hello_config *c);
/* is_off takes effect at once: an agreement ends, or the newest session is asked if it is ours.
 * The rest is offered from the next session on. */
void wg_hello_configure(struct wg_hello *h, struct mono now, const struct wg_hello_config *c);

/* A session can be used: the initiator has the response, or the responder has opened a first
 * message. The second call for a session changes nothing. */
void wg_hello_session(struct wg_hello *h, struct mono now, uint64_t session, bool is_initiator);
/* An extension frame has passed tag and window: a HELLO, or with NULL a REPAIR or FEEDBACK, of
 * which only those in sessions without agreement need to be told. True: the session has just
 * become agreed. */
bool wg_hello_frame_in(
	struct wg_hello *h, struct mono now, uint64_t session, const struct wire_ext_hello *hello);
/* Nothing is agreed in the newest session, and need not be expected soon: what an agreement is for
 * may be let go of. */
bool wg_hello_is_silent(const struct wg_hello *h);
/* Does it want to be told of what arrives in that session? */
bool wg_hello_is_asking(const struct wg_hello *h, uint64_t session);
/* Packets left in that session, or messages arrived: known peers are asked again and again, but
 * only while the session is in use. True: wg_hello_deadline() is now. */
struct wg_hello_arrival {
	uint32_t n;    /* messages of any kind */
	uint64_t end;  /* the highest of their counters + 1 */
	bool has_data; /* packets are among them */
};
bool wg_hello_sent(struct wg_hello *h, struct mono now, uint64_t session);
bool wg_hello_received(
	struct wg_hello *h, struct mono now, uint64_t session, const struct wg_hello_arrival *in);
void wg_hello_tick(struct wg_hello *h, struct mono now);
/* When wg_hello_tick() or wg_hello_take() has something to do; MONO_NEVER for never. */
struct mono wg_hello_deadline(const struct wg_hello *h);

/* A HELLO to be sent now, in that session. Before it is sent, what its `ciphers` offer must be
 * allowed to the other side. To be called until it is false. */
bool wg_hello_take(
	struct wg_hello *h, struct mono now, uint64_t *session, struct wire_ext_hello *out);

/* Of the sessions that it was told of, the last. */
bool wg_hello_is_newest(const struct wg_hello *h, uint64_t session);
/* Is there an agreement in that session? out may be NULL. */
bool wg_hello_agreed(const struct wg_hello *h, uint64_t session, struct wg_hello_terms *out);
/* For people. UNKNOWN for a session that is not remembered; session 0: of the newest. */
enum wg_hello_state wg_hello_state(const struct wg_hello *h, uint64_t session);

#endif
