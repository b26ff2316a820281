/* SPDX-License-Identifier: Apache-2.0 */
/* weft check: says what is wrong with configuration files. */
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "crypto/crypto.h"
#include "crypto/dh.h"
#include "crypto/secret.h"
#include "os/file.h"
#include "wire/conf.h"
#include "wire/conf_edit.h"

static const char usage[] =
	"Usage: weft check [--strict] [--lenient] [--json] FILE...\n"
	"\n"
	"Reads configuration files as `weft up` would, and prints every fault as\n"
	"FILE:LINE:COLUMN with what to do about it. Changes nothing; prints no private key.\n"
	"\n"
	"  --strict   warnings count as errors\n"
	"  --lenient  unknown keys and sections are warnings\n"
	"  --json     one object a file on stdout: interface, peers, messages\n"
	"\n"
	"Exit status: 0 no error, 1 errors found, 2 wrong usage or unreadable file.\n";

struct check {
	struct conf_options options;
	bool is_strict;
	bool has_json;
	struct crypto *crypto;
	struct conf_report report;
};

static json_t *
json_prefixes(const struct conf_prefixes *p)
{
	json_t *a = json_array();
	for (size_t i = 0; i < p->n; i++) {
		char text[IP_PREFIX_TEXT_MAX];
		json_array_append_new(a, json_string(ip_prefix_format(&p->v[i].prefix, text)));
	}
	return a;
}

static json_t *
json_texts(const struct conf_texts *t)
{
	json_t *a = json_array();
	for (size_t i = 0; i < t->n; i++) {
		json_array_append_new(a, json_string(t->v[i].text));
	}
	return a;
}

/* Is the key of that text the private key, or a preshared one, of the file? */
static bool
is_secret(const struct conf *c, const char *text)
{
	uint8_t key[KEY_LEN];
	bool is_known = key_decode_base64(text, KEY_BASE64_LEN, key) == WEFT_OK;
	bool found = is_known && c->interface.has_private_key &&
		     secret_is_equal(key, c->interface.private_key, KEY_LEN);
	for (size_t i = 0; is_known && !found && i < c->peers_n; i++) {
		const struct conf_peer *p = &c->peers[i];
		found = p->has_psk && secret_is_equal(key, p->psk, KEY_LEN);
	}
	secret_wipe(key, sizeof(key));
	return found;
}

/* Hooks as they are written, but for secret keys of the file in them. */
static json_t *
json_hooks(const struct conf *c, enum conf_hook hook)
{
	const struct conf_texts *t = &c->interface.hooks[hook];
	json_t *a = json_array();
	for (size_t i = 0; i < t->n; i++) {
		char *text = strdup(t->v[i].text);
		size_t len = text ? strlen(text) : 0;
		for (size_t at = 0; at + KEY_BASE64_LEN <= len; at++) {
			if (text[at + KEY_BASE64_LEN - 1] == '=' && is_secret(c, text + at)) {
				memset(text + at, '*', KEY_BASE64_LEN);
			}
		}
		json_array_append_new(a, text ? json_string(text) : NULL);
		conf_text_free(text, len);
	}
	return a;
}

static json_t *
json_key(const uint8_t key[KEY_LEN])
{
	char text[KEY_BASE64_LEN + 1];
	return json_string(key_encode_base64(key, text));
}

static json_t *
json_endpoint(const struct conf_endpoint *e)
{
	char text[IP_ADDR_TEXT_MAX];
	if (!e->host) {
		return json_null();
	}
	return json_pack("{s:s, s:i, s:s?}", "host",
		e->addr.family == IP_FAMILY_NONE ? e->host : ip_addr_format(&e->addr, text), "port",
		e->port, "scope", e->scope[0] ? e->scope : NULL);
}

static json_t *
json_table(const struct conf_interface *i)
{
	switch (i->table) {
	case CONF_TABLE_AUTO:
		return json_string("auto");
	case CONF_TABLE_OFF:
		return json_string("off");
	case CONF_TABLE_NUMBER:
		return json_integer(i->table_number);
	case CONF_TABLE_NAME:
		return json_string(i->table_name);
	}
	return json_null();
}

static json_t *
json_aead(enum conf_aead aead)
{
	return json_string(aead == CONF_AEAD_AUTO        ? "auto"
			   : aead == CONF_AEAD_LIBCRYPTO ? "libcrypto"
							 : "ipsec-mb");
}

static json_t *
json_interface(const struct conf *c, const uint8_t *own_public)
{
	const struct conf_interface *i = &c->interface;
	json_t *port = i->listen_port_pos.line ? json_integer(i->listen_port) : json_null();
	json_t *mtu = i->mtu ? json_integer(i->mtu) : json_null();
	json_t *workers = i->workers ? json_integer(i->workers) : json_string("auto");
	return json_pack("{s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, "
			 "s:b, s:o}",
		"public_key", own_public ? json_key(own_public) : json_null(), "listen_port", port,
		"fwmark", (json_int_t)i->fwmark, "addresses", json_prefixes(&i->addresses), "dns",
		json_texts(&i->dns), "dns_search", json_texts(&i->dns_search), "mtu", mtu, "table",
		json_table(i), "save_config", i->save_config, "pre_up",
		json_hooks(c, CONF_HOOK_PRE_UP), "post_up", json_hooks(c, CONF_HOOK_POST_UP),
		"pre_down", json_hooks(c, CONF_HOOK_PRE_DOWN), "post_down",
		json_hooks(c, CONF_HOOK_POST_DOWN), "workers", workers, "offload", i->has_offload,
		"aead", json_aead(i->aead));
}

static json_t *
json_peers(const struct conf *c)
{
	json_t *a = json_array();
	for (size_t i = 0; i < c->peers_n; i++) {
		const struct conf_peer *p = &c->peers[i];
		char fec[CONF_FEC_TEXT_MAX];
		json_array_append_new(a,
			json_pack("{s:o, s:b, s:o, s:o, s:i, s:b, s:s, s:i, s:s}", "public_key",
				json_key(p->public_key), "preshared_key", p->has_psk, "allowed_ips",
				json_prefixes(&p->allowed), "endpoint", json_endpoint(&p->endpoint),
				"persistent_keepalive", p->keepalive_s, "extensions",
				p->policy.has_extensions, "fec", conf_fec_format(&p->policy, fec),
				"fec_delay_ms", (int)p->policy.fec_delay_ms, "cipher",
				conf_cipher_text(p->policy.cipher)));
	}
	return a;
}

static json_t *
json_messages(const struct conf_report *r)
{
	json_t *a = json_array();
	for (size_t i = 0; i < r->n; i++) {
		const struct conf_note *n = &r->notes[i];
		json_array_append_new(
			a, json_pack("{s:s, s:i, s:i, s:s, s:s}", "severity",
				   n->severity == CONF_SEVERITY_ERROR ? "error" : "warning", "line",
				   (int)n->pos.line, "column", (int)n->pos.column, "key", n->key,
				   "message", n->text));
	}
	return a;
}

/* JSON is UTF-8, a file's name may be anything. */
static json_t *
json_file(const char *file)
{
	json_t *name = json_string(file);
	char *ascii = name ? NULL : strdup(file);
	for (char *p = ascii; p && *p; p++) {
		*p = (unsigned char)*p < 0x80 ? *p : '?';
	}
	name = ascii ? json_string(ascii) : name;
	free(ascii);
	return name;
}

static void
print_json(const struct check *k, const char *file, const struct conf *c, const uint8_t *own_public)
{
	json_t *o = json_pack("{s:o, s:o, s:o, s:o}", "file", json_file(file), "interface",
		c ? json_interface(c, own_public) : json_null(), "peers",
		c ? json_peers(c) : json_array(), "messages", json_messages(&k->report));
	if (!o || json_dumpf(o, stdout, JSON_COMPACT) != 0) {
		fprintf(stderr, "weft: check: out of memory\n");
	}
	putchar('\n');
	json_decref(o);
}

static void
print_text(const struct check *k, const char *file)
{
	const struct conf_report *r = &k->report;
	for (size_t i = 0; i < r->n; i++) {
		char line[CONF_NOTE_LINE_MAX];
		fprintf(stderr, "%s\n", conf_note_format(&r->notes[i], file, line, sizeof(line)));
	}
	if (r->errors + r->warnings > r->n) {
		fprintf(stderr, "%s: %zu messages more\n", file, r->errors + r->warnings - r->n);
	}
}

/* The name becomes the interface's. */
static void
check_name(struct check *k, const char *file)
{
	const char *slash = strrchr(file, '/');
	const char *name = slash ? slash + 1 : file;
	size_t len = strlen(name);
	if (len < 5 || strcmp(name + len - 5, ".conf") != 0 || conf_name_is_valid(name, len - 5)) {
		return;
	}
	struct conf_report *r = &k->report;
	r->errors++;
	if (r->n < CONF_NOTES_MAX) {
		r->notes[r->n++] = (struct conf_note){.pos = {1, 1},
			.text = "the file's name is no interface's name: 1 to 15 of a-z A-Z 0-9 _ "
				"= + . -"};
	}
}

static int
check_text(struct check *k, const char *file, const char *text, size_t len)
{
	struct conf *c = NULL;
	uint8_t own[KEY_LEN];
	enum weft_err e = conf_parse(text, len, &k->options, &c, &k->report);
	bool has_own = !e && c->interface.has_private_key &&
		       dh_public(k->crypto, own, c->interface.private_key) == WEFT_OK;

	if (!e) {
		e = conf_lint(c, has_own ? own : NULL, &k->report);
	}
	if (e && e != WEFT_EPARSE) {
		fprintf(stderr, "weft: %s: %s\n", file, weft_err_text(e));
		conf_free(c);
		return 2;
	}
	check_name(k, file);
	if (k->has_json) {
		print_json(k, file, c, has_own ? own : NULL);
	} else {
		print_text(k, file);
	}
	conf_free(c);
	return k->report.errors > 0 || (k->is_strict && k->report.warnings > 0);
}

static int
check_file(struct check *k, const char *file)
{
	char *text;
	size_t len;
	enum weft_err e = os_file_read(
		strcmp(file, "-") == 0 ? "/dev/stdin" : file, CONF_BYTES_MAX, &text, &len);
	if (e) {
		/* `weft up office` knows where to look, this does not. */
		bool is_name = e == WEFT_ENOENT && !strchr(file, '/') && !strchr(file, '.');
		fprintf(stderr, "weft: %s: %s%s%s%s\n", file, weft_err_text(e),
			is_name ? "; a FILE is wanted, such as /etc/wireguard/" : "",
			is_name ? file : "", is_name ? ".conf" : "");
		return 2;
	}
	int rc = check_text(k, file, text, len);
	secret_wipe(text, len);
	free(text);
	return rc;
}

static bool
read_options(struct check *k, int argc, char **argv, int *rc)
{
	static const struct option options[] = {{"help", no_argument, NULL, 'h'},
		{"strict", no_argument, NULL, 's'}, {"lenient", no_argument, NULL, 'l'},
		{"json", no_argument, NULL, 'j'}, {0}};

	for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
		switch (c) {
		case 'h':
			fputs(usage, stdout);
			*rc = 0;
			return false;
		case 's':
			k->is_strict = true;
			break;
		case 'l':
			k->options.is_lenient = true;
			break;
		case 'j':
			k->has_json = true;
			break;
		default:
			*rc = 2;
			return false;
		}
	}
	if (optind == argc) {
		fputs(usage, stderr);
		*rc = 2;
		return false;
	}
	return true;
}

int
check_main(int argc, char **argv)
{
	struct check *k = calloc(1, sizeof(*k));
	int rc = 0;

	if (!k || crypto_new(&k->crypto)) {
		fprintf(stderr, "weft: check: out of memory\n");
		free(k);
		return 2;
	}
	if (read_options(k, argc, argv, &rc)) {
		for (int i = optind; i < argc; i++) {
			int one = check_file(k, argv[i]);
			rc = one > rc ? one : rc;
		}
	}
	crypto_free(k->crypto);
	free(k);
	return rc;
}
