/* SPDX-License-Identifier: Apache-2.0 */
/* What a holder keeps of the program's memory: nothing but what it stands on.
 *
 * Pages that both have are copied when the program writes to them, so a copy of everything would
 * in time cost as much as the program had. It would also keep the program's secrets.
 *
 * Given back are all private pages without a file behind them, but those around the stack in use
 * and the thread's own data. They read as zeros afterwards, so what the kernel still knows of them
 * (the list of robust locks, the area of restartable sequences) is empty and not a fault. The rest
 * of the holder reads none of them: it calls syscall() and the place of errno, both of which the
 * dynamic linker has found by then. Like it, this file calls nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/netns_msg.h"

#define KEEPS_MAX 4
/* Kept on both sides of an address: far more than the holder's stack and a thread's data take. A
 * multiple of every page size. */
#define KEEP_BYTES ((uintptr_t)(256u << 10))
#define LINE_BYTES 512 /* of a line; what follows is passed over */
#define CHUNK_BYTES 4096

#ifndef PR_GET_SHADOW_STACK_STATUS
#define PR_GET_SHADOW_STACK_STATUS 74
#endif
#ifndef ARCH_SHSTK_STATUS
#define ARCH_SHSTK_STATUS 0x5005
#endif

struct span {
	uintptr_t from, to;
};

/* A line of /proc/self/maps: "from-to perms offset device inode   name". */
struct region {
	struct span at;
	char perms[4];
	bool has_file;
	const char *name; /* "" = none */
};

struct maps {
	long fd;
	char chunk[CHUNK_BYTES];
	size_t at, len; /* in chunk */
	char line[LINE_BYTES];
};

static const char *
read_hex(const char *s, uintptr_t *out)
{
	*out = 0;
	for (;; s++) {
		unsigned c = (unsigned char)*s;
		unsigned digit = c >= '0' && c <= '9'   ? c - '0'
				 : c >= 'a' && c <= 'f' ? c - 'a' + 10
							: 16;
		if (digit == 16) {
			return s;
		}
		*out = *out << 4 | digit;
	}
}

static const char *
skip_field(const char *s)
{
	while (*s && *s != ' ') {
		s++;
	}
	while (*s == ' ') {
		s++;
	}
	return s;
}

static bool
parse(const char *s, struct region *r)
{
	s = read_hex(s, &r->at.from);
	if (*s++ != '-') {
		return false;
	}
	s = read_hex(s, &r->at.to);
	if (*s++ != ' ') {
		return false;
	}
	for (size_t i = 0; i < sizeof(r->perms); i++) {
		if (!*s) {
			return false;
		}
		r->perms[i] = *s++;
	}
	s = skip_field(skip_field(skip_field(s))); /* its end, offset, device */
	r->has_file = *s != '0';
	r->name = skip_field(s);
	return true;
}

static bool
contains(const char *s, const char *word)
{
	for (; *s; s++) {
		size_t i = 0;
		while (word[i] && s[i] == word[i]) {
			i++;
		}
		if (!word[i]) {
			return true;
		}
	}
	return false;
}

/* [vvar] and its kin are the kernel's. What runs from memory may be what runs us. */
static bool
is_programs(const struct region *r)
{
	return !r->has_file && r->perms[3] == 'p' && r->perms[2] != 'x' &&
	       !(r->name[0] == '[' && r->name[1] == 'v');
}

static void
give_back(struct span at, const struct span *keep, size_t keep_n)
{
	while (at.from < at.to) {
		struct span gap = {.from = at.to, .to = at.to};
		for (size_t i = 0; i < keep_n; i++) {
			if (keep[i].to > at.from && keep[i].from < gap.from) {
				gap = keep[i];
			}
		}
		if (gap.from > at.from) {
			/* Locked and other special pages refuse, and stay. */
			syscall(SYS_madvise, at.from, gap.from - at.from, MADV_DONTNEED);
		}
		at.from = gap.to;
	}
}

/* The next line, without its end; false: there is none. */
static bool
next_line(struct maps *m)
{
	size_t n = 0;
	for (;;) {
		if (m->at == m->len) {
			long got = syscall(SYS_read, m->fd, m->chunk, sizeof(m->chunk));
			if (got <= 0) {
				return false;
			}
			m->len = (size_t)got;
			m->at = 0;
		}
		char c = m->chunk[m->at++];
		if (c == '\n') {
			m->line[n] = 0;
			return true;
		}
		if (n + 1 < sizeof(m->line)) {
			m->line[n++] = c;
		}
	}
}

/* keep NULL: only looks. Returns whether the program runs natively. */
static bool
walk(const struct span *keep, size_t keep_n)
{
	struct maps m;
	bool is_native = true;
	m.at = m.len = 0;
	m.fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (m.fd < 0) {
		return false;
	}
	while (is_native && next_line(&m)) {
		struct region r;
		if (!parse(m.line, &r)) {
			continue;
		}
		/* It keeps its own data among the program's, and runs our code by them. */
		is_native = !contains(r.name, "valgrind");
		if (keep && is_programs(&r)) {
			give_back(r.at, keep, keep_n);
		}
	}
	syscall(SYS_close, m.fd);
	return is_native;
}

/* A second stack with return addresses, which is not around ours. */
static bool
has_shadow_stack(void)
{
	unsigned long on = 0;
#if defined(__x86_64__) && defined(SYS_arch_prctl)
	return syscall(SYS_arch_prctl, ARCH_SHSTK_STATUS, &on) == 0 && on;
#else
	return syscall(SYS_prctl, PR_GET_SHADOW_STACK_STATUS, &on, 0, 0, 0) == 0 && on;
#endif
}

static struct span
around(const void *p)
{
	uintptr_t at = (uintptr_t)p / KEEP_BYTES * KEEP_BYTES;
	return (struct span){.from = at > KEEP_BYTES ? at - KEEP_BYTES : 0,
		.to = at < UINTPTR_MAX - 2 * KEEP_BYTES ? at + 2 * KEEP_BYTES : UINTPTR_MAX};
}

void
os_netns_give_back(const struct os_netns_start *s)
{
	const struct span keep[KEEPS_MAX] = {
		around(s), around(&keep), around(&errno), around(s->thread)};
	/* A sanitizer's shadow memory is none of the program's. */
	if (!WEFT_HAS_SHADOW_MEMORY && !has_shadow_stack() && walk(NULL, 0)) {
		(void)walk(keep, KEEPS_MAX);
	}
}
