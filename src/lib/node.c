/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a node, and who may use what of it. */
#include "lib/node.h"

#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"
#include "lib/detail.h"
#include "node/keeper.h"
#include "node/node.h"
#include "os/netns.h"
#include "wire/conf.h"

#define WORKERS_MAX 16

enum weft_err
lib_node_enter(struct weft_node *n)
{
	os_mutex_lock(&n->mutex);
	bool is_started = n->state == LIB_STATE_STARTED;
	n->users += is_started;
	os_mutex_unlock(&n->mutex);
	return is_started ? WEFT_OK : WEFT_ECLOSED;
}

void
lib_node_leave(struct weft_node *n)
{
	os_mutex_lock(&n->mutex);
	if (--n->users == 0) {
		os_cond_broadcast(&n->changed);
	}
	os_mutex_unlock(&n->mutex);
}

void
lib_node_ask(struct weft_node *n, void (*run)(struct weft_node *n, void *arg), void *arg)
{
	struct lib_job job = {.run = run, .arg = arg};
	os_mutex_lock(&n->mutex);
	while (n->job) {
		os_cond_wait(&n->changed, &n->mutex, MONO_NEVER);
	}
	n->job = &job;
	os_wake_signal(&n->post);
	while (!job.is_done) {
		os_cond_wait(&n->changed, &n->mutex, MONO_NEVER);
	}
	os_mutex_unlock(&n->mutex);
}

bool
lib_node_is_own(struct weft_node *n, const struct ip_addr *a)
{
	static const uint8_t loopback6[16] = {[15] = 1};
	if (a->family == IP_FAMILY_V4 ? a->b[0] == 127 : memcmp(a->b, loopback6, 16) == 0) {
		return true;
	}
	bool is_own = false;
	os_mutex_lock(&n->mutex);
	for (size_t i = 0; i < n->own_n && !is_own; i++) {
		is_own = ip_addr_is_equal(&n->own[i], a);
	}
	os_mutex_unlock(&n->mutex);
	return is_own;
}

/* What calls of the program need of a configuration. */
struct book {
	struct lib_names names;
	struct ip_addr *own;
	size_t own_n;
	uint8_t public_key[WEFT_KEY_LEN];
};

static void
book_fini(struct book *b)
{
	lib_names_fini(&b->names);
	free(b->own);
}

static enum weft_err
book_init(struct book *b, const struct conf *c)
{
	const struct conf_prefixes *addrs = &c->interface.addresses;
	struct book fresh = {.own = calloc(addrs->n + 1, sizeof(*fresh.own)), .own_n = addrs->n};
	enum weft_err e = fresh.own ? lib_names_init(&fresh.names, c) : WEFT_ENOMEM;
	if (!e) {
		e = weft_key_public(c->interface.private_key, fresh.public_key);
	}
	if (e) {
		book_fini(&fresh);
		return e;
	}
	for (size_t i = 0; i < addrs->n; i++) {
		fresh.own[i] = addrs->v[i].prefix.addr;
	}
	*b = fresh;
	return WEFT_OK;
}

/* The node has text and book from now on. */
static void
take(struct weft_node *n, struct config_text *text, const struct book *b)
{
	config_text_fini(&n->text);
	n->text = *text;
	os_mutex_lock(&n->mutex);
	struct book old = {.names = n->names, .own = n->own};
	n->names = b->names;
	n->own = b->own;
	n->own_n = b->own_n;
	memcpy(n->public_key, b->public_key, WEFT_KEY_LEN);
	os_mutex_unlock(&n->mutex);
	book_fini(&old);
}

/* From what the program gave to text, book and configuration. */
static enum weft_err
read_config(const struct weft_config *c, struct config_text *text, struct book *b,
	struct conf **conf, struct weft_detail *why)
{
	enum weft_err e = config_read(c, text, why);
	if (e) {
		return e;
	}
	e = config_parse(text, conf, why);
	if (e) {
		goto undo_text;
	}
	e = book_init(b, *conf);
	if (e) {
		detail_set(why, e, 0, "%s", weft_err_text(e));
		goto undo_conf;
	}
	return WEFT_OK;

undo_conf:
	conf_free(*conf);
undo_text:
	config_text_fini(text);
	return e;
}

static enum weft_err
take_struct(const struct weft_config *theirs, struct weft_config *ours, struct weft_detail *why)
{
	if (!record_take(ours, sizeof(*ours), theirs, sizeof(*ours))) {
		return detail_set(why, WEFT_EINVAL, 0,
			"size: must be sizeof(struct weft_config), and what this library does not "
			"know must be zero");
	}
	return WEFT_OK;
}

static enum weft_err
check_own(const struct weft_config *c, struct weft_detail *why)
{
	if (c->workers > WORKERS_MAX) {
		return detail_set(why, WEFT_EINVAL, 0, "workers: must be 0 to %d", WORKERS_MAX);
	}
	if (c->flags & ~WEFT_NODE_NO_TUN) {
		return detail_set(why, WEFT_EINVAL, 0, "flags: an unknown bit is set");
	}
	if (c->log_level < WEFT_LOG_ERROR || c->log_level > WEFT_LOG_DEBUG) {
		return detail_set(why, WEFT_EINVAL, 0, "log_level: is none");
	}
	return WEFT_OK;
}

/* What needs undoing alone. */
static enum weft_err
make(const struct weft_config *c, struct weft_node *n)
{
	n->state_dir = c->state_dir ? strdup(c->state_dir) : NULL;
	if (c->state_dir && !n->state_dir) {
		return WEFT_ENOMEM;
	}
	enum weft_err e = os_wake_init(&n->stop);
	if (e) {
		goto undo_dir;
	}
	e = events_init(&n->events);
	if (e) {
		goto undo_stop;
	}
	n->workers = c->workers;
	n->flags = c->flags;
	lib_log_init(n, c);
	os_mutex_init(&n->life);
	os_mutex_init(&n->mutex);
	os_mutex_init(&n->accepting);
	os_cond_init(&n->changed);
	return WEFT_OK;

undo_stop:
	os_wake_fini(&n->stop);
undo_dir:
	free(n->state_dir);
	return e;
}

enum weft_err
weft_node_new(const struct weft_config *c, struct weft_node **out, struct weft_detail *why)
{
	struct weft_config own;
	struct config_text text;
	struct book book;
	struct conf *conf;
	if (!c || !out) {
		return detail_set(why, WEFT_EINVAL, 0, "c and out must not be NULL");
	}
	enum weft_err e = take_struct(c, &own, why);
	if (!e) {
		e = check_own(&own, why);
	}
	if (!e) {
		e = read_config(&own, &text, &book, &conf, why);
	}
	if (e) {
		return e;
	}
	conf_free(conf);
	struct weft_node *n = calloc(1, sizeof(*n));
	e = n ? make(&own, n) : WEFT_ENOMEM;
	if (e) {
		free(n);
		config_text_fini(&text);
		book_fini(&book);
		return detail_set(why, e, 0, "%s", weft_err_text(e));
	}
	take(n, &text, &book);
	*out = n;
	return WEFT_OK;
}

static void
set_state(struct weft_node *n, enum lib_state state)
{
	os_mutex_lock(&n->mutex);
	n->state = state;
	os_mutex_unlock(&n->mutex);
}

enum weft_err
weft_node_start(struct weft_node *n, struct weft_detail *why)
{
	if (!n) {
		return detail_set(why, WEFT_EINVAL, 0, "n must not be NULL");
	}
	os_mutex_lock(&n->life);
	enum weft_err e = WEFT_OK;
	if (n->state != LIB_STATE_STOPPED) {
		e = detail_set(why, WEFT_EEXIST, 0, "the node is started");
	} else {
		e = control_start(n, why);
	}
	if (!e) {
		set_state(n, LIB_STATE_STARTED);
	}
	os_mutex_unlock(&n->life);
	return e;
}

static void
wait_for_users(struct weft_node *n)
{
	os_mutex_lock(&n->mutex);
	n->state = LIB_STATE_STOPPING;
	os_wake_signal(&n->stop);
	while (n->users > 0) {
		os_cond_wait(&n->changed, &n->mutex, MONO_NEVER);
	}
	os_wake_clear(&n->stop);
	os_mutex_unlock(&n->mutex);
}

void
weft_node_stop(struct weft_node *n)
{
	os_mutex_lock(&n->life);
	if (n->state == LIB_STATE_STARTED) {
		wait_for_users(n);
		control_stop(n);
		set_state(n, LIB_STATE_STOPPED);
	}
	os_mutex_unlock(&n->life);
}

void
weft_node_free(struct weft_node *n)
{
	if (!n) {
		return;
	}
	weft_node_stop(n);
	config_text_fini(&n->text);
	lib_names_fini(&n->names);
	free(n->own);
	os_cond_fini(&n->changed);
	os_mutex_fini(&n->accepting);
	os_mutex_fini(&n->mutex);
	os_mutex_fini(&n->life);
	lib_log_fini(n);
	events_fini(&n->events);
	os_wake_fini(&n->stop);
	free(n->state_dir);
	free(n);
}

struct reload {
	struct conf *fresh;
	enum weft_err e;
};

static void
reload(struct weft_node *n, void *arg)
{
	struct reload *r = arg;
	r->e = keeper_reload(n->keeper, r->fresh);
}

/* On success fresh belongs to the keeper. */
static enum weft_err
reload_started(struct weft_node *n, struct conf *fresh, struct weft_detail *why)
{
	struct reload r = {.fresh = fresh};
	char text[400];
	lib_log_clear(n);
	lib_node_ask(n, reload, &r);
	if (r.e) {
		lib_log_last(n, weft_err_text(r.e), text, sizeof(text));
		return detail_set(why, r.e, 0, "%s", text);
	}
	return WEFT_OK;
}

enum weft_err
weft_node_reload(struct weft_node *n, const struct weft_config *c, struct weft_detail *why)
{
	struct weft_config own;
	struct config_text text;
	struct book book;
	struct conf *fresh;
	if (!n || !c) {
		return detail_set(why, WEFT_EINVAL, 0, "n and c must not be NULL");
	}
	enum weft_err e = take_struct(c, &own, why);
	if (!e) {
		e = read_config(&own, &text, &book, &fresh, why);
	}
	if (e) {
		return e;
	}
	os_mutex_lock(&n->life);
	bool is_started = n->state == LIB_STATE_STARTED;
	e = is_started ? reload_started(n, fresh, why) : WEFT_OK;
	if (e || !is_started) {
		conf_free(fresh);
	}
	if (e) {
		config_text_fini(&text);
		book_fini(&book);
	} else {
		take(n, &text, &book);
	}
	os_mutex_unlock(&n->life);
	return e;
}

void
weft_node_public_key(const struct weft_node *n, uint8_t out[WEFT_KEY_LEN])
{
	struct weft_node *own = (struct weft_node *)n; /* its lock is no part of its value */
	os_mutex_lock(&own->mutex);
	memcpy(out, n->public_key, WEFT_KEY_LEN);
	os_mutex_unlock(&own->mutex);
}

enum weft_err
weft_node_namespaces(const struct weft_node *n, int *user, int *net)
{
	struct weft_node *own = (struct weft_node *)n;
	if (!n || !user || !net) {
		return WEFT_EINVAL;
	}
	enum weft_err e = lib_node_enter(own);
	if (!e) {
		e = os_netns_namespaces(n->netns, user, net);
		lib_node_leave(own);
	}
	return e;
}
