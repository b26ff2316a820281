/* SPDX-License-Identifier: Apache-2.0 */
#include "quick/steward.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "os/fd.h"
#include "os/loop.h"
#include "os/pair.h"
#include "os/process.h"
#include "quick/save.h"
#include "wire/conf.h"
#include "wire/conf_edit.h"

/* How often it is looked whether what is waited for shall be called off. */
#define LOOK_NS (100 * WEFT_NS_PER_MS)
#define LOOP_WATCHES_APART 8 /* for a program */
#define PROCESS_NAME "weft-steward"

/* One that is waited for; at most two: `weft save` of a hook comes while the hook is. */
struct steward_answer {
	struct steward_answer *next;
	uint32_t number;
	bool is_there;
	enum weft_err result;
	int passed;
	char *text;
	size_t cap;
};

static enum weft_err
left_begin_here(void *ctx, uint32_t table, bool has_v4)
{
	struct steward *s = ctx;
	return office_left_begin(&s->office, table, has_v4);
}

static void
left_end_here(void *ctx)
{
	struct steward *s = ctx;
	office_left_end(&s->office);
}

/* --- asking the other process --- */

static void
die(struct steward *s)
{
	if (s->is_dead) {
		return;
	}
	s->is_dead = true;
	if (s->host.loop) {
		os_loop_del(s->host.loop, s->fd);
	}
	if (s->died) {
		s->died(s->host.ctx);
	}
}

static void
take_answer(struct steward *s, const struct wire_steward_reply *r, int passed)
{
	for (struct steward_answer *a = s->waiting; a; a = a->next) {
		if (a->number == r->number && !a->is_there) {
			a->is_there = true;
			a->result = r->result;
			a->passed = passed;
			if (a->text) {
				snprintf(a->text, a->cap, "%s", r->text);
			}
			return;
		}
	}
	os_fd_close(&passed);
}

static void
receive(struct steward *s)
{
	uint8_t bytes[WIRE_STEWARD_REPLY_MAX];
	struct wire_steward_reply r;
	while (!s->is_dead) {
		size_t n;
		int passed;
		enum weft_err e = os_pair_receive(s->fd, bytes, sizeof(bytes), &n, &passed);
		if (e == WEFT_EAGAIN) {
			return;
		}
		if (e || wire_steward_reply_decode(bytes, n, &r)) {
			die(s);
		} else if (r.kind == WIRE_STEWARD_LINE) {
			log_write(s->office.config.log, r.level, "%s", r.text);
		} else {
			take_answer(s, &r, passed);
		}
	}
}

static void
on_message(void *ctx, uint32_t events)
{
	(void)events;
	receive(ctx);
}

static void
send(struct steward *s, const struct wire_steward_request *r, int with)
{
	uint8_t bytes[WIRE_STEWARD_REQUEST_MAX];
	size_t n = wire_steward_request_encode(r, bytes);
	if (!s->is_dead && os_pair_send(s->fd, bytes, n, with)) {
		die(s);
	}
}

static void
wait_for(struct steward *s, const struct steward_answer *a, bool does_turn)
{
	bool is_called_off = false;
	for (;;) {
		receive(s);
		if (a->is_there || s->is_dead) {
			return;
		}
		if (!is_called_off && s->host.is_over && s->host.is_over(s->host.ctx)) {
			is_called_off = true;
			send(s, &(struct wire_steward_request){.op = WIRE_STEWARD_CANCEL}, -1);
		}
		struct mono until = mono_add_ns(os_clock_mono(), LOOK_NS);
		if (does_turn) {
			s->host.turn(s->host.ctx, until);
		} else {
			enum weft_err e = os_fd_wait(s->fd, false, until);
			(void)e; /* looked at above */
		}
	}
}

/* a: with room for what it shall hold. */
static enum weft_err
ask(struct steward *s, struct wire_steward_request *r, int with, struct steward_answer *a)
{
	/* While one is waited for, what turns the loop is at work already. */
	bool does_turn = s->does_turn && !s->waiting && s->host.loop;
	r->number = ++s->number;
	a->number = r->number;
	a->passed = -1;
	a->next = s->waiting;
	s->waiting = a;
	send(s, r, with);
	wait_for(s, a, does_turn);
	s->waiting = a->next;
	return a->is_there ? a->result : WEFT_ECLOSED;
}

static enum weft_err
ask_plain(struct steward *s, enum wire_steward_op op, uint32_t value)
{
	struct wire_steward_request r = {.op = op, .value = value};
	struct steward_answer a = {0};
	enum weft_err e = ask(s, &r, -1, &a);
	os_fd_close(&a.passed);
	return e;
}

/* As ask_plain() without turning the loop: in the middle of a change of routes. */
static enum weft_err
ask_still(struct steward *s, struct wire_steward_request *r)
{
	struct steward_answer a = {0};
	bool did_turn = s->does_turn;
	s->does_turn = false;
	enum weft_err e = ask(s, r, -1, &a);
	s->does_turn = did_turn;
	os_fd_close(&a.passed);
	return e;
}

static enum weft_err
left_begin_there(void *ctx, uint32_t table, bool has_v4)
{
	struct wire_steward_request r = {
		.op = WIRE_STEWARD_LEFT_BEGIN, .value = table, .has_v4 = has_v4};
	return ask_still(ctx, &r);
}

static void
left_end_there(void *ctx)
{
	struct wire_steward_request r = {.op = WIRE_STEWARD_LEFT_END};
	enum weft_err e = ask_still(ctx, &r);
	(void)e; /* the note stays for the next start */
}

/* --- for the device --- */

static bool
is_apart(const struct steward *s)
{
	return s->fd >= 0;
}

enum weft_err
steward_open(
	struct steward *s, const struct office_config *c, bool is_apart_wanted, bool *is_steward)
{
	int ends[2];
	*is_steward = false;
	*s = (struct steward){.fd = -1, .does_turn = true};
	office_init(&s->office, c);
	s->path = s->office.path;
	s->left = (struct left_keeper){left_begin_here, left_end_here, s};
	if (!is_apart_wanted) {
		return WEFT_OK;
	}
	enum weft_err e = os_pair_open(ends);
	if (e) {
		return e;
	}
	e = os_process_split(PROCESS_NAME, &s->pid);
	*is_steward = !e && s->pid == 0;
	os_fd_close(&ends[*is_steward ? 0 : 1]);
	if (e) {
		os_fd_close(&ends[0]);
		return e;
	}
	s->fd = ends[*is_steward ? 1 : 0];
	s->left = (struct left_keeper){left_begin_there, left_end_there, s};
	return WEFT_OK;
}

void
steward_work(struct steward *s)
{
	office_work(&s->office, s->fd);
	os_fd_close(&s->fd);
}

enum weft_err
steward_begin(struct steward *s, const struct quick_host *host, const struct conf *c)
{
	s->host = *host;
	s->host.path = s->office.path;
	s->mark = c ? c->interface.fwmark : 0;
	if (!is_apart(s)) {
		return office_begin(&s->office, &s->host, c);
	}
	enum weft_err e = os_loop_add(host->loop, s->fd, OS_READABLE, on_message, s);
	return e ? e : ask_plain(s, WIRE_STEWARD_BEGIN, 0);
}

enum weft_err
steward_bring_up(struct steward *s, const struct conf *c, uint32_t mark)
{
	s->mark = mark;
	if (!is_apart(s)) {
		return office_bring_up(&s->office, c, mark);
	}
	enum weft_err e = ask_plain(s, WIRE_STEWARD_BRING_UP, mark);
	if (!e && s->host.is_over && s->host.is_over(s->host.ctx)) {
		log_error(s->office.config.log, "%s: the start was called off",
			s->office.config.name);
		e = WEFT_ECANCELED; /* a moment after the steward looked */
	}
	s->office.around.is_up = !e;
	return e;
}

static enum weft_err
read_there(struct steward *s, const char *file, struct conf **out, char *why, size_t cap)
{
	struct wire_steward_request r = {.op = WIRE_STEWARD_READ};
	struct steward_answer a = {.text = why, .cap = cap};
	char *text;
	size_t len;
	snprintf(r.path, sizeof(r.path), "%s", file ? file : "");
	enum weft_err e = ask(s, &r, -1, &a);
	if (!e) {
		e = a.passed < 0 ? WEFT_EIO
				 : os_pair_file_read(a.passed, CONF_BYTES_MAX, &text, &len);
	}
	os_fd_close(&a.passed);
	if (e) {
		return e;
	}
	/* Its faults, if there were some, have been told. */
	struct conf_report *report = calloc(1, sizeof(*report));
	const struct conf_options options = {.is_lenient = false};
	e = report ? conf_parse(text, len, &options, out, report) : WEFT_ENOMEM;
	free(report);
	conf_text_free(text, len);
	if (!e) {
		struct office *o = &s->office;
		snprintf(o->fresh_path, sizeof(o->fresh_path), "%s", file ? file : o->path);
	}
	return e;
}

enum weft_err
steward_read(struct steward *s, const char *file, struct conf **out, char *why, size_t cap)
{
	if (is_apart(s)) {
		return read_there(s, file, out, why, cap);
	}
	char *text = NULL;
	size_t len = 0;
	enum weft_err e = office_read(&s->office, file, false, out, &text, &len, why, cap);
	if (!e) {
		conf_text_free(text, len);
	}
	return e;
}

void
steward_adopt(struct steward *s, const struct conf *c, uint32_t mark)
{
	s->mark = mark;
	enum weft_err e;
	if (is_apart(s)) {
		memcpy(s->office.path, s->office.fresh_path, sizeof(s->office.path));
		e = ask_plain(s, WIRE_STEWARD_ADOPT, mark);
	} else {
		e = office_adopt(&s->office, c, mark);
	}
	if (e) {
		log_warn(s->office.config.log, "%s: DNS and firewall are as before: %s",
			s->office.config.name, weft_err_text(e));
	}
}

void
steward_refuse(struct steward *s)
{
	if (is_apart(s)) {
		enum weft_err e = ask_plain(s, WIRE_STEWARD_REFUSE, 0);
		(void)e; /* the next one that is read takes its place */
	} else {
		office_refuse(&s->office);
	}
}

static enum weft_err
save_there(struct steward *s, const struct conf_state *state, char *why, size_t cap)
{
	struct wire_steward_request r = {.op = WIRE_STEWARD_SAVE};
	struct steward_answer a = {.text = why, .cap = cap};
	char *bytes;
	size_t len;
	int fd;
	enum weft_err e = wire_steward_state_encode(state, &bytes, &len);
	if (e) {
		return e;
	}
	e = os_pair_file_make(bytes, len, &fd);
	conf_text_free(bytes, len);
	if (e) {
		return e;
	}
	e = ask(s, &r, fd, &a);
	os_fd_close(&fd);
	os_fd_close(&a.passed);
	return e;
}

enum weft_err
steward_save(struct steward *s, struct node *n, char *why, size_t cap)
{
	struct save_copy copy;
	enum weft_err e = save_copy_take(n, s->mark, &copy);
	if (!e) {
		e = is_apart(s) ? save_there(s, &copy.state, why, cap)
				: office_save(&s->office, &copy.state, why, cap);
	}
	save_copy_fini(&copy);
	return e;
}

bool
steward_is_up(const struct steward *s)
{
	return s->office.around.is_up;
}

void
steward_pre_down(struct steward *s, const struct conf *c)
{
	s->host.is_over = NULL;
	s->office.around.host.is_over = NULL;
	if (is_apart(s)) {
		enum weft_err e = ask_plain(s, WIRE_STEWARD_PRE_DOWN, 0);
		(void)e; /* what failed is in the log */
	} else {
		office_pre_down(&s->office, c);
	}
}

void
steward_take_down(struct steward *s)
{
	if (is_apart(s)) {
		enum weft_err e = ask_plain(s, WIRE_STEWARD_TAKE_DOWN, s->sockets);
		(void)e;
	} else {
		office_take_down(&s->office, 0);
	}
}

void
steward_end(struct steward *s, const struct conf *c)
{
	s->host.is_over = NULL;
	s->office.around.host.is_over = NULL;
	if (is_apart(s)) {
		s->died = NULL; /* as it shall */
		enum weft_err e = ask_plain(s, WIRE_STEWARD_END, s->sockets);
		(void)e;
	} else {
		office_end(&s->office, c, 0);
	}
}

void
steward_detach(struct steward *s)
{
	s->host.is_attached = false;
	s->office.around.host.is_attached = false;
	if (is_apart(s)) {
		enum weft_err e = ask_plain(s, WIRE_STEWARD_DETACH, 0);
		(void)e;
	}
}

void
steward_close(struct steward *s)
{
	if (is_apart(s)) {
		s->died = NULL;
		die(s); /* the loop need not know of it any more */
		os_fd_close(&s->fd);
	}
	if (s->pid > 0) {
		os_process_wait(s->pid);
		s->pid = 0;
	}
}

static void
turn_apart(void *ctx, struct mono until)
{
	struct steward *s = ctx;
	os_loop_wait(s->apart, until);
}

bool
steward_set_apart(struct steward *s)
{
	struct quick_host *h = &s->office.around.host;
	s->does_turn = false;
	if (is_apart(s)) {
		return true;
	}
	if (os_loop_new(LOOP_WATCHES_APART, &s->apart)) {
		return false;
	}
	h->loop = s->apart;
	h->turn = turn_apart;
	h->ctx = s;
	h->is_over = NULL;
	return true;
}

void
steward_set_back(struct steward *s)
{
	s->does_turn = true;
	if (s->apart) {
		os_loop_free(s->apart);
		s->apart = NULL;
		s->office.around.host = s->host;
	}
}

void
steward_set_turn(struct steward *s, void (*turn)(void *ctx, struct mono until))
{
	s->host.turn = turn;
	s->office.around.host.turn = turn;
}
