/* SPDX-License-Identifier: Apache-2.0 */
/* `weft forward`: its arguments, its loop, and the targets' names. */
#include "cli/forward.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "cli/cli.h"
#include "cli/pump.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/inet.h"
#include "os/loop.h"
#include "os/process.h"
#include "os/resolve.h"
#include "os/signal.h"
#include "weft/dial.h"

static const char help[] =
	"Usage: weft forward [OPTIONS] FILE|NAME RULE...\n"
	"Carries connections between this machine and the overlay, without root: a node of its "
	"own\n"
	"with the configuration FILE or NAME, as `weft up` would find it. Runs until SIGINT or\n"
	"SIGTERM, then prints what each rule has carried. SIGHUP reads the configuration again.\n"
	"\n"
	"Rules, as many as wanted:\n"
	"  -L [udp:][BIND:]PORT:HOST:PORT  listen on this machine, connect to HOST in the "
	"overlay;\n"
	"                                  BIND is an address of this machine, * for all, and\n"
	"                                  127.0.0.1 and ::1 unless given; HOST is an overlay\n"
	"                                  address or a peer's Name\n"
	"  -R [udp:][BIND:]PORT:HOST:PORT  listen in the overlay, connect from this machine;\n"
	"                                  BIND is an overlay address of this node, all unless\n"
	"                                  given; HOST is what this machine knows\n"
	"An IPv6 address stands in brackets: -L 8080:[fd00::2]:80. Port 0 listens on any.\n"
	"\n"
	"  -v, --verbose           tell of every connection\n"
	"  --udp-timeout SECONDS   a source that is silent so long is forgotten (60)\n"
	"  --connections COUNT     open at a time (4096); more wait to be accepted\n"
	"  --help                  this text\n"
	"\n"
	"Example: weft forward home -L 8080:nas:80 -L udp:5353:10.0.0.1:53 -R 2222:localhost:22\n";

enum {
	OPT_HELP = 256,
	OPT_UDP_TIMEOUT,
	OPT_CONNECTIONS,
};

static const struct option longs[] = {
	{"help", no_argument, NULL, OPT_HELP},
	{"verbose", no_argument, NULL, 'v'},
	{"udp-timeout", required_argument, NULL, OPT_UDP_TIMEOUT},
	{"connections", required_argument, NULL, OPT_CONNECTIONS},
	{0},
};

/* Connections, flows, what the rules listen on, name servers, signals. */
#define WATCHES(connections)                                                                       \
	((connections) * (PUMP_WATCHES + 1) + FORWARD_FLOWS_MAX +                                  \
		(size_t)FORWARD_RULES_MAX * FORWARD_FRONTS_MAX + OS_RESOLVER_WATCHES_MAX + 8)
/* Descriptors beside those of connections and flows: the node, pipes of pumps. */
#define FILES_BESIDE 256
#define RESOLVED_NS (30 * WEFT_NS_PER_S)
#define WARNINGS_A_MINUTE 6

static int
add_rule(struct forward *f, enum forward_side side, const char *text)
{
	char why[FORWARD_WHY_MAX];
	if (f->routes_n == FORWARD_RULES_MAX) {
		return cli_misuse("forward", "at most %d rules are possible", FORWARD_RULES_MAX);
	}
	struct forward_route *r = &f->routes[f->routes_n];
	if (!forward_rule_parse(side, text, &r->rule, why)) {
		return cli_misuse(
			"forward", "-%c %s: %s", side == FORWARD_LOCAL ? 'L' : 'R', text, why);
	}
	f->routes_n++;
	r->f = f;
	r->fail_limit =
		(struct log_limit){.period_ns = 60 * WEFT_NS_PER_S, .burst = WARNINGS_A_MINUTE};
	list_init(&r->waiting);
	for (size_t i = 0; i < FORWARD_FRONTS_MAX; i++) {
		r->front[i] = (struct forward_front){.route = r, .fd = -1};
	}
	forward_rule_format(&r->rule, r->name);
	return CLI_OK;
}

static int
take_number(const char *option, const char *text, unsigned long max, unsigned long *out)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || v < 1 || v > max) {
		return cli_misuse(
			"forward", "%s %s: a number from 1 to %lu is wanted", option, text, max);
	}
	*out = v;
	return CLI_OK;
}

/* Returns CLI_OK, or a status to exit with; *is_done after --help. */
static int
parse(struct forward *f, int argc, char **argv, const char **what, bool *is_done)
{
	int c, rc = CLI_OK;
	unsigned long v = 0;
	optind = 0;
	opterr = 0;
	while (!rc && (c = getopt_long(argc, argv, ":L:R:v", longs, NULL)) != -1) {
		switch (c) {
		case OPT_HELP:
			fputs(help, stdout);
			*is_done = true;
			return CLI_OK;
		case 'v':
			f->is_verbose = true;
			break;
		case 'L':
		case 'R':
			rc = add_rule(f, c == 'L' ? FORWARD_LOCAL : FORWARD_REMOTE, optarg);
			break;
		case OPT_UDP_TIMEOUT:
			rc = take_number("--udp-timeout", optarg, 86400, &v);
			f->udp_timeout_ns = rc ? 0 : (int64_t)v * WEFT_NS_PER_S;
			break;
		case OPT_CONNECTIONS:
			rc = take_number("--connections", optarg, FORWARD_CONNECTIONS_MAX, &v);
			f->connections_max = rc ? 0 : (size_t)v;
			break;
		case ':':
			return cli_misuse("forward", "%s wants a value", argv[optind - 1]);
		default:
			return cli_misuse("forward", "%s is not an option of it", argv[optind - 1]);
		}
	}
	if (rc) {
		return rc;
	}
	if (optind == argc) {
		return cli_misuse("forward", "a FILE or a NAME is wanted");
	}
	if (optind + 1 < argc) {
		return cli_misuse("forward",
			"%s: rules are written with -L or -R, as in -L 8080:db:80",
			argv[optind + 1]);
	}
	if (f->routes_n == 0) {
		return cli_misuse("forward", "a rule is wanted, as in -L 8080:db:80");
	}
	*what = argv[optind];
	return CLI_OK;
}

static void
take_overlay_addrs(struct forward_route *r)
{
	struct addrinfo hints = {.ai_socktype = r->rule.is_udp ? SOCK_DGRAM : SOCK_STREAM}, *list;
	r->addrs_n = 0;
	if (weft_getaddrinfo(r->f->overlay.node, r->rule.host, NULL, &hints, &list)) {
		return;
	}
	for (struct addrinfo *a = list; a && r->addrs_n < FORWARD_ADDRS_MAX; a = a->ai_next) {
		uint16_t port;
		r->addrs_n += os_inet_read(a->ai_addr, a->ai_addrlen, &r->addrs[r->addrs_n], &port);
	}
	weft_freeaddrinfo(list);
}

static void
tell_waiting(struct forward_route *r)
{
	while (!list_is_empty(&r->waiting)) {
		struct forward_wait *w =
			WEFT_CONTAINER_OF(r->waiting.next, struct forward_wait, link);
		list_remove(&w->link);
		w->ready(w);
	}
}

/* Datagrams try one address, so IPv4 comes first for them, which a service seldom lacks. */
static void
answered(
	void *ctx, uint64_t tag, enum ip_family family, enum weft_err e, const struct ip_addr *addr)
{
	struct forward *f = ctx;
	struct forward_route *r = &f->routes[tag];
	if (!e) {
		bool is_first = family == (r->rule.is_udp ? IP_FAMILY_V4 : IP_FAMILY_V6);
		if (is_first && r->fresh_n == 1) {
			r->fresh[1] = r->fresh[0];
			r->fresh[0] = *addr;
		} else {
			r->fresh[r->fresh_n] = *addr;
		}
		r->fresh_n++;
	}
	r->has_no_answer |= e == WEFT_EAGAIN;
	if (--r->asked > 0) {
		return;
	}
	/* Old addresses are better than none while the name server is silent. */
	if (r->fresh_n > 0 || !r->has_no_answer) {
		memcpy(r->addrs, r->fresh, sizeof(r->addrs));
		r->addrs_n = r->fresh_n;
		r->resolved_at = os_clock_mono();
	}
	tell_waiting(r);
}

bool
forward_resolve(struct forward_route *r, struct forward_wait *w)
{
	struct mono now = os_clock_mono();
	if (r->rule.side == FORWARD_LOCAL) {
		take_overlay_addrs(r);
		return true;
	}
	if (r->is_numeric || (r->addrs_n > 0 && mono_diff_ns(now, r->resolved_at) < RESOLVED_NS)) {
		return true;
	}
	if (r->asked == 0) {
		uint64_t tag = (uint64_t)(r - r->f->routes);
		r->asked = FORWARD_ADDRS_MAX;
		r->fresh_n = 0;
		r->has_no_answer = false;
		os_resolver_ask(r->f->resolver, r->rule.host, IP_FAMILY_V4, tag);
		os_resolver_ask(r->f->resolver, r->rule.host, IP_FAMILY_V6, tag);
		if (r->asked == 0) {
			return true;
		}
	}
	if (w) {
		list_push_back(&r->waiting, &w->link);
	}
	return false;
}

/* A target that can never be reached is found before anything listens. */
static bool
check_target(struct forward_route *r)
{
	char names[1024];
	if (r->rule.side == FORWARD_REMOTE) {
		r->is_numeric =
			ip_addr_parse(r->rule.host, strlen(r->rule.host), &r->addrs[0]) == WEFT_OK;
		r->addrs_n = r->is_numeric;
		return true;
	}
	take_overlay_addrs(r);
	if (r->addrs_n > 0) {
		return true;
	}
	overlay_names(&r->f->overlay, names, sizeof(names));
	cli_fail("forward: %s: the host \"%s\" is no IP address and no peer's Name in %s; %s%s",
		r->name, r->rule.host, r->f->overlay.path,
		names[0] ? "its names with an address of their own are among: "
			 : "a peer gets one by Name = ... in its section",
		names);
	return false;
}

static void
say_listening(const struct forward_route *r)
{
	char text[ENDPOINT_TEXT_MAX];
	printf("%s: listening on", r->name);
	for (size_t i = 0; i < FORWARD_FRONTS_MAX && r->front[i].fd >= 0; i++) {
		printf("%s %s", i ? " and" : "", endpoint_format(&r->front[i].at, text));
	}
	printf("%s\n", r->rule.side == FORWARD_REMOTE ? " of the overlay" : "");
}

static bool
open_routes(struct forward *f)
{
	bool has_remote = false;
	for (size_t i = 0; i < f->routes_n; i++) {
		if (!check_target(&f->routes[i])) {
			return false;
		}
	}
	for (size_t i = 0; i < f->routes_n; i++) {
		struct forward_route *r = &f->routes[i];
		if (!(r->rule.is_udp ? forward_udp_open(r) : forward_tcp_open(r))) {
			return false;
		}
		say_listening(r);
		has_remote |= r->rule.side == FORWARD_REMOTE;
	}
	if (has_remote) {
		overlay_announce(&f->overlay);
	}
	fflush(stdout);
	return true;
}

static void
resume_due(struct forward_timer *t)
{
	forward_tcp_resume(WEFT_CONTAINER_OF(t, struct forward, resume));
}

static void
signal_ready(void *ctx, uint32_t events)
{
	struct forward *f = ctx;
	enum os_signal which;
	(void)events;
	while (os_signal_take(f->signals, &which) == WEFT_OK) {
		f->is_stopping |= which == OS_SIGNAL_STOP;
		f->is_reloading |= which == OS_SIGNAL_RELOAD;
	}
}

static enum weft_err
prepare(struct forward *f)
{
	size_t files = os_process_raise_files();
	size_t wanted = 2 * f->connections_max + FORWARD_FLOWS_MAX + FILES_BESIDE;
	if (files < wanted) {
		/* Flows seldom are so many; connections are what people notice. */
		size_t most = files > 2 * FILES_BESIDE ? (files - FILES_BESIDE) / 2 : 64;
		if (f->connections_max > most) {
			f->connections_max = most;
			fprintf(stderr,
				"weft forward: %zu connections at a time: ulimit -n allows no "
				"more\n",
				most);
		}
	}
	f->start = os_clock_mono();
	timerwheel_init(&f->timers, f->start);
	timer_init(&f->resume.timer);
	f->resume.due = resume_due;
	list_init(&f->connections);
	enum weft_err e = os_loop_new(WATCHES(f->connections_max), &f->loop);
	if (!e) {
		e = pumps_new(f->loop, &f->pumps);
	}
	if (!e) {
		e = os_resolver_new(f->loop, answered, f, &f->resolver);
	}
	if (!e) {
		e = os_signal_open(&f->signals);
	}
	return e ? e : os_loop_add(f->loop, f->signals, OS_READABLE, signal_ready, f);
}

static void
turn(struct forward *f)
{
	struct mono now = os_clock_mono();
	struct timer *t;
	while ((t = timerwheel_take_expired(&f->timers, now))) {
		struct forward_timer *due = WEFT_CONTAINER_OF(t, struct forward_timer, timer);
		due->due(due);
	}
	if (!mono_is_before(now, os_resolver_deadline(f->resolver))) {
		os_resolver_turn(f->resolver, now);
	}
	struct mono until = pumps_run(f->pumps, now);
	until = mono_min(until, timerwheel_next(&f->timers));
	until = mono_min(until, os_resolver_deadline(f->resolver));
	os_loop_wait(f->loop, until);
	if (f->is_reloading) {
		f->is_reloading = false;
		if (overlay_reload(&f->overlay) == CLI_OK) {
			fprintf(stderr, "weft forward: %s: read again\n", f->overlay.path);
		}
	}
}

static void
close_all(struct forward *f)
{
	f->is_stopping = true;
	forward_tcp_close(f);
	forward_udp_close(f);
	for (size_t i = 0; i < f->routes_n; i++) {
		forward_front_close(&f->routes[i]);
	}
}

static int
run(struct forward *f, const char *what)
{
	os_signal_block_own();
	enum weft_err e = prepare(f);
	int rc = e ? cli_fail("forward: %s", weft_err_text(e)) : CLI_OK;
	if (!rc) {
		rc = overlay_open(&f->overlay, what, f->is_verbose ? WEFT_LOG_INFO : WEFT_LOG_WARN);
	}
	if (!rc && !open_routes(f)) {
		rc = CLI_FAILED;
	}
	while (!rc && !f->is_stopping) {
		turn(f);
	}
	close_all(f);
	if (!rc) {
		forward_print_summary(f);
	}
	overlay_close(&f->overlay);
	os_resolver_free(f->resolver);
	pumps_free(f->pumps);
	os_fd_close(&f->signals);
	os_loop_free(f->loop);
	return rc;
}

int
forward_main(int argc, char **argv)
{
	struct forward *f = calloc(1, sizeof(*f));
	const char *what = NULL;
	bool is_done = false;
	if (f) {
		f->routes = calloc(FORWARD_RULES_MAX, sizeof(*f->routes));
	}
	if (!f || !f->routes) {
		free(f);
		return cli_fail("forward: %s", weft_err_text(WEFT_ENOMEM));
	}
	f->signals = -1;
	f->udp_timeout_ns = FORWARD_UDP_TIMEOUT_S * WEFT_NS_PER_S;
	f->connections_max = FORWARD_CONNECTIONS_DEFAULT;
	int rc = parse(f, argc, argv, &what, &is_done);
	if (!rc && !is_done) {
		rc = run(f, what);
	}
	free(f->routes);
	free(f);
	return rc;
}
