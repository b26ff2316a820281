/* SPDX-License-Identifier: Apache-2.0 */
/* Link-local addresses in the overlay: what they need beside them, callers need not know. */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "world.h"

/* A node of the world with link-local addresses alone. */
static void
make_link_local(struct world *w, int i)
{
	struct weft_detail why = DETAIL();
	char text[800], own[WEFT_KEY_TEXT_LEN], peer[WEFT_KEY_TEXT_LEN];
	weft_key_format(w->private_key[i], own);
	weft_key_format(w->public_key[1 - i], peer);
	snprintf(text, sizeof(text),
		"[Interface]\nPrivateKey = %s\nListenPort = %u\nAddress = fe80::%d/64\n"
		"[Peer]\nPublicKey = %s\nName = other\nAllowedIPs = fe80::%d/128\n"
		"Endpoint = 127.0.0.1:%u\n",
		own, w->port[i], i + 1, peer, 2 - i, w->port[1 - i]);
	struct weft_config c = {.size = sizeof(c), .text = text};
	OK(weft_node_reload(w->n[i], &c, &why), &why);
}

static void
link_local_addresses_are_dialed_and_listened_on_as_others(void **state)
{
	(void)state;
	struct world w = {.family = 6};
	struct weft_detail why = DETAIL();
	struct weft_dial_options o = {.size = sizeof(o), .timeout_ms = 20000};
	struct weft_identity who = {.size = sizeof(who)};
	int fd[2], listener;
	char to[32];
	world_open(&w);
	make_link_local(&w, 0);
	make_link_local(&w, 1);
	OK(weft_listen(w.n[1], "tcp", "[fe80::2]:0", NULL, &listener, &why), &why);
	o.local = "[fe80::1]:0";
	snprintf(to, sizeof(to), "[fe80::2]:%u", world_bound_port(listener));
	OK(weft_dial(w.n[0], "tcp", to, &o, &fd[0], &why), &why);
	o.local = NULL;
	OK(weft_accept(w.n[1], listener, &o, &fd[1], &who), NULL);
	assert_string_equal(who.name, "other");
	assert_memory_equal(who.overlay, "[fe80::1]:", 10);
	world_write(fd[0], 5000, 0);
	world_read(fd[1], 5000, 0);
	close(fd[0]);
	close(fd[1]);
	close(listener);
	world_close(&w);
}

static void
addresses_of_names_that_are_link_local_can_be_sent_to(void **state)
{
	(void)state;
	struct world w = {.family = 6};
	struct weft_detail why = DETAIL();
	struct addrinfo *list;
	struct timeval patience = {.tv_sec = 20};
	char port[8], c = 0;
	int fd[2];
	world_open(&w);
	make_link_local(&w, 0);
	make_link_local(&w, 1);
	for (int i = 0; i < 2; i++) {
		OK(weft_packet(w.n[i], "udp6", ":0", NULL, &fd[i], &why), &why);
	}
	snprintf(port, sizeof(port), "%u", world_bound_port(fd[1]));
	OK(weft_getaddrinfo(w.n[0], "other", port, NULL, &list), NULL);
	assert_int_equal(sendto(fd[0], "z", 1, 0, list->ai_addr, list->ai_addrlen), 1);
	weft_freeaddrinfo(list);
	assert_int_equal(
		setsockopt(fd[1], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	assert_int_equal(recv(fd[1], &c, 1, 0), 1);
	assert_int_equal(c, 'z');
	/* Of a node that is stopped there is no interface to tell. */
	weft_node_stop(w.n[0]);
	OK(weft_getaddrinfo(w.n[0], "other", port, NULL, &list), NULL);
	assert_int_equal(((struct sockaddr_in6 *)(void *)list->ai_addr)->sin6_scope_id, 0);
	weft_freeaddrinfo(list);
	close(fd[0]);
	close(fd[1]);
	world_close(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(link_local_addresses_are_dialed_and_listened_on_as_others),
		cmocka_unit_test(addresses_of_names_that_are_link_local_can_be_sent_to),
	};
	return world_main("zone", tests, WEFT_ARRAY_LEN(tests));
}
