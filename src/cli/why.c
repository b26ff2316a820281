/* SPDX-License-Identifier: Apache-2.0 */
/* weft why: says why traffic to a peer or an address does not flow. The device judges
 * (ctl/why.h); this side asks, sends the datagram whose errors tell more, and prints. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/device.h"
#include "cli/reply.h"
#include "ctl/client.h"
#include "ctl/path.h"
#include "os/probe.h"

#define LINE_COLUMNS 79
#define PROBE_WAIT_MS 300

static const char help[] =
	"Usage: weft why [--json] [--expect PEER] [--no-probe] [NAME] PEER|ADDRESS\n"
	"Says in plain words why traffic to a peer or an address of the overlay does not flow,\n"
	"the most probable cause first, and what to do about it. PEER is a name from the file, a\n"
	"public key or its beginning. NAME is a running device; it may be left out when one has\n"
	"the peer or the address.\n\n"
	"  --json         as JSON, with the facts behind it (docs/control.md)\n"
	"  --expect PEER  with an address: the peer that it should belong to\n"
	"  --no-probe     do not send a datagram to the endpoint of a peer that does not answer,\n"
	"                 which shows whether its port is closed\n\n"
	"Exit status: 0 when traffic flows, 1 when something was found, 2 when it cannot be "
	"told.\n";

struct ask {
	const char *name; /* NULL: any device */
	const char *target;
	const char *expect; /* or NULL */
	bool is_json, has_probe;
};

/* --- printing --- */

/* Breaks at blanks. The first line begins at `first`, the others at `indent` columns. */
static void
print_wrapped(const char *text, size_t first, size_t indent)
{
	size_t column = first;
	for (bool is_first = true; *text; is_first = false) {
		size_t len = strcspn(text, " ");
		if (!is_first && column + 1 + len > LINE_COLUMNS) {
			printf("\n%*s", (int)indent, "");
			column = indent;
		} else if (!is_first) {
			putchar(' ');
			column++;
		}
		fwrite(text, 1, len, stdout);
		column += len;
		text += len + (text[len] == ' ');
	}
	putchar('\n');
}

static void
print_lines(const json_t *lines, const char *bullet, size_t indent)
{
	for (size_t i = 0; i < json_array_size(lines); i++) {
		printf("%*s%s", (int)indent, "", bullet);
		print_wrapped(json_string_value(json_array_get(lines, i)), indent + strlen(bullet),
			indent + strlen(bullet));
	}
}

static bool
is_note(const json_t *x)
{
	return strcmp(reply_text(x, "severity", ""), "note") == 0;
}

static void
print_finding(const json_t *x, size_t number)
{
	char head[16];
	int len = snprintf(head, sizeof(head), " %2zu. ", number);
	fputs(head, stdout);
	print_wrapped(reply_text(x, "text", ""), (size_t)len, (size_t)len);
	print_lines(json_object_get(x, "evidence"), "- ", (size_t)len);
	printf("%*sTo do: ", len, "");
	print_wrapped(reply_text(x, "advice", ""), (size_t)len + 7, (size_t)len);
}

static void
print_answer(const json_t *o)
{
	const json_t *findings = json_object_get(o, "findings");
	const char *device = reply_text(o, "device", "?");
	size_t faults = 0;
	while (faults < json_array_size(findings) && !is_note(json_array_get(findings, faults))) {
		faults++;
	}
	printf("%s: ", device);
	print_wrapped(reply_text(o, "summary", ""), strlen(device) + 2, 2);
	if (faults == 0) {
		print_lines(json_object_get(o, "evidence"), "- ", 2);
	}
	for (size_t i = 0; i < json_array_size(findings); i++) {
		fputs(i == faults ? i ? "\nAlso seen:\n" : "\nSeen:\n" : "\n", stdout);
		print_finding(json_array_get(findings, i), i + 1);
	}
}

static int
print_reply(const struct ask *a, const json_t *o)
{
	if (!a->is_json) {
		print_answer(o);
	} else if (json_dumpf(o, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15))) {
		return cli_fail("cannot write JSON");
	} else {
		putchar('\n');
	}
	return reply_is_true(o, "flows") ? CLI_OK : CLI_FAILED;
}

/* A device that does not run is the first cause of all. */
static int
tell_not_running(const struct ask *a, const char *name)
{
	char summary[128], text[128], advice[256];
	snprintf(summary, sizeof(summary), "Nothing flows to %s.", a->target);
	snprintf(text, sizeof(text), "%s is not running on this machine.",
		*name ? name : "A device of weft");
	snprintf(advice, sizeof(advice),
		"Start it with `weft up %s`; `weft show interfaces` lists those that run.",
		*name ? name : "NAME");
	json_t *o = json_pack("{s:s, s:b, s:s, s:[], s:[{s:s, s:s, s:s, s:s, s:[]}]}", "device",
		*name ? name : "weft", "flows", 0, "summary", summary, "evidence", "findings",
		"code", "not_running", "severity", "fault", "text", text, "advice", advice,
		"evidence");
	if (!o) {
		return cli_fail("%s", weft_err_text(WEFT_ENOMEM));
	}
	(void)print_reply(a, o);
	json_decref(o);
	return CLI_USAGE;
}

/* --- asking --- */

static enum weft_err
ask_device(const struct ask *a, const char *name, const int *probe, json_t **out)
{
	char path[CTL_PATH_MAX];
	if (ctl_path_make(CTL_CONTROL_DIR, name, path)) {
		return WEFT_ENOENT;
	}
	json_t *request = json_pack("{s:s, s:s}", "op", "why", "target", a->target);
	if (a->expect) {
		json_object_set_new(request, "expect", json_string(a->expect));
	}
	if (probe) {
		json_object_set_new(request, "probe", json_integer(*probe));
	}
	enum weft_err e = request ? ctl_client_request(path, request, cli_device_deadline(), out)
				  : WEFT_ENOMEM;
	json_decref(request);
	return e;
}

/* An answer that asks for a probe is replaced by one that knows of it. */
static void
probe(const struct ask *a, const char *name, json_t **answer)
{
	const json_t *wanted = json_object_get(*answer, "probe");
	const char *at = reply_text(wanted, "endpoint", "");
	struct endpoint to;
	json_t *better;
	int errnum;
	if (!a->has_probe || !reply_is_true(wanted, "is_wanted") ||
		endpoint_parse(at, strlen(at), &to) ||
		os_probe_udp(
			&to, (uint32_t)reply_count(wanted, "fwmark"), PROBE_WAIT_MS, &errnum) ||
		ask_device(a, name, &errnum, &better)) {
		return;
	}
	json_decref(*answer);
	*answer = better;
}

static int
why_of(const struct ask *a, const char *name)
{
	json_t *o;
	enum weft_err e = ask_device(a, name, NULL, &o);
	if (e == WEFT_ENOENT) {
		return tell_not_running(a, name);
	}
	if (e) {
		(void)cli_device_fail(name, e);
		return CLI_USAGE;
	}
	probe(a, name, &o);
	const json_t *error = json_object_get(o, "error");
	int rc = CLI_USAGE;
	if (error) {
		(void)cli_fail("%s: %s", name, reply_text(error, "text", "it gave no answer"));
	} else {
		rc = print_reply(a, o);
	}
	json_decref(o);
	return rc;
}

/* Does the device know the peer, or who has the address? */
static bool
knows(const struct ask *a, const char *name, bool *is_running)
{
	json_t *o;
	enum weft_err e = ask_device(a, name, NULL, &o);
	*is_running = e != WEFT_ENOENT;
	if (e) {
		return false;
	}
	bool has = reply_has(json_object_get(o, "target"), "public_key");
	json_decref(o);
	return has;
}

static int
why_of_any(const struct ask *a)
{
	struct cli_devices d;
	char running[CLI_DEVICE_NAME_MAX] = "", known[CLI_DEVICE_NAME_MAX] = "";
	size_t running_n = 0, known_n = 0;
	enum weft_err e = cli_devices_find(CTL_CONTROL_DIR, &d);
	if (e) {
		(void)cli_fail("%s: %s", CTL_CONTROL_DIR, weft_err_text(e));
		return CLI_USAGE;
	}
	for (size_t i = 0; i < d.n; i++) {
		bool is_running;
		if (knows(a, d.names[i], &is_running)) {
			known_n++;
			memcpy(known, d.names[i], sizeof(known));
		}
		if (is_running) {
			running_n++;
			memcpy(running, d.names[i], sizeof(running));
		}
	}
	cli_devices_fini(&d);
	if (known_n == 1 || running_n == 1) {
		return why_of(a, known_n == 1 ? known : running);
	}
	if (running_n == 0) {
		return tell_not_running(a, "");
	}
	return cli_misuse("why", "%zu devices run, and %s %s: name one", running_n,
		known_n ? "several know" : "none knows", a->target);
}

int
why_main(int argc, char **argv)
{
	struct ask a = {.has_probe = true};
	const char *words[2];
	int n = 0;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			fputs(help, stdout);
			return CLI_OK;
		}
		if (strcmp(argv[i], "--json") == 0) {
			a.is_json = true;
		} else if (strcmp(argv[i], "--no-probe") == 0) {
			a.has_probe = false;
		} else if (strcmp(argv[i], "--expect") == 0) {
			if (++i == argc) {
				return cli_misuse("why", "--expect wants a peer");
			}
			a.expect = argv[i];
		} else if (argv[i][0] == '-') {
			return cli_misuse("why", "%s is not an option of it", argv[i]);
		} else if (n == 2) {
			return cli_misuse("why", "%s is an argument too many", argv[i]);
		} else {
			words[n++] = argv[i];
		}
	}
	if (n == 0) {
		return cli_misuse("why", "a peer or an address is wanted");
	}
	a.name = n == 2 ? words[0] : NULL;
	a.target = words[n - 1];
	return a.name ? why_of(&a, a.name) : why_of_any(&a);
}
