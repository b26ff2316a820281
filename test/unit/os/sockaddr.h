/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses for the kernel's sockets. */
#ifndef WEFT_TEST_UNIT_OS_SOCKADDR_H
#define WEFT_TEST_UNIT_OS_SOCKADDR_H

#include <stdint.h>
#include <sys/socket.h>

/* An address of either family as text, and a port. Returns its length. */
socklen_t sockaddr_read(const char *text, uint16_t port, struct sockaddr_storage *out);

#endif
