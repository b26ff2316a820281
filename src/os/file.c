/* SPDX-License-Identifier: Apache-2.0 */
#include "os/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/error.h"
#include "os/fd.h"

/* Reads to the end, growing the buffer: files in /proc tell no length. */
static enum weft_err
read_to_end(int fd, size_t max, char **out, size_t *len)
{
	size_t cap = 4096, used = 0;
	char *buf = malloc(cap);
	enum weft_err err = buf ? WEFT_OK : WEFT_ENOMEM;
	while (!err) {
		if (cap - used < 2) {
			char *grown = malloc(cap * 2);
			if (!grown) {
				err = WEFT_ENOMEM;
				break;
			}
			memcpy(grown, buf, used);
			explicit_bzero(buf, used); /* realloc() would leave keys behind */
			free(buf);
			buf = grown;
			cap *= 2;
		}
		size_t n;
		err = os_fd_read(fd, buf + used, cap - used - 1, &n);
		if (!err) {
			used += n;
			err = used > max ? WEFT_EMSGSIZE : WEFT_OK;
		}
	}
	if (err != WEFT_ECLOSED) {
		if (buf) {
			explicit_bzero(buf, used);
		}
		free(buf);
		return err;
	}
	buf[used] = 0;
	*out = buf;
	*len = used;
	return WEFT_OK;
}

enum weft_err
os_file_read(const char *path, size_t max, char **out, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0) {
		return os_error(errno);
	}
	struct stat st;
	enum weft_err err;
	if (fstat(fd, &st)) {
		err = os_error(errno);
	} else if (S_ISDIR(st.st_mode)) {
		err = WEFT_EISDIR;
	} else {
		err = read_to_end(fd, max, out, len);
	}
	os_fd_close(&fd);
	return err;
}

static void
folder_of(const char *path, char *out, size_t cap)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;
	snprintf(out, cap, "%.*s", (int)(n ? n : 1), slash ? (n ? path : "/") : ".");
}

/* The name must outlive a power cut too. */
static void
sync_folder_of(const char *path)
{
	char folder[PATH_MAX];
	folder_of(path, folder, sizeof(folder));
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		(void)fsync(fd); /* some file systems cannot; the content is safe already */
		os_fd_close(&fd);
	}
}

/* Of names that hold content until it is whole: PATH.weft-XXXXXX. */
#define TEMP_MARK ".weft-"
#define TEMP_LETTERS 6

static enum weft_err
write_file(const char *path, const void *data, size_t len, unsigned mode, const struct stat *was,
	bool is_synced)
{
	char temp[PATH_MAX];
	int n = snprintf(temp, sizeof(temp), "%s" TEMP_MARK "XXXXXX", path);
	if (n < 0 || (size_t)n >= sizeof(temp)) {
		return WEFT_EMSGSIZE;
	}
	int fd = mkostemp(temp, O_CLOEXEC); /* mode 0600 until fchmod() */
	if (fd < 0) {
		return os_error(errno);
	}
	enum weft_err err = os_fd_write_all(fd, data, len, MONO_NEVER);
	if (err) {
		goto undo_temp;
	}
	if (was && fchown(fd, was->st_uid, was->st_gid)) {
		mode &= 0700; /* what another group might do, ours must not */
	}
	if (fchmod(fd, (mode_t)mode) || (is_synced && fsync(fd)) || rename(temp, path)) {
		err = os_error(errno);
		goto undo_temp;
	}
	os_fd_close(&fd);
	if (is_synced) {
		sync_folder_of(path);
	}
	return WEFT_OK;
undo_temp:
	os_fd_close(&fd);
	(void)unlink(temp);
	return err;
}

enum weft_err
os_file_write(const char *path, const void *data, size_t len, unsigned mode)
{
	return write_file(path, data, len, mode, NULL, true);
}

enum weft_err
os_file_rewrite(const char *path, const void *data, size_t len)
{
	struct stat was;
	return stat(path, &was) ? write_file(path, data, len, 0600, NULL, true)
				: write_file(path, data, len, was.st_mode & 0777, &was, true);
}

enum weft_err
os_file_write_unsynced(const char *path, const void *data, size_t len, unsigned mode)
{
	return write_file(path, data, len, mode, NULL, false);
}

#define COPY_MAX (16u << 20)

/* The new content with empty lines over the end of the old one, in one call, then cut: at no time
 * is there half a file. */
static enum weft_err
write_in_place(const char *path, const void *data, size_t len)
{
	struct stat st;
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0) {
		return os_error(errno);
	}
	size_t old = fstat(fd, &st) == 0 && st.st_size <= COPY_MAX ? (size_t)st.st_size : 0;
	size_t padded = old > len ? old : len;
	char *text = malloc(padded + 1);
	enum weft_err err = text ? WEFT_OK : WEFT_ENOMEM;
	if (!err) {
		memcpy(text, data, len);
		memset(text + len, '\n', padded - len);
		err = os_fd_write_all(fd, text, padded, MONO_NEVER);
	}
	if (!err && (ftruncate(fd, (off_t)len) || fsync(fd))) {
		err = os_error(errno);
	}
	free(text);
	os_fd_close(&fd);
	return err;
}

/* Nothing can be renamed over it then. Linux 5.8. */
static bool
is_mount(const char *path)
{
	struct statx st;
	return statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &st) == 0 &&
	       S_ISREG(st.stx_mode) && (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

enum weft_err
os_file_write_over(const char *path, const void *data, size_t len, unsigned mode)
{
	/* Anything else must not be cut before it is known that the new content fits. */
	return is_mount(path) ? write_in_place(path, data, len)
			      : os_file_write(path, data, len, mode);
}

enum weft_err
os_file_link(const char *path, const char *name)
{
	if (linkat(AT_FDCWD, path, AT_FDCWD, name, 0) == 0) {
		return WEFT_OK;
	}
	int errnum = errno;
	if (errnum == EEXIST || !is_mount(path)) {
		return os_error(errnum);
	}
	char *text;
	size_t len;
	enum weft_err err = os_file_read(path, COPY_MAX, &text, &len);
	if (!err) {
		err = os_file_write(name, text, len, 0644);
		free(text);
	}
	return err;
}

bool
os_file_is_same(const char *a, const char *b)
{
	struct stat x, y;
	return lstat(a, &x) == 0 && lstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

enum weft_err
os_file_move(const char *from, const char *to)
{
	if (rename(from, to) == 0) {
		sync_folder_of(to);
		return WEFT_OK;
	}
	int errnum = errno;
	if (!is_mount(to)) {
		return os_error(errnum);
	}
	char *text;
	size_t len;
	enum weft_err err = os_file_read(from, COPY_MAX, &text, &len);
	if (!err) {
		err = write_in_place(to, text, len);
		free(text);
	}
	if (!err && unlink(from)) {
		err = os_error(errno);
	}
	return err;
}

enum weft_err
os_file_open_record(const char *path, unsigned mode, int *fd)
{
	int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY;
	int f = open(path, flags);
	if (f < 0 && errno == ENOENT) {
		f = open(path, flags | O_CREAT, (mode_t)mode);
		if (f >= 0) {
			sync_folder_of(path);
		}
	}
	if (f < 0) {
		return os_error(errno);
	}
	*fd = f;
	return WEFT_OK;
}

enum weft_err
os_file_read_record(int fd, void *out, size_t cap, size_t *len)
{
	ssize_t n = pread(fd, out, cap, 0);
	if (n < 0) {
		return os_error(errno);
	}
	*len = (size_t)n;
	return WEFT_OK;
}

enum weft_err
os_file_write_record(int fd, const void *data, size_t len)
{
	ssize_t n = pwrite(fd, data, len, 0);
	if (n < 0) {
		return os_error(errno);
	}
	/* What was there before may have been longer. */
	return (size_t)n == len && ftruncate(fd, (off_t)len) == 0 ? WEFT_OK : WEFT_EIO;
}

enum weft_err
os_file_sync_record(int fd)
{
	return fsync(fd) ? os_error(errno) : WEFT_OK;
}

enum weft_err
os_file_mkdir(const char *path, unsigned mode)
{
	char part[PATH_MAX];
	size_t len = strlen(path);
	if (len == 0 || len >= sizeof(part)) {
		return WEFT_EINVAL;
	}
	memcpy(part, path, len + 1);
	for (size_t i = 1; i <= len; i++) {
		if (part[i] != '/' && part[i] != 0) {
			continue;
		}
		part[i] = 0;
		if (mkdir(part, (mode_t)mode) && errno != EEXIST) {
			return os_error(errno);
		}
		part[i] = path[i];
	}
	struct stat st;
	if (stat(path, &st)) {
		return os_error(errno);
	}
	return S_ISDIR(st.st_mode) ? WEFT_OK : WEFT_EEXIST;
}

enum weft_err
os_file_absolute(const char *path, char *out, size_t cap)
{
	size_t at = 0;
	if (path[0] != '/') {
		if (!getcwd(out, cap)) {
			return os_error(errno);
		}
		at = strlen(out);
		if (at + 1 < cap) {
			out[at++] = '/';
		}
	}
	int n = snprintf(out + at, cap - at, "%s", path);
	return n >= 0 && (size_t)n < cap - at ? WEFT_OK : WEFT_EMSGSIZE;
}

enum weft_err
os_file_real(const char *path, char *out, size_t cap)
{
	char *real = realpath(path, NULL);
	if (!real) {
		return os_error(errno);
	}
	int n = snprintf(out, cap, "%s", real);
	free(real);
	return n >= 0 && (size_t)n < cap ? WEFT_OK : WEFT_EMSGSIZE;
}

bool
os_file_exists(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0;
}

enum weft_err
os_file_remove(const char *path)
{
	if (unlink(path)) {
		return os_error(errno);
	}
	return WEFT_OK;
}

enum weft_err
os_file_list(const char *folder, void (*each)(void *ctx, const char *name), void *ctx)
{
	DIR *d = opendir(folder);
	if (!d) {
		return os_error(errno);
	}
	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
			each(ctx, e->d_name);
		}
	}
	closedir(d);
	return WEFT_OK;
}

struct sweep {
	const char *path, *base;
	bool is_done;
};

static void
sweep_one(void *ctx, const char *name)
{
	struct sweep *s = ctx;
	char path[PATH_MAX];
	size_t n = strlen(s->base), mark = strlen(TEMP_MARK);
	if (strncmp(name, s->base, n) != 0 || strncmp(name + n, TEMP_MARK, mark) != 0 ||
		strlen(name + n + mark) != TEMP_LETTERS) {
		return;
	}
	int len = snprintf(path, sizeof(path), "%s%s", s->path, name + n);
	if (len > 0 && (size_t)len < sizeof(path) && unlink(path) == 0) {
		s->is_done = true;
	}
}

bool
os_file_sweep(const char *path)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(path, '/');
	struct sweep s = {.path = path, .base = slash ? slash + 1 : path};
	folder_of(path, folder, sizeof(folder));
	enum weft_err e = s.base[0] ? os_file_list(folder, sweep_one, &s) : WEFT_OK;
	return !e && s.is_done;
}

/* Is the file that was opened still the one at path? Else its holder has just removed it. */
static bool
is_at(const char *path, int fd)
{
	struct stat here, there;
	return fstat(fd, &here) == 0 && lstat(path, &there) == 0 && here.st_dev == there.st_dev &&
	       here.st_ino == there.st_ino;
}

static enum weft_err
lock(int fd)
{
	char pid[16];
	int n = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		return errno == EWOULDBLOCK ? WEFT_EEXIST : os_error(errno);
	}
	if (ftruncate(fd, 0) || pwrite(fd, pid, (size_t)n, 0) != n) {
		return os_error(errno);
	}
	return WEFT_OK;
}

enum weft_err
os_file_lock(const char *path, unsigned mode, int *fd)
{
	for (;;) {
		int f = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, (mode_t)mode);
		if (f < 0) {
			return os_error(errno);
		}
		enum weft_err err = lock(f);
		if (!err && is_at(path, f)) {
			*fd = f;
			return WEFT_OK;
		}
		os_fd_close(&f);
		if (err) {
			return err;
		}
	}
}

void
os_file_unlock(const char *path, int *fd)
{
	(void)unlink(path);
	os_fd_close(fd);
}

static enum weft_err
sysctl_open(const char *key, int flags, int *fd)
{
	char path[256];
	int n = snprintf(path, sizeof(path), "/proc/sys/%s", key);
	if (n < 0 || (size_t)n >= sizeof(path)) {
		return WEFT_EINVAL;
	}
	int f = open(path, flags | O_CLOEXEC);
	if (f < 0) {
		return os_error(errno);
	}
	*fd = f;
	return WEFT_OK;
}

enum weft_err
os_sysctl_write(const char *key, const char *value)
{
	int fd;
	enum weft_err err = sysctl_open(key, O_WRONLY, &fd);
	if (err) {
		return err;
	}
	err = os_fd_write_all(fd, value, strlen(value), MONO_NEVER);
	os_fd_close(&fd);
	return err;
}

enum weft_err
os_sysctl_read(const char *key, char *out, size_t cap)
{
	int fd;
	enum weft_err err = sysctl_open(key, O_RDONLY, &fd);
	if (err) {
		return err;
	}
	size_t n;
	err = os_fd_read(fd, out, cap - 1, &n);
	os_fd_close(&fd);
	if (err) {
		return err;
	}
	while (n > 0 && out[n - 1] == '\n') {
		n--;
	}
	out[n] = 0;
	return WEFT_OK;
}

bool
os_file_is_world_readable(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & S_IROTH);
}
