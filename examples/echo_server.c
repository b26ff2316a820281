/* SPDX-License-Identifier: Apache-2.0 */
/* An echo server in the overlay: echo_server FILE PORT. It needs no root and no interface. */
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weft/dial.h>
#include <weft/node.h>

static int
fail(const char *what, const struct weft_detail *why)
{
	fprintf(stderr, "%s: %s\n", what, why->text);
	return 1;
}

static void
echo(int fd)
{
	char buf[4096];
	ssize_t n;
	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0) {
		if (send(fd, buf, (size_t)n, MSG_NOSIGNAL) != n) {
			break;
		}
	}
	close(fd);
}

int
main(int argc, char **argv)
{
	struct weft_detail why = {.size = sizeof(why)};
	struct weft_config config = {.size = sizeof(config), .file = argc > 1 ? argv[1] : NULL};
	struct weft_node *node;
	char address[16];
	int listener, fd;

	if (argc != 3) {
		fprintf(stderr, "usage: echo_server FILE PORT\n");
		return 2;
	}
	if (weft_node_new(&config, &node, &why) || weft_node_start(node, &why)) {
		return fail(argv[1], &why);
	}
	/* No host: all addresses of the node, of both families. */
	snprintf(address, sizeof(address), ":%s", argv[2]);
	if (weft_listen(node, "tcp", address, NULL, &listener, &why)) {
		return fail("listen", &why);
	}
	struct weft_identity who = {.size = sizeof(who)};
	while (weft_accept(node, listener, NULL, &fd, &who) == WEFT_OK) {
		printf("%s from %s\n", who.name[0] ? who.name : "a peer without name", who.overlay);
		fflush(stdout);
		echo(fd);
	}
	weft_node_free(node);
	return 0;
}
