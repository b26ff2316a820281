/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/exec_names.h"
#include "cli/overlay.h"
#include "os/error.h"
#include "os/exec.h"
#include "os/fd.h"

/* As env(1), timeout(1) and their kin have it, so that the program's own statuses stand out. */
#define STATUS_OURS 125
#define STATUS_CANNOT_RUN 126
#define STATUS_NOT_FOUND 127
#define STATUS_SIGNALED 128

#define PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin"

static const char help[] =
	"Usage: weft exec [OPTIONS] FILE|NAME [--] COMMAND [ARGUMENTS]\n"
	"Runs a command whose network is the overlay of a configuration and nothing else. No root\n"
	"is needed. FILE and NAME are as for `weft up`. The command has your user, environment,\n"
	"standard streams and terminal. Names of peers are in its /etc/hosts, the DNS servers of\n"
	"the configuration in its /etc/resolv.conf. The overlay ends with the command.\n\n"
	"  weft exec home -- curl http://server/\n"
	"  weft exec home -- bash\n\n"
	"  --no-names   leave /etc as it is\n"
	"  --log LEVEL  error, warn (default), info or debug\n"
	"  --help       this text\n\n"
	"Exit status: that of the command; 128 and the number of the signal that ended it; 127 "
	"and\n"
	"126 when it is not found, or cannot be run; 125 when weft failed.\n";

enum {
	OPT_HELP = 256,
	OPT_NO_NAMES,
	OPT_LOG,
};

static const struct option longs[] = {
	{"help", no_argument, NULL, OPT_HELP},
	{"no-names", no_argument, NULL, OPT_NO_NAMES},
	{"log", required_argument, NULL, OPT_LOG},
	{0},
};

struct exec_options {
	const char *what;
	char **argv;
	bool has_names;
	enum weft_log_level log_level;
};

static int
as_ours(int status)
{
	return status ? STATUS_OURS : CLI_OK;
}

/* 0: go on. */
static int
parse(struct exec_options *o, int argc, char **argv, bool *is_done)
{
	*o = (struct exec_options){.has_names = true, .log_level = WEFT_LOG_WARN};
	*is_done = true;
	optind = 0;
	opterr = 0;
	int c;
	/* '+': options behind FILE are the command's. */
	while ((c = getopt_long(argc, argv, "+:", longs, NULL)) != -1) {
		switch (c) {
		case OPT_HELP:
			fputs(help, stdout);
			return CLI_OK;
		case OPT_NO_NAMES:
			o->has_names = false;
			break;
		case OPT_LOG:
			if (!overlay_level_parse(optarg, &o->log_level)) {
				return as_ours(cli_misuse("exec",
					"--log %s: error, warn, info or debug is wanted", optarg));
			}
			break;
		case ':':
			return as_ours(cli_misuse("exec", "%s wants a value", argv[optind - 1]));
		default:
			return as_ours(
				cli_misuse("exec", "%s is not an option of it", argv[optind - 1]));
		}
	}
	if (optind >= argc) {
		return as_ours(cli_misuse("exec", "a FILE or a NAME is wanted"));
	}
	o->what = argv[optind++];
	if (optind < argc && strcmp(argv[optind], "--") == 0) {
		optind++;
	}
	if (optind >= argc) {
		return as_ours(cli_misuse("exec", "a COMMAND to run in %s is wanted", o->what));
	}
	o->argv = argv + optind;
	*is_done = false;
	return CLI_OK;
}

/* Where the command may lie, as execvp(3) has it. One block, freed at once. */
static const char **
find_programs(const char *command, const char *path)
{
	size_t folders = 2, bytes = strlen(path) + 1;
	for (const char *c = path; *c; c++) {
		folders += *c == ':';
	}
	bytes += folders * (strlen(command) + 2);
	const char **out = calloc(1, folders * sizeof(*out) + bytes);
	if (!out) {
		return NULL;
	}
	if (strchr(command, '/') || !*command) {
		out[0] = command;
		return out;
	}
	char *to = (char *)(out + folders);
	for (size_t n = 0; n + 1 < folders; n++) {
		size_t len = strcspn(path, ":");
		out[n] = to;
		/* An empty folder is the one that we are in. */
		to += sprintf(to, "%.*s%s%s", (int)len, path, len > 0 ? "/" : "", command) + 1;
		path += len + (path[len] == ':');
	}
	return out;
}

static int
say_fault(const struct os_exec_fault *f, const char *command)
{
	char text[OS_ERROR_TEXT_MAX];
	os_error_text(f->errnum, text, sizeof(text));
	if (f->is_of_the_program) {
		cli_fail("%s %s: %s", f->what, command, text);
		return f->errnum == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
	}
	cli_fail("%s%s%s: %s%s", f->what, f->path ? " " : "", f->path ? f->path : "", text,
		f->path ? "; --no-names does without" : "");
	return STATUS_OURS;
}

static int
run(const struct exec_options *o, struct overlay *v, const struct os_exec_signals *signals,
	const struct exec_names *names)
{
	static const char *const caches[] = {"/run/nscd", "/var/run/nscd"};
	const char *path = getenv("PATH");
	struct os_exec_fault fault;
	struct os_exec x = {.user_ns = -1,
		.net_ns = -1,
		.argv = o->argv,
		.envp = environ,
		.files = names->files,
		.files_n = names->files_n,
		/* A cache of names that is asked through a socket, past the overlay. */
		.folders = caches,
		.folders_n = o->has_names ? WEFT_ARRAY_LEN(caches) : 0};
	const char **programs = find_programs(o->argv[0], path ? path : PATH_DEFAULT);
	enum weft_err e =
		programs ? weft_node_namespaces(v->node, &x.user_ns, &x.net_ns) : WEFT_ENOMEM;
	int rc, pid;
	x.programs = programs;
	if (e) {
		cli_fail("%s: %s", v->path, weft_err_text(e));
		rc = STATUS_OURS;
	} else if (os_exec_signals_end()) {
		rc = STATUS_SIGNALED + os_exec_signals_end();
	} else if (os_exec_start(&x, signals, &pid, &fault)) {
		rc = say_fault(&fault, o->argv[0]);
	} else {
		rc = os_exec_wait(pid);
	}
	os_fd_close(&x.user_ns);
	os_fd_close(&x.net_ns);
	free(programs);
	return rc;
}

int
exec_main(int argc, char **argv)
{
	struct exec_options o;
	struct os_exec_signals signals;
	struct exec_names names = {0};
	struct overlay v;
	bool is_done;
	int rc = parse(&o, argc, argv, &is_done);
	if (is_done) {
		return rc;
	}
	os_exec_signals_hold(&signals);
	if (overlay_open(&v, o.what, o.log_level)) {
		return STATUS_OURS;
	}
	enum weft_err e = o.has_names ? exec_names_make(v.node, v.conf, &names) : WEFT_OK;
	if (e) {
		cli_fail("no files for its names: %s", weft_err_text(e));
		rc = STATUS_OURS;
	} else {
		rc = run(&o, &v, &signals, &names);
	}
	exec_names_fini(&names);
	overlay_close(&v);
	return rc;
}
