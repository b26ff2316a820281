/* SPDX-License-Identifier: Apache-2.0 */
/* What a steward has and does, in whichever process. Each step is taken once and in order, whoever
 * asks for it; a file is read only where root alone can have written it. */
#ifndef WEFT_QUICK_OFFICE_H
#define WEFT_QUICK_OFFICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "quick/around.h"
#include "wire/steward.h"

struct conf;
struct conf_state;

#define OFFICE_SOCKETS 2

struct office_config {
	const char *name; /* of the interface */
	const char *path; /* of the configuration, absolute; "" = none */
	/* Of the device, in the order in which they are removed: at the taking down, at the end. */
	const char *sockets[OFFICE_SOCKETS];
	const struct log *log;
	bool is_foreground;
	struct conf *conf; /* as at the start; NULL = none. Stays the caller's in this process */
	/* Reads and parses a file. text is NULL, or for conf_text_free(). */
	enum weft_err (*load)(const char *path, struct conf **out, char **text, size_t *len,
		char *why, size_t cap);
	void (*detach)(void *ctx); /* lets go of the terminal */
	void *ctx;
};

enum office_stage {
	OFFICE_STAGE_NEW,
	OFFICE_STAGE_BEGUN,
	OFFICE_STAGE_UP,
	OFFICE_STAGE_GOING, /* PreDown has run */
	OFFICE_STAGE_DOWN,
	OFFICE_STAGE_ENDED,
};

struct office {
	struct office_config config;
	struct around around;
	enum office_stage stage;
	uint64_t sum; /* conf_text_sum() of the configuration in force */
	char path[WIRE_STEWARD_PATH_MAX];
	char fresh_path[WIRE_STEWARD_PATH_MAX];
	bool has_fresh; /* it was read, and is neither in force nor refused */
	uint64_t fresh_sum;
};

void office_init(struct office *o, const struct office_config *c);
WEFT_MUST_CHECK enum weft_err office_begin(
	struct office *o, const struct quick_host *h, const struct conf *c);
WEFT_MUST_CHECK enum weft_err office_bring_up(
	struct office *o, const struct conf *c, uint32_t mark);
/* is_guarded: whoever asks need not be root. text and len: as of the config's load. */
WEFT_MUST_CHECK enum weft_err office_read(struct office *o, const char *file, bool is_guarded,
	struct conf **out, char **text, size_t *len, char *why, size_t cap);
WEFT_MUST_CHECK enum weft_err office_adopt(struct office *o, const struct conf *c, uint32_t mark);
void office_refuse(struct office *o);
WEFT_MUST_CHECK enum weft_err office_save(
	struct office *o, const struct conf_state *state, char *why, size_t cap);
WEFT_MUST_CHECK enum weft_err office_left_begin(struct office *o, uint32_t table, bool has_v4);
void office_left_end(struct office *o);
void office_pre_down(struct office *o, const struct conf *c);
void office_take_down(struct office *o, unsigned sockets);
void office_end(struct office *o, const struct conf *c, unsigned sockets);

/* A steward's life in a process of its own. fd: of os_pair_open(). */
void office_work(struct office *o, int fd);

#endif
