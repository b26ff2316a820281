/* SPDX-License-Identifier: Apache-2.0 */
/* weft status: the state of a device with all its counters. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/device.h"
#include "cli/recovery.h"
#include "cli/reply.h"
#include "cli/status.h"
#include "cli/watch.h"
#include "ctl/client.h"
#include "ctl/metrics.h"
#include "ctl/path.h"
#include "pkt/drop.h"

static const char help[] =
	"Usage: weft status [--json|--prometheus|--watch] [NAME]\n"
	"Shows the state of NAME, or of every running device: interface, traffic, peers, what was\n"
	"agreed with them, loss recovery, and what was dropped and why.\n\n"
	"  --json        as JSON, every counter included (docs/control.md); an array without NAME\n"
	"  --prometheus  the same numbers as metrics in Prometheus' text format\n"
	"  --watch       a live view, with rates and their last minute, drops and events; q or\n"
	"                Ctrl-C ends it. Where the output is no terminal, a line a peer each "
	"second\n\n"
	"\"residual\" is what stays lost after recovery, \"overhead\" bytes of repairs to bytes "
	"of\n"
	"packets, \"held\" how long packets waited on average to keep their order. Loss, residual\n"
	"and overhead of what is sent are those of the last thousands of packets, as the peer\n"
	"reports them; all else counts since recovery was agreed.\n";

enum form {
	FORM_TEXT,
	FORM_JSON,
	FORM_PROMETHEUS,
	FORM_WATCH,
};

static void
print_offload(const json_t *device)
{
	static const char *const names[] = {"tso", "uso", "udp_gso", "udp_gro"};
	const json_t *o = json_object_get(device, "offload");
	const char *separator = "";
	printf("  offload     ");
	for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
		if (reply_is_true(o, names[i])) {
			printf("%s%s", separator, names[i]);
			separator = ", ";
		}
	}
	puts(*separator ? "" : "off");
}

static void
print_traffic(const char *title, const json_t *o, const char *unit)
{
	char rx[CLI_BYTES_TEXT_MAX], tx[CLI_BYTES_TEXT_MAX], rx_name[32], tx_name[32];
	snprintf(rx_name, sizeof(rx_name), "rx_%s", unit);
	snprintf(tx_name, sizeof(tx_name), "tx_%s", unit);
	printf("  %-10s  in %s in %" PRId64 " %s, out %s in %" PRId64 "\n", title,
		cli_bytes_text((uint64_t)reply_count(o, "rx_bytes"), rx), reply_count(o, rx_name),
		unit, cli_bytes_text((uint64_t)reply_count(o, "tx_bytes"), tx),
		reply_count(o, tx_name));
}

static void
print_device(const json_t *status)
{
	const json_t *d = json_object_get(status, "device");
	char uptime[CLI_TIME_TEXT_MAX];
	printf("%s: %s, up for %s\n", reply_text(d, "name", "?"),
		reply_is_true(d, "is_up") ? "running" : "interface is down",
		cli_time_text(reply_count(d, "uptime_s"), 2, uptime));
	printf("  public key  %s\n", reply_text(d, "public_key", "(none)"));
	printf("  port        %" PRId64, reply_count(d, "listen_port"));
	if (reply_count(d, "fwmark")) {
		printf(", fwmark 0x%" PRIx64, (uint64_t)reply_count(d, "fwmark"));
	}
	printf("\n  packets     %" PRId64 " worker%s, %s, MTU %" PRId64 "\n",
		reply_count(d, "workers"), reply_count(d, "workers") == 1 ? "" : "s",
		reply_text(d, "aead", "?"), reply_count(d, "mtu"));
	print_offload(d);
	print_traffic("interface", json_object_get(status, "port"), "frames");
	print_traffic("socket", json_object_get(status, "link"), "datagrams");
}

static void
print_recovery(const json_t *p)
{
	char text[RECOVERY_TEXT_MAX];
	if (!reply_has(p, "extensions")) {
		return; /* an older device */
	}
	printf("    extensions %s\n", recovery_extensions(p, text));
	if (recovery_has_why(p)) {
		printf("    recovery   %s\n", recovery_why(p, text));
	}
	if (!recovery_is_running(p)) {
		return;
	}
	printf("    sent       %s\n", recovery_out(p, text));
	printf("    received   %s\n", recovery_in(p, text));
}

static void
print_peer(const json_t *p)
{
	char age[CLI_TIME_TEXT_MAX] = "never", rx[CLI_BYTES_TEXT_MAX], tx[CLI_BYTES_TEXT_MAX];
	const json_t *allowed = json_object_get(p, "allowed_ips");
	if (reply_has(p, "handshake_age_s")) {
		cli_time_text(reply_count(p, "handshake_age_s"), 2, age);
		strcat(age, " ago");
	}
	printf("\n  peer        %s\n", reply_text(p, "public_key", "?"));
	printf("    endpoint   %s\n", reply_text(p, "endpoint", "(none)"));
	printf("    allowed    ");
	for (size_t i = 0; i < json_array_size(allowed); i++) {
		printf("%s%s", i > 0 ? ", " : "", json_string_value(json_array_get(allowed, i)));
	}
	puts(json_array_size(allowed) > 0 ? "" : "(none)");
	printf("    handshake  %s, %" PRId64 " completed, %" PRId64 " sent\n", age,
		reply_count(p, "handshakes"), reply_count(p, "handshake_tries"));
	printf("    traffic    in %s, out %s\n",
		cli_bytes_text((uint64_t)reply_count(p, "rx_bytes"), rx),
		cli_bytes_text((uint64_t)reply_count(p, "tx_bytes"), tx));
	print_recovery(p);
	if (reply_count(p, "stale_initiations")) {
		printf("    refused    %" PRId64
		       " initiations with an old timestamp: replayed, or its clock is behind\n",
			reply_count(p, "stale_initiations"));
	}
	if (reply_count(p, "staged_packets")) {
		printf("    waiting    %" PRId64 " packets for a handshake\n",
			reply_count(p, "staged_packets"));
	}
}

static void
print_drops(const json_t *drops)
{
	bool is_first = true;
	for (unsigned i = 0; i < DROP_COUNT; i++) {
		const char *name = drop_name((enum drop_reason)i);
		if (reply_count(drops, name) == 0) {
			continue;
		}
		fputs(is_first ? "\n  dropped\n" : "", stdout);
		is_first = false;
		printf("    %12" PRId64 "  %-16s  %s\n", reply_count(drops, name), name,
			drop_text((enum drop_reason)i));
	}
	fputs(is_first ? "\n  nothing was dropped\n" : "", stdout);
}

static void
print_status(const json_t *status)
{
	const json_t *peers = json_object_get(status, "peers");
	print_device(status);
	for (size_t i = 0; i < json_array_size(peers); i++) {
		print_peer(json_array_get(peers, i));
	}
	print_drops(json_object_get(status, "drops"));
}

enum weft_err
status_ask(const char *name, struct mono deadline, json_t **out)
{
	char path[CTL_PATH_MAX];
	if (ctl_path_make(CTL_CONTROL_DIR, name, path)) {
		return WEFT_ENOENT;
	}
	json_t *o;
	enum weft_err e = ctl_client_op(path, "status", deadline, &o);
	if (e) {
		return e;
	}
	if (!json_is_object(json_object_get(o, "device"))) {
		json_decref(o);
		return WEFT_EIO;
	}
	*out = o;
	return WEFT_OK;
}

static int
dump(const json_t *o)
{
	int rc = json_dumpf(o, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
	putchar('\n');
	return rc ? cli_fail("cannot write JSON") : CLI_OK;
}

static void
put_stdout(void *ctx, const char *text, size_t len)
{
	(void)ctx;
	fwrite(text, 1, len, stdout);
}

static int
print_all(const json_t *all, enum form form)
{
	if (form == FORM_JSON) {
		return dump(all);
	}
	if (form == FORM_PROMETHEUS) {
		enum weft_err e = ctl_metrics_write(all, put_stdout, NULL);
		return e ? cli_fail("%s", weft_err_text(e)) : CLI_OK;
	}
	for (size_t i = 0; i < json_array_size(all); i++) {
		fputs(i > 0 ? "\n" : "", stdout);
		print_status(json_array_get(all, i));
	}
	return CLI_OK;
}

static int
status_one(const char *name, enum form form)
{
	json_t *o;
	enum weft_err e = status_ask(name, cli_device_deadline(), &o);
	if (e) {
		return cli_device_fail(name, e);
	}
	if (form == FORM_JSON) {
		int rc = dump(o);
		json_decref(o);
		return rc;
	}
	json_t *all = json_pack("[o]", o);
	if (!all) {
		return cli_fail("%s", weft_err_text(WEFT_ENOMEM));
	}
	int rc = print_all(all, form);
	json_decref(all);
	return rc;
}

static int
status_all(enum form form)
{
	struct cli_devices devices;
	json_t *all = json_array();
	int rc = CLI_OK;
	enum weft_err e = all ? cli_devices_find(CTL_CONTROL_DIR, &devices) : WEFT_ENOMEM;
	if (e) {
		json_decref(all);
		return cli_fail("%s: %s", CTL_CONTROL_DIR, weft_err_text(e));
	}
	for (size_t i = 0; i < devices.n; i++) {
		json_t *o;
		e = status_ask(devices.names[i], cli_device_deadline(), &o);
		/* A socket that nobody serves is what a killed device left. */
		if (e && e != WEFT_ENOENT) {
			rc = cli_device_fail(devices.names[i], e);
		}
		if (!e) {
			json_array_append_new(all, o);
		}
	}
	cli_devices_fini(&devices);
	rc = print_all(all, form) ? CLI_FAILED : rc;
	if (form == FORM_TEXT && json_array_size(all) == 0 && rc == CLI_OK) {
		puts("no device is running");
	}
	json_decref(all);
	return rc;
}

static bool
find_form(const char *text, enum form *out)
{
	static const char *const names[] = {NULL, "--json", "--prometheus", "--watch"};
	for (unsigned i = FORM_JSON; i <= FORM_WATCH; i++) {
		if (strcmp(text, names[i]) == 0) {
			*out = (enum form)i;
			return true;
		}
	}
	return false;
}

int
status_main(int argc, char **argv)
{
	const char *name = NULL, *option = NULL;
	enum form form = FORM_TEXT;
	for (int i = 1; i < argc; i++) {
		enum form asked;
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			fputs(help, stdout);
			return CLI_OK;
		}
		if (find_form(argv[i], &asked)) {
			if (option && asked != form) {
				return cli_misuse(
					"status", "%s and %s exclude each other", option, argv[i]);
			}
			option = argv[i];
			form = asked;
		} else if (argv[i][0] == '-') {
			return cli_misuse("status", "%s is not an option of it", argv[i]);
		} else if (name) {
			return cli_misuse("status", "%s is an argument too many", argv[i]);
		} else {
			name = argv[i];
		}
	}
	if (form == FORM_WATCH) {
		return watch_run(name);
	}
	return name ? status_one(name, form) : status_all(form);
}
