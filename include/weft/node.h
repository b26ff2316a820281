/* SPDX-License-Identifier: Apache-2.0 */
/* A node of the overlay inside a program: created from a configuration, started, asked, stopped.
 *
 * A node needs no root: its overlay addresses live in a network namespace of its own, which the
 * program owns. What weft_dial() and its sisters (weft/dial.h) return are sockets of the kernel
 * in there. The packets to other nodes leave by ordinary UDP sockets of the program.
 *
 * The library keeps no global state, installs no signal handler, prints nothing, and changes
 * nothing of the process. Each node has threads of its own, with all signals blocked, and one
 * small child process that holds its namespace; the child sends no SIGCHLD and is not seen by
 * wait(). All descriptors are close-on-exec. After fork() a child must not use the parent's
 * nodes, other than by exec(); sockets may be used.
 *
 * Public structs start with their size: `struct weft_config c = {.size = sizeof(c), ...}`. What is
 * left out is zero and means the default. */
#ifndef WEFT_NODE_H
#define WEFT_NODE_H

#include <stddef.h>
#include <stdint.h>

#include "weft/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_KEY_LEN 32      /* bytes of a key */
#define WEFT_KEY_TEXT_LEN 45 /* of its base64, with the final NUL */
#define WEFT_NAME_LEN 64     /* of a peer's name, with the final NUL */
#define WEFT_ADDR_LEN 64     /* of an address and port as text, with the final NUL */

struct weft_node;

/* Why a call failed, for people. Every call that takes one accepts NULL, and writes it on failure
 * alone. */
struct weft_detail {
	size_t size;
	enum weft_err code;    /* what the call returns */
	int os_errno;          /* of the system call that failed; 0 = none */
	uint32_t line, column; /* in a configuration, from 1; 0 = not there */
	char text[512]; /* English, no key material, says what to change where that is known */
};

enum weft_log_level {
	WEFT_LOG_ERROR,
	WEFT_LOG_WARN,
	WEFT_LOG_INFO,
	WEFT_LOG_DEBUG,
};

/* A peer of a configuration given as struct. */
struct weft_peer_config {
	size_t size;
	const uint8_t *public_key;    /* WEFT_KEY_LEN bytes; must be given */
	const uint8_t *preshared_key; /* WEFT_KEY_LEN bytes; NULL = none */
	const char *name; /* for weft_getaddrinfo(); letters, digits, "-" and ".", up to 63; NULL =
			     none */
	const char *endpoint; /* "192.0.2.1:51820", "[2001:db8::1]:51820", "host.example:51820";
				 NULL = it comes to us */
	const char *const *allowed_ips; /* "10.0.0.2/32"; all prefixes that lead to it */
	size_t allowed_ips_n;
	uint16_t keepalive_s; /* 0 = off */
};

/* Where a node's configuration comes from: exactly one of file, text, and private_key. All
 * pointers are read during the call only. */
struct weft_config {
	size_t size;
	const char *file; /* path of a file as wg-quick(8) has it, with weft's own keys */
	const char *text; /* such a file's contents */
	size_t text_len;  /* bytes; 0 = text ends with a NUL */

	const uint8_t *private_key;   /* WEFT_KEY_LEN bytes */
	const char *const *addresses; /* of this node in the overlay: "10.0.0.1/24" */
	size_t addresses_n;
	const struct weft_peer_config *peers;
	size_t peers_n;
	uint16_t listen_port; /* 0 = any */
	uint16_t mtu; /* 1280 to 65535; 0 = fits the path to peers whose endpoint is an address,
			 else 1420 */

	/* Called for each line, from any thread of the library, never two at once for one node;
	 * NULL = nothing is logged. text ends with a NUL and holds no key material. It must not
	 * call the library, and has some 64 KiB of stack. */
	void (*log)(void *ctx, enum weft_log_level level, const char *text);
	void *log_ctx;
	enum weft_log_level log_level; /* the least important that is told: WEFT_LOG_ERROR is 0 */

	/* Folder for the last handshake timestamp sent, so that a peer accepts us after a clock
	 * that went backward; NULL = not kept. Must exist. */
	const char *state_dir;
	unsigned workers; /* threads for packets, up to 16; 0 = by processors */
	unsigned flags;   /* WEFT_NODE_... */
};

/* Do not use /dev/net/tun but a veth pair, as where the device is forbidden. For tests: the
 * library finds out by itself. */
#define WEFT_NODE_NO_TUN 1u

/* Reads and checks a configuration, and makes nothing yet of what the kernel would see. Hooks, DNS
 * and Table of a file have no effect: nothing outside the namespace is changed.
 * WEFT_EPARSE: line and column say where; WEFT_EINVAL: not exactly one source, a bad value or
 * size; WEFT_ENOENT, WEFT_EPERM: the file; WEFT_ENOMEM.
 * Threads: any. Blocks: for the file. Since: 0.1 */
WEFT_API enum weft_err weft_node_new(
	const struct weft_config *c, struct weft_node **out, struct weft_detail *why);

/* Makes the namespace, its interface and the sockets, and starts the threads. On failure the node
 * is as before and may be started again. Names of endpoints that do not resolve are no failure:
 * they are tried again. A started node cannot be started: WEFT_EEXIST.
 * WEFT_EPERM: text names the setting or profile that forbids it; WEFT_EADDRINUSE: the port;
 * WEFT_ENOTSUP, WEFT_ENOMEM, WEFT_EIO.
 * Threads: any, one at a time for a node. Blocks: some ms. Since: 0.1 */
WEFT_API enum weft_err weft_node_start(struct weft_node *n, struct weft_detail *why);

/* Stops the threads and closes the interface. Calls that block in this node return WEFT_ECLOSED.
 * Sockets from it stay open and lead nowhere. A stopped node may be started again, in a new
 * namespace. Stopping a node that is not started does nothing.
 * Threads: any, one at a time for a node. Blocks: some ms. Since: 0.1 */
WEFT_API void weft_node_stop(struct weft_node *n);

/* Stops and frees. NULL is allowed. No other call may be under way, or come after. Wipes keys.
 * Threads: any. Blocks: some ms. Since: 0.1 */
WEFT_API void weft_node_free(struct weft_node *n);

/* Replaces the configuration: peers that stay keep their sessions, counters and endpoints;
 * addresses that stay are not touched, so sockets bound to them live on. log, state_dir, workers
 * and flags of c are ignored. On failure of the check nothing has changed. The child that holds the
 * namespace keeps what memory the program had at the start, old keys too, until weft_node_stop().
 * Results as of weft_node_new(), and WEFT_EADDRINUSE for another listen port.
 * Threads: any, one at a time for a node. Blocks: for the file. Since: 0.1 */
WEFT_API enum weft_err weft_node_reload(
	struct weft_node *n, const struct weft_config *c, struct weft_detail *why);

/* The node's public key. Threads: any. Blocks: no. Since: 0.1 */
WEFT_API void weft_node_public_key(const struct weft_node *n, uint8_t out[WEFT_KEY_LEN]);
/* The UDP port of its started sockets; 0: not started. Threads: any. Blocks: some ms; while a
 * reload is under way, until its end. Since: 0.1 */
WEFT_API uint16_t weft_node_port(const struct weft_node *n);

/* The user and the network namespace of a started node, for setns(2) in a child process: new
 * close-on-exec descriptors, the caller's. *user is -1 where none was needed (CAP_NET_ADMIN).
 * WEFT_ECLOSED: not started. Threads: any. Blocks: no. Since: 0.1 */
WEFT_API enum weft_err weft_node_namespaces(const struct weft_node *n, int *user, int *net);

/* Counters since the start. A frame is a packet, or a large one that offloads split or join. */
struct weft_stats {
	size_t size;
	uint64_t rx_bytes, rx_frames;        /* inner, from peers into the node's sockets */
	uint64_t tx_bytes, tx_frames;        /* inner, from the sockets to peers */
	uint64_t rx_datagrams, tx_datagrams; /* outer */
	uint64_t drops;                      /* packets that could not go on, for whatever reason */
	uint64_t recovered;                  /* packets lost on the way and made good */
	uint64_t events_lost;                /* events that found the queue full */
};
/* WEFT_ECLOSED: not started; WEFT_EINVAL: size. Threads: any. Blocks: some ms; while a reload is
 * under way, until its end. Since: 0.1 */
WEFT_API enum weft_err weft_node_stats(struct weft_node *n, struct weft_stats *out);

/* A peer as it is now. */
struct weft_peer {
	size_t size;
	uint8_t public_key[WEFT_KEY_LEN];
	char name[WEFT_NAME_LEN];     /* from the configuration; empty = none */
	char endpoint[WEFT_ADDR_LEN]; /* where its packets go: "192.0.2.1:51820"; empty = not known
				       */
	int64_t handshake_age_ms;     /* of the current session; -1 = there was none */
	uint64_t rx_bytes, tx_bytes;  /* outer, since the start */
	int is_up;                    /* 1: a session is there that may still be used */
};
/* Writes up to cap peers, in the order of their addition, and their number to *count; v[0].size
 * must be set, and counts for all. WEFT_EMSGSIZE: there are more than cap, *count tells how many.
 * WEFT_ECLOSED: not started. Threads: any. Blocks: no. Since: 0.1 */
WEFT_API enum weft_err weft_node_peers(
	struct weft_node *n, struct weft_peer *v, size_t cap, size_t *count);

/* Keys. weft_key_generate() makes a private key from the system's entropy; weft_key_public() gives
 * its public key; weft_key_format() writes base64; weft_key_parse() reads it: WEFT_EPARSE.
 * Threads: any. Blocks: no. Spec: RFC 7748 section 5, RFC 4648 section 4. Since: 0.1 */
WEFT_API enum weft_err weft_key_generate(uint8_t out[WEFT_KEY_LEN]);
WEFT_API enum weft_err weft_key_public(
	const uint8_t private_key[WEFT_KEY_LEN], uint8_t out[WEFT_KEY_LEN]);
WEFT_API void weft_key_format(const uint8_t key[WEFT_KEY_LEN], char out[WEFT_KEY_TEXT_LEN]);
WEFT_API enum weft_err weft_key_parse(const char *text, uint8_t out[WEFT_KEY_LEN]);

#ifdef __cplusplus
}
#endif
#endif
