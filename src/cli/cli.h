/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of the one executable, and what they share. A command takes its own argv (its
 * name first) and returns the exit status: 0, 1 for a failure that it has reported, 2 for
 * wrong usage. */
#ifndef WEFT_CLI_CLI_H
#define WEFT_CLI_CLI_H

#include "base/compiler.h"

#define CLI_OK 0
#define CLI_FAILED 1
#define CLI_USAGE 2

int up_main(int argc, char **argv);
int down_main(int argc, char **argv);
int check_main(int argc, char **argv);
int fmt_main(int argc, char **argv);
int reload_main(int argc, char **argv);
int save_main(int argc, char **argv);
int run_main(int argc, char **argv);
int exec_main(int argc, char **argv);
int proxy_main(int argc, char **argv);
int show_main(int argc, char **argv);
int status_main(int argc, char **argv);
int events_main(int argc, char **argv);
int why_main(int argc, char **argv);
int set_main(int argc, char **argv);
int genkey_main(int argc, char **argv);
int genpsk_main(int argc, char **argv);
int pubkey_main(int argc, char **argv);
int forward_main(int argc, char **argv);
int nc_main(int argc, char **argv);
int emulate_main(int argc, char **argv);
int bench_main(int argc, char **argv);

/* "weft: text" on standard error; returns CLI_FAILED. */
WEFT_PRINTF(1, 2) int cli_fail(const char *fmt, ...);
/* "weft: text", and where help is found; returns CLI_USAGE. */
WEFT_PRINTF(2, 3) int cli_misuse(const char *command, const char *fmt, ...);

#endif
