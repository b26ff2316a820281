/* SPDX-License-Identifier: Apache-2.0 */
#include "base/timerwheel.h"

#include "base/assert.h"
#include "base/compiler.h"

#define TICK_BITS 20
#define DIGIT_BITS 6
#define SLOT_NONE UINT32_MAX          /* not armed */
#define SLOT_EXPIRED (UINT32_MAX - 1) /* on the expired list */

static uint64_t
tick_of(struct mono t)
{
	return (uint64_t)t.ns >> TICK_BITS;
}

static unsigned
digit_of(uint64_t tick, unsigned level)
{
	return (tick >> (level * DIGIT_BITS)) & (TIMERWHEEL_SLOTS - 1);
}

void
timer_init(struct timer *t)
{
	list_init(&t->link);
	t->due = MONO_NEVER;
	t->slot = SLOT_NONE;
}

bool
timer_is_armed(const struct timer *t)
{
	return t->slot != SLOT_NONE;
}

void
timerwheel_init(struct timerwheel *w, struct mono now)
{
	weft_assert(now.ns >= 0);
	w->now = now;
	list_init(&w->expired);
	for (unsigned i = 0; i < TIMERWHEEL_LEVELS; i++) {
		w->pending[i] = 0;
	}
	for (unsigned i = 0; i < TIMERWHEEL_LEVELS * TIMERWHEEL_SLOTS; i++) {
		list_init(&w->slots[i].timers);
		w->slots[i].due_min_ns = INT64_MAX;
	}
}

/* Puts t, which is in no list, where its due time belongs. */
static void
place(struct timerwheel *w, struct timer *t)
{
	if (t->due.ns <= w->now.ns) {
		t->slot = SLOT_EXPIRED;
		list_push_back(&w->expired, &t->link);
		return;
	}
	uint64_t tick = tick_of(t->due);
	uint64_t differing = tick ^ tick_of(w->now);
	unsigned level = differing ? WEFT_TOP_BIT64(differing) / DIGIT_BITS : 0;
	unsigned digit = digit_of(tick, level);
	t->slot = level * TIMERWHEEL_SLOTS + digit;
	list_push_back(&w->slots[t->slot].timers, &t->link);
	w->pending[level] |= UINT64_C(1) << digit;
	if (t->due.ns < w->slots[t->slot].due_min_ns) {
		w->slots[t->slot].due_min_ns = t->due.ns;
	}
}

void
timerwheel_arm(struct timerwheel *w, struct timer *t, struct mono due)
{
	timerwheel_disarm(w, t);
	if (due.ns == MONO_NEVER.ns) {
		return;
	}
	t->due = due;
	place(w, t);
}

void
timerwheel_disarm(struct timerwheel *w, struct timer *t)
{
	list_remove(&t->link);
	if (t->slot < TIMERWHEEL_LEVELS * TIMERWHEEL_SLOTS &&
		list_is_empty(&w->slots[t->slot].timers)) {
		w->pending[t->slot / TIMERWHEEL_SLOTS] &=
			~(UINT64_C(1) << (t->slot % TIMERWHEEL_SLOTS));
		w->slots[t->slot].due_min_ns = INT64_MAX;
	}
	t->slot = SLOT_NONE;
}

/* Empties one slot into the list behind out. */
static void
drain(struct timerwheel *w, unsigned level, unsigned digit, struct list *out)
{
	unsigned i = level * TIMERWHEEL_SLOTS + digit;
	struct list *from = &w->slots[i].timers;
	out->prev->next = from->next;
	from->next->prev = out->prev;
	from->prev->next = out;
	out->prev = from->prev;
	list_init(from);
	w->slots[i].due_min_ns = INT64_MAX;
	w->pending[level] &= ~(UINT64_C(1) << digit);
}

static void
advance(struct timerwheel *w, struct mono now)
{
	uint64_t before = tick_of(w->now);
	uint64_t after = tick_of(now);
	struct list moving;
	list_init(&moving);

	w->now = now;
	for (unsigned level = 0; level < TIMERWHEEL_LEVELS; level++) {
		unsigned shift = level * DIGIT_BITS;
		/* A slot of this level has passed, or has begun, when its digit is at most the
		 * new one; when a higher digit changed, all of them have. */
		bool is_turned = before >> (shift + DIGIT_BITS) != after >> (shift + DIGIT_BITS);
		unsigned last = is_turned ? TIMERWHEEL_SLOTS - 1 : digit_of(after, level);
		uint64_t passed = w->pending[level] & (UINT64_MAX >> (63 - last));
		while (passed) {
			unsigned digit = WEFT_LOW_BIT64(passed);
			passed &= passed - 1;
			if (w->slots[level * TIMERWHEEL_SLOTS + digit].due_min_ns <= now.ns ||
				level > 0) {
				drain(w, level, digit, &moving);
			}
		}
		if (!is_turned) {
			break;
		}
	}
	LIST_FOR_EACH_SAFE(it, next, &moving)
	{
		place(w, WEFT_CONTAINER_OF(it, struct timer, link));
	}
}

struct timer *
timerwheel_take_expired(struct timerwheel *w, struct mono now)
{
	if (list_is_empty(&w->expired)) {
		if (now.ns <= w->now.ns) {
			return NULL;
		}
		advance(w, now);
		if (list_is_empty(&w->expired)) {
			return NULL;
		}
	}
	struct timer *t = WEFT_CONTAINER_OF(w->expired.next, struct timer, link);
	list_remove(&t->link);
	t->slot = SLOT_NONE;
	return t;
}

struct mono
timerwheel_next(const struct timerwheel *w)
{
	if (!list_is_empty(&w->expired)) {
		return w->now;
	}
	for (unsigned level = 0; level < TIMERWHEEL_LEVELS; level++) {
		if (w->pending[level]) {
			unsigned digit = WEFT_LOW_BIT64(w->pending[level]);
			return (struct mono){w->slots[level * TIMERWHEEL_SLOTS + digit].due_min_ns};
		}
	}
	return MONO_NEVER;
}
