/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/conf_edit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"
#include "wire/conf_lines.h"

#define VALUE_MAX 128

struct edit {
	struct conf_lines lines;
	const struct conf *conf; /* what the text says */
	const struct conf_state *state;
	const struct conf_state_peer **peer_states; /* of each [Peer] section; NULL: gone */
	const struct conf_state_peer **by_key;      /* sorted */
	size_t *first_line;   /* of each [Peer] section; one more for the end */
	size_t *last_section; /* of each [Peer] section, the last one with the same key */
};

void
conf_text_free(char *text, size_t len)
{
	if (text) {
		secret_wipe(text, len);
		free(text);
	}
}

/* FNV-1a: against oversights, not against forgers. */
uint64_t
conf_text_sum(const char *text, size_t len)
{
	uint64_t h = 0xcbf29ce484222325u;
	for (size_t i = 0; i < len; i++) {
		h = (h ^ (uint8_t)text[i]) * 0x100000001b3u;
	}
	return h ^ len;
}

static bool
is_item(const struct conf_line *l, enum conf_key_id id)
{
	return l->kind == CONF_LINE_ITEM && l->key && l->key->id == id && !l->is_removed;
}

static size_t
section_end(const struct edit *e, size_t peer)
{
	size_t i = e->first_line[peer];
	while (i < e->lines.n && e->lines.v[i].peer == peer) {
		i++;
	}
	return i;
}

/* Gives every line of that key in a section the value; value NULL: removes them. Without one, a
 * line is added behind the one of another key, or behind the section's head. peer:
 * CONF_LINE_NO_PEER for [Interface]. */
static void
put(struct edit *e, size_t peer, enum conf_key_id id, const char *name, const char *value)
{
	struct conf_line *behind = NULL;
	bool is_there = false, is_of_peer = peer != CONF_LINE_NO_PEER;
	size_t end = is_of_peer ? section_end(e, peer) : e->lines.n;
	for (size_t i = is_of_peer ? e->first_line[peer] : 0; i < end; i++) {
		struct conf_line *l = &e->lines.v[i];
		if (!is_of_peer && l->section != CONF_SECTION_INTERFACE) {
			continue;
		}
		if (is_item(l, id)) {
			is_there = true;
			l->is_removed = !value;
			if (value) {
				conf_line_set(&e->lines, l, value);
			}
		}
		bool is_anchor = l->kind == CONF_LINE_SECTION || is_item(l, CONF_KEY_PUBLIC_KEY) ||
				 is_item(l, CONF_KEY_PRIVATE_KEY);
		behind = is_anchor && (!behind || l->kind == CONF_LINE_ITEM) ? l : behind;
	}
	if (value && !is_there && behind) {
		char line[VALUE_MAX + 40];
		snprintf(line, sizeof(line), "%s = %s", name, value);
		conf_line_add(&e->lines, behind, line);
		secret_wipe(line, sizeof(line));
	}
}

static void
edit_interface(struct edit *e)
{
	const struct conf_interface *i = &e->conf->interface;
	const struct conf_state *s = e->state;
	char value[VALUE_MAX];
	if (s->has_listen_port && s->listen_port != i->listen_port) {
		snprintf(value, sizeof(value), "%u", s->listen_port);
		put(e, CONF_LINE_NO_PEER, CONF_KEY_LISTEN_PORT, "ListenPort", value);
	}
	if (s->has_fwmark && s->fwmark != i->fwmark) {
		snprintf(value, sizeof(value), "0x%" PRIx32, s->fwmark);
		put(e, CONF_LINE_NO_PEER, CONF_KEY_FWMARK, "FwMark", s->fwmark ? value : NULL);
	}
	if (s->has_private_key && i->has_private_key &&
		!secret_is_equal(s->private_key, i->private_key, KEY_LEN)) {
		put(e, CONF_LINE_NO_PEER, CONF_KEY_PRIVATE_KEY, "PrivateKey",
			key_encode_base64(s->private_key, value));
	}
	secret_wipe(value, sizeof(value));
}

/* --- peers --- */

static int
compare_states(const void *a, const void *b)
{
	const struct conf_state_peer *const *x = a, *const *y = b;
	return memcmp((*x)->public_key, (*y)->public_key, KEY_LEN);
}

static const struct conf_state_peer *
find_state(const struct edit *e, const uint8_t *key)
{
	struct conf_state_peer wanted;
	const struct conf_state_peer *p = &wanted, **found;
	memcpy(wanted.public_key, key, KEY_LEN);
	found = e->state->peers_n == 0 ? NULL
				       : bsearch(&p, e->by_key, e->state->peers_n,
						 sizeof(*e->by_key), compare_states);
	return found ? *found : NULL;
}

static bool
has_prefix(const struct conf_state_peer *s, const struct ip_prefix *p)
{
	for (size_t i = 0; s && i < s->allowed_n; i++) {
		if (s->allowed[i].bits == p->bits &&
			ip_addr_is_equal(&s->allowed[i].addr, &p->addr)) {
			return true;
		}
	}
	return false;
}

/* Does a section behind this one keep the prefix? Then it counts for nothing here. */
static bool
is_shadowed(const struct edit *e, size_t section, const struct ip_prefix *p)
{
	for (size_t i = section + 1; i < e->conf->peers_n; i++) {
		const struct conf_prefixes *v = &e->conf->peers[i].allowed;
		for (size_t k = 0; k < v->n; k++) {
			if (v->v[k].prefix.bits == p->bits &&
				ip_addr_is_equal(&v->v[k].prefix.addr, &p->addr) &&
				has_prefix(e->peer_states[i], p)) {
				return true;
			}
		}
	}
	return false;
}

static bool
stays(const struct edit *e, size_t section, const struct ip_prefix *p)
{
	return has_prefix(e->peer_states[section], p) || is_shadowed(e, section, p);
}

/* Is it effective in one of the peer's sections? */
static bool
is_in_file(const struct edit *e, const struct conf_state_peer *s, const struct ip_prefix *p)
{
	for (size_t i = 0; i < e->conf->peers_n; i++) {
		const struct conf_prefixes *v = &e->conf->peers[i].allowed;
		for (size_t k = 0; e->peer_states[i] == s && k < v->n; k++) {
			if (v->v[k].prefix.bits == p->bits &&
				ip_addr_is_equal(&v->v[k].prefix.addr, &p->addr)) {
				return true;
			}
		}
	}
	return false;
}

/* Leaves of a line's list what stays. */
static void
prune_line(struct edit *e, struct conf_line *l)
{
	struct conf_report *none = calloc(1, sizeof(*none));
	struct conf_buffer b = CONF_BUFFER_EMPTY;
	struct conf_value rest = {.p = e->lines.text + l->value, .len = l->value_end - l->value};
	struct conf_value item;
	bool is_changed = false;
	while (none && conf_value_next(&rest, false, &item)) {
		struct ip_prefix p;
		item.key = l->key;
		if (!conf_value_allowed(none, &item, &p) || !stays(e, l->peer, &p)) {
			is_changed = true;
			continue;
		}
		conf_buffer_text(&b, b.len ? ", " : "");
		conf_buffer_add(&b, item.p, item.len);
	}
	e->lines.has_memory &= none && b.has_memory;
	l->is_removed = is_changed && b.len == 0;
	if (is_changed && b.len > 0) {
		conf_line_set(&e->lines, l, b.p);
	}
	conf_buffer_fini(&b);
	free(none);
}

/* What the file does not have, in the section's last line of AllowedIPs, or one of its own. */
static void
add_prefixes(struct edit *e, size_t section, const struct conf_state_peer *s)
{
	struct conf_buffer b = CONF_BUFFER_EMPTY;
	struct conf_line *last = NULL;
	char text[IP_PREFIX_TEXT_MAX];
	size_t end = section_end(e, section);
	for (size_t i = e->first_line[section]; i < end; i++) {
		if (is_item(&e->lines.v[i], CONF_KEY_ALLOWED_IPS)) {
			last = &e->lines.v[i];
		}
	}
	if (last && last->fresh) {
		conf_buffer_text(&b, last->fresh);
	} else if (last) {
		conf_buffer_add(&b, e->lines.text + last->value, last->value_end - last->value);
	}
	size_t before = b.len;
	for (size_t i = 0; i < s->allowed_n; i++) {
		if (!is_in_file(e, s, &s->allowed[i])) {
			conf_buffer_text(&b, b.len ? ", " : "");
			conf_buffer_text(&b, ip_prefix_format(&s->allowed[i], text));
		}
	}
	e->lines.has_memory &= b.has_memory;
	if (b.len > before && last) {
		conf_line_set(&e->lines, last, b.p);
	} else if (b.len > before) {
		struct conf_buffer line = CONF_BUFFER_EMPTY;
		conf_buffer_text(&line, "AllowedIPs = ");
		conf_buffer_add(&line, b.p, b.len);
		for (size_t i = end; line.has_memory && i-- > e->first_line[section];) {
			if (is_item(&e->lines.v[i], CONF_KEY_PUBLIC_KEY)) {
				conf_line_add(&e->lines, &e->lines.v[i], line.p);
				break;
			}
		}
		e->lines.has_memory &= line.has_memory;
		conf_buffer_fini(&line);
	}
	conf_buffer_fini(&b);
}

static void
format_endpoint(const struct conf_state_peer *s, char out[VALUE_MAX])
{
	char addr[IP_ADDR_TEXT_MAX], scope[16] = "";
	ip_addr_format(&s->addr, addr);
	if (s->scope) {
		snprintf(scope, sizeof(scope), "%%%" PRIu32, s->scope);
	}
	snprintf(out, VALUE_MAX, s->addr.family == IP_FAMILY_V6 ? "[%s%s]:%u" : "%s%s:%u", addr,
		scope, s->port);
}

/* What the file says of a peer, which may have several sections: the last word counts. */
struct words {
	bool has_psk;
	const uint8_t *psk;
	uint16_t keepalive_s;
	const struct conf_endpoint *endpoint;
};

static struct words
words_of(const struct edit *e, const struct conf_state_peer *s)
{
	struct words w = {0};
	for (size_t i = 0; i < e->conf->peers_n; i++) {
		const struct conf_peer *p = &e->conf->peers[i];
		if (e->peer_states[i] != s) {
			continue;
		}
		if (p->psk_pos.line) {
			w.has_psk = p->has_psk;
			w.psk = p->psk;
		}
		w.keepalive_s = p->keepalive_pos.line ? p->keepalive_s : w.keepalive_s;
		w.endpoint = p->endpoint.host ? &p->endpoint : w.endpoint;
	}
	return w;
}

/* Sets the value in all sections that have it, and in the last if none has. */
static void
put_in_sections(
	struct edit *e, size_t last, enum conf_key_id id, const char *name, const char *value)
{
	bool is_there = false;
	for (size_t i = 0; i < e->lines.n; i++) {
		const struct conf_line *l = &e->lines.v[i];
		if (l->peer == CONF_LINE_NO_PEER || e->last_section[l->peer] != last ||
			!is_item(l, id)) {
			continue;
		}
		is_there = true;
		/* A name of a host stays, also where a later section has an address. */
		if (id != CONF_KEY_ENDPOINT ||
			e->conf->peers[l->peer].endpoint.addr.family != IP_FAMILY_NONE) {
			put(e, l->peer, id, name, value);
		}
	}
	if (!is_there) {
		put(e, last, id, name, value);
	}
}

static void
edit_peer(struct edit *e, size_t last, const struct conf_state_peer *s)
{
	struct words w = words_of(e, s);
	char value[VALUE_MAX];
	if (w.has_psk != s->has_psk || (w.has_psk && !secret_is_equal(w.psk, s->psk, KEY_LEN))) {
		put_in_sections(e, last, CONF_KEY_PRESHARED_KEY, "PresharedKey",
			s->has_psk ? key_encode_base64(s->psk, value) : NULL);
	}
	if (w.keepalive_s != s->keepalive_s) {
		snprintf(value, sizeof(value), "%u", s->keepalive_s);
		put_in_sections(e, last, CONF_KEY_PERSISTENT_KEEPALIVE, "PersistentKeepalive",
			s->keepalive_s ? value : NULL);
	}
	bool has_address = w.endpoint && w.endpoint->addr.family != IP_FAMILY_NONE;
	if (has_address && s->addr.family != IP_FAMILY_NONE &&
		(w.endpoint->port != s->port || !ip_addr_is_equal(&w.endpoint->addr, &s->addr))) {
		format_endpoint(s, value);
		put_in_sections(e, last, CONF_KEY_ENDPOINT, "Endpoint", value);
	}
	add_prefixes(e, last, s);
	secret_wipe(value, sizeof(value));
}

/* The section goes with the comments right above it, but not with those right above the next. */
static void
remove_sections(struct edit *e)
{
	size_t stop = e->lines.n;
	for (size_t i = e->lines.n; i-- > 0;) {
		struct conf_line *l = &e->lines.v[i];
		if (l->kind != CONF_LINE_SECTION) {
			continue;
		}
		size_t begin = i;
		while (begin > 0 && e->lines.v[begin - 1].kind == CONF_LINE_BLANK &&
			e->lines.v[begin - 1].comment < e->lines.v[begin - 1].content_end) {
			begin--;
		}
		if (l->peer != CONF_LINE_NO_PEER && !e->peer_states[l->peer]) {
			for (size_t k = begin; k < stop; k++) {
				struct conf_line *gone = &e->lines.v[k];
				gone->is_removed = true;
				gone->comment = gone->content_end; /* it spoke of the peer */
			}
		}
		stop = begin;
	}
}

static void
add_peer(struct edit *e, const struct conf_state_peer *s)
{
	struct conf_line *end = &e->lines.v[e->lines.n - 1];
	struct conf_buffer b = CONF_BUFFER_EMPTY;
	char text[VALUE_MAX], line[VALUE_MAX + 40];
	bool has_gap = end->after.len == 0 && end->kind == CONF_LINE_BLANK &&
		       end->comment == end->content_end && !end->is_removed;
	if (!has_gap) {
		conf_line_add(&e->lines, end, "");
	}
	conf_line_add(&e->lines, end, "[Peer]");
	snprintf(line, sizeof(line), "PublicKey = %s", key_encode_base64(s->public_key, text));
	conf_line_add(&e->lines, end, line);
	if (s->has_psk) {
		snprintf(line, sizeof(line), "PresharedKey = %s", key_encode_base64(s->psk, text));
		conf_line_add(&e->lines, end, line);
	}
	conf_buffer_text(&b, "AllowedIPs = ");
	for (size_t i = 0; i < s->allowed_n; i++) {
		conf_buffer_text(&b, i ? ", " : "");
		conf_buffer_text(&b, ip_prefix_format(&s->allowed[i], text));
	}
	e->lines.has_memory &= b.has_memory;
	if (s->allowed_n > 0 && b.has_memory) {
		conf_line_add(&e->lines, end, b.p);
	}
	if (s->addr.family != IP_FAMILY_NONE) {
		format_endpoint(s, text);
		snprintf(line, sizeof(line), "Endpoint = %s", text);
		conf_line_add(&e->lines, end, line);
	}
	if (s->keepalive_s) {
		snprintf(line, sizeof(line), "PersistentKeepalive = %u", s->keepalive_s);
		conf_line_add(&e->lines, end, line);
	}
	conf_buffer_fini(&b);
	secret_wipe(text, sizeof(text));
	secret_wipe(line, sizeof(line));
}

static bool
is_in_sections(const struct edit *e, const struct conf_state_peer *s)
{
	for (size_t i = 0; i < e->conf->peers_n; i++) {
		if (e->peer_states[i] == s) {
			return true;
		}
	}
	return false;
}

static void
edit_peers(struct edit *e)
{
	for (size_t i = 0; i < e->lines.n; i++) {
		struct conf_line *l = &e->lines.v[i];
		if (l->peer != CONF_LINE_NO_PEER && e->peer_states[l->peer] &&
			l->value < l->value_end && is_item(l, CONF_KEY_ALLOWED_IPS)) {
			prune_line(e, l);
		}
	}
	for (size_t i = 0; i < e->conf->peers_n; i++) {
		if (e->peer_states[i] && e->last_section[i] == i) {
			edit_peer(e, i, e->peer_states[i]);
		}
	}
	remove_sections(e);
	for (size_t i = 0; i < e->state->peers_n; i++) {
		if (!is_in_sections(e, &e->state->peers[i])) {
			add_peer(e, &e->state->peers[i]);
		}
	}
}

static enum weft_err
match(struct edit *e)
{
	size_t n = e->conf->peers_n;
	e->peer_states = calloc(n + 1, sizeof(*e->peer_states));
	e->last_section = calloc(n + 1, sizeof(*e->last_section));
	e->first_line = calloc(n + 1, sizeof(*e->first_line));
	e->by_key = calloc(e->state->peers_n + 1, sizeof(*e->by_key));
	if (!e->peer_states || !e->first_line || !e->last_section || !e->by_key) {
		return WEFT_ENOMEM;
	}
	for (size_t i = 0; i < e->state->peers_n; i++) {
		e->by_key[i] = &e->state->peers[i];
	}
	for (size_t i = e->lines.n; i-- > 0;) {
		if (e->lines.v[i].peer != CONF_LINE_NO_PEER) {
			e->first_line[e->lines.v[i].peer] = i;
		}
	}
	qsort(e->by_key, e->state->peers_n, sizeof(*e->by_key), compare_states);
	for (size_t i = 0; i < n; i++) {
		e->peer_states[i] = find_state(e, e->conf->peers[i].public_key);
		e->last_section[i] = i;
		for (size_t k = 0; k < i && e->peer_states[i]; k++) {
			if (e->peer_states[k] == e->peer_states[i]) {
				e->last_section[k] = i;
			}
		}
	}
	return WEFT_OK;
}

enum weft_err
conf_edit(const char *text, size_t len, const struct conf_state *s, char **out, size_t *out_len)
{
	struct edit e = {.state = s};
	struct conf *c;
	struct conf_report *report = calloc(1, sizeof(*report));
	enum weft_err err = report ? conf_parse(text, len, NULL, &c, report) : WEFT_ENOMEM;
	free(report);
	if (err) {
		return err;
	}
	e.conf = c;
	err = conf_lines_cut(text, len, &e.lines);
	err = err ? err : match(&e);
	if (!err) {
		edit_interface(&e);
		edit_peers(&e);
		*out = conf_lines_join(&e.lines, out_len);
		err = *out ? WEFT_OK : WEFT_ENOMEM;
	}
	conf_lines_fini(&e.lines);
	free(e.peer_states);
	free(e.first_line);
	free(e.last_section);
	free(e.by_key);
	conf_free(c);
	return err;
}
