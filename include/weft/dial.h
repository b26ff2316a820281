/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets in a node's overlay: TCP connections out and in, UDP.
 *
 * Every descriptor is an ordinary socket of the kernel, close-on-exec, blocking unless
 * WEFT_NONBLOCK is given, and the caller's to close(). poll, epoll, sendmsg, shutdown, getsockopt,
 * SO_RCVTIMEO, TLS libraries and the rest work on it; it outlives the node, then without a way out.
 */
#ifndef WEFT_DIAL_H
#define WEFT_DIAL_H

#include <netdb.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "weft/node.h"

#ifdef __cplusplus
extern "C" {
#endif

struct addrinfo; /* of <netdb.h>, which strict C11 hides */

/* Ends calls that block, from another thread or a signal handler. May be shared by many calls. */
struct weft_cancel;
/* Makes one that has not fired; *out is the caller's, and set on success alone. WEFT_ENOMEM: memory
 * or descriptors are used up. Threads: any. Blocks: no. Since: 0.1 */
WEFT_API enum weft_err weft_cancel_new(struct weft_cancel **out);
/* Every call that was given c, and every later one until weft_cancel_clear(), returns
 * WEFT_ECANCELED, if it has no result yet. Keeps errno.
 * Threads: any, and signal handlers. Blocks: no. Since: 0.1 */
WEFT_API void weft_cancel_fire(struct weft_cancel *c);
/* Later calls are not ended any more. Threads: any. Blocks: no. Since: 0.1 */
WEFT_API void weft_cancel_clear(struct weft_cancel *c);
/* Frees it. No call may be using it. NULL is allowed. Threads: any. Blocks: no. Since: 0.1 */
WEFT_API void weft_cancel_free(struct weft_cancel *c);

#define WEFT_NONBLOCK 1u  /* the descriptor is O_NONBLOCK; weft_dial() does not wait */
#define WEFT_REUSEPORT 2u /* SO_REUSEPORT before bind */
#define WEFT_V6ONLY 4u    /* a socket on "::" takes IPv6 alone */

/* How to call; NULL in its place: all defaults. */
struct weft_dial_options {
	size_t size;
	int64_t timeout_ms; /* for this call; 0 = none, as long as the kernel tries */
	unsigned flags;     /* WEFT_NONBLOCK, WEFT_REUSEPORT, WEFT_V6ONLY */
	const char *local;  /* weft_dial(): address or port to send from, "10.0.0.1:0"; NULL = the
			       kernel's choice */
	int backlog;        /* weft_listen(): 0 = 4096 */
	struct weft_cancel *cancel; /* NULL = none */
};

/* Connects. network: "tcp", "udp", or with "4" or "6" appended for one family. address:
 * "HOST:PORT"; HOST an IP address, in brackets for IPv6, or a name as of weft_getaddrinfo(); PORT a
 * number or a service's name. Of several addresses each is tried in turn, within the time.
 * With WEFT_NONBLOCK the connection is under way when this returns, to the first address: POLLOUT
 * tells the end, SO_ERROR the result, as after connect(2).
 * An address in no peer's AllowedIPs, and none of the node's own, is WEFT_EUNREACH at once.
 * WEFT_ETIMEDOUT, WEFT_ECANCELED; WEFT_EUNREACH: no peer has the address, or the network says so;
 * WEFT_EREFUSED: nobody listens there; WEFT_ENOENT: no such name; WEFT_EPARSE, WEFT_EINVAL;
 * WEFT_ECLOSED: the node is not started. *fd is set on success alone.
 * Threads: any. Blocks: unless WEFT_NONBLOCK and HOST is no name. Since: 0.1 */
WEFT_API enum weft_err weft_dial(struct weft_node *n, const char *network, const char *address,
	const struct weft_dial_options *o, int *fd, struct weft_detail *why);

/* Listens for TCP. network: "tcp", "tcp4", "tcp6"; address: "HOST:PORT", HOST empty for all
 * addresses of both families, PORT 0 for any (getsockname(2) tells). accept(2) works on *fd, and
 * weft_accept(). WEFT_EADDRINUSE; WEFT_EUNREACH: no address of ours; others as of weft_dial().
 * Threads: any. Blocks: no. Since: 0.1 */
WEFT_API enum weft_err weft_listen(struct weft_node *n, const char *network, const char *address,
	const struct weft_dial_options *o, int *fd, struct weft_detail *why);

/* An unconnected UDP socket: one datagram a sendto(2) and recvfrom(2), boundaries kept. network:
 * "udp", "udp4", "udp6"; address as of weft_listen(). The first datagram to a peer that was never
 * spoken with waits for the handshake and is then sent, unless the peer's endpoint is a name that
 * is not looked up yet: then it is lost, and counted in drops. Results as of weft_listen().
 * Threads: any. Blocks: no. Since: 0.1 */
WEFT_API enum weft_err weft_packet(struct weft_node *n, const char *network, const char *address,
	const struct weft_dial_options *o, int *fd, struct weft_detail *why);

/* Who is at an overlay address: the peer whose AllowedIPs have it, and so the one that proved, by
 * its key, to be the sender of what came from there. */
struct weft_identity {
	size_t size;
	uint8_t public_key[WEFT_KEY_LEN];
	char name[WEFT_NAME_LEN];     /* from the configuration; empty = none */
	char overlay[WEFT_ADDR_LEN];  /* "10.0.0.2:40312" */
	char endpoint[WEFT_ADDR_LEN]; /* where its packets come from: "192.0.2.1:51820" */
};

/* Takes a connection off a socket of weft_listen(). who may be NULL; its key is of zeros, and its
 * name and endpoint are empty, where the connection came from the node itself or its peer was
 * removed meanwhile. accept(2) by another thread on the same socket, when that blocks, can take the
 * connection in between and leave this call to wait past timeout_ms, past a cancel, and
 * weft_node_stop() with it: do not mix them there. close(2) of listen_fd ends no wait, as nowhere;
 * shutdown(2) does, with WEFT_EINVAL.
 * WEFT_EAGAIN: none waits and listen_fd is O_NONBLOCK; WEFT_ETIMEDOUT, WEFT_ECANCELED,
 * WEFT_ECLOSED. flags of o apply to *fd. Threads: any. Blocks: unless listen_fd is O_NONBLOCK.
 * Since: 0.1 */
WEFT_API enum weft_err weft_accept(struct weft_node *n, int listen_fd,
	const struct weft_dial_options *o, int *fd, struct weft_identity *who);

/* The peer at an overlay address, as of accept(2) or recvfrom(2). WEFT_ENOENT: no peer has it.
 * Threads: any. Blocks: no. Since: 0.1 */
WEFT_API enum weft_err weft_whois(
	struct weft_node *n, const struct sockaddr *at, socklen_t len, struct weft_identity *who);

/* Names to addresses: IP addresses; names of peers in the configuration (the first address of each
 * family in AllowedIPs that is a single host); nothing else is asked. service: a number or a name
 * of /etc/services; NULL = port 0. hints: ai_family, ai_socktype and ai_flags AI_PASSIVE,
 * AI_NUMERICHOST count; NULL = any. The list is freed by weft_freeaddrinfo().
 * WEFT_ENOENT: no such name, or none of that family. Threads: any. Blocks: for /etc/services.
 * Spec: RFC 3493 section 6.1. Since: 0.1 */
WEFT_API enum weft_err weft_getaddrinfo(struct weft_node *n, const char *host, const char *service,
	const struct addrinfo *hints, struct addrinfo **out);
/* Frees a list of weft_getaddrinfo(), and no other's. NULL is allowed.
 * Threads: any. Blocks: no. Since: 0.1 */
WEFT_API void weft_freeaddrinfo(struct addrinfo *list);

#ifdef __cplusplus
}
#endif
#endif
