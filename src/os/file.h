/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files. */
#ifndef WEFT_OS_FILE_H
#define WEFT_OS_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Reads all of it into new memory, with a NUL behind that *len does not count; the caller
 * frees. WEFT_EMSGSIZE when it is longer than max bytes. */
WEFT_MUST_CHECK enum weft_err os_file_read(const char *path, size_t max, char **out, size_t *len);
/* All or nothing: a temporary file in the same folder, synced, renamed over path. */
WEFT_MUST_CHECK enum weft_err os_file_write(
	const char *path, const void *data, size_t len, unsigned mode);
/* The same without waiting for the disk: survives the end of the process, not yet that of the
 * machine. */
WEFT_MUST_CHECK enum weft_err os_file_write_unsynced(
	const char *path, const void *data, size_t len, unsigned mode);
/* A file of one short record that is written over and over, by whoever has it open. It is made
 * where it is missing. */
WEFT_MUST_CHECK enum weft_err os_file_open_record(const char *path, unsigned mode, int *fd);
/* *len is 0 where nothing was written yet. */
WEFT_MUST_CHECK enum weft_err os_file_read_record(int fd, void *out, size_t cap, size_t *len);
/* Survives the end of the process, not yet that of the machine: os_file_sync_record(). */
WEFT_MUST_CHECK enum weft_err os_file_write_record(int fd, const void *data, size_t len);
WEFT_MUST_CHECK enum weft_err os_file_sync_record(int fd);
/* Makes the folder and its parents; existing ones are left as they are. */
WEFT_MUST_CHECK enum weft_err os_file_mkdir(const char *path, unsigned mode);
/* path with the working folder before it, unless it begins with '/'. WEFT_EMSGSIZE. */
WEFT_MUST_CHECK enum weft_err os_file_absolute(const char *path, char *out, size_t cap);
/* The path without symbolic links. */
WEFT_MUST_CHECK enum weft_err os_file_real(const char *path, char *out, size_t cap);
/* As os_file_write(), with the owner and permissions of the file that stands there; 0600 and ours
 * where there is none. */
WEFT_MUST_CHECK enum weft_err os_file_rewrite(const char *path, const void *data, size_t len);
/* Removes what writes to path, whose processes were killed, have left beside it; true: there was
 * something. Nobody may be writing it. */
bool os_file_sweep(const char *path);
bool os_file_exists(const char *path);
/* As os_file_write(); where a file stands that cannot be replaced, since it is a mount of its own,
 * its content is. */
WEFT_MUST_CHECK enum weft_err os_file_write_over(
	const char *path, const void *data, size_t len, unsigned mode);
/* A second name for a file, or for a symbolic link itself; of one that is a mount of its own, a
 * copy of its content. WEFT_EEXIST. */
WEFT_MUST_CHECK enum weft_err os_file_link(const char *path, const char *name);
/* Two names of one file, or of one symbolic link? */
bool os_file_is_same(const char *a, const char *b);
/* from takes the place of to, in which from may be only a copy, as of os_file_link(). */
WEFT_MUST_CHECK enum weft_err os_file_move(const char *from, const char *to);
/* May others than its owner and group read it? */
bool os_file_is_world_readable(const char *path);
WEFT_MUST_CHECK enum weft_err os_file_remove(const char *path);
/* Calls each with the name of every entry of the folder, "." and ".." excepted. */
WEFT_MUST_CHECK enum weft_err os_file_list(
	const char *folder, void (*each)(void *ctx, const char *name), void *ctx);

/* An exclusive lock that ends with the process. The file stays; its content is the holder's
 * pid. WEFT_EEXIST when another process holds it. */
WEFT_MUST_CHECK enum weft_err os_file_lock(const char *path, unsigned mode, int *fd);

/* Removes the file of a lock that is held, and lets go of it. */
void os_file_unlock(const char *path, int *fd);

/* key: "net/ipv4/conf/all/src_valid_mark". */
WEFT_MUST_CHECK enum weft_err os_sysctl_write(const char *key, const char *value);
WEFT_MUST_CHECK enum weft_err os_sysctl_read(const char *key, char *out, size_t cap);

#endif
