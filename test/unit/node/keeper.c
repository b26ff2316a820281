/* SPDX-License-Identifier: Apache-2.0 */
/* A keeper whose reload has no memory for the endpoints by name. The node is in a private
 * namespace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/log.h"
#include "node/keeper.h"
#include "node/node.h"
#include "os/loop.h"
#include "os/netns.h"
#include "wire/conf.h"
#include "wire/key.h"

static bool has_no_memory;

/* Stands before the C library's: names of hosts are copied by it. */
char *
strdup(const char *s)
{
	size_t n = strlen(s) + 1;
	char *copy = has_no_memory ? NULL : malloc(n);
	return copy ? memcpy(copy, s, n) : NULL;
}

struct kept {
	struct os_netns *ns;
	struct os_loop *loop;
	struct keeper *keeper;
	struct log log;
	unsigned errors;
};

static void
count_errors(void *ctx, enum log_level level, const char *text)
{
	struct kept *k = ctx;
	(void)text;
	k->errors += level <= LOG_LEVEL_ERROR;
}

static void
on_gone(void *ctx)
{
	(void)ctx;
	fail_msg("nobody deletes the interface");
}

/* A device with one peer, whose key has this byte and whose endpoint is on port. */
static struct conf *
read_conf(uint8_t key, const char *host, unsigned port)
{
	uint8_t secret[KEY_LEN] = {[0] = 8, [31] = 64}, public_key[KEY_LEN] = {[0] = key};
	char own[KEY_BASE64_LEN + 1], peer[KEY_BASE64_LEN + 1], text[400];
	struct conf_report report;
	struct conf *c;
	(void)key_encode_base64(secret, own);
	(void)key_encode_base64(public_key, peer);
	snprintf(text, sizeof(text),
		"[Interface]\nPrivateKey = %s\nAddress = 10.8.0.1/32\n"
		"[Peer]\nPublicKey = %s\nAllowedIPs = 10.9.0.%u/32\nEndpoint = %s:%u\n",
		own, peer, key, host, port);
	assert_int_equal(
		conf_parse(text, strlen(text), &(struct conf_options){0}, &c, &report), WEFT_OK);
	return c;
}

static bool
has_peer(struct kept *k, uint8_t key)
{
	uint8_t public_key[KEY_LEN] = {[0] = key};
	struct node *n = keeper_node(k->keeper);
	bool has = wg_peer_find(node_lock_shared(n), public_key) != NULL;
	node_unlock_shared(n);
	return has;
}

static void
reload_without_memory_for_its_names_changes_nothing(void **state)
{
	(void)state;
	struct kept k = {0};
	struct os_netns_fault why;
	k.log = (struct log){.sink = count_errors, .ctx = &k, .level = LOG_LEVEL_INFO};
	if (os_netns_open(&k.ns, &why)) {
		fail_msg("%s", why.text);
	}
	assert_int_equal(os_loop_new(KEEPER_WATCHES_MAX, &k.loop), WEFT_OK);
	struct conf *first = read_conf(1, "127.0.0.1", 9);
	struct keeper_config c = {.name = "weft0",
		.conf = first,
		.log = &k.log,
		.workers = 1,
		.netns = k.ns,
		.gone = on_gone};
	assert_int_equal(keeper_new(&c, k.loop, &k.keeper), WEFT_OK);
	struct conf *fresh = read_conf(2, "vpn.invalid", 9);
	has_no_memory = true;
	assert_int_equal(keeper_reload(k.keeper, fresh), WEFT_ENOMEM);
	has_no_memory = false;
	assert_int_equal(k.errors, 1);
	assert_ptr_equal(keeper_conf(k.keeper), first);
	assert_true(has_peer(&k, 1) && !has_peer(&k, 2));
	assert_int_equal(keeper_reload(k.keeper, fresh), WEFT_OK);
	assert_ptr_equal(keeper_conf(k.keeper), fresh);
	assert_true(!has_peer(&k, 1) && has_peer(&k, 2));
	keeper_free(k.keeper);
	os_loop_free(k.loop);
	os_netns_close(k.ns);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reload_without_memory_for_its_names_changes_nothing),
	};
	return cmocka_run_group_tests_name("keeper", tests, NULL, NULL);
}
