/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "cli/cli.h"
#include "crypto/crypto.h"
#include "weft_config.h"

static int version_main(int argc, char **argv);

static const struct {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *text;
} commands[] = {
	{"up", up_main, "bring up a device from a configuration file"},
	{"down", down_main, "take a device down"},
	{"reload", reload_main, "have a device read its configuration again"},
	{"run", run_main, "run a device, unconfigured or from a file, maybe in the foreground"},
	{"exec", exec_main, "run a command inside an overlay, without root"},
	{"proxy", proxy_main, "a SOCKS and HTTP proxy into an overlay, without root"},
	{"show", show_main, "show running devices as wg does"},
	{"status", status_main, "show running devices with all their counters"},
	{"events", events_main, "print what happens to running devices as it happens"},
	{"why", why_main, "say why traffic to a peer or an address does not flow"},
	{"set", set_main, "change loss recovery and cipher of running peers"},
	{"check", check_main, "say what is wrong with configuration files"},
	{"fmt", fmt_main, "write configuration files in canonical form"},
	{"save", save_main, "write what a running device has got into its file"},
	{"genkey", genkey_main, "make a private key"},
	{"genpsk", genpsk_main, "make a preshared key"},
	{"pubkey", pubkey_main, "compute the public key of a private key"},
	{"forward", forward_main, "carry ports between this machine and the overlay, without root"},
	{"nc", nc_main, "standard input and output to a connection in the overlay, without root"},
	{"emulate", emulate_main, "emulate a link with delay, loss, reordering and a rate"},
	{"bench", bench_main, "measure this machine, or compare tunnels on it"},
	{"version", version_main, "print the version"},
};

int
cli_fail(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	fputs("weft: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	return CLI_FAILED;
}

int
cli_misuse(const char *command, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	fprintf(stderr, "weft %s: ", command);
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, "; see `weft %s --help`\n", command);
	va_end(ap);
	return CLI_USAGE;
}

static int
version_main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--help") == 0) {
		puts("Usage: weft version\nPrints the version.");
		return CLI_OK;
	}
	if (argc > 1) {
		return cli_misuse("version", "%s is not an argument of it", argv[1]);
	}
	puts("weft " WEFT_VERSION);
	return CLI_OK;
}

/* wg-quick runs "$WG_QUICK_USERSPACE_IMPLEMENTATION NAME" where the kernel has no WireGuard.
 * Without that variable a mistyped command would become an interface. */
static bool
is_of_wg_quick(int argc)
{
	return argc == 2 && getenv("WG_QUICK_USERSPACE_IMPLEMENTATION") != NULL;
}

static void
print_help(FILE *f)
{
	fputs("Usage: weft COMMAND [ARGUMENTS]\n"
	      "An overlay network that speaks WireGuard.\n\n"
	      "Commands:\n",
		f);
	for (size_t i = 0; i < WEFT_ARRAY_LEN(commands); i++) {
		fprintf(f, "  %-9s %s\n", commands[i].name, commands[i].text);
	}
	fputs("\n`weft COMMAND --help` tells more of each.\n", f);
}

int
main(int argc, char **argv)
{
	crypto_process_init();
	if (argc < 2) {
		print_help(stderr);
		return CLI_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
		(strcmp(argv[1], "help") == 0 && argc == 2)) {
		print_help(stdout);
		return CLI_OK;
	}
	if (strcmp(argv[1], "--version") == 0) {
		return version_main(1, argv);
	}
	/* weft help COMMAND is weft COMMAND --help */
	char option[] = "--help", *help[] = {argv[0], argv[argc - 1], option, NULL};
	if (strcmp(argv[1], "help") == 0) {
		argv = help;
		argc = 3;
	}
	for (size_t i = 0; i < WEFT_ARRAY_LEN(commands); i++) {
		if (strcmp(argv[1], commands[i].name) == 0) {
			return commands[i].main(argc - 1, argv + 1);
		}
	}
	if (is_of_wg_quick(argc)) {
		return run_main(argc, argv);
	}
	fprintf(stderr, "weft: there is no command %s; see `weft --help`\n", argv[1]);
	return CLI_USAGE;
}
