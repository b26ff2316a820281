/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/proxy.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/pump.h"
#include "os/clock.h"
#include "os/error.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/inet.h"
#include "os/loop.h"
#include "os/netns.h"
#include "os/process.h"
#include "os/resolve.h"
#include "os/signal.h"

#define SOCKS_DEFAULT "127.0.0.1:1080"
#define BACKLOG 512
#define FILES_OURS 256 /* descriptors for the node, the pumps' pipes and the rest */
#define FILES_A_CLIENT 4

static const char help[] =
	"Usage: weft proxy [OPTIONS] FILE|NAME\n"
	"A proxy into the overlay of a configuration, for programs that know proxies. No root is\n"
	"needed, and nothing of the machine's network is changed. FILE and NAME are as for\n"
	"`weft up`. It runs in the foreground; SIGHUP has it read the configuration again.\n\n"
	"  --socks [ADDRESS:]PORT  speak SOCKS 5 there: TCP and UDP (127.0.0.1:1080)\n"
	"  --http [ADDRESS:]PORT   speak HTTP there: CONNECT, and http: requests\n"
	"  --user FILE             ask for a name and password; FILE has lines NAME:PASSWORD\n"
	"  --open                  without --user, listen on more than loopback addresses\n"
	"  --connections N         at a time (1024)\n"
	"  --log LEVEL             error, warn (default), info or debug\n"
	"  --help                  this text\n\n"
	"Both kinds may be given many times; port 0 is any. Names are those of peers; others are\n"
	"asked of the configuration's DNS servers, through the overlay.\n\n"
	"  curl --proxy socks5h://127.0.0.1:1080 http://server/\n";

enum {
	OPT_HELP = 256,
	OPT_SOCKS,
	OPT_HTTP,
	OPT_USER,
	OPT_OPEN,
	OPT_CONNECTIONS,
	OPT_LOG,
};

static const struct option longs[] = {
	{"help", no_argument, NULL, OPT_HELP},
	{"socks", required_argument, NULL, OPT_SOCKS},
	{"http", required_argument, NULL, OPT_HTTP},
	{"user", required_argument, NULL, OPT_USER},
	{"open", no_argument, NULL, OPT_OPEN},
	{"connections", required_argument, NULL, OPT_CONNECTIONS},
	{"log", required_argument, NULL, OPT_LOG},
	{0},
};

struct proxy_options {
	const char *what;
	const char *users; /* a file; NULL: everybody may */
	bool is_open;
};

void
proxy_log(const struct proxy *p, enum weft_log_level level, const char *fmt, ...)
{
	va_list ap;
	if (level > p->level) {
		return;
	}
	fputs("weft proxy: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

static int
add_listen(struct proxy *p, bool is_http, const char *text)
{
	char whole[ENDPOINT_TEXT_MAX];
	struct endpoint at;
	bool is_port = text[strspn(text, "0123456789")] == 0;
	snprintf(whole, sizeof(whole), "%s%s", is_port ? "127.0.0.1:" : "", text);
	/* An endpoint has a port; here 0 is any. */
	char *port = strrchr(whole, ':');
	bool is_any = port && strcmp(port, ":0") == 0;
	if (is_any) {
		port[1] = '1';
	}
	if (endpoint_parse(whole, strlen(whole), &at)) {
		return cli_misuse(
			"proxy", "%s: ADDRESS:PORT is wanted, or a PORT of this machine", text);
	}
	at.port = is_any ? 0 : at.port;
	if (p->listens_n == PROXY_LISTENS_MAX) {
		return cli_misuse("proxy", "at most %d addresses to listen on", PROXY_LISTENS_MAX);
	}
	p->listens[p->listens_n++] =
		(struct proxy_listen){.proxy = p, .at = at, .is_http = is_http, .fd = -1};
	return CLI_OK;
}

static int
parse_connections(struct proxy *p, const char *text)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);
	if (!*text || *end || v < 1 || v > PROXY_CLIENTS_MAX) {
		return cli_misuse("proxy", "--connections %s: a number from 1 to %d is wanted",
			text, PROXY_CLIENTS_MAX);
	}
	p->clients_max = v;
	return CLI_OK;
}

static int
parse_one(struct proxy *p, struct proxy_options *o, int c)
{
	switch (c) {
	case OPT_SOCKS:
	case OPT_HTTP:
		return add_listen(p, c == OPT_HTTP, optarg);
	case OPT_USER:
		o->users = optarg;
		return CLI_OK;
	case OPT_OPEN:
		o->is_open = true;
		return CLI_OK;
	case OPT_CONNECTIONS:
		return parse_connections(p, optarg);
	default:
		return overlay_level_parse(optarg, &p->level)
			       ? CLI_OK
			       : cli_misuse("proxy",
					 "--log %s: error, warn, info or debug is wanted", optarg);
	}
}

static int
check(struct proxy *p, const struct proxy_options *o)
{
	int rc = p->listens_n == 0 ? add_listen(p, false, SOCKS_DEFAULT) : CLI_OK;
	for (size_t i = 0; !rc && i < p->listens_n; i++) {
		char text[ENDPOINT_TEXT_MAX];
		if (!o->users && !o->is_open && !ip_addr_is_loopback(&p->listens[i].at.addr)) {
			rc = cli_misuse("proxy",
				"%s would let others into the overlay: --user asks who they are, "
				"--open lets in all",
				endpoint_format(&p->listens[i].at, text));
		}
	}
	return rc;
}

static int
parse(struct proxy *p, struct proxy_options *o, int argc, char **argv, bool *is_done)
{
	*is_done = true;
	optind = 0;
	opterr = 0;
	int c;
	while ((c = getopt_long(argc, argv, ":", longs, NULL)) != -1) {
		if (c == OPT_HELP) {
			fputs(help, stdout);
			return CLI_OK;
		}
		int rc = c == ':'   ? cli_misuse("proxy", "%s wants a value", argv[optind - 1])
			 : c == '?' ? cli_misuse("proxy", "%s is not an option of it",
					      argv[optind - 1])
				    : parse_one(p, o, c);
		if (rc) {
			return rc;
		}
	}
	if (optind + 1 != argc) {
		return cli_misuse("proxy",
			optind == argc ? "a FILE or a NAME is wanted" : "one overlay at a time");
	}
	o->what = argv[optind];
	*is_done = false;
	return check(p, o);
}

static int
read_users(struct proxy *p, const char *path)
{
	char *text;
	size_t len;
	unsigned line;
	enum weft_err e = os_file_read(path, PROXY_USERS_BYTES_MAX, &text, &len);
	if (e) {
		return cli_fail("cannot read %s: %s", path, weft_err_text(e));
	}
	if (os_file_is_world_readable(path)) {
		fprintf(stderr,
			"%s: warning: everybody may read it, and it holds passwords: chmod 600 "
			"%s\n",
			path, path);
	}
	e = proxy_users_parse(&p->users, text, len, &line);
	explicit_bzero(text, len);
	free(text);
	if (e == WEFT_EPARSE) {
		return cli_fail("%s:%u: a line NAME:PASSWORD is wanted, each up to %d bytes", path,
			line, PROXY_WORD_MAX);
	}
	if (e) {
		return cli_fail(
			"%s: %s", path, e == WEFT_ENOENT ? "no user is in it" : "too many users");
	}
	p->has_users = true;
	return CLI_OK;
}

static int
open_listen(struct proxy_listen *l)
{
	struct os_inet_name at;
	char text[ENDPOINT_TEXT_MAX], why[OS_ERROR_TEXT_MAX];
	bool is_v6 = l->at.addr.family == IP_FAMILY_V6;
	int errnum = 0;
	os_inet_name(&l->at.addr, l->at.port, l->at.scope_id, &at);
	enum weft_err e = os_netns_socket(NULL, is_v6 ? AF_INET6 : AF_INET,
		SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, &l->fd);
	if (e) {
		l->fd = -1;
	} else {
		e = os_inet_bind(l->fd, &at, OS_INET_REUSEADDR | OS_INET_V6ONLY, &errnum);
	}
	if (!e) {
		e = os_inet_listen(l->fd, BACKLOG, &errnum);
	}
	if (!e) {
		e = os_inet_local(l->fd, &l->at.addr, &l->at.port);
	}
	endpoint_format(&l->at, text);
	if (e) {
		return cli_fail("cannot listen on %s: %s", text,
			errnum ? os_error_text(errnum, why, sizeof(why)) : weft_err_text(e));
	}
	printf("%s on %s\n", l->is_http ? "HTTP" : "SOCKS5", text);
	return CLI_OK;
}

static void
reload(struct proxy *p)
{
	if (overlay_reload(&p->overlay)) {
		return; /* said, and nothing has changed */
	}
	if (proxy_names_reload(p->names)) {
		cli_fail("names are those of peers alone: %s", weft_err_text(WEFT_ENOMEM));
	}
}

static void
signal_ready(void *ctx, uint32_t events)
{
	struct proxy *p = ctx;
	enum os_signal s;
	(void)events;
	int *fd = &p->signal_fd;
	while (os_signal_take(*fd, &s) == WEFT_OK) {
		if (s == OS_SIGNAL_STOP) {
			p->is_stopping = true;
		} else if (s == OS_SIGNAL_RELOAD) {
			reload(p);
		}
	}
}

static void
run_timers(struct proxy *p)
{
	struct timer *t;
	while ((t = timerwheel_take_expired(&p->timers, p->now)) != NULL) {
		if (t == &p->resume) {
			proxy_resume(p);
			continue;
		}
		struct proxy_timer *pt = WEFT_CONTAINER_OF(t, struct proxy_timer, timer);
		pt->expired(pt);
	}
}

static void
run(struct proxy *p)
{
	while (!p->is_stopping) {
		struct mono pump = pumps_run(p->pumps, p->now);
		struct mono due = mono_min(timerwheel_next(&p->timers), pump);
		os_loop_wait(p->loop, mono_min(due, proxy_names_deadline(p->names)));
		p->now = os_clock_mono();
		proxy_names_turn(p->names, p->now);
		run_timers(p);
	}
	while (!list_is_empty(&p->clients)) {
		proxy_client_free(WEFT_CONTAINER_OF(p->clients.next, struct proxy_client, link));
	}
}

/* What serving needs besides the node. */
static enum weft_err
prepare(struct proxy *p)
{
	size_t files = os_process_raise_files();
	size_t room = files > FILES_OURS ? (files - FILES_OURS) / FILES_A_CLIENT : 1;
	if (p->clients_max > room) {
		p->clients_max = room ? room : 1;
		proxy_log(p, WEFT_LOG_WARN, "%zu connections at a time: ulimit -n allows no more",
			p->clients_max);
	}
	size_t watches = PROXY_LISTENS_MAX + 1 + OS_RESOLVER_WATCHES_MAX +
			 p->clients_max * (PUMP_WATCHES > 4 ? PUMP_WATCHES : 4);
	enum weft_err e = os_loop_new(watches, &p->loop);
	if (!e) {
		e = pumps_new(p->loop, &p->pumps);
	}
	if (!e) {
		e = proxy_names_new(&p->overlay, p->loop, &p->names);
	}
	if (!e) {
		e = os_signal_open(&p->signal_fd);
	}
	return e ? e : os_loop_add(p->loop, p->signal_fd, OS_READABLE, signal_ready, p);
}

static int
serve_clients(struct proxy *p, const struct proxy_options *o)
{
	int rc = o->users ? read_users(p, o->users) : CLI_OK;
	for (size_t i = 0; !rc && i < p->listens_n; i++) {
		rc = open_listen(&p->listens[i]);
	}
	if (!rc) {
		rc = overlay_open(&p->overlay, o->what, p->level);
	}
	enum weft_err e = rc ? WEFT_OK : prepare(p);
	if (e) {
		rc = cli_fail("%s", weft_err_text(e));
	}
	if (!rc) {
		p->now = os_clock_mono();
		timerwheel_init(&p->timers, p->now);
		proxy_resume(p);
		fflush(stdout);
		run(p);
	}
	for (size_t i = 0; i < p->listens_n; i++) {
		os_fd_close(&p->listens[i].fd);
	}
	proxy_names_free(p->names);
	pumps_free(p->pumps);
	os_loop_free(p->loop);
	os_fd_close(&p->signal_fd);
	overlay_close(&p->overlay);
	proxy_users_fini(&p->users);
	return rc;
}

int
proxy_main(int argc, char **argv)
{
	struct proxy_options o = {0};
	struct proxy *p = calloc(1, sizeof(*p));
	bool is_done;
	if (!p) {
		return cli_fail("%s", weft_err_text(WEFT_ENOMEM));
	}
	p->level = WEFT_LOG_WARN;
	p->clients_max = PROXY_CLIENTS_DEFAULT;
	p->signal_fd = -1;
	list_init(&p->clients);
	timer_init(&p->resume);
	int rc = parse(p, &o, argc, argv, &is_done);
	if (!is_done && !rc) {
		os_signal_block_own();
		rc = serve_clients(p, &o);
	}
	free(p);
	return rc;
}
