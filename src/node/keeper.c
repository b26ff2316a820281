/* SPDX-License-Identifier: Apache-2.0 */
#include "node/keeper.h"

#include <stdlib.h>
#include <string.h>

#include "node/apply.h"
#include "node/names.h"
#include "node/node.h"
#include "os/clock.h"
#include "os/loop.h"
#include "wire/conf.h"

/* When the port is renewed first, while every peer that is called stays silent: in the 4th attempt.
 * The next time it takes twice as long, and so on. */
#define PORT_TRIES 4
#define PORT_WAIT_FIRST_NS (15 * WEFT_NS_PER_S)
#define PORT_WAIT_MAX_NS (300 * WEFT_NS_PER_S)
/* A look at the peers after tries in vain; they come in crowds. */
#define LOOK_NS (1 * WEFT_NS_PER_S)

struct keeper {
	struct log log;
	struct os_loop *loop;
	struct node *node;
	struct conf *conf;
	struct apply_traces traces;
	void (*gone)(void *ctx);
	void (*news)(void *ctx);
	void *ctx;
	struct names names;
	struct mono looked_at, look_at; /* for tries in vain; MONO_NEVER: no need */
	struct mono renewed_at;         /* the port */
	int64_t renew_wait_ns;
};

static void
on_node(void *ctx, uint32_t events)
{
	struct keeper *k = ctx;
	(void)events;
	node_take_events(k->node);
	if (node_take_tries(k->node)) {
		k->look_at = mono_min(k->look_at, mono_add_ns(k->looked_at, LOOK_NS));
	}
	if (k->news) {
		k->news(k->ctx);
	}
	if (node_is_gone(k->node)) {
		k->gone(k->ctx);
	}
}

static void
on_monitor(void *ctx, uint32_t events)
{
	struct keeper *k = ctx;
	(void)events;
	node_monitor(k->node);
}

static enum aead_backend
choose_aead(const struct keeper_config *c)
{
	if (c->has_aead || !c->conf) {
		return c->aead;
	}
	switch (c->conf->interface.aead) {
	case CONF_AEAD_LIBCRYPTO:
		return AEAD_BACKEND_LIBCRYPTO;
	case CONF_AEAD_IPSEC_MB:
		return AEAD_BACKEND_IPSEC_MB;
	case CONF_AEAD_AUTO:
		break;
	}
	return AEAD_BACKEND_AUTO;
}

static enum weft_err
start_node(struct keeper *k, const struct keeper_config *c)
{
	const struct conf_interface *i = c->conf ? &c->conf->interface : NULL;
	struct node_config nc = {
		.name = c->name,
		.log = &k->log,
		.workers = c->workers ? c->workers
			   : i        ? i->workers
				      : 0,
		.aead = choose_aead(c),
		.has_offload = !i || i->has_offload,
		.mtu = c->conf ? apply_choose_mtu(c->conf) : NODE_MTU_DEFAULT,
		.state_dir = c->state_dir,
		.has_news = c->has_news,
		.netns = c->netns,
		.no_tun = c->no_tun,
	};
	return node_new(&nc, &k->node);
}

/* All that can fail comes before anything is changed for good; old may be NULL. */
static enum weft_err
put_conf(struct keeper *k, const struct conf *old, const struct conf *fresh)
{
	struct names_list list;
	enum weft_err e = names_read(&k->names, fresh, os_clock_mono(), &list);
	if (e) {
		log_error(&k->log, "cannot read the endpoints: %s", weft_err_text(e));
		return e;
	}
	e = apply_conf(k->node, old, fresh, &k->log, &k->traces);
	if (e) {
		names_drop(&list);
		return e;
	}
	names_put(&k->names, &list);
	return WEFT_OK;
}

static enum weft_err
watch(struct keeper *k)
{
	enum weft_err e = os_loop_add(k->loop, node_event_fd(k->node), OS_READABLE, on_node, k);
	if (e) {
		return e;
	}
	e = os_loop_add(k->loop, node_monitor_fd(k->node), OS_READABLE, on_monitor, k);
	if (e) {
		os_loop_del(k->loop, node_event_fd(k->node));
	}
	return e;
}

enum weft_err
keeper_new(const struct keeper_config *c, struct os_loop *loop, struct keeper **out)
{
	struct keeper *k = calloc(1, sizeof(*k));
	if (!k) {
		return WEFT_ENOMEM;
	}
	k->log = *c->log;
	k->loop = loop;
	k->gone = c->gone;
	k->news = c->news;
	k->ctx = c->ctx;
	k->look_at = MONO_NEVER;
	k->renew_wait_ns = PORT_WAIT_FIRST_NS;
	enum weft_err e = start_node(k, c);
	if (e) {
		goto undo_keeper;
	}
	apply_init(&k->traces, k->node);
	k->traces.left = c->left;
	e = names_init(&k->names, k->node, loop, &k->log);
	if (e) {
		goto undo_node;
	}
	e = watch(k);
	if (e) {
		goto undo_names;
	}
	e = c->prepare ? c->prepare(c->ctx, k) : WEFT_OK;
	if (!e && c->conf) {
		e = put_conf(k, NULL, c->conf);
	}
	if (e) {
		goto undo_prepare;
	}
	k->conf = c->conf;
	*out = k;
	return WEFT_OK;

undo_prepare:
	if (c->unprepare) {
		c->unprepare(c->ctx);
	}
	os_loop_del(loop, node_event_fd(k->node));
	os_loop_del(loop, node_monitor_fd(k->node));
undo_names:
	names_fini(&k->names);
undo_node:
	node_free(k->node);
undo_keeper:
	free(k);
	return e;
}

struct conf *
keeper_end(struct keeper *k)
{
	struct conf *conf = k->conf;
	apply_undo(&k->traces, &k->log);
	names_fini(&k->names);
	os_loop_del(k->loop, node_event_fd(k->node));
	os_loop_del(k->loop, node_monitor_fd(k->node));
	node_free(k->node);
	free(k);
	return conf;
}

void
keeper_free(struct keeper *k)
{
	conf_free(keeper_end(k));
}

struct node *
keeper_node(const struct keeper *k)
{
	return k->node;
}

const struct conf *
keeper_conf(const struct keeper *k)
{
	return k->conf;
}

bool
keeper_name(const struct keeper *k, const uint8_t key[], struct keeper_name *out)
{
	const struct names_entry *e = names_find(&k->names, key);
	if (e) {
		*out = (struct keeper_name){
			.host = e->host ? e->host : e->scope,
			.is_found = e->name.found[0].family != IP_FAMILY_NONE ||
				    e->name.found[1].family != IP_FAMILY_NONE,
			.is_asked = e->name.state == NAME_STATE_ASKING,
			.answer = e->host ? e->answer : WEFT_ENOENT,
			.asked_at = e->name.asked_at,
		};
	}
	return e != NULL;
}

struct mono
keeper_deadline(const struct keeper *k)
{
	return mono_min(names_deadline(&k->names), k->look_at);
}

/* Is there a peer that is called in vain, and none that answers? */
static bool
is_cut_off(struct keeper *k, struct mono now)
{
	bool is_trying = false, has_answer = false;
	const struct wg_device *d = node_lock_shared(k->node);
	struct wg_peer *p = wg_peer_next(d, NULL);
	for (; p && !has_answer; p = wg_peer_next(d, p)) {
		struct wg_peer_info info;
		wg_peer_info(p, &info);
		is_trying |= info.unanswered >= PORT_TRIES;
		has_answer = info.unanswered < PORT_TRIES && wg_peer_can_send(p, now);
	}
	node_unlock_shared(k->node);
	return is_trying && !has_answer;
}

/* A router on the way may have come to dislike the flow between the two ports. */
static void
renew_port(struct keeper *k, struct mono now)
{
	struct node_facts facts;
	node_facts(k->node, &facts);
	if (facts.is_port_fixed || !is_cut_off(k, now)) {
		return;
	}
	if (mono_diff_ns(now, k->renewed_at) > 2 * PORT_WAIT_MAX_NS) {
		k->renew_wait_ns = PORT_WAIT_FIRST_NS; /* another trouble */
	}
	if (mono_is_before(now, mono_add_ns(k->renewed_at, k->renew_wait_ns))) {
		return;
	}
	enum weft_err e = node_renew_port(k->node);
	if (e == WEFT_EEXIST) {
		return;
	}
	node_facts(k->node, &facts);
	k->renewed_at = now;
	k->renew_wait_ns =
		k->renew_wait_ns * 2 < PORT_WAIT_MAX_NS ? k->renew_wait_ns * 2 : PORT_WAIT_MAX_NS;
	if (e) {
		log_warn(&k->log, "%s: cannot renew the port: %s", facts.name, weft_err_text(e));
	} else {
		log_info(&k->log, "%s: no answer from any peer; the port is now %u", facts.name,
			facts.listen_port);
	}
}

void
keeper_turn(struct keeper *k, struct mono now)
{
	names_turn(&k->names, now);
	if (!mono_is_before(now, k->look_at)) {
		k->look_at = MONO_NEVER;
		k->looked_at = now;
		names_look(&k->names, now);
		renew_port(k, now);
	}
}

/* What is made once, at the start. */
static void
warn_of_fixed(const struct keeper *k, const struct conf_interface *fresh)
{
	const struct conf_interface *i = &k->conf->interface;
	if (i->workers != fresh->workers || i->has_offload != fresh->has_offload ||
		i->aead != fresh->aead) {
		log_warn(&k->log, "Workers, Offload and Aead change with the next start");
	}
}

enum weft_err
keeper_reload(struct keeper *k, struct conf *fresh)
{
	/* Whatever `wg set` has made of a device without configuration gives way, too. */
	const struct conf empty = {.interface = {.has_offload = true}};
	enum weft_err e = put_conf(k, k->conf ? k->conf : &empty, fresh);
	if (e) {
		return e;
	}
	if (k->conf) {
		warn_of_fixed(k, &fresh->interface);
	}
	conf_free(k->conf);
	k->conf = fresh;
	return WEFT_OK;
}
