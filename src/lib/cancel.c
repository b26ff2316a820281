/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cancel.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/node.h"
#include "os/clock.h"
#include "os/inet.h"
#include "os/thread.h"
#include "weft/dial.h"

#define TIMEOUT_MS_MAX (INT64_MAX / WEFT_NS_PER_MS / 2)

struct weft_cancel {
	struct os_wake fired;
};

enum weft_err
weft_cancel_new(struct weft_cancel **out)
{
	struct weft_cancel *c = malloc(sizeof(*c));
	if (!c) {
		return WEFT_ENOMEM;
	}
	enum weft_err e = os_wake_init(&c->fired);
	if (e) {
		free(c);
		return e;
	}
	*out = c;
	return WEFT_OK;
}

void
weft_cancel_fire(struct weft_cancel *c)
{
	/* Whoever a signal interrupts may be about to read it. */
	int saved = errno;
	os_wake_signal(&c->fired);
	errno = saved;
}

void
weft_cancel_clear(struct weft_cancel *c)
{
	os_wake_clear(&c->fired);
}

void
weft_cancel_free(struct weft_cancel *c)
{
	if (c) {
		os_wake_fini(&c->fired);
		free(c);
	}
}

struct mono
wait_deadline(int64_t timeout_ms)
{
	if (timeout_ms <= 0 || timeout_ms > TIMEOUT_MS_MAX) {
		return MONO_NEVER;
	}
	return mono_add_ns(os_clock_mono(), timeout_ms * WEFT_NS_PER_MS);
}

enum weft_err
wait_for(const struct wait *w, int fd, bool is_write)
{
	const int wakes[] = {w->n->stop.fd, w->cancel ? w->cancel->fired.fd : -1};
	size_t woken;
	enum weft_err e =
		os_inet_wait(fd, is_write, wakes, WEFT_ARRAY_LEN(wakes), w->deadline, &woken);
	if (e) {
		return e;
	}
	return woken == 0 ? WEFT_ECLOSED : woken == 1 ? WEFT_ECANCELED : WEFT_OK;
}
