/* SPDX-License-Identifier: Apache-2.0 */
/* What a device's two processes say to each other: the one that speaks with the network asks, the
 * steward, which has kept its rights, answers (docs/decisions/privileges.md). A message is one
 * record of a local socket. Both sides are one program, so there are no versions; but the steward
 * believes nothing of what it decodes. */
#ifndef WEFT_WIRE_STEWARD_H
#define WEFT_WIRE_STEWARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"
#include "wire/conf_edit.h"

#define WIRE_STEWARD_PATH_MAX 4096 /* with the final NUL */
#define WIRE_STEWARD_TEXT_MAX 8192 /* with the final NUL */
#define WIRE_STEWARD_REQUEST_MAX (16 + WIRE_STEWARD_PATH_MAX)
#define WIRE_STEWARD_REPLY_MAX (8 + WIRE_STEWARD_TEXT_MAX)

enum wire_steward_op {
	WIRE_STEWARD_BEGIN,      /* lock, leftovers, PreUp */
	WIRE_STEWARD_BRING_UP,   /* firewall with value as mark, DNS, PostUp */
	WIRE_STEWARD_READ,       /* a file; the answer has its text as a descriptor */
	WIRE_STEWARD_ADOPT,      /* what was read is in force, with value as mark */
	WIRE_STEWARD_REFUSE,     /* it is not */
	WIRE_STEWARD_SAVE,       /* with a state as a descriptor */
	WIRE_STEWARD_LEFT_BEGIN, /* node/left.h: value is the table */
	WIRE_STEWARD_LEFT_END,
	WIRE_STEWARD_PRE_DOWN,
	WIRE_STEWARD_TAKE_DOWN, /* DNS and firewall */
	WIRE_STEWARD_END,       /* PostDown, sockets, lock; the steward ends */
	WIRE_STEWARD_DETACH,    /* lets go of the terminal */
	WIRE_STEWARD_CANCEL,    /* ends a program that is waited for; has no answer */
	WIRE_STEWARD_OP_COUNT
};

struct wire_steward_request {
	enum wire_steward_op op;
	uint32_t number; /* of the answer */
	uint32_t value;
	bool has_v4;                      /* of LEFT_BEGIN */
	char path[WIRE_STEWARD_PATH_MAX]; /* of READ: absolute; empty = the one at hand */
};

enum wire_steward_kind {
	WIRE_STEWARD_ANSWER,
	WIRE_STEWARD_LINE, /* for the log */
	WIRE_STEWARD_KIND_COUNT
};

struct wire_steward_reply {
	enum wire_steward_kind kind;
	uint32_t number;                  /* of the request */
	enum weft_err result;             /* of an answer */
	enum log_level level;             /* of a line */
	char text[WIRE_STEWARD_TEXT_MAX]; /* cut where it is too long */
};

/* out has room for WIRE_STEWARD_REQUEST_MAX bytes. Returns those used. */
size_t wire_steward_request_encode(const struct wire_steward_request *r, uint8_t *out);
/* WEFT_EPARSE: not of ours. */
WEFT_MUST_CHECK enum weft_err wire_steward_request_decode(
	const void *data, size_t len, struct wire_steward_request *out);
/* Likewise, with WIRE_STEWARD_REPLY_MAX. */
size_t wire_steward_reply_encode(const struct wire_steward_reply *r, uint8_t *out);
WEFT_MUST_CHECK enum weft_err wire_steward_reply_decode(
	const void *data, size_t len, struct wire_steward_reply *out);

/* --- a state, for SAVE --- */

#define WIRE_STEWARD_STATE_MAX (64u << 20) /* bytes: 500,000 peers of two prefixes */

/* *out is allocated, and holds keys: to be freed by conf_text_free(). */
WEFT_MUST_CHECK enum weft_err wire_steward_state_encode(
	const struct conf_state *s, char **out, size_t *len);
/* WEFT_EPARSE: not of ours, or a value that no file may have. Frees nothing on failure; else
 * wire_steward_state_fini() is due. */
WEFT_MUST_CHECK enum weft_err wire_steward_state_decode(
	const void *data, size_t len, struct conf_state *out);
void wire_steward_state_fini(struct conf_state *s);

#endif
