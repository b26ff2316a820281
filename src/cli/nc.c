/* SPDX-License-Identifier: Apache-2.0 */
/* `weft nc`: its arguments, and connecting. */
#include "cli/nc.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "os/clock.h"
#include "os/error.h"
#include "os/fd.h"
#include "os/inet.h"
#include "os/signal.h"
#include "weft/dial.h"

static const char help[] =
	"Usage: weft nc [OPTIONS] FILE|NAME HOST PORT\n"
	"       weft nc [OPTIONS] FILE|NAME -l [HOST] PORT\n"
	"Standard input and output to a connection in the overlay, without root: by a node of its\n"
	"own with the configuration FILE or NAME, as `weft up` would find it. HOST is an overlay\n"
	"address or a peer's Name. The end of standard input is passed on, and what the other "
	"side\n"
	"still sends is awaited. As a ProxyCommand of ssh:\n"
	"  ssh -o ProxyCommand='weft nc home.conf %h %p' user@nas\n"
	"\n"
	"  -l             listen, and take one connection\n"
	"  -k             with -l: take one after another\n"
	"  -u             UDP: each read of standard input is a datagram, up to 16 KiB\n"
	"  -z             only see whether somebody listens\n"
	"  -w SECONDS     give up a connection, or end without traffic, after so long\n"
	"  -d             do not read standard input\n"
	"  -N             pass on the end of standard input, which is done anyway\n"
	"  -4, -6         that family alone\n"
	"  -v             say who is at the other end: name, key, endpoint; -vv: more\n"
	"  --help         this text\n"
	"Exit status: 0; 1 when no connection was made or it was cut; 2 for wrong usage.\n";

enum {
	OPT_HELP = 256,
};

static const struct option longs[] = {
	{"help", no_argument, NULL, OPT_HELP},
	{0},
};

static int
take_seconds(const char *text, int64_t *out)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || v < 1 || v > 1000000) {
		return cli_misuse("nc", "-w %s: a number of seconds is wanted", text);
	}
	*out = (int64_t)v * WEFT_NS_PER_S;
	return CLI_OK;
}

static int
take_option(struct nc_options *o, int c, char **argv)
{
	switch (c) {
	case 'l':
		o->is_listening = true;
		return CLI_OK;
	case 'k':
		o->is_kept = true;
		return CLI_OK;
	case 'u':
		o->is_udp = true;
		return CLI_OK;
	case 'z':
		o->is_probe = true;
		return CLI_OK;
	case 'd':
		o->is_deaf = true;
		return CLI_OK;
	case 'N':
		return CLI_OK;
	case 'v':
		o->verbosity++;
		return CLI_OK;
	case '4':
		o->family = IP_FAMILY_V4;
		return CLI_OK;
	case '6':
		o->family = IP_FAMILY_V6;
		return CLI_OK;
	case 'w':
		return take_seconds(optarg, &o->wait_ns);
	case ':':
		return cli_misuse("nc", "%s wants a value", argv[optind - 1]);
	default:
		return cli_misuse("nc", "%s is not an option of it", argv[optind - 1]);
	}
}

static int
check_port(const struct nc_options *o)
{
	uint16_t port;
	if (os_inet_service(o->port, o->is_udp, &port) || (port == 0 && !o->is_listening)) {
		return cli_misuse(
			"nc", "%s: a port is a number up to 65535 or a service's name", o->port);
	}
	return CLI_OK;
}

/* "[fd00::2]" is not wanted, but written by people who are used to it. */
static const char *
without_brackets(char *host)
{
	size_t len = strlen(host);
	if (len < 2 || host[0] != '[' || host[len - 1] != ']') {
		return host;
	}
	host[len - 1] = 0;
	return host + 1;
}

static int
parse(struct nc_options *o, int argc, char **argv, bool *is_done)
{
	int c, rc = CLI_OK;
	optind = 0;
	opterr = 0;
	while (!rc && (c = getopt_long(argc, argv, ":lkuzdNv46w:", longs, NULL)) != -1) {
		if (c == OPT_HELP) {
			fputs(help, stdout);
			*is_done = true;
			return CLI_OK;
		}
		rc = take_option(o, c, argv);
	}
	if (rc) {
		return rc;
	}
	int n = argc - optind;
	if (n != 3 && !(o->is_listening && n == 2)) {
		return cli_misuse("nc",
			o->is_listening
				? "a FILE or NAME and a port are wanted: weft nc home.conf -l 9000"
				: "a FILE or NAME, a host and a port are wanted: weft nc home.conf "
				  "nas 22");
	}
	if (o->is_kept && !o->is_listening) {
		return cli_misuse("nc", "-k goes with -l");
	}
	if (o->is_probe && o->is_listening) {
		return cli_misuse("nc", "-z and -l do not go together");
	}
	o->what = argv[optind];
	o->host = n == 3 ? without_brackets(argv[optind + 1]) : NULL;
	o->port = argv[argc - 1];
	return check_port(o);
}

const char *
nc_network(const struct nc *n)
{
	static const char *const names[2][3] = {{"tcp", "tcp4", "tcp6"}, {"udp", "udp4", "udp6"}};
	enum ip_family f = n->o->family;
	return names[n->o->is_udp][f == IP_FAMILY_NONE ? 0 : f == IP_FAMILY_V4 ? 1 : 2];
}

char *
nc_target(const struct nc *n, char out[NC_TARGET_MAX])
{
	const char *host = n->o->host ? n->o->host : "";
	bool is_bare6 = strchr(host, ':') != NULL;
	snprintf(out, NC_TARGET_MAX, "%s%s%s:%s", is_bare6 ? "[" : "", host, is_bare6 ? "]" : "",
		n->o->port);
	return out;
}

struct mono
nc_deadline(const struct nc *n)
{
	return n->o->wait_ns ? mono_add_ns(os_clock_mono(), n->o->wait_ns) : MONO_NEVER;
}

enum weft_err
nc_wait(struct nc *n, int fd, bool is_write, struct mono deadline)
{
	size_t woken;
	enum weft_err e = os_inet_wait(fd, is_write, &n->signals, 1, deadline, &woken);
	return e ? e : woken == 0 ? WEFT_ECANCELED : WEFT_OK;
}

/* Is there any sense in another address? */
static bool
is_of_address(enum weft_err e)
{
	return e == WEFT_EUNREACH || e == WEFT_EREFUSED || e == WEFT_ETIMEDOUT || e == WEFT_ECLOSED;
}

/* The result of a connect, to one of left addresses. */
static enum weft_err
finish(struct nc *n, int fd, struct mono deadline, size_t left, struct weft_detail *why)
{
	struct mono now = os_clock_mono(), until = deadline;
	if (deadline.ns != MONO_NEVER.ns) {
		until = mono_add_ns(now, mono_diff_ns(deadline, now) / (int64_t)left);
	}
	enum weft_err e = nc_wait(n, fd, true, until);
	if (!e) {
		e = os_inet_result(fd, &why->os_errno);
	}
	if (e && why->os_errno) {
		os_error_text(why->os_errno, why->text, sizeof(why->text));
	} else if (e) {
		snprintf(why->text, sizeof(why->text), "%s",
			e == WEFT_ETIMEDOUT ? "no answer in time" : weft_err_text(e));
	}
	return e;
}

static enum weft_err
dial_one(struct nc *n, const struct addrinfo *a, struct mono deadline, size_t left, int *fd,
	struct weft_detail *why)
{
	struct endpoint at = {0};
	char text[ENDPOINT_TEXT_MAX];
	struct weft_dial_options o = {.size = sizeof(o), .flags = WEFT_NONBLOCK};
	int got;
	if (!os_inet_read(a->ai_addr, a->ai_addrlen, &at.addr, &at.port)) {
		return WEFT_EINVAL;
	}
	enum weft_err e = weft_dial(
		n->overlay.node, nc_network(n), endpoint_format(&at, text), &o, &got, why);
	if (e) {
		return e;
	}
	e = finish(n, got, deadline, left, why);
	if (e) {
		os_fd_close(&got);
		return e;
	}
	nc_say_peer(n, "connected to", a->ai_addr, a->ai_addrlen);
	*fd = got;
	return WEFT_OK;
}

static size_t
count(const struct addrinfo *a)
{
	size_t n = 0;
	for (; a; a = a->ai_next) {
		n++;
	}
	return n;
}

static enum weft_err
say_unknown(struct nc *n, enum weft_err e)
{
	char names[1024];
	overlay_names(&n->overlay, names, sizeof(names));
	cli_fail("nc: \"%s\" is no IP address and no peer's Name in %s%s; %s%s", n->o->host,
		n->overlay.path,
		n->o->family == IP_FAMILY_NONE ? "" : " with an address of that family",
		names[0] ? "the names there: " : "a peer gets one by Name = ... in its section",
		names);
	return e;
}

enum weft_err
nc_dial(struct nc *n, int *fd)
{
	struct addrinfo *list, hints = {.ai_family = n->o->family == IP_FAMILY_V4   ? AF_INET
						     : n->o->family == IP_FAMILY_V6 ? AF_INET6
										    : AF_UNSPEC,
				       .ai_socktype = n->o->is_udp ? SOCK_DGRAM : SOCK_STREAM};
	struct weft_detail why = {.size = sizeof(why)};
	char target[NC_TARGET_MAX];
	enum weft_err e = weft_getaddrinfo(n->overlay.node, n->o->host, n->o->port, &hints, &list);
	if (e) {
		return say_unknown(n, e);
	}
	struct mono deadline = nc_deadline(n);
	for (struct addrinfo *a = list; a; a = a->ai_next) {
		e = dial_one(n, a, deadline, count(a), fd, &why);
		if (!is_of_address(e)) {
			break;
		}
	}
	weft_freeaddrinfo(list);
	if (e && e != WEFT_ECANCELED) {
		cli_fail("nc: %s: not connected: %s", nc_target(n, target),
			why.text[0] ? why.text : weft_err_text(e));
	}
	return e;
}

void
nc_say_peer(const struct nc *n, const char *what, const struct sockaddr *at, socklen_t len)
{
	struct weft_identity who = {.size = sizeof(who)};
	struct endpoint e = {0};
	char text[ENDPOINT_TEXT_MAX], key[WEFT_KEY_TEXT_LEN];
	if (n->o->verbosity == 0 || !os_inet_read(at, len, &e.addr, &e.port)) {
		return;
	}
	endpoint_format(&e, text);
	if (weft_whois(n->overlay.node, at, len, &who)) {
		fprintf(stderr, "weft nc: %s %s\n", what, text);
		return;
	}
	weft_key_format(who.public_key, key);
	fprintf(stderr, "weft nc: %s %s, peer %s%s%s%s%s\n", what, text, who.name,
		who.name[0] ? ", key " : "", key, who.endpoint[0] ? ", at " : "", who.endpoint);
}

void
nc_say_listening(const struct nc *n, int fd)
{
	struct endpoint e = {0};
	char text[ENDPOINT_TEXT_MAX];
	if (n->o->verbosity > 0 && os_inet_local(fd, &e.addr, &e.port) == WEFT_OK) {
		fprintf(stderr, "weft nc: listening on %s\n", endpoint_format(&e, text));
	}
}

static int
run(struct nc *n)
{
	static const enum weft_log_level levels[] = {
		WEFT_LOG_ERROR, WEFT_LOG_WARN, WEFT_LOG_INFO, WEFT_LOG_DEBUG};
	unsigned v = n->o->verbosity < 3 ? n->o->verbosity : 3;
	os_signal_block_own();
	enum weft_err e = os_signal_open(&n->signals);
	for (int fd = 0; fd < 2 && !e; fd++) {
		e = os_stream_borrow(fd, fd == 1, &n->loans[fd]);
	}
	int rc = e ? cli_fail("nc: standard input and output: %s", weft_err_text(e)) : CLI_OK;
	if (!rc) {
		rc = overlay_open(&n->overlay, n->o->what, levels[v]);
	}
	if (!rc) {
		rc = n->o->is_udp ? nc_udp(n) : nc_tcp(n);
	}
	overlay_close(&n->overlay);
	os_stream_return(&n->loans[0]);
	os_stream_return(&n->loans[1]);
	os_fd_close(&n->signals);
	return rc;
}

int
nc_main(int argc, char **argv)
{
	struct nc_options o = {0};
	struct nc n = {.o = &o, .signals = -1};
	bool is_done = false;
	int rc = parse(&o, argc, argv, &is_done);
	return rc || is_done ? rc : run(&n);
}
