/* SPDX-License-Identifier: Apache-2.0 */
/* A few devices joined by a network under virtual time, for tests of the engine.
 *
 * Sides share one clock. What they send waits in flight for the delay and then arrives, unless
 * the test took it out. Data packets are sealed and opened as the node does it. */
#ifndef WEFT_TEST_WG_WORLD_H
#define WEFT_TEST_WG_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "crypto/aead.h"
#include "wg/device.h"
#include "wire/wg.h"

#define WORLD_SIDES_MAX 4
#define WORLD_EVENTS_MAX 64
#define WORLD_FLIGHT_MAX 4096
#define WORLD_DATAGRAM_MAX 1600

struct world_datagram {
	struct endpoint from, to;
	size_t len;
	int64_t due_ns;
	uint64_t seq;
	uint8_t bytes[WORLD_DATAGRAM_MAX];
};

struct world_side {
	struct wg_device *device;
	struct endpoint at;   /* where it is reached; a test moves a side by changing it */
	int64_t wall_skew_ns; /* its wall clock less the world's */
	uint8_t public_key[32];
	uint8_t private_key[32];
	struct drop_counts drops;
	uint64_t events[8];  /* counted by kind */
	uint64_t values[8];  /* the last value of each kind */
	uint64_t delivered;  /* data packets with content */
	uint64_t keepalives; /* data packets without */
	uint64_t sent[5];    /* datagrams by type */
	char last[64];       /* content of the last data packet, as text */
	bool is_deaf;        /* loses whatever arrives */
};

struct world {
	struct world_side sides[WORLD_SIDES_MAX];
	size_t n;
	struct mono now;
	int64_t wall_ns; /* at mono 0 */
	int64_t delay_ns;
	struct rng rng;
	struct aead *aead;
	struct world_datagram *flight[WORLD_FLIGHT_MAX];
	size_t flight_n;
	uint64_t seq;
	struct wg_out out;
	struct wg_msg msgs[8];
	struct wg_event events[16];
	/* Every datagram that is about to arrive; false loses it. NULL: all arrive. */
	bool (*filter)(struct world *w, struct world_datagram *g);
	void *filter_ctx;
};

/* n sides with keys and endpoints, none knows another. 10.0.0.i is side i's inner address. */
void world_init(struct world *w, size_t n, uint64_t seed);
void world_fini(struct world *w);
struct entropy world_entropy(struct world *w);
/* A fresh device for side i with its key, as after a restart. */
void world_restart(struct world *w, size_t i, uint64_t stamp_s);
/* Makes `other` a peer of side i: key, AllowedIPs 10.0.0.other/32, endpoint if asked. */
struct wg_peer *world_meet(struct world *w, size_t i, size_t other, bool with_endpoint);
/* The peer for side `other` at side i. */
struct wg_peer *world_peer(struct world *w, size_t i, size_t other);
struct wg_peer_info world_info(struct world *w, size_t i, size_t other);

struct wg_time world_time(const struct world *w, size_t i);
/* Lets time pass; everything due happens in its order. */
void world_run_ns(struct world *w, int64_t ns);
void world_run_s(struct world *w, double seconds);
/* Side i has a packet with this text for side other: sealed and sent, or staged. */
void world_send(struct world *w, size_t i, size_t other, const char *text);
/* A handshake between both and one packet each way. Fails the test when they do not get
 * through. */
void world_connect(struct world *w, size_t i, size_t other);
/* Two sides, connected by side 0, and quiet. */
void world_init_connected(struct world *w, uint64_t seed);
/* Sent by a side. */
uint64_t world_initiations(const struct world *w, size_t i);
/* Hands a datagram to side i as if it came from there. */
void world_arrive(
	struct world *w, size_t i, const struct endpoint *from, const uint8_t *data, size_t len);
/* Has side i do what its out now asks for. Needed after calls made by the test itself. */
void world_flush(struct world *w, size_t i);
uint64_t world_drops(const struct world *w, size_t i, enum drop_reason r);
/* Address 192.0.2.host and a port. */
struct endpoint world_endpoint(uint8_t host, uint16_t port);

#endif
