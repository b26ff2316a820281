/* SPDX-License-Identifier: Apache-2.0 */
/* Who watches a device: each gets events as they happen and, if asked, samples of what has
 * changed since the one before (docs/control.md, watch).
 *
 * Nobody who watches costs nothing. One who reads slowly costs a queue of fixed size: events that
 * find it full are counted, and a sample is made line by line as it is read, the next one not
 * before it has been read.
 *
 * Threads: the control thread. */
#ifndef WEFT_CTL_WATCH_H
#define WEFT_CTL_WATCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mono.h"

struct conf;
struct ctl_watch;
struct ctl_watcher;
struct node;

#define CTL_EVERY_MS_MIN 100
#define CTL_EVERY_MS_MAX 60000

struct ctl_watch_config {
	struct node *node;
	/* There are lines for somebody: ctl_watcher_take(), but not from within this call. */
	void (*wake)(void *ctx);
	/* The configuration in force, with the names of peers, or NULL. May be NULL. */
	const struct conf *(*conf)(void *ctx);
	void *ctx;
};

WEFT_MUST_CHECK enum weft_err ctl_watch_new(
	const struct ctl_watch_config *c, struct ctl_watch **out);
/* Every watcher is closed. NULL is allowed. */
void ctl_watch_free(struct ctl_watch *w);
/* When ctl_watch_turn() is due; also whenever the node may have news. */
struct mono ctl_watch_deadline(const struct ctl_watch *w);
void ctl_watch_turn(struct ctl_watch *w, struct mono now);
/* file as with reload; why: it was refused, and nothing has changed; NULL: it is in force. */
void ctl_watch_reloaded(struct ctl_watch *w, const char *file, const char *why);
/* The device is about to end: the last event, in front of what is left of samples. */
void ctl_watch_stopping(struct ctl_watch *w);
/* The node is about to go. Watchers may still be closed, and take what waits for them. */
void ctl_watch_end(struct ctl_watch *w);

/* every_ms: between samples, within the limits above; 0: events alone. */
WEFT_MUST_CHECK enum weft_err ctl_watcher_open(
	struct ctl_watch *w, unsigned every_ms, struct ctl_watcher **out);
void ctl_watcher_set(struct ctl_watcher *r, unsigned every_ms);
/* NULL is allowed. */
void ctl_watcher_close(struct ctl_watcher *r);
bool ctl_watcher_has_line(const struct ctl_watcher *r);
/* The next line, with its newline, to be freed. NULL: none, after all. */
char *ctl_watcher_take(struct ctl_watcher *r);

#endif
