/* SPDX-License-Identifier: Apache-2.0 */
#include "journey.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

void
journey_begin(struct journey *j, const struct line_config *c, int64_t delay_ns)
{
	memset(j, 0, sizeof(*j));
	line_open(&j->line, c);
	rng_init(&j->rng, c->seed);
	j->now_ns = WEFT_NS_PER_S;
	j->delay_ns = delay_ns;
	j->events_cap = 2 * c->cap;
	j->feedbacks_cap = c->cap;
	j->events = malloc(j->events_cap * sizeof(*j->events));
	j->feedbacks = malloc(j->feedbacks_cap * sizeof(*j->feedbacks));
	j->feedback_at = malloc(j->feedbacks_cap * sizeof(*j->feedback_at));
	assert_true(j->events && j->feedbacks && j->feedback_at);
	fec_decoder_set_rtt(j->line.d, 2 * delay_ns);
}

void
journey_end(struct journey *j)
{
	line_close(&j->line);
	free(j->events);
	free(j->feedbacks);
	free(j->feedback_at);
}

static bool
is_before(const struct journey_event *a, const struct journey_event *b)
{
	if (a->at_ns != b->at_ns) {
		return a->at_ns < b->at_ns;
	}
	if (a->is_feedback || b->is_feedback) {
		return a->is_feedback && (!b->is_feedback || a->feedback < b->feedback);
	}
	return a->counter < b->counter;
}

static void
push(struct journey *j, struct journey_event e)
{
	assert_true(j->events_n < j->events_cap);
	size_t i = j->events_n++;
	while (i > 0 && is_before(&e, &j->events[(i - 1) / 2])) {
		j->events[i] = j->events[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	j->events[i] = e;
}

static struct journey_event
pop(struct journey *j)
{
	struct journey_event first = j->events[0], e = j->events[--j->events_n];
	size_t i = 0;
	for (;;) {
		size_t c = 2 * i + 1;
		if (c + 1 < j->events_n && is_before(&j->events[c + 1], &j->events[c])) {
			c++;
		}
		if (c >= j->events_n || !is_before(&j->events[c], &e)) {
			break;
		}
		j->events[i] = j->events[c];
		i = c;
	}
	j->events[i] = e;
	return first;
}

static int64_t
delay(struct journey *j)
{
	return j->delay_ns +
	       (j->jitter_ns ? (int64_t)rng_below(&j->rng, (uint64_t)j->jitter_ns + 1) : 0);
}

static bool
is_lost(struct journey *j)
{
	if (j->loss_to_bad > 0) {
		j->is_bad = rng_is_hit(&j->rng, j->is_bad ? 1 - j->loss_to_good : j->loss_to_bad);
		return j->is_bad;
	}
	return rng_is_hit(&j->rng, j->loss);
}

void
journey_send_in(struct journey *j, uint64_t counter, int64_t ns)
{
	push(j, (struct journey_event){.at_ns = j->now_ns + ns, .counter = counter});
}

void
journey_send(struct journey *j, uint64_t counter)
{
	int64_t ns = delay(j);
	if (!is_lost(j)) {
		journey_send_in(j, counter, ns);
	}
}

static void
ask(struct journey *j)
{
	struct wire_ext_feedback f;
	memset(&f, 0xee, sizeof(f));
	if (!fec_decoder_feedback(j->line.d, (struct mono){j->now_ns}, &f)) {
		return;
	}
	uint8_t bytes[WIRE_EXT_FEEDBACK_MAX];
	size_t len = wire_ext_feedback_encode(&f, bytes, sizeof(bytes)), at = j->feedbacks_n++;
	assert_true(j->feedbacks_n <= j->feedbacks_cap);
	assert_true(wire_ext_feedback_decode(bytes, len, &j->feedbacks[at]));
	j->feedback_at[at] = j->now_ns;
	if (!j->is_mute && !rng_is_hit(&j->rng, j->loss)) {
		push(j, (struct journey_event){.at_ns = j->now_ns + delay(j),
				.feedback = at,
				.is_feedback = true});
	}
}

static void
happen(struct journey *j, const struct journey_event *e)
{
	if (!e->is_feedback) {
		line_arrive(&j->line, j->now_ns, e->counter);
		return;
	}
	uint64_t first = j->line.first + j->line.n;
	size_t n = line_answer(&j->line, &j->feedbacks[e->feedback]);
	for (size_t i = 0; i < n; i++) {
		journey_send(j, first + i);
	}
}

void
journey_run(struct journey *j, int64_t until_ns)
{
	for (;;) {
		int64_t deadline = fec_decoder_deadline(j->line.d).ns;
		int64_t event = j->events_n ? j->events[0].at_ns : INT64_MAX;
		int64_t at = deadline < event ? deadline : event;
		if (at > until_ns) {
			break;
		}
		j->now_ns = at > j->now_ns ? at : j->now_ns;
		if (event <= j->now_ns) {
			struct journey_event e = pop(j);
			happen(j, &e);
		}
		line_take(&j->line, j->now_ns);
		ask(j);
		/* A deadline that has passed and is not answered would be asked for ever. */
		assert_true(j->events_n || fec_decoder_deadline(j->line.d).ns > j->now_ns);
	}
	j->now_ns = until_ns;
}
