/* SPDX-License-Identifier: Apache-2.0 */
#include "node/keeper.h"

#include <stdlib.h>
#include <string.h>

#include "node/apply.h"
#include "node/node.h"
#include "os/clock.h"
#include "os/loop.h"
#include "wire/conf.h"

/* Names that did not resolve at the start are asked again after 5 s, then ever later, up to a
 * minute. */
#define RESOLVE_FIRST_NS (5 * WEFT_NS_PER_S)
#define RESOLVE_MAX_NS (60 * WEFT_NS_PER_S)

struct keeper {
	struct log log;
	struct os_loop *loop;
	struct node *node;
	struct conf *conf;
	struct apply_traces traces;
	void (*gone)(void *ctx);
	void (*news)(void *ctx);
	void *ctx;
	bool *is_resolved; /* one a peer of the configuration */
	struct mono resolve_at;
	int64_t resolve_wait_ns;
};

static void
on_node(void *ctx, uint32_t events)
{
	struct keeper *k = ctx;
	(void)events;
	node_take_events(k->node);
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
	};
	return node_new(&nc, &k->node);
}

static enum weft_err
start_conf(struct keeper *k, const struct conf *c)
{
	k->is_resolved = calloc(c->peers_n + 1, sizeof(bool));
	if (!k->is_resolved) {
		return WEFT_ENOMEM;
	}
	return apply_conf(k->node, c, k->is_resolved, &k->log, &k->traces);
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
	if (c->netns || c->no_tun) {
		return WEFT_ENOTSUP; /* node_config has no place for them yet */
	}
	struct keeper *k = calloc(1, sizeof(*k));
	if (!k) {
		return WEFT_ENOMEM;
	}
	k->log = *c->log;
	k->loop = loop;
	k->gone = c->gone;
	k->news = c->news;
	k->ctx = c->ctx;
	k->resolve_at = MONO_NEVER;
	k->resolve_wait_ns = RESOLVE_FIRST_NS;
	enum weft_err e = start_node(k, c);
	if (e) {
		goto undo_keeper;
	}
	e = watch(k);
	if (e) {
		goto undo_node;
	}
	if (c->conf) {
		e = start_conf(k, c->conf);
		if (e) {
			goto undo_watch;
		}
		k->resolve_at = mono_add_ns(os_clock_mono(), k->resolve_wait_ns);
	}
	k->conf = c->conf;
	*out = k;
	return WEFT_OK;

undo_watch:
	os_loop_del(loop, node_event_fd(k->node));
	os_loop_del(loop, node_monitor_fd(k->node));
undo_node:
	node_free(k->node);
undo_keeper:
	free(k->is_resolved);
	free(k);
	return e;
}

void
keeper_free(struct keeper *k)
{
	if (k->conf) {
		apply_undo(&k->traces, &k->log);
	}
	os_loop_del(k->loop, node_event_fd(k->node));
	os_loop_del(k->loop, node_monitor_fd(k->node));
	node_free(k->node);
	conf_free(k->conf);
	free(k->is_resolved);
	free(k);
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

struct mono
keeper_deadline(const struct keeper *k)
{
	return k->resolve_at;
}

/* Endpoints given by name that did not resolve before. */
void
keeper_turn(struct keeper *k, struct mono now)
{
	size_t left;
	if (mono_is_before(now, k->resolve_at)) {
		return;
	}
	apply_resolve(k->node, k->conf, k->is_resolved, &k->log, &left);
	if (left == 0) {
		k->resolve_at = MONO_NEVER;
		return;
	}
	k->resolve_at = mono_add_ns(os_clock_mono(), k->resolve_wait_ns);
	k->resolve_wait_ns *= 2;
	if (k->resolve_wait_ns > RESOLVE_MAX_NS) {
		k->resolve_wait_ns = RESOLVE_MAX_NS;
	}
}

enum weft_err
keeper_reload(struct keeper *k, struct conf *fresh)
{
	(void)fresh;
	log_error(&k->log, "reload is not there yet");
	return WEFT_ENOTSUP;
}
