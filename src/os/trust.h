/* SPDX-License-Identifier: Apache-2.0 */
/* Who can have written a file? */
#ifndef WEFT_OS_TRUST_H
#define WEFT_OS_TRUST_H

#include <stdbool.h>
#include <stddef.h>

/* True: none but root and the user that we run as can have put this file there or changed it: they
 * own it, every folder and every symbolic link on the way, and nobody else may write to those; a
 * sticky folder will do. path is absolute. at then has where it leads, free of links: that is to be
 * opened, since path looked up once more may lead elsewhere. Else at has the first that they do
 * not. */
bool os_trust_path(const char *path, char *at, size_t cap);

#endif
