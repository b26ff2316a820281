/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/config.h"
#include "lib/names.h"
#include "wire/conf.h"

static const uint8_t key_a[WEFT_KEY_LEN] = {[0] = 8, [31] = 0x41};
static const uint8_t key_b[WEFT_KEY_LEN] = {[0] = 9};
static const uint8_t key_c[WEFT_KEY_LEN] = {[0] = 7};
static const char *const ips_b[] = {"10.0.0.0/24", "fd00::2/128", "10.0.0.2/32", "10.0.0.3"};
static const char *const ips_c[] = {"10.0.0.9/32"};

static struct weft_detail why;

static enum weft_err
read_conf(const struct weft_config *c, struct conf **out)
{
	struct config_text t;
	why = (struct weft_detail){.size = sizeof(why)};
	enum weft_err e = config_read(c, &t, &why);
	if (!e) {
		e = config_parse(&t, out, &why);
		config_text_fini(&t);
	}
	if (e) {
		assert_int_equal(why.code, e);
		assert_true(strlen(why.text) > 10);
	}
	return e;
}

static void
config_struct_becomes_what_a_file_would_say(void **state)
{
	(void)state;
	static const char *const addresses[] = {"10.0.0.1/24", "fd00::1/64"};
	const struct weft_peer_config peers[] = {
		{.size = sizeof(peers[0]),
			.public_key = key_b,
			.preshared_key = key_c,
			.name = "B",
			.endpoint = "[2001:db8::1]:7",
			.allowed_ips = ips_b,
			.allowed_ips_n = 4,
			.keepalive_s = 25},
		{.size = sizeof(peers[0]), .public_key = key_c, .endpoint = "host.example:9"},
	};
	const struct weft_config c = {.size = sizeof(c),
		.private_key = key_a,
		.addresses = addresses,
		.addresses_n = 2,
		.peers = peers,
		.peers_n = 2,
		.listen_port = 5,
		.mtu = 1300};
	struct conf *conf;
	assert_int_equal(read_conf(&c, &conf), WEFT_OK);
	assert_memory_equal(conf->interface.private_key, key_a, WEFT_KEY_LEN);
	assert_int_equal(conf->interface.listen_port, 5);
	assert_int_equal(conf->interface.mtu, 1300);
	assert_int_equal(conf->interface.addresses.n, 2);
	assert_int_equal(conf->peers_n, 2);
	assert_memory_equal(conf->peers[0].public_key, key_b, WEFT_KEY_LEN);
	assert_memory_equal(conf->peers[0].psk, key_c, WEFT_KEY_LEN);
	assert_string_equal(conf->peers[0].name, "B");
	assert_int_equal(conf->peers[0].allowed.n, 4);
	assert_int_equal(conf->peers[0].keepalive_s, 25);
	assert_int_equal(conf->peers[0].endpoint.port, 7);
	assert_string_equal(conf->peers[1].endpoint.host, "host.example");
	conf_free(conf);
}

static void
config_faults_of_a_struct_name_the_member(void **state)
{
	(void)state;
	static const char *const odd[] = {"10.0.0.2/32\nPrivateKey = x"}, *const bad[] = {
										  "10.0.0.300"};
	const struct weft_peer_config good = {.size = sizeof(good),
		.public_key = key_b,
		.name = "b",
		.allowed_ips = ips_b,
		.allowed_ips_n = 4};
	struct weft_peer_config peers[2] = {good, good};
	struct weft_config c = {
		.size = sizeof(c), .private_key = key_a, .peers = peers, .peers_n = 2};
	struct conf *conf;
	peers[1].public_key = NULL;
	assert_int_equal(read_conf(&c, &conf), WEFT_EINVAL);
	assert_non_null(strstr(why.text, "peers[1].public_key"));
	peers[1] = good;
	peers[1].public_key = key_c;
	assert_int_equal(read_conf(&c, &conf), WEFT_EINVAL); /* the same name */
	assert_non_null(strstr(why.text, "peers[1]: Name: the same as of peers[0]"));
	peers[1].name = "c";
	peers[1].allowed_ips = odd;
	peers[1].allowed_ips_n = 1;
	assert_int_equal(read_conf(&c, &conf), WEFT_EINVAL);
	assert_non_null(strstr(why.text, "peers[1].allowed_ips[0]"));
	peers[1].allowed_ips = bad;
	assert_int_equal(read_conf(&c, &conf), WEFT_EINVAL);
	assert_non_null(strstr(why.text, "peers[1]: AllowedIPs"));
	assert_int_equal(why.line, 0);
	peers[1].allowed_ips = ips_c;
	peers[1].size--;
	assert_int_equal(read_conf(&c, &conf), WEFT_EINVAL);
	assert_non_null(strstr(why.text, "peers[1].size"));
	c.peers = NULL;
	assert_int_equal(read_conf(&c, &conf), WEFT_EINVAL);
	c.peers_n = 0;
	c.mtu = 1279;
	assert_int_equal(read_conf(&c, &conf), WEFT_EINVAL);
	assert_non_null(strstr(why.text, "mtu"));
}

static void
config_faults_of_a_text_have_line_and_column(void **state)
{
	(void)state;
	struct conf *conf;
	struct weft_config c = {.size = sizeof(c), .text = "[Interface]\nMTU = x\n"};
	assert_int_equal(read_conf(&c, &conf), WEFT_EPARSE);
	assert_int_equal(why.line, 2);
	assert_int_equal(why.column, 7);
	c.text = "\n[Interface]\nMTU = 1400\n";
	assert_int_equal(read_conf(&c, &conf), WEFT_EPARSE);
	assert_int_equal(why.line, 2);
	assert_non_null(strstr(why.text, "PrivateKey"));
	c.private_key = key_a;
	assert_int_equal(read_conf(&c, &conf), WEFT_EINVAL);
	c = (struct weft_config){.size = sizeof(c)};
	assert_int_equal(read_conf(&c, &conf), WEFT_EINVAL);
	c.file = "/nonexistent/weft.conf";
	assert_int_equal(read_conf(&c, &conf), WEFT_ENOENT);
	assert_non_null(strstr(why.text, "/nonexistent/weft.conf"));
}

static void
names_lead_to_single_hosts_and_keys_to_names(void **state)
{
	(void)state;
	const struct weft_peer_config peers[] = {
		{.size = sizeof(peers[0]),
			.public_key = key_b,
			.name = "bee",
			.allowed_ips = ips_b,
			.allowed_ips_n = 4},
		{.size = sizeof(peers[0]), .public_key = key_a, .name = "Ant.x"},
	};
	const struct weft_config c = {
		.size = sizeof(c), .private_key = key_a, .peers = peers, .peers_n = 2};
	struct conf *conf;
	struct lib_names t;
	char text[IP_ADDR_TEXT_MAX];
	assert_int_equal(read_conf(&c, &conf), WEFT_OK);
	assert_int_equal(lib_names_init(&t, conf), WEFT_OK);
	conf_free(conf);
	const struct lib_name *bee = lib_names_find(&t, "BEE");
	assert_non_null(bee);
	assert_string_equal(ip_addr_format(&bee->addrs[0], text), "fd00::2");
	assert_string_equal(ip_addr_format(&bee->addrs[1], text), "10.0.0.2");
	assert_non_null(lib_names_find(&t, "ant.X"));
	assert_null(lib_names_find(&t, "be"));
	assert_string_equal(lib_names_of(&t, key_b), "bee");
	assert_string_equal(lib_names_of(&t, key_a), "Ant.x");
	assert_string_equal(lib_names_of(&t, key_c), "");
	lib_names_fini(&t);
	assert_null(lib_names_find(&t, "bee"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(config_struct_becomes_what_a_file_would_say),
		cmocka_unit_test(config_faults_of_a_struct_name_the_member),
		cmocka_unit_test(config_faults_of_a_text_have_line_and_column),
		cmocka_unit_test(names_lead_to_single_hosts_and_keys_to_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
