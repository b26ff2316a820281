/* SPDX-License-Identifier: Apache-2.0 */
#include "quick/save.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"
#include "node/node.h"
#include "os/file.h"
#include "wg/device.h"
#include "wire/conf.h"
#include "wire/conf_edit.h"

#define PATH_BYTES 4096
#define SUFFIX ".weft-save"

void
save_copy_fini(struct save_copy *c)
{
	if (c->peers) {
		secret_wipe(c->peers, c->state.peers_n * sizeof(*c->peers));
	}
	free(c->peers);
	free(c->prefixes);
	secret_wipe(c, sizeof(*c));
}

static size_t
count_prefixes(const struct wg_device *d)
{
	size_t n = 0;
	for (struct wg_peer *p = wg_peer_next(d, NULL); p; p = wg_peer_next(d, p)) {
		struct ip_prefix prefix;
		for (void *cursor = NULL; wg_peer_allowed_next(p, &cursor, &prefix);) {
			n++;
		}
	}
	return n;
}

static void
take_peer(struct save_copy *c, const struct wg_peer *p, struct conf_state_peer *s)
{
	struct wg_peer_info info;
	wg_peer_info(p, &info);
	memcpy(s->public_key, info.public_key, KEY_LEN);
	s->has_psk = info.has_psk;
	wg_peer_psk(p, s->psk);
	s->addr = info.endpoint.addr;
	s->port = info.endpoint.port;
	s->scope = info.endpoint.scope_id;
	s->keepalive_s = info.keepalive_s;
	s->allowed = c->prefixes + c->prefixes_n;
	for (void *cursor = NULL; wg_peer_allowed_next(p, &cursor, &c->prefixes[c->prefixes_n]);) {
		c->prefixes_n++;
		s->allowed_n++;
	}
}

/* Under the lock. */
static enum weft_err
take_peers(struct save_copy *c, const struct wg_device *d)
{
	c->peers = calloc(wg_device_peer_count(d) + 1, sizeof(*c->peers));
	c->prefixes = calloc(count_prefixes(d) + 1, sizeof(*c->prefixes));
	if (!c->peers || !c->prefixes) {
		return WEFT_ENOMEM;
	}
	for (struct wg_peer *p = wg_peer_next(d, NULL); p; p = wg_peer_next(d, p)) {
		take_peer(c, p, &c->peers[c->state.peers_n++]);
	}
	c->state.peers = c->peers;
	c->state.has_private_key = wg_device_private_key(d, c->state.private_key);
	return WEFT_OK;
}

enum weft_err
save_copy_take(struct node *n, uint32_t mark, struct save_copy *c)
{
	struct node_facts facts;
	*c = (struct save_copy){0};
	node_facts(n, &facts);
	c->state.listen_port = facts.listen_port;
	c->state.has_listen_port = facts.is_port_fixed;
	c->state.fwmark = facts.fwmark;
	c->state.has_fwmark = facts.fwmark != mark;
	const struct wg_device *d = node_lock_shared(n);
	enum weft_err e = take_peers(c, d);
	node_unlock_shared(n);
	return e;
}

static enum weft_err
write_text(const char *path, const char *old, size_t old_len, const char *text, size_t len,
	uint64_t *sum, char *why, size_t cap)
{
	char other[PATH_BYTES + sizeof(SUFFIX)];
	bool is_changed = conf_text_sum(old, old_len) != *sum;
	if (!is_changed && len == old_len && memcmp(old, text, len) == 0) {
		return WEFT_OK;
	}
	if (len > CONF_BYTES_MAX) {
		snprintf(why, cap,
			"%s is not saved: it would have %zu bytes, and %u are read at most", path,
			len, CONF_BYTES_MAX);
		return WEFT_EMSGSIZE;
	}
	snprintf(other, sizeof(other), "%s" SUFFIX, path);
	enum weft_err e = os_file_write(is_changed ? other : path, text, len, 0600);
	if (e) {
		snprintf(why, cap, "cannot write %s: %s", is_changed ? other : path,
			weft_err_text(e));
		return e;
	}
	if (is_changed) {
		snprintf(why, cap,
			"%s was changed since it came into force, and is left alone; with "
			"what runs it is %s",
			path, other);
		return WEFT_EEXIST;
	}
	*sum = conf_text_sum(text, len);
	return WEFT_OK;
}

enum weft_err
save_write(const struct conf_state *state, const char *path, uint64_t *sum, char *why, size_t cap)
{
	char real[PATH_BYTES];
	char *old, *text;
	size_t old_len, len;
	/* A symbolic link stays one. */
	enum weft_err e = os_file_real(path, real, sizeof(real));
	e = e ? e : os_file_read(real, CONF_BYTES_MAX, &old, &old_len);
	if (e) {
		snprintf(why, cap, "cannot read %s: %s", path, weft_err_text(e));
		return e;
	}
	e = conf_edit(old, old_len, state, &text, &len);
	if (e) {
		snprintf(why, cap, "%s is not saved: %s", path,
			e == WEFT_EPARSE ? "it was changed and has faults" : weft_err_text(e));
	} else {
		e = write_text(real, old, old_len, text, len, sum, why, cap);
		conf_text_free(text, len);
	}
	conf_text_free(old, old_len);
	return e;
}

bool
save_clean(const char *path)
{
	char other[PATH_BYTES + sizeof(SUFFIX)];
	snprintf(other, sizeof(other), "%s" SUFFIX, path);
	bool is_done = os_file_sweep(path);
	return os_file_sweep(other) || is_done;
}
