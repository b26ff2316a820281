/* SPDX-License-Identifier: Apache-2.0 */
/* What went wrong lately, with whom, and when: the particulars that counters do not have.
 *
 * A table of WG_TROUBLES_MAX places, for the explanations of `weft why` alone; nothing is decided
 * by it. Who writes what outsiders send cannot fill it: a kind has WG_TROUBLES_OF_KIND places,
 * and the one that was quiet for longest gives way. Free of locks; the engine has one that its
 * [excl] calls write, the node another. */
#ifndef WEFT_WG_TROUBLE_H
#define WEFT_WG_TROUBLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/mono.h"

#define WG_TROUBLES_MAX 64
#define WG_TROUBLES_OF_KIND 12

enum wg_trouble_kind {
	/* The engine's. */
	WG_TROUBLE_STRANGER, /* key: of an initiation, of no peer; at: whence */
	WG_TROUBLE_MAC1,     /* at: whence a handshake message for another key than ours came */
	WG_TROUBLE_STALE,    /* key: peer; at: whence an initiation with an old timestamp came */
	WG_TROUBLE_RESPONSE, /* key: peer; at: whence a response came that does not authenticate */
	WG_TROUBLE_MOVE,     /* key: peer; at: where it came to be */
	WG_TROUBLE_COOKIE,   /* key: peer, who is under load and asks for a cookie */
	/* The node's. */
	WG_TROUBLE_SEND,   /* at: where a send failed; errnum */
	WG_TROUBLE_SOURCE, /* key: peer; at.addr: source that is not in its AllowedIPs */
	WG_TROUBLE_ROUTE,  /* at.addr: destination in nobody's AllowedIPs */
	WG_TROUBLE_LOOP,   /* at: of the peer whose outer packets came to our interface */
};

struct wg_trouble {
	enum wg_trouble_kind kind;
	uint8_t key[32]; /* zeros: none */
	struct endpoint at;
	int errnum;
	/* Of the table. */
	struct mono first, latest;
	uint64_t n;
};

struct wg_troubles {
	struct wg_trouble v[WG_TROUBLES_MAX];
	size_t n;
};

/* The same kind, key, remote and errnum are one entry. */
void wg_troubles_note(struct wg_troubles *t, const struct wg_trouble *what, struct mono now);

#endif
