/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever looks after what is around a device: quick/around.h, its configuration file, what it
 * leaves in the kernel. In the process itself, or, so that this one may give up its rights, in one
 * of its own that was forked before (docs/decisions/privileges.md).
 *
 * All calls are of one thread. Those that run programs wait for them while the device's loop
 * turns. */
#ifndef WEFT_QUICK_STEWARD_H
#define WEFT_QUICK_STEWARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "node/left.h"
#include "quick/host.h"
#include "quick/office.h"

struct conf;
struct node;
struct os_loop;

struct steward_answer;

struct steward {
	struct office office; /* in this process; of another one, what it was told */
	struct quick_host host;
	const char *path;        /* of the configuration that is in force; "" = none */
	struct left_keeper left; /* for the keeper */
	/* Of another process. */
	int fd;  /* -1: there is none */
	int pid; /* 0: there is none, or it has ended */
	bool is_dead;
	bool does_turn;
	void (*died)(void *ctx); /* host's ctx; may be NULL */
	uint32_t number;
	struct steward_answer *waiting;
	struct os_loop *apart;
	uint32_t mark;    /* of the sockets when the configuration came into force */
	unsigned sockets; /* bits: those of office_config's that were made */
};

/* With is_apart forks: in the other process *is_steward is set, and steward_work() is all there is
 * left to do. */
WEFT_MUST_CHECK enum weft_err steward_open(
	struct steward *s, const struct office_config *c, bool is_apart, bool *is_steward);
/* Returns when the device is no more. */
void steward_work(struct steward *s);

/* Lock, leftovers, PreUp; as around_begin(). From now on host is in use. */
WEFT_MUST_CHECK enum weft_err steward_begin(
	struct steward *s, const struct quick_host *host, const struct conf *c);
WEFT_MUST_CHECK enum weft_err steward_bring_up(
	struct steward *s, const struct conf *c, uint32_t mark);
/* Reads a configuration; file NULL: the one at hand. why has cap bytes for what is wrong. Then one
 * of the next two follows. */
WEFT_MUST_CHECK enum weft_err steward_read(
	struct steward *s, const char *file, struct conf **out, char *why, size_t cap);
/* It is in force: DNS and firewall follow. */
void steward_adopt(struct steward *s, const struct conf *c, uint32_t mark);
void steward_refuse(struct steward *s);
WEFT_MUST_CHECK enum weft_err steward_save(
	struct steward *s, struct node *n, char *why, size_t cap);
void steward_pre_down(struct steward *s, const struct conf *c);
bool steward_is_up(const struct steward *s);
void steward_take_down(struct steward *s);
/* c: outlives the device, or NULL. */
void steward_end(struct steward *s, const struct conf *c);
/* Lets go of the terminal. */
void steward_detach(struct steward *s);
void steward_close(struct steward *s);

/* Programs are waited for without the device's loop: for calls from within its callbacks, or when
 * it is gone. False: no memory. */
bool steward_set_apart(struct steward *s);
void steward_set_back(struct steward *s);
/* How the loop turns from now on. */
void steward_set_turn(struct steward *s, void (*turn)(void *ctx, struct mono until));

#endif
