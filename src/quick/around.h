/* SPDX-License-Identifier: Apache-2.0 */
/* What happens around a device on its way up and down, in the order of wg-quick:
 *
 *   lock, leftovers, PreUp, [device, control sockets], firewall, DNS, PostUp
 *   PreDown, DNS back, firewall back, [device], PostDown, lock
 *
 * One process at a time has a device of a name: the lock in /run/weft ends with it. */
#ifndef WEFT_QUICK_AROUND_H
#define WEFT_QUICK_AROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "quick/dns.h"
#include "quick/host.h"

struct conf;

#define AROUND_PATH_MAX 108

struct around {
	struct quick_host host;
	struct dns dns;
	bool has_firewall;
	bool is_up;  /* PostUp has succeeded */
	int lock_fd; /* -1: not ours */
	char lock_path[AROUND_PATH_MAX];
	char left_path[AROUND_PATH_MAX]; /* for the keeper */
};

/* Before the device. c: NULL for one without configuration. On failure the log says why:
 * WEFT_EEXIST when it is up. */
WEFT_MUST_CHECK enum weft_err around_begin(
	struct around *a, const struct quick_host *h, const struct conf *c);
/* With the device. mark: of its sockets. On failure around_take_down() and around_end() follow. */
WEFT_MUST_CHECK enum weft_err around_bring_up(
	struct around *a, const struct conf *c, uint32_t mark);
/* After a reload. What cannot be had is in the log. */
void around_change(struct around *a, const struct conf *c, uint32_t mark);
/* Before the device goes; its loop still turns. */
void around_pre_down(const struct around *a, const struct conf *c);
void around_take_down(struct around *a);
/* After it; c is a configuration that outlives it, or NULL. */
void around_end(struct around *a, const struct conf *c);

/* For a device that does not run. WEFT_EEXIST: it does. *was_there: something was left. */
WEFT_MUST_CHECK enum weft_err around_clean(const struct quick_host *h, bool *was_there);

#endif
