/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BENCH_NET_H
#define WEFT_BENCH_NET_H

/* Becomes the Python program net/bench_net.py with those arguments. Returns only when that
 * fails, having said why: the exit status. */
int net_exec(int argc, char **argv);

#endif
