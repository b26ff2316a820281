/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/queue.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/event.h"
#include "os/clock.h"

#define LOST_MAX 96 /* bytes of the line that tells of a loss */

static void
add(struct ctl_queue *q, char *line, size_t len)
{
	q->v[(q->first + q->n++) % CTL_QUEUE_LINES] = line;
	q->bytes += len;
}

static bool
has_room(const struct ctl_queue *q, size_t lines, size_t bytes)
{
	return CTL_QUEUE_LINES - q->n >= lines && CTL_QUEUE_BYTES - q->bytes >= bytes;
}

static char *
lost_line(uint64_t lost)
{
	char *line = malloc(LOST_MAX);
	if (line) {
		snprintf(line, LOST_MAX,
			"{\"event\":\"lost\",\"time_s\":%.3f,\"count\":%" PRIu64 "}\n",
			ctl_event_seconds(os_clock_wall_ns()), lost);
	}
	return line;
}

/* What is lost stands where it would have been. */
static bool
tell_loss(struct ctl_queue *q)
{
	char *line = lost_line(q->lost);
	if (line) {
		add(q, line, strlen(line));
		q->lost = 0;
	}
	return line;
}

void
ctl_queue_put(struct ctl_queue *q, const char *line)
{
	size_t len = strlen(line);
	bool had_loss = q->lost > 0;
	if (!has_room(q, 1u + had_loss, len + (had_loss ? LOST_MAX : 0)) ||
		(had_loss && !tell_loss(q))) {
		q->lost++;
		return;
	}
	char *copy = strdup(line);
	if (!copy) {
		q->lost++;
		return;
	}
	add(q, copy, len);
}

void
ctl_queue_lose(struct ctl_queue *q, uint64_t n)
{
	q->lost += n;
}

bool
ctl_queue_has_line(const struct ctl_queue *q)
{
	return q->n > 0 || q->lost > 0;
}

char *
ctl_queue_take(struct ctl_queue *q)
{
	if (q->n == 0 && (q->lost == 0 || !tell_loss(q))) {
		return NULL;
	}
	char *line = q->v[q->first];
	q->first = (q->first + 1) % CTL_QUEUE_LINES;
	q->n--;
	q->bytes -= strlen(line);
	return line;
}

void
ctl_queue_fini(struct ctl_queue *q)
{
	while (q->n > 0) {
		free(ctl_queue_take(q));
	}
}
