/* SPDX-License-Identifier: Apache-2.0 */
/* weft status: the state of a device with all its counters. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/device.h"
#include "ctl/client.h"
#include "ctl/path.h"
#include "pkt/drop.h"

static const char help[] =
	"Usage: weft status [--json] [NAME]\n"
	"Shows the state of NAME, or of every running device: interface, traffic, peers, and what\n"
	"was dropped and why.\n\n"
	"  --json  as JSON, every counter included (docs/control.md); an array without NAME\n";

static const char *
text_of(const json_t *o, const char *name, const char *otherwise)
{
	const char *s = json_string_value(json_object_get(o, name));
	return s ? s : otherwise;
}

static int64_t
count_of(const json_t *o, const char *name)
{
	return json_integer_value(json_object_get(o, name));
}

static int64_t
seconds_of(const json_t *o, const char *name)
{
	return (int64_t)json_number_value(json_object_get(o, name));
}

static void
print_offload(const json_t *device)
{
	static const char *const names[] = {"tso", "uso", "udp_gso", "udp_gro"};
	const json_t *o = json_object_get(device, "offload");
	const char *separator = "";
	printf("  offload     ");
	for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
		if (json_is_true(json_object_get(o, names[i]))) {
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
		cli_bytes_text((uint64_t)count_of(o, "rx_bytes"), rx), count_of(o, rx_name), unit,
		cli_bytes_text((uint64_t)count_of(o, "tx_bytes"), tx), count_of(o, tx_name));
}

static void
print_device(const json_t *status)
{
	const json_t *d = json_object_get(status, "device");
	char uptime[CLI_TIME_TEXT_MAX];
	printf("%s: %s, up for %s\n", text_of(d, "name", "?"),
		json_is_true(json_object_get(d, "is_up")) ? "running" : "interface is down",
		cli_time_text(seconds_of(d, "uptime_s"), 2, uptime));
	printf("  public key  %s\n", text_of(d, "public_key", "(none)"));
	printf("  port        %" PRId64, count_of(d, "listen_port"));
	if (count_of(d, "fwmark")) {
		printf(", fwmark 0x%" PRIx64, (uint64_t)count_of(d, "fwmark"));
	}
	printf("\n  packets     %" PRId64 " worker%s, %s, MTU %" PRId64 "\n",
		count_of(d, "workers"), count_of(d, "workers") == 1 ? "" : "s",
		text_of(d, "aead", "?"), count_of(d, "mtu"));
	print_offload(d);
	print_traffic("interface", json_object_get(status, "port"), "frames");
	print_traffic("socket", json_object_get(status, "link"), "datagrams");
}

static void
print_peer(const json_t *p)
{
	char age[CLI_TIME_TEXT_MAX] = "never", rx[CLI_BYTES_TEXT_MAX], tx[CLI_BYTES_TEXT_MAX];
	const json_t *allowed = json_object_get(p, "allowed_ips");
	if (!json_is_null(json_object_get(p, "handshake_age_s"))) {
		cli_time_text(seconds_of(p, "handshake_age_s"), 2, age);
		strcat(age, " ago");
	}
	printf("\n  peer        %s\n", text_of(p, "public_key", "?"));
	printf("    endpoint   %s\n", text_of(p, "endpoint", "(none)"));
	printf("    allowed    ");
	for (size_t i = 0; i < json_array_size(allowed); i++) {
		printf("%s%s", i > 0 ? ", " : "", json_string_value(json_array_get(allowed, i)));
	}
	puts(json_array_size(allowed) > 0 ? "" : "(none)");
	printf("    handshake  %s, %" PRId64 " completed, %" PRId64 " sent\n", age,
		count_of(p, "handshakes"), count_of(p, "handshake_tries"));
	printf("    traffic    in %s, out %s\n",
		cli_bytes_text((uint64_t)count_of(p, "rx_bytes"), rx),
		cli_bytes_text((uint64_t)count_of(p, "tx_bytes"), tx));
	if (count_of(p, "stale_initiations")) {
		printf("    refused    %" PRId64
		       " initiations with an old timestamp: replayed, or its clock is behind\n",
			count_of(p, "stale_initiations"));
	}
	if (count_of(p, "staged_packets")) {
		printf("    waiting    %" PRId64 " packets for a handshake\n",
			count_of(p, "staged_packets"));
	}
}

static void
print_drops(const json_t *drops)
{
	bool is_first = true;
	for (unsigned i = 0; i < DROP_COUNT; i++) {
		const char *name = drop_name((enum drop_reason)i);
		if (count_of(drops, name) == 0) {
			continue;
		}
		fputs(is_first ? "\n  dropped\n" : "", stdout);
		is_first = false;
		printf("    %12" PRId64 "  %-16s  %s\n", count_of(drops, name), name,
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

static enum weft_err
ask(const char *name, json_t **out)
{
	char path[CTL_PATH_MAX];
	if (ctl_path_make(CTL_CONTROL_DIR, name, path)) {
		return WEFT_ENOENT;
	}
	json_t *o;
	enum weft_err e = ctl_client_op(path, "status", cli_device_deadline(), &o);
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

static int
status_one(const char *name, bool has_json)
{
	json_t *o;
	enum weft_err e = ask(name, &o);
	if (e) {
		return cli_device_fail(name, e);
	}
	int rc = CLI_OK;
	if (has_json) {
		rc = dump(o);
	} else {
		print_status(o);
	}
	json_decref(o);
	return rc;
}

static int
status_all(bool has_json)
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
		e = ask(devices.names[i], &o);
		/* A socket that nobody serves is what a killed device left. */
		if (e && e != WEFT_ENOENT) {
			rc = cli_device_fail(devices.names[i], e);
		}
		if (!e) {
			json_array_append_new(all, o);
		}
	}
	cli_devices_fini(&devices);
	if (has_json) {
		rc = dump(all) ? CLI_FAILED : rc;
	} else {
		for (size_t i = 0; i < json_array_size(all); i++) {
			fputs(i > 0 ? "\n" : "", stdout);
			print_status(json_array_get(all, i));
		}
		if (json_array_size(all) == 0 && rc == CLI_OK) {
			puts("no device is running");
		}
	}
	json_decref(all);
	return rc;
}

int
status_main(int argc, char **argv)
{
	const char *name = NULL;
	bool has_json = false;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			fputs(help, stdout);
			return CLI_OK;
		}
		if (strcmp(argv[i], "--json") == 0) {
			has_json = true;
		} else if (argv[i][0] == '-') {
			return cli_misuse("status", "%s is not an option of it", argv[i]);
		} else if (name) {
			return cli_misuse("status", "%s is an argument too many", argv[i]);
		} else {
			name = argv[i];
		}
	}
	return name ? status_one(name, has_json) : status_all(has_json);
}
