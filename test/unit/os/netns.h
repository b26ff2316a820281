/* SPDX-License-Identifier: Apache-2.0 */
/* Private network namespaces for unit tests that make devices. Needs root; without it the test
 * fails and says so. Nothing outlives the test program: a namespace ends with its last user. */
#ifndef WEFT_TEST_UNIT_OS_NETNS_H
#define WEFT_TEST_UNIT_OS_NETNS_H

#include "base/compiler.h"

/* Moves the calling thread into a new namespace with the loopback up. */
void netns_fresh(void);
/* The thread's namespace, to come back to by netns_enter(). */
int netns_here(void);
void netns_enter(int fd);
/* Runs a command line in the thread's namespace and requires success. */
WEFT_PRINTF(1, 2) void netns_run(const char *fmt, ...);
/* Runs it again and again until it succeeds; at most 5 s. */
WEFT_PRINTF(1, 2) void netns_wait(const char *fmt, ...);
/* Standard output of a command line that must succeed; the caller frees it. */
WEFT_PRINTF(1, 2) char *netns_output(const char *fmt, ...);

#endif
