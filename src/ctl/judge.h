/* SPDX-License-Identifier: Apache-2.0 */
/* Why does traffic not flow? Facts in, findings out, the most probable cause first.
 *
 * Free of I/O and clocks: whoever gathers the facts (ctl/why.c) says what the time is. Old troubles
 * are no causes: what went wrong before the peer was last heard from has healed. */
#ifndef WEFT_CTL_JUDGE_H
#define WEFT_CTL_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/compiler.h"
#include "base/mono.h"
#include "node/ally.h"
#include "node/keeper.h"
#include "pkt/drop_times.h"
#include "wg/device.h"
#include "wg/trouble.h"

#define JUDGE_WHO_MAX 96
#define JUDGE_DEVICE_MAX 16
#define JUDGE_ROUTES_MAX 8
#define JUDGE_SOURCES_MAX 4

/* What the kernel would do with a packet. */
struct judge_route {
	struct ip_addr to;
	struct ip_prefix prefix; /* of AllowedIPs, that `to` stands for; family NONE: `to` itself */
	bool is_there;
	bool is_ours;               /* it leaves by our interface */
	bool is_local;              /* it is an address of this machine */
	char dev[JUDGE_DEVICE_MAX]; /* by which it leaves */
	uint32_t mtu;               /* of the path as far as the kernel knows; 0 = unknown */
};

/* Packets came from a peer with a source that is not its. */
struct judge_source {
	struct ip_addr addr;
	char owner[JUDGE_WHO_MAX]; /* the peer whose it is; empty: nobody's */
	struct mono latest;
};

struct judge_facts {
	struct mono now;

	/* The device. */
	char device[JUDGE_DEVICE_MAX];
	bool has_key, is_up;
	bool has_address;                 /* any, of the family that is asked for */
	struct ip_prefix missing_address; /* of the file, not on the interface; or family NONE */
	bool is_table_off;                /* the file asks for no routes */
	uint16_t mtu;
	struct drop_times drops;
	struct wg_troubles troubles[2];

	/* The address that was asked for; family NONE: a peer was. */
	struct ip_addr address;
	bool is_own; /* an address of this machine */
	struct ip_prefix match;
	char near[JUDGE_WHO_MAX]; /* without has_peer: who has the closest prefix; or empty */
	struct ip_prefix near_prefix;
	/* Another one that has the address, in a shorter prefix; or that was expected. */
	char other[JUDGE_WHO_MAX];
	struct ip_prefix other_prefix; /* family NONE: none of its prefixes has it */
	bool is_other_expected;

	/* The peer; all below is valid with has_peer. */
	bool has_peer;
	char who[JUDGE_WHO_MAX];
	struct wg_peer_info info;
	struct wg_peer_trail trail;
	bool can_send;
	struct ally_info ally;
	size_t allowed_n;
	struct ip_prefix taken; /* the file gives it to this peer, and to taken_by, who got it */
	char taken_by[JUDGE_WHO_MAX];
	bool has_name;
	struct keeper_name name;
	struct judge_route inner[JUDGE_ROUTES_MAX]; /* to what is behind the peer */
	size_t inner_n;
	bool has_outer; /* it has an endpoint, and the kernel was asked */
	struct judge_route outer;
	struct judge_source sources[JUDGE_SOURCES_MAX];
	size_t sources_n;
	/* The client has sent a datagram to the endpoint; 0: nothing came back. */
	bool is_probed;
	int probe_errnum;
};

enum judge_severity {
	JUDGE_SEVERITY_FAULT, /* nothing flows because of it */
	JUDGE_SEVERITY_LOSS,  /* some packets are lost, or slowed, by it */
	JUDGE_SEVERITY_NOTE,  /* worth knowing; of this peer or not */
	JUDGE_SEVERITY_COUNT
};
const char *judge_severity_name(enum judge_severity s); /* "fault" */

#define JUDGE_CODE_MAX 32
#define JUDGE_TEXT_MAX 400
#define JUDGE_ADVICE_MAX 600
#define JUDGE_EVIDENCE_MAX 4
#define JUDGE_LINE_MAX 200

struct judge_finding {
	char code[JUDGE_CODE_MAX]; /* stable: the manual has them */
	enum judge_severity severity;
	char text[JUDGE_TEXT_MAX];     /* what is wrong */
	char advice[JUDGE_ADVICE_MAX]; /* what to do about it */
	char evidence[JUDGE_EVIDENCE_MAX][JUDGE_LINE_MAX];
	size_t evidence_n;
};

#define JUDGE_FINDINGS_MAX 24

struct judge_verdict {
	bool flows; /* a session is in use, and nothing was found that takes packets away */
	char summary[JUDGE_TEXT_MAX];
	char evidence[JUDGE_EVIDENCE_MAX][JUDGE_LINE_MAX]; /* that all is well */
	size_t evidence_n;
	struct judge_finding findings[JUDGE_FINDINGS_MAX];
	size_t n;
};

void judge(const struct judge_facts *f, struct judge_verdict *out);
/* Would an error of a probe datagram say more? */
bool judge_wants_probe(const struct judge_facts *f);

/* "3 s", "4 min", "2 h"; "never" for at 0. */
#define JUDGE_AGE_MAX 24
char *judge_age(struct mono now, struct mono at, char out[JUDGE_AGE_MAX]);

/* --- for judge_peer.c --- */
/* NULL when there is no room; the calls below take that. */
WEFT_PRINTF(4, 5)
struct judge_finding *judge_add(struct judge_verdict *v, const char *code,
	enum judge_severity severity, const char *fmt, ...);
WEFT_PRINTF(2, 3) void judge_advise(struct judge_finding *f, const char *fmt, ...);
WEFT_PRINTF(2, 3) void judge_show(struct judge_finding *f, const char *fmt, ...);
bool judge_is_lately(struct mono now, struct mono at, int64_t window_ns);
/* The latest trouble of a kind with the peer's key, or at its endpoint; NULL: none in the window.
 * Other machines may share the address with it, but not the port. */
const struct wg_trouble *judge_trouble_of_key(
	const struct judge_facts *f, enum wg_trouble_kind kind, int64_t window_ns);
const struct wg_trouble *judge_trouble_at(
	const struct judge_facts *f, enum wg_trouble_kind kind, int64_t window_ns);
/* The rules of peer and path. */
void judge_peer(const struct judge_facts *f, struct judge_verdict *v);

/* --- the table of drops, ctl/judge_drop.c --- */
struct judge_drop {
	const char *meaning; /* for people: a sentence without its end */
	const char *advice;
	bool is_loss;     /* of whatever passes the device, so of this peer, too */
	const char *code; /* of the finding that tells more, when there is one; else NULL */
};
const struct judge_drop *judge_drop_of(enum drop_reason r);

#endif
