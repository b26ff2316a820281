/* SPDX-License-Identifier: Apache-2.0 */
/* Two nodes of this process that know each other over 127.0.0.1, for tests of libweft.
 *
 * Every test runs as whoever started the program and, when that is root, once more as a user
 * without any privilege; each time with what the library chooses and, again, without a TUN. */
#ifndef WEFT_TEST_UNIT_LIB_WORLD_H
#define WEFT_TEST_UNIT_LIB_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "weft/dial.h"
#include "weft/event.h"
#include "weft/node.h"

struct CMUnitTest;

/* A is node 0, B node 1. Their addresses in the overlay, and one that only a peer of A has which
 * nobody answers for. */
#define WORLD_A4 "10.77.0.1"
#define WORLD_B4 "10.77.0.2"
#define WORLD_A6 "fd77::1"
#define WORLD_B6 "fd77::2"
#define WORLD_NOWHERE4 "10.78.0.1"

struct world {
	struct weft_node *n[2];
	uint8_t private_key[2][WEFT_KEY_LEN];
	uint8_t public_key[2][WEFT_KEY_LEN];
	uint8_t nowhere_key[WEFT_KEY_LEN];
	uint16_t port[2]; /* of the outer sockets */
	int family;       /* 4 or 6: of the test's sockets */
};

/* Made, and started. */
void world_open(struct world *w);
void world_close(struct world *w);
/* A node of the world that is not started. */
struct weft_node *world_node(struct world *w, int i);
/* Its configuration as text; to be freed. */
char *world_text(const struct world *w, int i);
/* The text with the first of `from` replaced, which must be there; to be freed. */
char *world_replace(const char *text, const char *from, const char *to);

/* "ADDRESS:PORT" of a node in the family of the world; static storage. */
const char *world_at(const struct world *w, int i, uint16_t port);
uint16_t world_bound_port(int fd);
/* A TCP listener of B on all addresses, and its port. */
int world_listen(struct world *w, int i, uint16_t *port);
/* fd[0] of node A and fd[1] of node B, connected by A's dialing. Descriptors block for 20 s at
 * most. */
void world_connect(struct world *w, int fd[2]);
/* The same, to see that it can be done. */
void world_meet(struct world *w);

/* Bytes that both sides know: of a stream, at an offset. */
void world_fill(uint8_t *out, size_t n, uint64_t offset);
void world_write(int fd, size_t n, uint64_t offset);
/* Reads n of them and compares. */
void world_read(int fd, size_t n, uint64_t offset);
void world_expect_end(int fd);

/* Fails the test with the detail when e is not what is expected. */
#define OK(e, why) world_expect((e), WEFT_OK, (why), __FILE__, __LINE__)
#define EXPECT(e, expected, why) world_expect((e), (expected), (why), __FILE__, __LINE__)
void world_expect(enum weft_err e, enum weft_err expected, const struct weft_detail *why,
	const char *file, int line);
#define DETAIL() ((struct weft_detail){.size = sizeof(struct weft_detail)})
bool world_is_without_tun(void);
int64_t world_ms(void); /* a clock */
int world_count_descriptors(void);

/* Of main(): all tests in all modes. */
int world_main(const char *group, const struct CMUnitTest *tests, size_t n);

#endif
