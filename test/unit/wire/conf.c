/* SPDX-License-Identifier: Apache-2.0 */
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

#define KEY_A "yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk="
#define KEY_B "xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg="
#define HEAD "[Interface]\nPrivateKey = " KEY_A "\n"
#define PEER "[Peer]\nPublicKey = " KEY_B "\n"

static struct conf_report report; /* large; one test runs at a time */

static struct conf *
parse_ok(const char *text, size_t len)
{
	struct conf *c = NULL;
	enum weft_err e = conf_parse(text, len, NULL, &c, &report);
	if (e) {
		fail_msg("%d: %u:%u: %s: %s", e, report.notes[0].pos.line,
			report.notes[0].pos.column, report.notes[0].key, report.notes[0].text);
	}
	return c;
}

#define PARSE_OK(text) parse_ok(text, sizeof(text) - 1)

struct fault {
	const char *text;
	uint32_t line, column;
	const char *key;
	const char *word; /* in the message */
};

static void
expect_faults(const struct fault *f, size_t n, bool is_error)
{
	for (size_t i = 0; i < n; i++) {
		struct conf *c = NULL;
		enum weft_err e = conf_parse(f[i].text, strlen(f[i].text), NULL, &c, &report);
		if (e == WEFT_OK) {
			e = conf_lint(c, NULL, &report);
			assert_int_equal(e, WEFT_OK);
		}
		bool is_right = report.n == 1 && report.errors == is_error && !c == is_error &&
				report.notes[0].pos.line == f[i].line &&
				report.notes[0].pos.column == f[i].column &&
				strcmp(report.notes[0].key, f[i].key) == 0 &&
				strstr(report.notes[0].text, f[i].word);
		conf_free(c);
		if (!is_right) {
			fail_msg("%s\n: %zu notes, first %u:%u %s: %s (%s)", f[i].text, report.n,
				report.notes[0].pos.line, report.notes[0].pos.column,
				report.notes[0].key, report.notes[0].text, f[i].word);
		}
	}
}

static void
conf_reads_every_key(void **state)
{
	(void)state;
	struct conf *c = PARSE_OK(
		"[Interface]\nPrivateKey = " KEY_A "\nListenPort = 51820\nFwMark = 0xCa6c\n"
		"Address = 10.0.0.2/24, fd00::2/64\nAddress = 10.1.0.2\nMTU = 1400\nTable = 77\n"
		"DNS = 10.0.0.1, corp.example\nDNS = fe80::1%eth0\nPreUp = a\nPostUp = b; c %i\n"
		"PostUp = d\nPreDown = e\nPostDown = f\nSaveConfig = true\nWorkers = 4\n"
		"Offload = off\nAead = ipsec-mb\n"
		"[Peer]\nPublicKey = " KEY_B "\nPresharedKey = " KEY_A "\n"
		"AllowedIPs = 10.0.0.0/24, fd00::/64\nAllowedIPs = 1.2.3.4\n"
		"Endpoint = Host.Example:1\nPersistentKeepalive = 25\nExtensions = off\n"
		"Fec = 30%\nFecDelay = 50\nCipher = AES-256-gcm\n"
		"[Peer]\nPublicKey = " KEY_A
		"\nEndpoint = [fe80::5%wan0]:65535\nName = db.Site-2\n");
	const struct conf_interface *i = &c->interface;
	uint8_t a[KEY_LEN], b[KEY_LEN];
	assert_int_equal(key_decode_base64(KEY_A, 44, a), WEFT_OK);
	assert_int_equal(key_decode_base64(KEY_B, 44, b), WEFT_OK);
	assert_int_equal(report.n, 0);
	assert_true(i->has_private_key);
	assert_memory_equal(i->private_key, a, KEY_LEN);
	assert_int_equal(i->listen_port, 51820);
	assert_int_equal(i->fwmark, 0xca6c);
	assert_int_equal(i->addresses.n, 3);
	assert_int_equal(i->addresses.v[1].pos.line, 5);
	assert_int_equal(i->addresses.v[1].pos.column, 24);
	assert_int_equal(i->addresses.v[2].prefix.bits, 32);
	assert_int_equal(i->mtu, 1400);
	assert_int_equal(i->table, CONF_TABLE_NUMBER);
	assert_int_equal(i->table_number, 77);
	assert_int_equal(i->dns.n, 2);
	assert_string_equal(i->dns.v[1].text, "fe80::1%eth0");
	assert_string_equal(i->dns_search.v[0].text, "corp.example");
	assert_string_equal(i->hooks[CONF_HOOK_PRE_UP].v[0].text, "a");
	assert_int_equal(i->hooks[CONF_HOOK_POST_UP].n, 2);
	assert_string_equal(i->hooks[CONF_HOOK_POST_UP].v[0].text, "b; c %i");
	assert_string_equal(i->hooks[CONF_HOOK_POST_UP].v[1].text, "d");
	assert_string_equal(i->hooks[CONF_HOOK_PRE_DOWN].v[0].text, "e");
	assert_string_equal(i->hooks[CONF_HOOK_POST_DOWN].v[0].text, "f");
	assert_true(i->save_config);
	assert_int_equal(i->workers, 4);
	assert_false(i->has_offload);
	assert_int_equal(i->aead, CONF_AEAD_IPSEC_MB);
	assert_int_equal(c->peers_n, 2);
	const struct conf_peer *p = &c->peers[0];
	assert_memory_equal(p->public_key, b, KEY_LEN);
	assert_true(p->has_psk);
	assert_memory_equal(p->psk, a, KEY_LEN);
	assert_int_equal(p->allowed.n, 3);
	assert_string_equal(p->endpoint.host, "Host.Example");
	assert_int_equal(p->endpoint.addr.family, IP_FAMILY_NONE);
	assert_int_equal(p->endpoint.port, 1);
	assert_int_equal(p->keepalive_s, 25);
	assert_false(p->policy.has_extensions);
	assert_int_equal(p->policy.fec, CONF_FEC_FIXED);
	assert_int_equal(p->policy.fec_percent, 30);
	assert_int_equal(p->policy.fec_pos.line, 28);
	assert_int_equal(p->policy.fec_pos.column, 7);
	assert_int_equal(p->policy.fec_delay_ms, 50);
	assert_int_equal(p->policy.fec_delay_pos.line, 29);
	assert_int_equal(p->policy.cipher, CONF_CIPHER_AES_256_GCM);
	assert_int_equal(p->policy.cipher_pos.line, 30);
	assert_null(p->name);
	assert_string_equal(c->peers[1].name, "db.Site-2");
	assert_int_equal(c->peers[1].name_pos.line, 34);
	p = &c->peers[1];
	assert_int_equal(p->pos.line, 31);
	assert_false(p->has_psk);
	assert_true(p->policy.has_extensions);
	assert_string_equal(p->endpoint.host, "fe80::5");
	assert_string_equal(p->endpoint.scope, "wan0");
	assert_int_equal(p->endpoint.addr.family, IP_FAMILY_V6);
	assert_int_equal(p->endpoint.port, 65535);
	conf_free(c);
}

static void
conf_defaults_are_those_of_the_stock_tools(void **state)
{
	(void)state;
	struct conf *c = PARSE_OK(HEAD PEER);
	const struct conf_interface *i = &c->interface;
	assert_int_equal(i->listen_port_pos.line, 0);
	assert_int_equal(i->fwmark, 0);
	assert_int_equal(i->mtu, 0);
	assert_int_equal(i->table, CONF_TABLE_AUTO);
	assert_int_equal(i->workers, 0);
	assert_true(i->has_offload);
	assert_int_equal(i->aead, CONF_AEAD_AUTO);
	assert_false(i->save_config);
	assert_null(c->peers[0].endpoint.host);
	assert_int_equal(c->peers[0].keepalive_s, 0);
	const struct conf_policy *p = &c->peers[0].policy;
	assert_true(p->has_extensions);
	assert_int_equal(p->fec, CONF_FEC_AUTO);
	assert_int_equal(p->fec_delay_ms, 20);
	assert_int_equal(p->cipher, CONF_CIPHER_AUTO);
	conf_free(c);
}

static void
conf_policy_of_the_interface_holds_for_peers_that_do_not_say_it(void **state)
{
	(void)state;
	/* The peers stand before and behind it. */
	struct conf *c =
		PARSE_OK(PEER "Fec = auto\nCipher = auto\n" HEAD
			      "Extensions = off\nFec = 7\nFecDelay = 5\nCipher = chacha20poly1305\n"
			      "[Peer]\nPublicKey = " KEY_A "\nExtensions = on\nFecDelay = 1000\n");
	const struct conf_policy *p = &c->peers[0].policy;
	assert_int_equal(report.n, 0);
	assert_false(p->has_extensions);
	assert_int_equal(p->fec, CONF_FEC_AUTO);
	assert_int_equal(p->fec_percent, 0);
	assert_int_equal(p->fec_delay_ms, 5);
	assert_int_equal(p->fec_delay_pos.line, 0);
	assert_int_equal(p->cipher, CONF_CIPHER_AUTO);
	p = &c->peers[1].policy;
	assert_true(p->has_extensions);
	assert_int_equal(p->fec, CONF_FEC_FIXED);
	assert_int_equal(p->fec_percent, 7);
	assert_int_equal(p->fec_pos.line, 0);
	assert_int_equal(p->fec_delay_ms, 1000);
	assert_int_equal(p->cipher, CONF_CIPHER_CHACHA20_POLY1305);
	conf_free(c);
}

static void
conf_fec_is_read_in_every_way_of_writing_it(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		enum conf_fec fec;
		unsigned percent;
		const char *back;
	} good[] = {{"off", CONF_FEC_OFF, 0, "off"}, {"OFF", CONF_FEC_OFF, 0, "off"},
		{"Auto", CONF_FEC_AUTO, 0, "auto"}, {"1", CONF_FEC_FIXED, 1, "1%"},
		{"1%", CONF_FEC_FIXED, 1, "1%"}, {"100 %", CONF_FEC_FIXED, 100, "100%"},
		{"030%", CONF_FEC_FIXED, 30, "30%"}};
	static const char *const bad[] = {"", "%", "0", "0%", "101", "4294967297", "-1", "+1",
		"1.5", "30%%", "30 percent", "% 30", "0x10", "automatic", "of", " auto"};
	struct conf_policy p;
	char text[CONF_FEC_TEXT_MAX];
	for (size_t i = 0; i < WEFT_ARRAY_LEN(good); i++) {
		p = (struct conf_policy){.fec_percent = 99};
		assert_true(conf_fec_parse(good[i].text, strlen(good[i].text), &p));
		assert_int_equal(p.fec, good[i].fec);
		assert_int_equal(p.fec_percent, good[i].percent);
		assert_string_equal(conf_fec_format(&p, text), good[i].back);
	}
	for (size_t i = 0; i < WEFT_ARRAY_LEN(bad); i++) {
		p = (struct conf_policy){.fec = CONF_FEC_FIXED, .fec_percent = 99};
		if (conf_fec_parse(bad[i], strlen(bad[i]), &p) || p.fec != CONF_FEC_FIXED ||
			p.fec_percent != 99) {
			fail_msg("\"%s\" was taken", bad[i]);
		}
	}
}

static void
conf_cipher_names_read_back(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"", "aes", "aes-256-gc", "aes-256-gcm ", "chacha20", "on"};
	struct conf_policy p = {0};
	for (unsigned c = 0; c <= CONF_CIPHER_AES_256_GCM; c++) {
		const char *name = conf_cipher_text((enum conf_cipher)c);
		assert_true(conf_cipher_parse(name, strlen(name), &p));
		assert_int_equal(p.cipher, c);
	}
	for (size_t i = 0; i < WEFT_ARRAY_LEN(bad); i++) {
		assert_false(conf_cipher_parse(bad[i], strlen(bad[i]), &p));
		assert_int_equal(p.cipher, CONF_CIPHER_AES_256_GCM);
	}
}

static void
conf_reads_every_dialect(void **state)
{
	(void)state;
	/* One configuration, written by different hands. */
	static const char *const texts[] = {
		HEAD "Address=10.0.0.2/24\nFwMark=0x10\n" PEER "AllowedIPs=10.0.0.0/24,::/0\n",
		"\xef\xbb\xbf[Interface]\r\nPrivateKey = " KEY_A
		"\r\nAddress = 10.0.0.2/24\r\nFwMark = 16\r\n\r\n[Peer]\r\nPublicKey = " KEY_B
		"\r\nAllowedIPs = 10.0.0.0/24, ::/0",
		"# c\n\n \t[INTERFACE]\t # c\n\tprivatekey\t=\t" KEY_A
		"\t#c\n address = 10.0.0.2/24 # 10.9.9.9\nfwmark = 0x10#\n\n[pEEr]#\n"
		"PUBLICKEY=" KEY_B " # " KEY_A "\nallowedips = 10.0.0.0/24\nAllowedIPs =\n"
		"ALLOWEDIPS = ::/0 #\n#",
		"[Peer]\nPublicKey=" KEY_B "\nAllowedIPs= 10.0.0.0/24 , ::/0\v\f\n" HEAD
		"MTU =\nPostUp = \nDNS=#x\nAddress = 10.0.0.2/24,\nFwMark = 020\n",
	};
	for (size_t t = 0; t < WEFT_ARRAY_LEN(texts); t++) {
		struct conf *c = parse_ok(texts[t], strlen(texts[t]));
		assert_true(c->interface.has_private_key);
		assert_int_equal(c->interface.fwmark, 16);
		assert_int_equal(c->interface.addresses.n, 1);
		assert_int_equal(c->interface.addresses.v[0].prefix.bits, 24);
		assert_int_equal(c->interface.addresses.v[0].prefix.addr.b[3], 2);
		assert_int_equal(c->peers_n, 1);
		assert_int_equal(c->peers[0].allowed.n, 2);
		assert_int_equal(c->peers[0].allowed.v[0].prefix.bits, 24);
		assert_int_equal(c->peers[0].allowed.v[1].prefix.addr.family, IP_FAMILY_V6);
		assert_int_equal(report.errors, 0);
		conf_free(c);
	}
}

static void
conf_points_at_every_error(void **state)
{
	(void)state;
	static const struct fault faults[] = {
		{"", 1, 1, "[Interface]", "no such section"},
		{"# x\n", 1, 1, "[Interface]", "empty"},
		{PEER, 1, 1, "[Interface]", "no such section"},
		{"ListenPort = 1\n" HEAD, 1, 1, "ListenPort", "above"},
		{"client\ndev tun\n", 1, 1, "", "before any section"},
		{HEAD "[Server]\nPort = 1\nx\n", 3, 1, "[Server]", "unknown section"},
		{HEAD " [Peers] \nPublicKey = " KEY_B "\n", 3, 2, "[Peers]", "[Peer]?"},
		{"[Interface\nPrivateKey = " KEY_A "\n", 1, 1, "", "']'"},
		{"[Interface] x\nPrivateKey = " KEY_A "\n", 1, 1, "", "follows"},
		{HEAD "Adress = 1.2.3.4\n", 3, 1, "Adress", "did you mean Address?"},
		{"; note\n" HEAD, 1, 1, "", "'#'"},
		{HEAD "  DnsServer = 1.2.3.4\n", 3, 3, "DnsServer",
			"is an unknown key; did you mean DNS?"},
		{HEAD "AllowedIP = ::/0\n", 3, 1, "AllowedIP", "AllowedIPs of [Peer]?"},
		{HEAD "Port = 1\n", 3, 1, "Port", "did you mean ListenPort?"},
		{HEAD PEER "KeepAlive = 1\n", 5, 1, "KeepAlive", "PersistentKeepalive?"},
		{HEAD PEER "PersistantKeepalive = 1\n", 5, 1, "PersistantKeepalive",
			"PersistentKeepalive?"},
		{HEAD PEER "Key = 1\n", 5, 1, "Key", "is an unknown key"},
		{HEAD PEER "AllowedIPs = ::/0, -10.0.0.0/8\n", 5, 20, "AllowedIPs", "wg set"},
		{HEAD "PostUp = echo \xed\xa0\x80\n", 3, 15, "PostUp", "not UTF-8"},
		{HEAD "Jc = 4\n", 3, 1, "Jc", "AmneziaWG"},
		{HEAD "PublicKey = " KEY_B "\n", 3, 1, "PublicKey", "belongs in [Peer]"},
		{HEAD PEER "MTU = 1\n", 5, 1, "MTU", "belongs in [Interface]"},
		{HEAD "ListenPort 51820\n", 3, 1, "ListenPort", "no '='"},
		{HEAD "hello\n", 3, 1, "", "no '='"},
		{HEAD "; note\n", 3, 1, "", "'#'"},
		{HEAD "ListenPort = 65536\n", 3, 14, "ListenPort", "65535"},
		{HEAD "ListenPort = 99999999999999999999999\n", 3, 14, "ListenPort", "65535"},
		{HEAD "ListenPort = http\n", 3, 14, "ListenPort", "\"http\" is not a number"},
		{HEAD "ListenPort = 0x10\n", 3, 14, "ListenPort", "number"},
		{HEAD "ListenPort = # 1\n", 3, 14, "ListenPort", "no value"},
		{HEAD "ListenPort = 1\nListenPort = 2\n", 4, 14, "ListenPort", "line 3"},
		{HEAD "PrivateKey = " KEY_B "\n", 3, 14, "PrivateKey", "line 2"},
		{HEAD "FwMark = 08\n", 3, 10, "FwMark", "mark"},
		{HEAD "FwMark = 0x\n", 3, 10, "FwMark", "mark"},
		{HEAD "FwMark = 4294967296\n", 3, 10, "FwMark", "32 bits"},
		{HEAD "FwMark = on\n", 3, 10, "FwMark", "off"},
		{HEAD "MTU = 65536\n", 3, 7, "MTU", "65535"},
		{HEAD "Table = 4294967296\n", 3, 9, "Table", "32 bits"},
		{HEAD "Table = 1x\n", 3, 9, "Table", "auto"},
		{HEAD "Table = a name\n", 3, 9, "Table", "auto"},
		{HEAD "SaveConfig = yes\n", 3, 14, "SaveConfig", "neither true nor false"},
		{HEAD "Workers = 0\n", 3, 11, "Workers", "16"},
		{HEAD "Workers = many\n", 3, 11, "Workers", "number"},
		{HEAD "Offload = true\n", 3, 11, "Offload", "neither on nor off"},
		{HEAD "Aead = aes\n", 3, 8, "Aead", "ipsec-mb"},
		{HEAD "Address = 10.0.0.1/33\n", 3, 11, "Address", "0 to 32"},
		{HEAD "Address = 10.0.0.1/255.0.255.0\n", 3, 11, "Address", "0 to 32"},
		{HEAD "Address = 10.0.0.1, fe80::1/129\n", 3, 21, "Address", "0 to 128"},
		{HEAD "Address = 10.0.0.1 10.0.0\n", 3, 20, "Address", "not an address"},
		{HEAD "DNS = 1.2.3.4, 1.2.3\n", 3, 16, "DNS", "no IPv4 address"},
		{HEAD "DNS = a..b\n", 3, 7, "DNS", "empty"},
		{HEAD "Fec =\n", 3, 6, "Fec", "no value"},
		{HEAD PEER "Cipher = # auto\n", 5, 10, "Cipher", "no value"},
		{HEAD "Workers =\n", 3, 10, "Workers", "no value"},
		{HEAD "DNS = 1.2.3.4%eth0\n", 3, 7, "DNS", "scope"},
		{HEAD PEER "AllowedIPs = 10.0.0.0/8,,::/0\n", 5, 25, "AllowedIPs", "comma"},
		{HEAD PEER "AllowedIPs = 10.0.0.0/8,\n", 5, 25, "AllowedIPs", "comma"},
		{HEAD PEER "AllowedIPs = 10.0.0.0/8 ::/0\n", 5, 14, "AllowedIPs", "0 to 32"},
		{HEAD PEER "AllowedIPs = any\n", 5, 14, "AllowedIPs", "names"},
		{HEAD PEER "Endpoint = 1.2.3.4\n", 5, 12, "Endpoint", "no port"},
		{HEAD PEER "Endpoint = 1.2.3.4:\n", 5, 12, "Endpoint", "no port behind"},
		{HEAD PEER "Endpoint = 1.2.3.4:0\n", 5, 12, "Endpoint", "within 1 to 65535"},
		{HEAD PEER "Endpoint = 1.2.3.4:x\n", 5, 12, "Endpoint", "not a number"},
		{HEAD PEER "Endpoint = 1.2.3:1\n", 5, 12, "Endpoint", "IPv4"},
		{HEAD PEER "Endpoint = a.0x1f:1\n", 5, 12, "Endpoint", "IPv4"},
		{HEAD PEER "Endpoint = :1\n", 5, 12, "Endpoint", "empty"},
		{HEAD PEER "Endpoint = a_b!c:1\n", 5, 12, "Endpoint", "character"},
		{HEAD PEER "Endpoint = -a:1\n", 5, 12, "Endpoint", "'-'"},
		{HEAD PEER "Endpoint = b\xc3\xbcro:1\n", 5, 13, "Endpoint", "U+00FC"},
		{HEAD PEER "Endpoint = b\xfcro:1\n", 5, 13, "Endpoint", "0xfc is not UTF-8"},
		{HEAD PEER "Endpoint = 2001:db8::1\n", 5, 12, "Endpoint", "[ADDRESS]:PORT"},
		{HEAD PEER "Endpoint = 2001:db8::1:443\n", 5, 12, "Endpoint", "[ADDRESS]:PORT"},
		{HEAD PEER "Endpoint = [::1]\n", 5, 12, "Endpoint", "no port"},
		{HEAD PEER "Endpoint = [::1:1\n", 5, 12, "Endpoint", "']'"},
		{HEAD PEER "Endpoint = [1.2.3.4]:1\n", 5, 12, "Endpoint", "IPv6"},
		{HEAD PEER "Endpoint = [fe80::1%]:1\n", 5, 12, "Endpoint", "scope"},
		{HEAD PEER "Endpoint = [fe80::1%a/b]:1\n", 5, 12, "Endpoint", "scope"},
		{HEAD PEER "Endpoint = a:1, b:2\n", 5, 12, "Endpoint", "one endpoint"},
		{HEAD PEER "PersistentKeepalive = 65536\n", 5, 23, "PersistentKeepalive", "65535"},
		{HEAD PEER "PersistentKeepalive = on\n", 5, 23, "PersistentKeepalive", "number"},
		{HEAD PEER "Extensions = auto\n", 5, 14, "Extensions", "on nor off"},
		{HEAD PEER "Fec = on\n", 5, 7, "Fec", "did you mean auto?"},
		{HEAD PEER "Fec = 0%\n", 5, 7, "Fec", "off turns it off"},
		{HEAD "FEC = 101\n", 3, 7, "Fec", "\"101\" is not within 1% to 100%"},
		{HEAD PEER "Fec = 12.5%\n", 5, 7, "Fec", "neither off, auto nor"},
		{HEAD PEER "Fec = 5\nFec = 6\n", 6, 7, "Fec", "line 5 with another value"},
		{HEAD PEER "FecDelay = 0\n", 5, 12, "FecDelay", "within 1 to 1000"},
		{HEAD PEER "FecDelay = 20ms\n", 5, 12, "FecDelay", "number of milliseconds from 1"},
		{HEAD PEER "FecDelay = 1001\n", 5, 12, "FecDelay", "within 1 to 1000"},
		{HEAD "FecDelay = 20ms\n", 3, 12, "FecDelay", "not a number"},
		{HEAD PEER "Cipher = aes\n", 5, 10, "Cipher", "did you mean aes-256-gcm?"},
		{HEAD PEER "Cipher = ChaCha20\n", 5, 10, "Cipher", "chacha20poly1305?"},
		{HEAD "Cipher = none\n", 3, 10, "Cipher", "neither auto"},
		{HEAD "Fecdelays = 1\n", 3, 1, "Fecdelays", "did you mean FecDelay?"},
		{HEAD "Extension = on\n", 3, 1, "Extension", "did you mean Extensions?"},
		{HEAD PEER "Ciper = auto\n", 5, 1, "Ciper", "did you mean Cipher?"},
		{HEAD PEER "PublicKey = " KEY_A "\n", 5, 13, "PublicKey", "[Peer] line missing"},
		{HEAD "[Peer]\n\n" PEER, 3, 1, "PublicKey", "none"},
		{HEAD PEER "[Peer]\nAllowedIPs = ::/0\n", 5, 1, "PublicKey", "none"},
		{HEAD "Listen\xc2\xa0Port = 1\n", 3, 7, "", "U+00A0"},
		{HEAD "ListenPort \xef\xbc\x9d 1\n", 3, 12, "", "U+FF1D"},
		{"\xff\xfe[\n", 1, 1, "", "UTF-16"},
	};
	expect_faults(faults, WEFT_ARRAY_LEN(faults), true);
}

static void
conf_explains_every_broken_key(void **state)
{
	(void)state;
	static const struct {
		const char *value, *word;
	} cases[] = {
		{"yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk", "43 characters"},
		{"yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk==", "45 characters"},
		{"yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmkk", "is not '='"},
		{"yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBml=", "copy the key again"},
		{"yAnz5TF-lXXJte14tji3zlMNq_hd2rYUIgJBgB3fBmk=", "URL-safe"},
		{"yAnz5TF+lXXJte14tji3 lMNq+hd2rYUIgJBgB3fBmk=", "copy the key again"},
		{"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "zeros"},
		{"<key>", "placeholder"},
		{"", "no value"},
	};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		char text[400];
		struct conf *c;
		snprintf(text, sizeof(text), "[Interface]\nPrivateKey = %s\n", cases[i].value);
		assert_int_equal(conf_parse(text, strlen(text), NULL, &c, &report), WEFT_EPARSE);
		assert_int_equal(report.n, 1);
		assert_int_equal(report.notes[0].pos.line, 2);
		assert_int_equal(report.notes[0].pos.column, 14);
		assert_string_equal(report.notes[0].key, "PrivateKey");
		if (!strstr(report.notes[0].text, cases[i].word)) {
			fail_msg("%s: %s", cases[i].value, report.notes[0].text);
		}
	}
}

static void
conf_refuses_nul_bytes_wherever_they_are(void **state)
{
	(void)state;
	char text[] = HEAD "ListenPort = 51820 # a\n";
	size_t start = sizeof(HEAD) - 1, end = sizeof(text) - 2;
	for (size_t at = start; at < end; at++) {
		struct conf *c;
		char saved = text[at];
		text[at] = 0;
		assert_int_equal(conf_parse(text, end + 1, NULL, &c, &report), WEFT_EPARSE);
		assert_int_equal(report.notes[0].pos.line, 3);
		assert_int_equal(report.notes[0].pos.column, at - start + 1);
		text[at] = saved;
	}
}

static void
conf_warns_of_what_is_probably_a_mistake(void **state)
{
	(void)state;
	static const struct fault faults[] = {
		{"[Interface]\n", 1, 1, "PrivateKey", "none"},
		{HEAD "[Interface]\nListenPort = 1\n", 3, 1, "[Interface]", "line 1"},
		{HEAD "ListenPort = 1\nListenPort = 1\n", 4, 14, "ListenPort", "same value"},
		{HEAD "ListenPort = 5 1\n", 3, 14, "ListenPort", "blanks"},
		{HEAD "Listen Port = 51\n", 3, 1, "ListenPort", "blanks"},
		{HEAD "FwMark = 010\n", 3, 10, "FwMark", "octal: 0x8"},
		{HEAD "MTU = 67\n", 3, 7, "MTU", "68"},
		{HEAD "MTU = 1279\nAddress = fd00::1\n", 3, 7, "MTU", "1280"},
		{HEAD "DNS = a.example\n", 3, 7, "DNS", "search domain"},
		{HEAD "Address = 10.0.0.1/8\nAddress = ::1, 10.0.0.1/8\n", 4, 16, "Address",
			"line 3"},
		{HEAD "PostUp = echo '#'\n", 3, 16, "PostUp", "quotes"},
		{HEAD "PostUp = echo a#b\n", 3, 16, "PostUp", "word"},
		{HEAD PEER "Fec = 5\nFec = 5%\n", 6, 7, "Fec", "same value"},
		{HEAD PEER "Fec = auto\nExtensions = off\n", 5, 7, "Fec", "no effect"},
		{HEAD "Extensions = off\n" PEER "Cipher = aes-256-gcm\n", 6, 10, "Cipher",
			"Extensions = off"},
		{HEAD PEER "Fec = off\nFecDelay = 9\n", 6, 12, "FecDelay", "Fec = off"},
		{HEAD PEER "AllowedIPs = 10.0.0.1/8\n", 5, 14, "AllowedIPs", "10.0.0.0/8"},
		{HEAD PEER "AllowedIPs = ::/0, 1.0.0.0/8, ::/0\n", 5, 31, "AllowedIPs", "already"},
		{HEAD PEER "AllowedIPs = ::/0\n[Peer]\nPublicKey = " KEY_A "\nAllowedIPs = ::/0\n",
			8, 14, "AllowedIPs",
			"::/0 of peer yAnz5TF+lX is peer xTIBA5rboU's too, in line 5"},
		{HEAD PEER "Name = a\nAllowedIPs = ::/0\n[Peer]\nPublicKey = " KEY_A
			   "\nName = b\nAllowedIPs = ::/0\n",
			10, 14, "AllowedIPs", "of peer b is peer a's too, in line 6"},
		{HEAD PEER PEER, 6, 13, "PublicKey", "line 4"},
		{HEAD PEER "AllowedIPs = ::/0\n" PEER "AllowedIPs = ::/0\n", 7, 13, "PublicKey",
			"line 4"},
		{HEAD PEER "Endpoint = 0.0.0.0:1\n", 5, 12, "Endpoint", "unspecified"},
		{HEAD PEER "Endpoint = 224.0.0.1:1\n", 5, 12, "Endpoint", "multicast"},
		{HEAD PEER "Endpoint = [fe80::1]:1\n", 5, 12, "Endpoint", "link-local"},
		{HEAD PEER "Endpoint = 2001:db8::1:51820\n", 5, 12, "Endpoint",
			"[2001:db8::1]:51820"},
		{HEAD PEER "Endpoint = 1.2.3.4 : 5\n", 5, 12, "Endpoint", "blanks"},
		{HEAD "Address = 10.0.0.1\n" PEER "Endpoint = 10.0.0.1:5\n", 6, 12, "Endpoint",
			"own"},
		{HEAD PEER "AllowedIPs = ::/0, 10.0.0.0/8\nEndpoint = 10.1.2.3:1\n", 5, 20,
			"AllowedIPs", "endpoint of line 6"},
	};
	expect_faults(faults, WEFT_ARRAY_LEN(faults), false);
}

static void
conf_stays_silent_where_nothing_is_wrong(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"[Interface]\nPostUp = wg set %i private-key /k\n",
		HEAD "PostUp = echo '1' # 'a\n",
		HEAD "DNS = ~., 1.1.1.1\n",
		HEAD "Fec = 10%\nFecDelay = 9\nCipher = aes-256-gcm\n" PEER "Extensions = off\n",
		HEAD PEER "Fec = off\nCipher = chacha20poly1305\nExtensions = off\n",
		HEAD "Address = 10.0.0.1/255.255.255.0\n",
		HEAD "Table = off\n" PEER "AllowedIPs = 10.0.0.0/8\nEndpoint = 10.1.2.3:1\n",
		HEAD PEER "AllowedIPs = 0.0.0.0/0\nEndpoint = 10.1.2.3:1\n",
		HEAD PEER "AllowedIPs = 0.0.0.0/0\n[Peer]\nPublicKey = " KEY_A
			  "\nAllowedIPs = 10.0.0.0/8\n",
	};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(texts); i++) {
		struct conf *c = parse_ok(texts[i], strlen(texts[i]));
		assert_int_equal(conf_lint(c, NULL, &report), WEFT_OK);
		if (report.n != 0) {
			fail_msg("%s: %s", texts[i], report.notes[0].text);
		}
		conf_free(c);
	}
}

static void
conf_lint_knows_the_own_key(void **state)
{
	(void)state;
	uint8_t b[KEY_LEN];
	assert_int_equal(key_decode_base64(KEY_B, 44, b), WEFT_OK);
	struct conf *c = PARSE_OK(HEAD PEER);
	assert_int_equal(conf_lint(c, b, &report), WEFT_OK);
	assert_int_equal(report.n, 1);
	assert_int_equal(report.notes[0].pos.line, 4);
	assert_int_equal(report.notes[0].line2, 2);
	conf_free(c);
}

static void
conf_lenient_passes_unknown_keys_and_sections(void **state)
{
	(void)state;
	static const char text[] = HEAD "Jc = 4\n[Other]\nx\n" PEER "Foo = 1\n";
	const struct conf_options options = {.is_lenient = true};
	struct conf *c;
	assert_int_equal(conf_parse(text, sizeof(text) - 1, &options, &c, &report), WEFT_OK);
	assert_int_equal(report.errors, 0);
	assert_int_equal(report.warnings, 3);
	assert_int_equal(c->peers_n, 1);
	conf_free(c);
}

static void
conf_collects_all_faults_and_counts_those_it_cannot_keep(void **state)
{
	(void)state;
	char text[20000] = HEAD PEER;
	size_t n = strlen(text);
	for (int i = 0; i < 200; i++) {
		n += (size_t)snprintf(text + n, sizeof(text) - n, "AllowedIPs = 10.0.0.1/8\n");
	}
	for (int i = 0; i < 200; i++) {
		n += (size_t)snprintf(text + n, sizeof(text) - n, "AllowedIPs = x\n");
	}
	struct conf *c;
	assert_int_equal(conf_parse(text, n, NULL, &c, &report), WEFT_EPARSE);
	assert_int_equal(report.n, CONF_NOTES_MAX);
	assert_int_equal(report.errors, 200);
	assert_int_equal(report.warnings, 200);
	size_t kept_errors = 0;
	for (size_t i = 0; i < report.n; i++) {
		kept_errors += report.notes[i].severity == CONF_SEVERITY_ERROR;
		assert_true(i == 0 || report.notes[i - 1].pos.line <= report.notes[i].pos.line);
	}
	assert_int_equal(kept_errors, 20);
}

static void
conf_messages_hold_no_piece_of_a_key(void **state)
{
	(void)state;
	/* A key pasted, cut or shifted into every place of a line. */
	static const char *const forms[] = {"%s\n", "%s=\n", "%s=1\n", "x = %s\n",
		"PrivateKey %s\n", "PrivateKey: %s\n", "[%s]\n", "[%s\n", "PrivateKey = %s\n",
		"PrivateKey = %s%s\n", "PrivateKey = \"%s\"\n", "Address = %s\n", "DNS = %s\n",
		"DNS = 1.1.1.1, %s\n", "Table = %s\n", "FwMark = %s\n", "ListenPort = %s\n",
		"Offload = %s\n", "Fec = %s\n", "FecDelay = %s\n", "Cipher = %s\n",
		PEER "PublicKey = x%s\n", PEER "Endpoint = %s\n",
		PEER "Endpoint = 2001:db8:0:0:0:0:0:10:%s\n", PEER "Endpoint = %s:1\n",
		PEER "Endpoint = [%s]:1\n", PEER "Endpoint = [fe80::1%%%s]:1\n",
		PEER "AllowedIPs = %s\n", PEER "AllowedIPs = %s/8\n", PEER "%s = x\n",
		PEER "PresharedKey = %s\n"};
	static const char key[] = "qLk5xQg+Vt+9iFvjJdhW/xYz3M62UGt4m4GX4QyQwFY=";
	for (size_t f = 0; f < WEFT_ARRAY_LEN(forms); f++) {
		for (size_t cut = 16; cut <= 44; cut++) {
			char text[600] = "[Interface]\n", piece[64];
			snprintf(piece, sizeof(piece), "%.*s", (int)cut, key);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			snprintf(text + 12, sizeof(text) - 12, forms[f], piece, piece);
#pragma GCC diagnostic pop
			struct conf *c = NULL;
			if (conf_parse(text, strlen(text), NULL, &c, &report) == WEFT_OK) {
				assert_int_equal(conf_lint(c, NULL, &report), WEFT_OK);
			}
			conf_free(c);
			for (size_t i = 0; i < report.n; i++) {
				char line[500];
				conf_note_format(&report.notes[i], "f", line, sizeof(line));
				for (size_t at = 0; at + 12 <= 44; at++) {
					char part[13];
					snprintf(part, sizeof(part), "%.12s", key + at);
					if (strstr(line, part)) {
						fail_msg("%s: %s", text, line);
					}
				}
			}
		}
	}
}

static void
conf_messages_hold_no_key_that_was_cut_by_blanks(void **state)
{
	(void)state;
	static const char *const keys[] = {"Table", "FwMark", "Fec", "Cipher", "Aead", "MTU"};
	static const char *const cuts[] = {"qLk5xQg9VtA9iFv jJdhWBxYz3M62UG t4m4GX4QyQwFY",
		"qLk5xQg9VtA9iFv,jJdhWBxYz3M62UG,t4m4GX4QyQwFY", "5xQg9VtA9iFv-jJdhWBxYz"};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(keys) * WEFT_ARRAY_LEN(cuts); i++) {
		char text[200];
		struct conf *c;
		snprintf(text, sizeof(text), "[Interface]\n%s = %s\n", keys[i / 3], cuts[i % 3]);
		assert_int_equal(conf_parse(text, strlen(text), NULL, &c, &report), WEFT_EPARSE);
		if (strstr(report.notes[0].text, "5xQg")) {
			fail_msg("%s: %s", text, report.notes[0].text);
		}
	}
}

static void
conf_takes_no_key_for_a_host(void **state)
{
	(void)state;
	static const struct fault faults[] = {
		{HEAD "DNS = QJmUW0cbzc8l1nJr5QfF3rXlaMYvyT0yPsm5NsO6K1o\n", 3, 7, "DNS", "a key"},
		{HEAD PEER "Endpoint = QJmUW0cbzc8l1nJr5QfF3rXlaMYvyT0yPsm5NsO6K1o:1\n", 5, 12,
			"Endpoint", "a key"},
		{HEAD PEER "Name = QJmUW0cbzc8l1nJr5QfF3rXlaMYvyT0yPsm5NsO6K1o\n", 5, 8, "Name",
			"a key"},
	};
	expect_faults(faults, WEFT_ARRAY_LEN(faults), true);
}

static void
conf_long_lines_are_read_and_long_values_answered_shortly(void **state)
{
	(void)state;
	const size_t cap = 2u << 20;
	char *text = malloc(cap);
	assert_non_null(text);
	/* 1 MiB of AllowedIPs in one line. */
	size_t n = (size_t)snprintf(text, cap, "%s", HEAD PEER "AllowedIPs = 10.0.0.0/32");
	unsigned count = 1;
	for (; n < (1u << 20); count++) {
		n += (size_t)snprintf(text + n, cap - n, ",10.%u.%u.%u/32", count >> 16,
			count >> 8 & 255, count & 255);
	}
	struct conf *c = parse_ok(text, n);
	assert_int_equal(c->peers[0].allowed.n, count);
	assert_int_equal(conf_lint(c, NULL, &report), WEFT_OK);
	assert_int_equal(report.n, 0);
	conf_free(c);
	static const char *const keys[] = {"PrivateKey", "Address", "DNS", "MTU", "Table", "FwMark",
		"ListenPort", "PostUp", "Unknown", "Aead"};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(keys); i++) {
		n = (size_t)snprintf(text, cap, "[Interface]\n%s = ", keys[i]);
		memset(text + n, 'a', 1u << 20);
		assert_int_equal(conf_parse(text, n + (1u << 20), NULL, &c, &report), WEFT_EPARSE);
		assert_int_equal(report.notes[0].pos.line, 2);
		assert_true(strlen(report.notes[0].text) < 180);
	}
	n = (size_t)snprintf(text, cap, "%s", HEAD "# ");
	memset(text + n, 'a', 1u << 20);
	conf_free(parse_ok(text, n + (1u << 20)));
	free(text);
}

/* --- a random configuration, written in a random dialect, reads back as it was --- */

struct model_peer {
	uint8_t key[KEY_LEN], psk[KEY_LEN];
	bool has_psk;
	struct ip_prefix allowed[6];
	size_t allowed_n;
	uint16_t port, keepalive;
	int host; /* 0 none, 1 name, 2 IPv4, 3 IPv6 */
};

struct text {
	char *p;
	size_t n, cap;
	struct rng *r;
};

WEFT_PRINTF(2, 3) static void put(struct text *t, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(t->p + t->n, t->cap - t->n, fmt, ap);
	va_end(ap);
	assert_true(n >= 0 && (size_t)n < t->cap - t->n);
	t->n += (size_t)n;
}

static void
put_blank(struct text *t)
{
	static const char *const blanks[] = {"", " ", "\t", "  ", " \t ", "", ""};
	put(t, "%s", blanks[rng_below(t->r, WEFT_ARRAY_LEN(blanks))]);
}

static void
put_end(struct text *t)
{
	static const char *const ends[] = {
		"\n", "\n", "\r\n", " # c\n", "\n\n", "\n# Address = x\n", "\t\n", "#\r\n"};
	put_blank(t);
	put(t, "%s", ends[rng_below(t->r, WEFT_ARRAY_LEN(ends))]);
}

static void
put_name(struct text *t, const char *name)
{
	put_blank(t);
	for (; *name; name++) {
		bool flips = rng_below(t->r, 4) == 0;
		put(t, "%c",
			flips && (*name | 0x20) >= 'a' && (*name | 0x20) <= 'z' ? *name ^ 0x20
										: *name);
	}
}

static void
put_key(struct text *t, const char *name)
{
	put_name(t, name);
	put_blank(t);
	put(t, "=");
	put_blank(t);
}

static void
random_prefix(struct rng *r, struct ip_prefix *p)
{
	*p = (struct ip_prefix){0};
	p->addr.family = rng_below(r, 2) ? IP_FAMILY_V4 : IP_FAMILY_V6;
	rng_fill(r, p->addr.b, ip_family_len(p->addr.family));
	p->bits = (uint8_t)rng_below(r, ip_family_len(p->addr.family) * 8 + 1);
	ip_prefix_mask(p);
}

static void
put_peer(struct text *t, const struct model_peer *m)
{
	char key[KEY_BASE64_LEN + 1], prefix[IP_PREFIX_TEXT_MAX];
	static const char *const hosts[] = {"", "a.example", "192.0.2.1", "[2001:db8::1]"};
	put_name(t, "[Peer]");
	put_end(t);
	if (m->has_psk) {
		put_key(t, "PresharedKey");
		put(t, "%s", key_encode_base64(m->psk, key));
		put_end(t);
	}
	put_key(t, "PublicKey");
	put(t, "%s", key_encode_base64(m->key, key));
	put_end(t);
	for (size_t i = 0; i < m->allowed_n;) {
		put_key(t, "AllowedIPs");
		do {
			put(t, "%s", ip_prefix_format(&m->allowed[i++], prefix));
			put_blank(t);
		} while (i < m->allowed_n && rng_below(t->r, 2) &&
			 (put(t, ","), put_blank(t), true));
		put_end(t);
	}
	if (m->host) {
		put_key(t, "Endpoint");
		put(t, "%s:%u", hosts[m->host], m->port);
		put_end(t);
	}
	if (m->keepalive || rng_below(t->r, 2)) {
		put_key(t, "PersistentKeepalive");
		if (m->keepalive || rng_below(t->r, 2)) {
			put(t, "%u", m->keepalive);
		} else {
			put(t, "oFf");
		}
		put_end(t);
	}
}

static void
conf_names_of_peers_have_a_form_and_one_owner(void **state)
{
	(void)state;
	static const struct fault faults[] = {
		{HEAD PEER "Name = a_b\n", 5, 8, "Name", "letter"},
		{HEAD PEER "Name = a b\n", 5, 8, "Name", "letter"},
		{HEAD PEER "Name = 10.0.0.1\n", 5, 8, "Name", "number"},
		{HEAD PEER "Name = a..b\n", 5, 8, "Name", "empty"},
		{HEAD PEER "Name = a.\n", 5, 8, "Name", "dot"},
		{HEAD PEER
			"Name = aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
			5, 8, "Name", "63"},
		{HEAD PEER "Name = a\nName = b\n", 6, 8, "Name", "line 5"},
		{HEAD PEER "Name = Db\n[Peer]\nPublicKey = " KEY_A "\nName = dB\n", 8, 8, "Name",
			"line 5"},
	};
	expect_faults(faults, sizeof(faults) / sizeof(faults[0]), true);
	conf_free(PARSE_OK(
		HEAD PEER "Name = a\n[Peer]\nPublicKey = " KEY_A "\nName = b\n" PEER "Name = a\n"));
}

static void
conf_random_dialects_read_back(void **state)
{
	(void)state;
	static char buf[64 << 10];
	for (uint64_t seed = 0; seed < 1000; seed++) {
		struct rng r;
		struct model_peer m[5];
		struct text t = {.p = buf, .cap = sizeof(buf), .r = &r};
		char key[KEY_BASE64_LEN + 1];
		uint8_t private_key[KEY_LEN];
		rng_init(&r, seed);
		size_t n = rng_below(&r, 6);
		rng_fill(&r, private_key, KEY_LEN);
		uint16_t port = (uint16_t)rng_below(&r, 65536);
		put(&t, "%s", rng_below(&r, 4) == 0 ? "\xef\xbb\xbf" : "");
		put_name(&t, "[Interface]");
		put_end(&t);
		put_key(&t, "PrivateKey");
		put(&t, "%s", key_encode_base64(private_key, key));
		put_end(&t);
		put_key(&t, "ListenPort");
		put(&t, "%u", port);
		put_end(&t);
		for (size_t i = 0; i < n; i++) {
			m[i] = (struct model_peer){.has_psk = rng_below(&r, 2) == 0,
				.allowed_n = rng_below(&r, 7),
				.host = (int)rng_below(&r, 4),
				.port = (uint16_t)(1 + rng_below(&r, 65535)),
				.keepalive = rng_below(&r, 2) ? (uint16_t)rng_below(&r, 65536) : 0};
			rng_fill(&r, m[i].key, KEY_LEN);
			rng_fill(&r, m[i].psk, KEY_LEN);
			for (size_t k = 0; k < m[i].allowed_n; k++) {
				random_prefix(&r, &m[i].allowed[k]);
			}
			put_peer(&t, &m[i]);
		}
		struct conf *c = NULL;
		bool ok = conf_parse(t.p, t.n, NULL, &c, &report) == WEFT_OK && report.n == 0 &&
			  c->peers_n == n && c->interface.listen_port == port &&
			  memcmp(c->interface.private_key, private_key, KEY_LEN) == 0;
		for (size_t i = 0; ok && i < n; i++) {
			const struct conf_peer *p = &c->peers[i];
			ok = memcmp(p->public_key, m[i].key, KEY_LEN) == 0 &&
			     p->has_psk == m[i].has_psk &&
			     (!p->has_psk || memcmp(p->psk, m[i].psk, KEY_LEN) == 0) &&
			     p->allowed.n == m[i].allowed_n && p->keepalive_s == m[i].keepalive &&
			     !p->endpoint.host == !m[i].host &&
			     (!m[i].host || p->endpoint.port == m[i].port);
			for (size_t k = 0; ok && k < p->allowed.n; k++) {
				ok = p->allowed.v[k].prefix.bits == m[i].allowed[k].bits &&
				     ip_addr_is_equal(
					     &p->allowed.v[k].prefix.addr, &m[i].allowed[k].addr);
			}
		}
		conf_free(c);
		if (!ok) {
			fail_msg("seed %llu: %s\n%.*s", (unsigned long long)seed,
				report.n ? report.notes[0].text : "values differ", (int)t.n, t.p);
		}
	}
}

static void
conf_names_of_interfaces_are_checked(void **state)
{
	(void)state;
	static const char *const good[] = {"wg0", "a", "abcdefghij12345", "wg=0+a_b-c.d", "..."};
	static const char *const bad[] = {
		"", "abcdefghij123456", "a b", "a/b", ".", "..", "w\xc3\xa4"};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(good); i++) {
		assert_true(conf_name_is_valid(good[i], strlen(good[i])));
	}
	for (size_t i = 0; i < WEFT_ARRAY_LEN(bad); i++) {
		assert_false(conf_name_is_valid(bad[i], strlen(bad[i])));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conf_reads_every_key),
		cmocka_unit_test(conf_defaults_are_those_of_the_stock_tools),
		cmocka_unit_test(conf_policy_of_the_interface_holds_for_peers_that_do_not_say_it),
		cmocka_unit_test(conf_fec_is_read_in_every_way_of_writing_it),
		cmocka_unit_test(conf_cipher_names_read_back),
		cmocka_unit_test(conf_reads_every_dialect),
		cmocka_unit_test(conf_points_at_every_error),
		cmocka_unit_test(conf_explains_every_broken_key),
		cmocka_unit_test(conf_refuses_nul_bytes_wherever_they_are),
		cmocka_unit_test(conf_warns_of_what_is_probably_a_mistake),
		cmocka_unit_test(conf_stays_silent_where_nothing_is_wrong),
		cmocka_unit_test(conf_lint_knows_the_own_key),
		cmocka_unit_test(conf_lenient_passes_unknown_keys_and_sections),
		cmocka_unit_test(conf_collects_all_faults_and_counts_those_it_cannot_keep),
		cmocka_unit_test(conf_messages_hold_no_piece_of_a_key),
		cmocka_unit_test(conf_messages_hold_no_key_that_was_cut_by_blanks),
		cmocka_unit_test(conf_takes_no_key_for_a_host),
		cmocka_unit_test(conf_long_lines_are_read_and_long_values_answered_shortly),
		cmocka_unit_test(conf_random_dialects_read_back),
		cmocka_unit_test(conf_names_of_interfaces_are_checked),
		cmocka_unit_test(conf_names_of_peers_have_a_form_and_one_owner),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
