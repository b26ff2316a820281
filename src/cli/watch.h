/* SPDX-License-Identifier: Apache-2.0 */
/* weft status --watch: samples of devices, a second apart, and what is drawn of them. */
#ifndef WEFT_CLI_WATCH_H
#define WEFT_CLI_WATCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mono.h"
#include "cli/device.h"
#include "pkt/drop.h"

#define WATCH_SAMPLES 60      /* a minute */
#define WATCH_DROP_SAMPLES 10 /* drops older than so many are no news */
#define WATCH_KEY_MAX 48      /* a public key in base64, with its NUL */

/* Bytes in and out as rates, in bit/s; the newest is the last of n. */
struct watch_flow {
	uint64_t in_bytes, out_bytes;
	float in[WATCH_SAMPLES], out[WATCH_SAMPLES];
	size_t n;
};

struct watch_peer {
	char key[WATCH_KEY_MAX];
	struct watch_flow flow;
	uint64_t received, lost;
	double loss;        /* of what came in since the sample before */
	const json_t *json; /* in the device's status */
};

/* Zero-initialised, but for the name, it has seen nothing. */
struct watch_device {
	char name[CLI_DEVICE_NAME_MAX];
	json_t *status; /* the last; NULL: it does not answer */
	struct mono at; /* when it came */
	struct watch_flow flow;
	struct watch_peer *peers; /* in the order of the status */
	size_t peers_n;
	uint64_t drops[WATCH_DROP_SAMPLES + 1][DROP_COUNT]; /* the newest is the last of drops_n */
	size_t drops_n;
};

/* --- watch_sample.c --- */
/* Takes a status over, or NULL: it does not answer. False: no memory. */
bool watch_feed(struct watch_device *d, json_t *status, struct mono now);
/* How many were dropped for a reason in the last WATCH_DROP_SAMPLES samples. */
uint64_t watch_drops(const struct watch_device *d, enum drop_reason reason);
void watch_device_fini(struct watch_device *d);
/* The newest; 0 before there are two samples. */
double watch_flow_in(const struct watch_flow *f);
double watch_flow_out(const struct watch_flow *f);

/* --- watch_view.c --- */
struct screen;
/* All devices, each with its share of the rows left. */
void watch_draw(struct screen *s, const struct watch_device *devices, size_t n);

/* --- watch.c --- */
/* NULL: every device there is. Returns an exit status. */
int watch_run(const char *name);

#endif
