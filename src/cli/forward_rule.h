/* SPDX-License-Identifier: Apache-2.0 */
/* A rule of `weft forward` as text: [udp:][BIND:]PORT:HOST:PORT. */
#ifndef WEFT_CLI_FORWARD_RULE_H
#define WEFT_CLI_FORWARD_RULE_H

#include <stdbool.h>
#include <stdint.h>

#define FORWARD_HOST_MAX 254 /* with the final NUL */
#define FORWARD_RULE_TEXT_MAX 640
#define FORWARD_WHY_MAX 512

enum forward_side {
	FORWARD_LOCAL,  /* -L: listens on this machine, connects in the overlay */
	FORWARD_REMOTE, /* -R: listens in the overlay, connects from this machine */
};

struct forward_rule {
	enum forward_side side;
	bool is_udp;
	bool has_bind;
	char bind[FORWARD_HOST_MAX]; /* without brackets; empty: all addresses, also for "*" */
	uint16_t port;               /* to listen on; 0: any */
	char host[FORWARD_HOST_MAX]; /* without brackets */
	uint16_t to_port;
};

/* False: why says which part is wrong, and shows how it is written. */
bool forward_rule_parse(enum forward_side side, const char *text, struct forward_rule *out,
	char why[FORWARD_WHY_MAX]);
/* As it could have been written: "-L udp:[::1]:53:dns:53". Returns out. */
char *forward_rule_format(const struct forward_rule *r, char out[FORWARD_RULE_TEXT_MAX]);

#endif
