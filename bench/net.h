/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BENCH_NET_H
#define WEFT_BENCH_NET_H

#include <stdbool.h>

/* Is `weft bench NAME` one of the programs in net/? */
bool net_has(const char *name);
/* Becomes the Python program net/bench_NAME.py with those arguments. Returns only when that
 * fails, having said why: the exit status. */
int net_exec(const char *name, int argc, char **argv);

#endif
