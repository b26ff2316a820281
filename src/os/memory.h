/* SPDX-License-Identifier: Apache-2.0 */
/* What of this process is resident. */
#ifndef WEFT_OS_MEMORY_H
#define WEFT_OS_MEMORY_H

/* Lets go of what only the start needed: free heap, and pages of program and libraries that were
 * touched once (relocation, self-tests, set-up). Those that are needed come back from the page
 * cache at their next use. Any thread; others may run meanwhile. Does nothing without /proc. */
void os_memory_trim(void);

#endif
