/* SPDX-License-Identifier: Apache-2.0 */
/* Items of a configuration file on their way into struct conf. */
#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"
#include "wire/conf_internal.h"

void *
conf_grow(void *v, size_t n, size_t *cap, size_t size)
{
	if (n < *cap) {
		return v;
	}
	size_t more = *cap ? *cap * 2 : 4;
	void *bigger = calloc(more, size);
	if (!bigger) {
		return NULL;
	}
	if (v) {
		memcpy(bigger, v, n * size);
		secret_wipe(v, n * size);
		free(v);
	}
	*cap = more;
	return bigger;
}

static bool
add_prefix(struct conf_reader *p, struct conf_prefixes *to, const struct ip_prefix *prefix,
	struct conf_pos pos)
{
	struct conf_prefix *v = conf_grow(to->v, to->n, &to->cap, sizeof(*v));
	if (!v) {
		return p->has_memory = false;
	}
	to->v = v;
	to->v[to->n++] = (struct conf_prefix){*prefix, pos};
	return true;
}

static bool
add_text(struct conf_reader *p, struct conf_texts *to, const struct conf_value *value)
{
	struct conf_text *v = conf_grow(to->v, to->n, &to->cap, sizeof(*v));
	if (!v) {
		return p->has_memory = false;
	}
	to->v = v;
	char *text = malloc(value->len + 1);
	if (!text) {
		return p->has_memory = false;
	}
	memcpy(text, value->p, value->len);
	text[value->len] = 0;
	to->v[to->n++] = (struct conf_text){text, value->pos};
	return true;
}

/* Notes where a key that counts once stands. It may be there twice with one value; with two,
 * the stock tools take the last in silence, which hides a mistake. */
static void
set_pos(struct conf_reader *p, const struct conf_value *v, struct conf_pos *slot, bool is_same)
{
	if (slot->line != 0) {
		conf_note_add(p->report, is_same ? CONF_SEVERITY_WARNING : CONF_SEVERITY_ERROR,
			v->pos, slot->line, v->key->name, "given before, in line %u%s", slot->line,
			is_same                             ? " with the same value"
			: v->key->id == CONF_KEY_PUBLIC_KEY ? "; is a [Peer] line missing?"
							    : " with another value");
		return;
	}
	*slot = v->pos;
}

static void
read_key(struct conf_reader *p, const struct conf_value *v, uint8_t out[KEY_LEN],
	struct conf_pos *slot)
{
	uint8_t key[KEY_LEN];
	if (conf_value_key(p->report, v, key)) {
		set_pos(p, v, slot, secret_is_equal(key, out, KEY_LEN));
		memcpy(out, key, KEY_LEN);
	}
	secret_wipe(key, sizeof(key));
}

/* A switch, with the words for its two states. */
static void
read_switch(struct conf_reader *p, const struct conf_value *v, const char *const words[2],
	bool *out, struct conf_pos *slot)
{
	bool is_on;
	if (conf_value_switch(p->report, v, words[0], words[1], &is_on)) {
		set_pos(p, v, slot, is_on == *out);
		*out = is_on;
	}
}

static void
read_u16(struct conf_reader *p, const struct conf_value *v, uint32_t min, uint16_t *out,
	struct conf_pos *slot)
{
	uint32_t n;
	if (conf_value_number(p->report, v, min, 65535, &n)) {
		set_pos(p, v, slot, n == *out);
		*out = (uint16_t)n;
	}
}

static void
read_private_key(struct conf_reader *p, const struct conf_value *v)
{
	struct conf_interface *i = &p->conf->interface;
	size_t before = p->report->errors;
	read_key(p, v, i->private_key, &i->private_key_pos);
	if (p->report->errors != before) {
		return;
	}
	if (secret_is_zero(i->private_key, KEY_LEN)) {
		conf_value_refuse(
			p->report, v, "a key of zeros is no key; make one by weft genkey");
		return;
	}
	i->has_private_key = true;
}

static void
read_public_key(struct conf_reader *p, const struct conf_value *v)
{
	size_t before = p->report->errors;
	read_key(p, v, p->peer->public_key, &p->peer->public_key_pos);
	if (p->report->errors == before && secret_is_zero(p->peer->public_key, KEY_LEN)) {
		conf_value_refuse(p->report, v, "a key of zeros is nobody's");
	}
}

static void
read_preshared_key(struct conf_reader *p, const struct conf_value *v)
{
	read_key(p, v, p->peer->psk, &p->peer->psk_pos);
	p->peer->has_psk = !secret_is_zero(p->peer->psk, KEY_LEN);
}

static void
read_fwmark(struct conf_reader *p, const struct conf_value *v)
{
	struct conf_interface *i = &p->conf->interface;
	uint32_t mark;
	if (conf_value_fwmark(p->report, v, &mark)) {
		set_pos(p, v, &i->fwmark_pos, mark == i->fwmark);
		i->fwmark = mark;
	}
}

static void
read_mtu(struct conf_reader *p, const struct conf_value *v)
{
	struct conf_interface *i = &p->conf->interface;
	size_t before = p->report->errors;
	read_u16(p, v, 1, &i->mtu, &i->mtu_pos);
	/* RFC 791: every host takes 68 bytes; a TUN device refuses less. */
	if (p->report->errors == before && i->mtu < 68) {
		conf_value_warn(p->report, v, "less than 68, the least that IPv4 works with");
	}
}

static void
read_table(struct conf_reader *p, const struct conf_value *v)
{
	struct conf_interface *i = &p->conf->interface;
	struct conf_interface t = {0};
	if (conf_value_table(p->report, v, &t)) {
		set_pos(p, v, &i->table_pos,
			t.table == i->table && t.table_number == i->table_number &&
				strcmp(t.table_name, i->table_name) == 0);
		i->table = t.table;
		i->table_number = t.table_number;
		memcpy(i->table_name, t.table_name, sizeof(i->table_name));
	}
}

static void
read_workers(struct conf_reader *p, const struct conf_value *v)
{
	struct conf_interface *i = &p->conf->interface;
	uint32_t n = 0;
	if (conf_value_is(v, "auto") || conf_value_number(p->report, v, 1, CONF_WORKERS_MAX, &n)) {
		set_pos(p, v, &i->workers_pos, n == i->workers);
		i->workers = n;
	}
}

static void
read_aead(struct conf_reader *p, const struct conf_value *v)
{
	static const char *const words[] = {"auto", "libcrypto", "ipsec-mb"};
	struct conf_interface *i = &p->conf->interface;
	char quote[CONF_QUOTE_MAX];
	for (unsigned k = 0; k < WEFT_ARRAY_LEN(words); k++) {
		if (conf_value_is(v, words[k])) {
			set_pos(p, v, &i->aead_pos, i->aead == (enum conf_aead)k);
			i->aead = (enum conf_aead)k;
			return;
		}
	}
	conf_value_refuse(p->report, v, "%sis neither auto, libcrypto nor ipsec-mb",
		conf_value_quote(v, quote));
}

/* Address and DNS are split at blanks too, and nothing between two commas is nothing. */
static void
read_addresses(struct conf_reader *p, const struct conf_value *v)
{
	struct conf_value rest = *v, item;
	while (p->has_memory && conf_value_next(&rest, true, &item)) {
		struct ip_prefix prefix;
		if (item.len > 0 && conf_value_address(p->report, &item, &prefix)) {
			add_prefix(p, &p->conf->interface.addresses, &prefix, item.pos);
		}
	}
}

static void
read_dns(struct conf_reader *p, const struct conf_value *v)
{
	struct conf_interface *i = &p->conf->interface;
	struct conf_value rest = *v, item;
	while (p->has_memory && conf_value_next(&rest, true, &item)) {
		bool is_server;
		if (item.len > 0 && conf_value_dns(p->report, &item, &is_server)) {
			add_text(p, is_server ? &i->dns : &i->dns_search, &item);
		}
	}
}

static void
read_allowed(struct conf_reader *p, const struct conf_value *v)
{
	struct conf_value rest = *v, item;
	while (p->has_memory && conf_value_next(&rest, false, &item)) {
		struct ip_prefix prefix;
		if (conf_value_allowed(p->report, &item, &prefix)) {
			add_prefix(p, &p->peer->allowed, &prefix, item.pos);
		}
	}
}

static void
read_endpoint(struct conf_reader *p, const struct conf_value *v)
{
	struct conf_endpoint e, *old = &p->peer->endpoint;
	if (!conf_value_endpoint(p->report, v, &e, &p->has_memory)) {
		return;
	}
	bool is_same = old->host && strcmp(old->host, e.host) == 0 && old->port == e.port &&
		       strcmp(old->scope, e.scope) == 0;
	set_pos(p, v, &old->pos, is_same);
	e.pos = old->pos;
	free(old->host);
	*old = e;
}

static void
read_name(struct conf_reader *p, const struct conf_value *v)
{
	char *name;
	if (!conf_value_peer_name(p, v, &name)) {
		return;
	}
	char **old = &p->peer->name;
	set_pos(p, v, &p->peer->name_pos, *old && strcmp(*old, name) == 0);
	free(*old);
	*old = name;
}

static void
read_keepalive(struct conf_reader *p, const struct conf_value *v)
{
	uint32_t n = 0;
	/* 0 is off, too. */
	if (conf_value_is(v, "off") || conf_value_number(p->report, v, 0, 65535, &n)) {
		set_pos(p, v, &p->peer->keepalive_pos, n == p->peer->keepalive_s);
		p->peer->keepalive_s = (uint16_t)n;
	}
}

static void
read_hook(struct conf_reader *p, const struct conf_value *v, enum conf_hook hook)
{
	if (v->len >= CONF_HOOK_MAX) {
		conf_value_refuse(p->report, v, "longer than a command may be (128 KiB)");
		return;
	}
	add_text(p, &p->conf->interface.hooks[hook], v);
}

static void
read_fec(struct conf_reader *p, const struct conf_value *v, struct conf_policy *policy)
{
	struct conf_policy read = *policy;
	if (conf_value_fec(p->report, v, &read)) {
		set_pos(p, v, &read.fec_pos,
			read.fec == policy->fec && read.fec_percent == policy->fec_percent);
		*policy = read;
	}
}

static void
read_fec_delay(struct conf_reader *p, const struct conf_value *v, struct conf_policy *policy)
{
	uint32_t ms;
	if (conf_value_number(p->report, v, 1, CONF_FEC_DELAY_MS_MAX, &ms)) {
		set_pos(p, v, &policy->fec_delay_pos, ms == policy->fec_delay_ms);
		policy->fec_delay_ms = (uint16_t)ms;
	}
}

static void
read_cipher(struct conf_reader *p, const struct conf_value *v, struct conf_policy *policy)
{
	struct conf_policy read = *policy;
	if (conf_value_cipher(p->report, v, &read)) {
		set_pos(p, v, &read.cipher_pos, read.cipher == policy->cipher);
		*policy = read;
	}
}

void
conf_item_read(struct conf_reader *p, const struct conf_value *v)
{
	static const char *const true_false[] = {"true", "false"}, *const on_off[] = {"on", "off"};
	struct conf_interface *i = &p->conf->interface;
	struct conf_policy *policy = p->peer ? &p->peer->policy : &i->policy;

	switch (v->key->id) {
	case CONF_KEY_PRIVATE_KEY:
		read_private_key(p, v);
		break;
	case CONF_KEY_LISTEN_PORT:
		read_u16(p, v, 0, &i->listen_port, &i->listen_port_pos);
		break;
	case CONF_KEY_FWMARK:
		read_fwmark(p, v);
		break;
	case CONF_KEY_ADDRESS:
		read_addresses(p, v);
		break;
	case CONF_KEY_DNS:
		read_dns(p, v);
		break;
	case CONF_KEY_MTU:
		read_mtu(p, v);
		break;
	case CONF_KEY_TABLE:
		read_table(p, v);
		break;
	case CONF_KEY_PRE_UP:
		read_hook(p, v, CONF_HOOK_PRE_UP);
		break;
	case CONF_KEY_POST_UP:
		read_hook(p, v, CONF_HOOK_POST_UP);
		break;
	case CONF_KEY_PRE_DOWN:
		read_hook(p, v, CONF_HOOK_PRE_DOWN);
		break;
	case CONF_KEY_POST_DOWN:
		read_hook(p, v, CONF_HOOK_POST_DOWN);
		break;
	case CONF_KEY_SAVE_CONFIG:
		read_switch(p, v, true_false, &i->save_config, &i->save_config_pos);
		break;
	case CONF_KEY_WORKERS:
		read_workers(p, v);
		break;
	case CONF_KEY_OFFLOAD:
		read_switch(p, v, on_off, &i->has_offload, &i->offload_pos);
		break;
	case CONF_KEY_AEAD:
		read_aead(p, v);
		break;
	case CONF_KEY_PUBLIC_KEY:
		p->has_seen_public_key = true;
		read_public_key(p, v);
		break;
	case CONF_KEY_NAME:
		read_name(p, v);
		break;
	case CONF_KEY_PRESHARED_KEY:
		read_preshared_key(p, v);
		break;
	case CONF_KEY_ALLOWED_IPS:
		read_allowed(p, v);
		break;
	case CONF_KEY_ENDPOINT:
		read_endpoint(p, v);
		break;
	case CONF_KEY_PERSISTENT_KEEPALIVE:
		read_keepalive(p, v);
		break;
	case CONF_KEY_EXTENSIONS:
		read_switch(p, v, on_off, &policy->has_extensions, &policy->extensions_pos);
		break;
	case CONF_KEY_FEC:
		read_fec(p, v, policy);
		break;
	case CONF_KEY_FEC_DELAY:
		read_fec_delay(p, v, policy);
		break;
	case CONF_KEY_CIPHER:
		read_cipher(p, v, policy);
		break;
	case CONF_KEY_COUNT:
		break;
	}
}
