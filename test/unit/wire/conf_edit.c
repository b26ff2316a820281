/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "wire/conf.h"
#include "wire/conf_edit.h"

#define KEY_A "yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk="
#define HEAD "[Interface]\nPrivateKey = " KEY_A "\n"
#define PEERS_MAX 12
#define PREFIXES_MAX 24

static struct conf_report report; /* large; one test runs at a time */

/* A naive picture of what a file means. */
struct model {
	struct conf_state state;
	struct conf_state_peer peers[PEERS_MAX];
	struct ip_prefix prefixes[PEERS_MAX][PREFIXES_MAX];
	bool has_name[PEERS_MAX]; /* the endpoint is a host's name */
};

static struct conf *
parse(const char *text, size_t len)
{
	struct conf *c = NULL;
	if (conf_parse(text, len, NULL, &c, &report)) {
		fail_msg("%u:%u %s\n%.*s", report.notes[0].pos.line, report.notes[0].pos.column,
			report.notes[0].text, (int)len, text);
	}
	return c;
}

static size_t
find_peer(const struct model *m, const uint8_t *key)
{
	size_t i = 0;
	while (i < m->state.peers_n && memcmp(m->peers[i].public_key, key, KEY_LEN) != 0) {
		i++;
	}
	return i;
}

static void
drop_prefix(struct model *m, const struct ip_prefix *p)
{
	for (size_t i = 0; i < m->state.peers_n; i++) {
		struct conf_state_peer *peer = &m->peers[i];
		size_t n = 0;
		for (size_t k = 0; k < peer->allowed_n; k++) {
			struct ip_prefix *q = &m->prefixes[i][k];
			if (q->bits != p->bits || !ip_addr_is_equal(&q->addr, &p->addr)) {
				m->prefixes[i][n++] = *q;
			}
		}
		peer->allowed_n = n;
	}
}

static void
give_prefix(struct model *m, size_t i, const struct ip_prefix *p)
{
	drop_prefix(m, p);
	if (m->peers[i].allowed_n < PREFIXES_MAX) {
		m->prefixes[i][m->peers[i].allowed_n++] = *p;
	}
}

static void
model_of(const char *text, size_t len, struct model *m)
{
	struct conf *c = parse(text, len);
	memset(m, 0, sizeof(*m));
	m->state.peers = m->peers;
	m->state.has_listen_port = m->state.has_fwmark = m->state.has_private_key = true;
	m->state.listen_port = c->interface.listen_port;
	m->state.fwmark = c->interface.fwmark;
	memcpy(m->state.private_key, c->interface.private_key, KEY_LEN);
	for (size_t k = 0; k < c->peers_n; k++) {
		const struct conf_peer *p = &c->peers[k];
		size_t i = find_peer(m, p->public_key);
		struct conf_state_peer *s = &m->peers[i];
		assert_true(i < PEERS_MAX);
		m->state.peers_n = i < m->state.peers_n ? m->state.peers_n : i + 1;
		memcpy(s->public_key, p->public_key, KEY_LEN);
		s->allowed = m->prefixes[i];
		if (p->psk_pos.line) {
			s->has_psk = p->has_psk;
			memcpy(s->psk, p->psk, KEY_LEN);
		}
		if (p->keepalive_pos.line) {
			s->keepalive_s = p->keepalive_s;
		}
		if (p->endpoint.host) {
			s->addr = p->endpoint.addr;
			s->port = p->endpoint.port;
			m->has_name[i] = s->addr.family == IP_FAMILY_NONE;
		}
		for (size_t a = 0; a < p->allowed.n; a++) {
			give_prefix(m, i, &p->allowed.v[a].prefix);
		}
	}
	conf_free(c);
}

static int
compare_prefixes(const void *a, const void *b)
{
	const struct ip_prefix *x = a, *y = b;
	char s[IP_PREFIX_TEXT_MAX], t[IP_PREFIX_TEXT_MAX];
	return strcmp(ip_prefix_format(x, s), ip_prefix_format(y, t));
}

/* NULL: equal; else what differs. */
static const char *
difference(struct model *a, struct model *b)
{
	if (a->state.listen_port != b->state.listen_port || a->state.fwmark != b->state.fwmark ||
		memcmp(a->state.private_key, b->state.private_key, KEY_LEN) != 0) {
		return "interface";
	}
	if (a->state.peers_n != b->state.peers_n) {
		return "number of peers";
	}
	for (size_t i = 0; i < a->state.peers_n; i++) {
		struct conf_state_peer *p = &a->peers[i];
		size_t k = find_peer(b, p->public_key);
		if (k == b->state.peers_n) {
			return "a peer";
		}
		struct conf_state_peer *q = &b->peers[k];
		qsort(a->prefixes[i], p->allowed_n, sizeof(struct ip_prefix), compare_prefixes);
		qsort(b->prefixes[k], q->allowed_n, sizeof(struct ip_prefix), compare_prefixes);
		if (p->has_psk != q->has_psk ||
			(p->has_psk && memcmp(p->psk, q->psk, KEY_LEN) != 0)) {
			return "preshared key";
		}
		if (p->keepalive_s != q->keepalive_s) {
			return "keepalive";
		}
		if (p->port != q->port || p->addr.family != q->addr.family ||
			(p->addr.family != IP_FAMILY_NONE &&
				!ip_addr_is_equal(&p->addr, &q->addr))) {
			return "endpoint";
		}
		if (p->allowed_n != q->allowed_n) {
			return "number of prefixes";
		}
		for (size_t n = 0; n < p->allowed_n; n++) {
			if (compare_prefixes(&a->prefixes[i][n], &b->prefixes[k][n]) != 0) {
				return "a prefix";
			}
		}
	}
	return NULL;
}

/* --- random files --- */

struct text {
	char p[16384];
	size_t len;
};

WEFT_PRINTF(2, 3) static void add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(t->p + t->len, sizeof(t->p) - t->len, fmt, ap);
	va_end(ap);
	t->len += (size_t)n;
	assert_true(t->len < sizeof(t->p));
}

static uint32_t
draw(struct rng *r, uint32_t n)
{
	return (uint32_t)rng_below(r, n);
}

static const char *
pick(struct rng *r, const char *const *v, uint32_t n)
{
	return v[draw(r, n)];
}

static void
random_key(struct rng *r, uint8_t key[KEY_LEN])
{
	/* Few different ones: some come twice. */
	memset(key, 0, KEY_LEN);
	key[0] = (uint8_t)(1 + draw(r, 8));
	key[31] = 7;
}

static struct ip_prefix
random_prefix(struct rng *r)
{
	char text[40];
	struct ip_prefix p;
	if (draw(r, 3)) {
		snprintf(text, sizeof(text), "10.%u.0.0/16", draw(r, 20));
	} else {
		snprintf(text, sizeof(text), "fd00:%x::/32", draw(r, 20));
	}
	assert_int_equal(ip_prefix_parse(text, strlen(text), &p), WEFT_OK);
	return p;
}

static void
add_end(struct rng *r, struct text *t, const char *eol)
{
	static const char *const tails[] = {"", "", "", " ", "\t# note", " # key = value"};
	add(t, "%s%s", pick(r, tails, 6), eol);
}

static void
add_name(struct rng *r, struct text *t, const char *name)
{
	static const char *const before[] = {"", "", " ", "\t"}, *const signs[] = {
									 " = ", "=", "  =\t", "= "};
	add(t, "%s", pick(r, before, 4));
	bool is_lower = draw(r, 4) == 0;
	for (const char *p = name; *p; p++) {
		add(t, "%c", is_lower && *p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
	}
	add(t, "%s", pick(r, signs, 4));
}

static void
add_peer(struct rng *r, struct text *t, const char *eol)
{
	static const char *const hosts[] = {
		"192.0.2.1:51820", "[2001:db8::1]:51820", "vpn.example.com:443"};
	uint8_t key[KEY_LEN];
	char text[KEY_BASE64_LEN + 1], prefix[IP_PREFIX_TEXT_MAX];
	random_key(r, key);
	add(t, "%s[Peer]", draw(r, 3) ? "" : "# who is this\n");
	add_end(r, t, eol);
	add_name(r, t, "PublicKey");
	add(t, "%s", key_encode_base64(key, text));
	add_end(r, t, eol);
	for (uint32_t lines = draw(r, 3); lines > 0; lines--) {
		uint32_t n = draw(r, 4);
		add_name(r, t, "AllowedIPs");
		for (uint32_t i = 0; i < n; i++) {
			struct ip_prefix p = random_prefix(r);
			add(t, "%s%s", i ? (draw(r, 2) ? ", " : ",") : "",
				ip_prefix_format(&p, prefix));
		}
		add_end(r, t, eol);
	}
	if (draw(r, 2)) {
		memset(key, (int)draw(r, 3), KEY_LEN);
		add_name(r, t, "PresharedKey");
		add(t, "%s", key_encode_base64(key, text));
		add_end(r, t, eol);
	}
	if (draw(r, 2)) {
		add_name(r, t, "PersistentKeepalive");
		add(t, "%s", draw(r, 3) ? "25" : "off");
		add_end(r, t, eol);
	}
	if (draw(r, 2)) {
		add_name(r, t, "Endpoint");
		add(t, "%s", pick(r, hosts, 3));
		add_end(r, t, eol);
	}
	if (draw(r, 3) == 0) {
		add(t, "Fec = 10%% # ours%s", eol);
	}
	if (draw(r, 2)) {
		add(t, "%s", eol);
	}
}

static void
random_file(struct rng *r, struct text *t)
{
	const char *eol = draw(r, 4) ? "\n" : "\r\n";
	t->len = 0;
	add(t, "%s[Interface] # home%s", draw(r, 5) ? "" : "\xef\xbb\xbf", eol);
	add_name(r, t, "PrivateKey");
	add(t, KEY_A);
	add_end(r, t, eol);
	if (draw(r, 2)) {
		add_name(r, t, "ListenPort");
		add(t, "%u", draw(r, 65536));
		add_end(r, t, eol);
	}
	if (draw(r, 2)) {
		add_name(r, t, "FwMark");
		add(t, "0x%x", draw(r, 3));
		add_end(r, t, eol);
	}
	add(t, "PostUp = echo '%%i'  ; true%s%s", eol, draw(r, 2) ? eol : "");
	for (uint32_t n = draw(r, 6); n > 0; n--) {
		add_peer(r, t, eol);
	}
	if (draw(r, 4) == 0) { /* no final newline */
		t->len -= strlen(eol);
		t->p[t->len] = 0;
	}
}

static void
mutate(struct rng *r, struct model *m)
{
	for (uint32_t n = draw(r, 6); n > 0; n--) {
		size_t i = m->state.peers_n ? draw(r, (uint32_t)m->state.peers_n) : 0;
		struct conf_state_peer *p = &m->peers[i];
		struct ip_prefix prefix = random_prefix(r);
		uint32_t what = m->state.peers_n == 0 ? draw(r, 3) : draw(r, 9);
		switch (what) {
		case 0:
			m->state.listen_port = (uint16_t)draw(r, 65536);
			break;
		case 1:
			m->state.fwmark = draw(r, 4);
			break;
		case 2: {
			uint8_t key[KEY_LEN];
			random_key(r, key);
			key[0] = (uint8_t)(key[0] + 100); /* not one of the file's */
			i = find_peer(m, key);
			if (i == m->state.peers_n && i < PEERS_MAX) {
				m->peers[i] = (struct conf_state_peer){.allowed = m->prefixes[i]};
				m->has_name[i] = false;
				memcpy(m->peers[i].public_key, key, KEY_LEN);
				m->state.peers_n++;
			}
			break;
		}
		case 3:
			for (size_t k = i; k + 1 < m->state.peers_n; k++) {
				m->peers[k] = m->peers[k + 1];
				m->peers[k].allowed = m->prefixes[k];
				m->has_name[k] = m->has_name[k + 1];
				memcpy(m->prefixes[k], m->prefixes[k + 1], sizeof(m->prefixes[k]));
			}
			m->state.peers_n--;
			break;
		case 4:
			p->has_psk = draw(r, 2);
			memset(p->psk, p->has_psk ? (int)(1 + draw(r, 3)) : 0, KEY_LEN);
			break;
		case 5:
			p->keepalive_s = (uint16_t)(draw(r, 2) * 17);
			break;
		case 6:
			give_prefix(m, i, &prefix);
			break;
		case 7:
			drop_prefix(m, &prefix);
			break;
		default:
			/* Only where the file has an address can it be kept. */
			if (p->addr.family != IP_FAMILY_NONE) {
				p->port = (uint16_t)(1 + draw(r, 65535));
			}
			break;
		}
	}
}

static void
edit_of_a_file_by_its_own_meaning_is_the_file(void **state)
{
	(void)state;
	static struct text t;
	static struct model m;
	for (uint64_t seed = 0; seed < 3000; seed++) {
		struct rng r;
		char *out;
		size_t len;
		rng_init(&r, seed);
		random_file(&r, &t);
		model_of(t.p, t.len, &m);
		assert_int_equal(conf_edit(t.p, t.len, &m.state, &out, &len), WEFT_OK);
		if (len != t.len || memcmp(out, t.p, len) != 0) {
			fail_msg("seed %u\n--- file\n%s\n--- edited\n%s", (unsigned)seed, t.p, out);
		}
		conf_text_free(out, len);
	}
}

static void
edited_file_means_the_state(void **state)
{
	(void)state;
	static struct text t;
	static struct model want, got;
	for (uint64_t seed = 0; seed < 5000; seed++) {
		struct rng r;
		char *out, *again;
		size_t len, again_len;
		rng_init(&r, seed);
		random_file(&r, &t);
		model_of(t.p, t.len, &want);
		mutate(&r, &want);
		assert_int_equal(conf_edit(t.p, t.len, &want.state, &out, &len), WEFT_OK);
		model_of(out, len, &got);
		const char *what = difference(&want, &got);
		if (what) {
			fail_msg("seed %u: %s\n--- file\n%s\n--- edited\n%s", (unsigned)seed, what,
				t.p, out);
		}
		assert_non_null(strstr(out, "[Interface] # home"));
		assert_non_null(strstr(out, "PostUp = echo '%i'  ; true"));
		assert_int_equal(conf_edit(out, len, &want.state, &again, &again_len), WEFT_OK);
		if (len != again_len || memcmp(out, again, len) != 0) {
			fail_msg("seed %u: a second edit changes\n%s\n--- to\n%s", (unsigned)seed,
				out, again);
		}
		conf_text_free(out, len);
		conf_text_free(again, again_len);
	}
}

static void
edit_keeps_names_comments_and_order(void **state)
{
	(void)state;
	static const char file[] =
		HEAD "ListenPort = 1 # ours\n\n"
		     "# Alice's laptop\n[Peer]\nPublicKey = "
		     "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAc=\n"
		     "Endpoint = vpn.example.com:443 # moves\nAllowedIPs = 10.0.0.0/16 , "
		     "10.1.0.0/16 # two\n"
		     "# Bob\n[Peer]\nPublicKey = AgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAc=\n";
	static const char want[] =
		HEAD "ListenPort = 7 # ours\n\n"
		     "# Alice's laptop\n[Peer]\nPublicKey = "
		     "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAc=\n"
		     "Endpoint = vpn.example.com:443 # moves\nAllowedIPs = 10.1.0.0/16 # two\n";
	static struct model m;
	char *out;
	size_t len;
	struct ip_prefix p;
	model_of(file, sizeof(file) - 1, &m);
	m.state.listen_port = 7;
	m.state.peers_n = 1;
	m.peers[0].addr = (struct ip_addr){.family = IP_FAMILY_V4};
	m.peers[0].port = 9;
	assert_int_equal(ip_prefix_parse("10.0.0.0/16", 11, &p), WEFT_OK);
	drop_prefix(&m, &p);
	assert_int_equal(conf_edit(file, sizeof(file) - 1, &m.state, &out, &len), WEFT_OK);
	assert_string_equal(out, want);
	conf_text_free(out, len);
}

static void
edit_puts_no_private_key_where_there_was_none(void **state)
{
	(void)state;
	static const char file[] = "[Interface]\nPostUp = wg set %i private-key /etc/key\n";
	struct conf_state s = {.has_private_key = true, .private_key = {1}};
	char *out;
	size_t len;
	assert_int_equal(conf_edit(file, sizeof(file) - 1, &s, &out, &len), WEFT_OK);
	assert_string_equal(out, file);
	conf_text_free(out, len);
}

/* --- the canonical form --- */

static void
add_texts(struct text *t, const struct conf_texts *v)
{
	for (size_t i = 0; i < v->n; i++) {
		add(t, "%s|", v->v[i].text);
	}
	add(t, "\n");
}

static void
add_prefixes(struct text *t, const struct conf_prefixes *v)
{
	char text[IP_PREFIX_TEXT_MAX];
	for (size_t i = 0; i < v->n; i++) {
		add(t, "%s ", ip_prefix_format(&v->v[i].prefix, text));
	}
	add(t, "\n");
}

/* All that a file means, as text. */
static void
describe(const struct conf *c, struct text *t)
{
	const struct conf_interface *i = &c->interface;
	char key[KEY_BASE64_LEN + 1];
	t->len = 0;
	add(t, "%d %s %u %u %u %d %u %s %d %u %d %d\n", i->has_private_key,
		key_encode_base64(i->private_key, key), i->listen_port, i->fwmark, i->mtu, i->table,
		i->table_number, i->table_name, i->save_config, i->workers, i->has_offload,
		i->aead);
	add_prefixes(t, &i->addresses);
	add_texts(t, &i->dns);
	add_texts(t, &i->dns_search);
	for (size_t k = 0; k < CONF_HOOK_COUNT; k++) {
		add_texts(t, &i->hooks[k]);
	}
	for (size_t k = 0; k < c->peers_n; k++) {
		const struct conf_peer *p = &c->peers[k];
		add(t, "%s %s ", key_encode_base64(p->public_key, key), p->name ? p->name : "");
		add(t, "%s %d %u %s %u %s %d %d %u %u %d\n", key_encode_base64(p->psk, key),
			p->has_psk, p->keepalive_s, p->endpoint.host ? p->endpoint.host : "",
			p->endpoint.port, p->endpoint.scope, p->policy.has_extensions,
			p->policy.fec, p->policy.fec_percent, p->policy.fec_delay_ms,
			p->policy.cipher);
		add_prefixes(t, &p->allowed);
	}
}

static void
expect_canonical(const char *text, size_t len, const char *name)
{
	static struct text before, after;
	char *out, *again;
	size_t out_len, again_len;
	struct conf *c = parse(text, len);
	describe(c, &before);
	conf_free(c);
	assert_int_equal(conf_format(text, len, &out, &out_len), WEFT_OK);
	c = parse(out, out_len);
	describe(c, &after);
	conf_free(c);
	if (strcmp(before.p, after.p) != 0) {
		fail_msg("%s: the canonical form means something else\n%.*s\n---\n%s", name,
			(int)len, text, out);
	}
	assert_int_equal(conf_format(out, out_len, &again, &again_len), WEFT_OK);
	if (strcmp(out, again) != 0) {
		fail_msg("%s: not idempotent\n%s\n---\n%s", name, out, again);
	}
	conf_text_free(out, out_len);
	conf_text_free(again, again_len);
}

static void
format_means_the_same_and_is_idempotent(void **state)
{
	(void)state;
	static struct text t;
	for (uint64_t seed = 0; seed < 3000; seed++) {
		struct rng r;
		char name[32];
		rng_init(&r, seed);
		random_file(&r, &t);
		snprintf(name, sizeof(name), "seed %u", (unsigned)seed);
		expect_canonical(t.p, t.len, name);
	}
}

static void
format_has_one_form(void **state)
{
	(void)state;
	static const char file[] =
		"\xef\xbb\xbf# home\r\n[interface]#a\r\n private key=" KEY_A "\r\n\r\n\r\n"
		"ADDRESS=10.0.0.1/24,,fd00::1/64 10.0.0.2\r\ndns = \r\n  # about hooks \r\n"
		"postup=echo a,b   #c\r\n# Bob\r\n[ Peer ]\r\n"
		"PublicKey=AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAc=\r\nallowedips=10.1.2.3/"
		"16,fd00::/8";
	static const char want[] =
		"# home\n[Interface] #a\nPrivateKey = " KEY_A "\n\n"
		"Address = 10.0.0.1/24, fd00::1/64, 10.0.0.2/32\nDNS =\n# about hooks\n"
		"PostUp = echo a,b #c\n\n# Bob\n[Peer]\n"
		"PublicKey = AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAc=\n"
		"AllowedIPs = 10.1.0.0/16, fd00::/8\n";
	char *out;
	size_t len;
	assert_int_equal(conf_format(file, sizeof(file) - 1, &out, &len), WEFT_OK);
	assert_string_equal(out, want);
	conf_text_free(out, len);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(edit_of_a_file_by_its_own_meaning_is_the_file),
		cmocka_unit_test(edited_file_means_the_state),
		cmocka_unit_test(edit_keeps_names_comments_and_order),
		cmocka_unit_test(edit_puts_no_private_key_where_there_was_none),
		cmocka_unit_test(format_means_the_same_and_is_idempotent),
		cmocka_unit_test(format_has_one_form),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
