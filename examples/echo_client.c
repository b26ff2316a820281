/* SPDX-License-Identifier: Apache-2.0 */
/* Sends a line to an echo server in the overlay and prints what comes back:
 * echo_client FILE HOST:PORT TEXT. HOST is an address, or the Name of a peer in FILE. */
#include <stdio.h>
#include <string.h>
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

int
main(int argc, char **argv)
{
	struct weft_detail why = {.size = sizeof(why)};
	struct weft_config config = {.size = sizeof(config), .file = argc > 1 ? argv[1] : NULL};
	struct weft_dial_options options = {.size = sizeof(options), .timeout_ms = 10000};
	struct weft_node *node;
	char buf[4096];
	ssize_t n;
	int fd;

	if (argc != 4) {
		fprintf(stderr, "usage: echo_client FILE HOST:PORT TEXT\n");
		return 2;
	}
	if (weft_node_new(&config, &node, &why) || weft_node_start(node, &why)) {
		return fail(argv[1], &why);
	}
	if (weft_dial(node, "tcp", argv[2], &options, &fd, &why)) {
		return fail(argv[2], &why);
	}
	/* From here on it is a socket like any other. */
	send(fd, argv[3], strlen(argv[3]), MSG_NOSIGNAL);
	shutdown(fd, SHUT_WR);
	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0) {
		fwrite(buf, 1, (size_t)n, stdout);
	}
	putchar('\n');
	close(fd);
	weft_node_free(node);
	return 0;
}
