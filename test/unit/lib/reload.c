/* SPDX-License-Identifier: Apache-2.0 */
/* Another configuration for a node that runs: what goes on, and what comes back when it fails. */
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

static void
a_listener_keeps_its_address_when_the_node_reloads(void **state)
{
	(void)state;
	struct world w = {.family = 4};
	struct weft_detail why = DETAIL();
	uint16_t port;
	int fd[2], more[2];
	world_open(&w);
	int listener = -1;
	OK(weft_listen(w.n[1], "tcp", WORLD_B4 ":0", NULL, &listener, &why), &why);
	port = world_bound_port(listener);
	world_connect(&w, fd);
	for (int i = 0; i < 3; i++) {
		char *text = world_text(&w, 1), *longer = NULL;
		assert_true(
			asprintf(&longer,
				"%s[Peer]\nPublicKey = %s\nName = new%d\nAllowedIPs = 10.79.%d.1\n",
				text, "xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg=", i, i) > 0);
		struct weft_config c = {.size = sizeof(c), .text = longer};
		OK(weft_node_reload(w.n[1], &c, &why), &why);
		free(text);
		free(longer);
		/* The old connection lives, and the listener takes a new one. */
		world_write(fd[0], 5000, (uint64_t)i * 5000);
		world_read(fd[1], 5000, (uint64_t)i * 5000);
		OK(weft_dial(w.n[0], "tcp", world_at(&w, 1, port), NULL, &more[0], &why), &why);
		OK(weft_accept(w.n[1], listener, NULL, &more[1], NULL), NULL);
		close(more[0]);
		close(more[1]);
		/* The new peer is known by name, and its address led to it. */
		struct addrinfo *list;
		char name[8];
		snprintf(name, sizeof(name), "new%d", i);
		OK(weft_getaddrinfo(w.n[1], name, NULL, NULL, &list), NULL);
		struct weft_identity who = {.size = sizeof(who)};
		OK(weft_whois(w.n[1], list->ai_addr, list->ai_addrlen, &who), NULL);
		assert_string_equal(who.name, name);
		weft_freeaddrinfo(list);
	}
	/* What is refused changes nothing. */
	struct weft_config odd = {.size = sizeof(odd), .text = "[Interface]\nMTU = 1\n"};
	EXPECT(weft_node_reload(w.n[1], &odd, &why), WEFT_EPARSE, &why);
	EXPECT(weft_node_reload(w.n[1], NULL, &why), WEFT_EINVAL, &why);
	world_write(fd[1], 5000, 0);
	world_read(fd[0], 5000, 0);
	close(listener);
	close(fd[0]);
	close(fd[1]);
	world_close(&w);
}

struct lines {
	int marks;    /* warnings that speak of the mark */
	int half_way; /* what could not be taken back */
};

static void
count_line(void *ctx, enum weft_log_level level, const char *text)
{
	struct lines *l = ctx;
	l->marks += level == WEFT_LOG_WARN && strstr(text, "FwMark") != NULL;
	l->half_way += strstr(text, "go back") != NULL;
}

/* Node 0 of the world again, with a mark and a log. */
static struct weft_node *
open_marked(struct world *w, struct lines *lines)
{
	struct weft_detail why = DETAIL();
	char *text = world_text(w, 0),
	     *marked = world_replace(text, "MTU = 1420", "MTU = 1420\nFwMark = 0x77");
	struct weft_config c = {.size = sizeof(c),
		.text = marked,
		.workers = 2,
		.log = count_line,
		.log_ctx = lines,
		.log_level = WEFT_LOG_WARN,
		.flags = world_is_without_tun() ? WEFT_NODE_NO_TUN : 0};
	struct weft_node *n = NULL;
	OK(weft_node_new(&c, &n, &why), &why);
	OK(weft_node_start(n, &why), &why);
	free(text);
	free(marked);
	return n;
}

/* Without CAP_NET_ADMIN a mark cannot be had: neither the start nor the way back may need it. */
static void
a_mark_that_is_forbidden_is_a_warning_and_a_refused_reload_leaves_all_as_it_was(void **state)
{
	(void)state;
	struct world w = {.family = 4};
	struct lines lines = {0};
	struct weft_detail why = DETAIL();
	int fd[2];
	world_open(&w);
	weft_node_free(w.n[0]);
	w.n[0] = open_marked(&w, &lines);
	assert_int_equal(lines.marks, geteuid() == 0 ? 0 : 1);
	world_connect(&w, fd);
	/* A port that is taken, when MTU and mark have been changed already. */
	char port[32], taken[32], *text = world_text(&w, 0);
	snprintf(port, sizeof(port), "ListenPort = %u", w.port[0]);
	snprintf(taken, sizeof(taken), "ListenPort = %u", w.port[1]);
	char *bad = world_replace(text, port, taken),
	     *worse = world_replace(bad, "MTU = 1420", "MTU = 1380\nFwMark = 0x78");
	struct weft_config c = {.size = sizeof(c), .text = worse};
	EXPECT(weft_node_reload(w.n[0], &c, &why), WEFT_EADDRINUSE, &why);
	assert_int_equal(lines.half_way, 0);
	assert_non_null(strstr(why.text, "ListenPort"));
	assert_int_equal(weft_node_port(w.n[0]), w.port[0]);
	world_write(fd[0], 5000, 0);
	world_read(fd[1], 5000, 0);
	c.text = text;
	OK(weft_node_reload(w.n[0], &c, &why), &why);
	world_write(fd[0], 5000, 5000);
	world_read(fd[1], 5000, 5000);
	close(fd[0]);
	close(fd[1]);
	free(text);
	free(bad);
	free(worse);
	world_close(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_listener_keeps_its_address_when_the_node_reloads),
		cmocka_unit_test(
			a_mark_that_is_forbidden_is_a_warning_and_a_refused_reload_leaves_all_as_it_was),
	};
	return world_main("reload", tests, WEFT_ARRAY_LEN(tests));
}
