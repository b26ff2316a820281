/* SPDX-License-Identifier: Apache-2.0 */
/* weft status --watch: samples of devices, a second apart, what is made of them, and the picture.
 */
#ifndef WEFT_CLI_WATCH_H
#define WEFT_CLI_WATCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/device.h"
#include "pkt/drop.h"

#define WATCH_EVERY_MS 1000
#define WATCH_SAMPLES 60      /* a minute */
#define WATCH_DROP_SAMPLES 10 /* drops older than so many are no news */
#define WATCH_KEY_MAX 48      /* a public key in base64, with its NUL */
#define WATCH_NAME_MAX 64
#define WATCH_EVENTS_MAX 32
#define WATCH_EVENT_TEXT_MAX 256

/* Rates in and out, in bit/s; the newest is the last of n. */
struct watch_flow {
	float in[WATCH_SAMPLES], out[WATCH_SAMPLES];
	size_t n;
};

struct watch_peer {
	char key[WATCH_KEY_MAX];
	char name[WATCH_NAME_MAX]; /* empty: none */
	struct watch_flow flow;
	uint64_t received, lost;
	double loss;    /* of what came in since the sample before */
	char *text;     /* its last line: of many peers few are drawn */
	uint64_t round; /* of the last sample that it was in */
};

/* Zero-initialised, but for the name, it has seen nothing. */
struct watch_device {
	char name[CLI_DEVICE_NAME_MAX];
	json_t *status; /* the device's line of the last whole sample; NULL: there is none */
	json_t *coming; /* that of the sample under way */
	uint64_t round; /* of that */
	struct watch_flow flow;
	struct watch_peer *peers;
	size_t peers_n, peers_cap;
	uint32_t *index; /* of the peers by key: place + 1, 0 = none */
	size_t index_n;  /* a power of two, twice the peers at least */
	uint64_t drops[WATCH_DROP_SAMPLES + 1][DROP_COUNT]; /* the newest is the last of drops_n */
	size_t drops_n;
};

struct watch_event {
	char clock[12], device[CLI_DEVICE_NAME_MAX];
	char text[WATCH_EVENT_TEXT_MAX];
	bool is_bad;
};

/* The last events of all devices; zero-initialised, none. */
struct watch_events {
	struct watch_event v[WATCH_EVENTS_MAX];
	size_t first, n;
};

enum watch_step {
	WATCH_STEP_MORE,      /* the sample goes on */
	WATCH_STEP_WHOLE,     /* its last line */
	WATCH_STEP_NO_MEMORY, /* what there is may be old */
};

/* --- watch_sample.c --- */
/* A line of a sample, also as text. */
enum watch_step watch_feed(struct watch_device *d, const json_t *o, const char *text);
/* The device has ended. */
void watch_forget(struct watch_device *d);
/* How many were dropped for a reason in the last WATCH_DROP_SAMPLES samples. */
uint64_t watch_drops(const struct watch_device *d, enum drop_reason reason);
/* The newest; 0 before there are two samples. */
double watch_flow_in(const struct watch_flow *f);
double watch_flow_out(const struct watch_flow *f);
/* Both directions over the last ten samples, so that the order of peers is calm. */
double watch_flow_lately(const struct watch_flow *f);
void watch_note(struct watch_events *e, const char *device, const json_t *event);
/* 0: the latest. */
const struct watch_event *watch_event_at(const struct watch_events *e, size_t back);

/* --- watch_view.c --- */
struct screen;
/* All devices, each with its share of the rows, and the last events at the bottom. */
void watch_draw(struct screen *s, const struct watch_device *const *devices, size_t n,
	const struct watch_events *events);

/* --- watch.c --- */
/* NULL: every device there is. Returns an exit status. */
int watch_run(const char *name);

#endif
