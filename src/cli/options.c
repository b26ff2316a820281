/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/conffile.h"
#include "ctl/http.h"
#include "os/file.h"
#include "os/process.h"
#include "wire/conf_edit.h"

#define CONF_SUFFIX ".conf"

static const char *const folders[] = {"/etc/weft", "/etc/wireguard"};

enum {
	OPT_HELP = 256,
	OPT_FOREGROUND,
	OPT_AEAD,
	OPT_WORKERS,
	OPT_LOG,
	OPT_METRICS,
	OPT_METRICS_OPEN,
	OPT_USER,
	OPT_NO_SANDBOX,
};

static const struct option longs[] = {
	{"help", no_argument, NULL, OPT_HELP},
	{"foreground", no_argument, NULL, OPT_FOREGROUND},
	{"aead", required_argument, NULL, OPT_AEAD},
	{"workers", required_argument, NULL, OPT_WORKERS},
	{"log", required_argument, NULL, OPT_LOG},
	{"metrics", required_argument, NULL, OPT_METRICS},
	{"metrics-open", no_argument, NULL, OPT_METRICS_OPEN},
	{"user", required_argument, NULL, OPT_USER},
	{"no-sandbox", no_argument, NULL, OPT_NO_SANDBOX},
	{0},
};

static int
parse_aead(struct options *o, const char *command, const char *text)
{
	static const struct {
		const char *name;
		enum aead_backend value;
	} names[] = {{"auto", AEAD_BACKEND_AUTO}, {"libcrypto", AEAD_BACKEND_LIBCRYPTO},
		{"ipsec-mb", AEAD_BACKEND_IPSEC_MB}};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
		if (strcmp(text, names[i].name) == 0) {
			o->serve.has_aead = true;
			o->serve.aead = names[i].value;
			return CLI_OK;
		}
	}
	return cli_misuse(command, "--aead %s: auto, libcrypto or ipsec-mb is wanted", text);
}

static int
parse_workers(struct options *o, const char *command, const char *text)
{
	if (strcmp(text, "auto") == 0) {
		o->serve.workers = 0;
		return CLI_OK;
	}
	char *end;
	unsigned long v = strtoul(text, &end, 10);
	if (!*text || *end || v < 1 || v > 16) {
		return cli_misuse(
			command, "--workers %s: auto or a number from 1 to 16 is wanted", text);
	}
	o->serve.workers = (unsigned)v;
	return CLI_OK;
}

static int
parse_log(struct options *o, const char *command, const char *text)
{
	static const char *const names[] = {"error", "warn", "info", "debug"};
	for (unsigned i = 0; i < WEFT_ARRAY_LEN(names); i++) {
		if (strcmp(text, names[i]) == 0) {
			o->serve.log_level = (enum log_level)i;
			return CLI_OK;
		}
	}
	return cli_misuse(command, "--log %s: error, warn, info or debug is wanted", text);
}

/* "[ADDRESS:]PORT" */
static int
parse_metrics(struct options *o, const char *command, const char *text)
{
	char whole[ENDPOINT_TEXT_MAX];
	snprintf(whole, sizeof(whole), "%s%s", strchr(text, ':') ? "" : "127.0.0.1:", text);
	if (endpoint_parse(whole, strlen(whole), &o->serve.metrics) || !o->serve.metrics.port) {
		return cli_misuse(command,
			"--metrics %s: [ADDRESS:]PORT is wanted, such as 127.0.0.1:%d", text,
			CTL_HTTP_PORT);
	}
	return CLI_OK;
}

/* Metrics tell who speaks with whom, and how much, to whoever asks. */
static int
check_metrics(const struct options *o, const char *command)
{
	bool has = o->serve.metrics.port != 0;
	if (o->is_metrics_open && !has) {
		return cli_misuse(command, "--metrics-open wants --metrics");
	}
	if (has && !o->is_metrics_open && !ip_addr_is_loopback(&o->serve.metrics.addr)) {
		return cli_misuse(command,
			"--metrics there is for everybody who reaches that address, without a "
			"password: say --metrics-open, too, if that is meant");
	}
	return CLI_OK;
}

int
options_parse(struct options *o, const char *command, const char *help, int argc, char **argv,
	bool *is_done)
{
	*o = (struct options){0};
	o->serve.log_level = LOG_LEVEL_INFO;
	*is_done = true;
	optind = 0;
	opterr = 0;
	int c;
	while ((c = getopt_long(argc, argv, ":f", longs, NULL)) != -1) {
		int rc = CLI_OK;
		switch (c) {
		case OPT_HELP:
			fputs(help, stdout);
			return CLI_OK;
		case 'f':
		case OPT_FOREGROUND:
			o->serve.is_foreground = true;
			break;
		case OPT_AEAD:
			rc = parse_aead(o, command, optarg);
			break;
		case OPT_WORKERS:
			rc = parse_workers(o, command, optarg);
			break;
		case OPT_LOG:
			rc = parse_log(o, command, optarg);
			break;
		case OPT_METRICS:
			rc = parse_metrics(o, command, optarg);
			break;
		case OPT_METRICS_OPEN:
			o->is_metrics_open = true;
			break;
		case OPT_USER:
			o->serve.user = optarg;
			break;
		case OPT_NO_SANDBOX:
			o->serve.has_no_sandbox = true;
			break;
		case ':':
			return cli_misuse(command, "%s wants a value", argv[optind - 1]);
		default:
			return cli_misuse(command, "%s is not an option of it", argv[optind - 1]);
		}
		if (rc) {
			return rc;
		}
	}
	if (optind + 1 != argc) {
		return cli_misuse(command,
			optind == argc ? "a FILE or a NAME is wanted" : "one device at a time");
	}
	o->what = argv[optind];
	int rc = check_metrics(o, command);
	*is_done = rc != CLI_OK;
	return rc;
}

static bool
ends_in_conf(const char *s)
{
	size_t n = strlen(s), k = strlen(CONF_SUFFIX);
	return n > k && strcmp(s + n - k, CONF_SUFFIX) == 0;
}

bool
options_name_of(const char *what, char out[OPTIONS_NAME_MAX])
{
	const char *base = strrchr(what, '/');
	base = base ? base + 1 : what;
	size_t n = strlen(base);
	if (ends_in_conf(base)) {
		n -= strlen(CONF_SUFFIX);
	}
	if (n >= OPTIONS_NAME_MAX || !conf_name_is_valid(base, n)) {
		return false;
	}
	memcpy(out, base, n);
	out[n] = 0;
	return true;
}

bool
options_is_path(const char *what)
{
	return strchr(what, '/') || ends_in_conf(what);
}

bool
options_look(const char *what, char path[OPTIONS_PATH_MAX])
{
	if (options_is_path(what)) {
		snprintf(path, OPTIONS_PATH_MAX, "%s", what);
		return true;
	}
	for (size_t i = 0; i < WEFT_ARRAY_LEN(folders); i++) {
		snprintf(path, OPTIONS_PATH_MAX, "%s/%s%s", folders[i], what, CONF_SUFFIX);
		if (os_file_exists(path)) {
			return true;
		}
	}
	path[0] = 0;
	return false;
}

int
options_find(const char *what, char path[OPTIONS_PATH_MAX])
{
	if (options_look(what, path)) {
		return CLI_OK;
	}
	return cli_fail("there is no %s%s in %s or %s%s", what, CONF_SUFFIX, folders[0], folders[1],
		os_process_is_root() ? "" : " that you may see; try as root");
}

static void
print_notes(const struct conf_report *report, const char *path)
{
	char line[CONF_NOTE_LINE_MAX];
	for (size_t i = 0; i < report->n; i++) {
		fprintf(stderr, "%s\n",
			conf_note_format(&report->notes[i], path, line, sizeof(line)));
	}
	if (report->n < report->errors + report->warnings) {
		fprintf(stderr, "%s: and %zu more\n", path,
			report->errors + report->warnings - report->n);
	}
}

int
options_read(const char *path, struct conf **out)
{
	char *text;
	size_t len;
	int rc = options_read_text(path, out, &text, &len);
	if (!rc) {
		conf_text_free(text, len);
	}
	return rc;
}

int
options_read_text(const char *path, struct conf **out, char **text, size_t *len)
{
	struct conf_report *report = calloc(1, sizeof(*report));
	if (!report) {
		return cli_fail("%s", weft_err_text(WEFT_ENOMEM));
	}
	int rc = CLI_OK;
	enum weft_err e = conffile_read_text(path, out, report, text, len);
	if (os_file_is_world_readable(path)) {
		fprintf(stderr,
			"%s: warning: everybody may read it, and it holds keys: chmod 600 %s\n",
			path, path);
	}
	print_notes(report, path);
	if (e) {
		rc = CLI_FAILED;
		if (report->n == 0) {
			cli_fail("cannot read %s: %s", path, weft_err_text(e));
		}
	}
	free(report);
	return rc;
}

int
options_load(struct options *o, const char *command, bool is_needed)
{
	if (!options_name_of(o->what, o->name)) {
		return cli_misuse(command,
			"%s gives no interface name: 1 to 15 letters, digits and _ = + . - are "
			"possible",
			o->what);
	}
	o->serve.name = o->name;
	if (!is_needed && !options_is_path(o->what)) {
		return CLI_OK;
	}
	int rc = options_find(o->what, o->path);
	if (!rc) {
		rc = options_read(o->path, &o->serve.conf);
	}
	if (rc) {
		return rc;
	}
	o->serve.path = o->path;
	return CLI_OK;
}

void
options_fini(struct options *o)
{
	conf_free(o->serve.conf);
	o->serve.conf = NULL;
}
