/* SPDX-License-Identifier: Apache-2.0 */
/* With a sanitizer by its own hook, otherwise by standing before the C library's functions. */
#include "allocations.h"

#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#endif

static size_t calls;

#if defined(HAS_SANITIZER)

int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void *, size_t),
	void (*free_hook)(const volatile void *));

static void
on_malloc(const volatile void *p, size_t n)
{
	(void)p;
	(void)n;
	calls++;
}

static void
on_free(const volatile void *p)
{
	(void)p;
	calls++;
}

bool
allocations_begin(void)
{
	return __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) > 0;
}

bool
allocations_refuse_aligned(bool is_on)
{
	(void)is_on;
	return false;
}

#elif defined(__GLIBC__)

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t k, size_t n);
void *__libc_realloc(void *p, size_t n);
void __libc_free(void *p);
void *__libc_memalign(size_t align, size_t n);

static bool is_refusing;

void *
aligned_alloc(size_t align, size_t n)
{
	calls++;
	return is_refusing ? NULL : __libc_memalign(align, n);
}

void *
malloc(size_t n)
{
	calls++;
	return __libc_malloc(n);
}

void *
calloc(size_t k, size_t n)
{
	calls++;
	return __libc_calloc(k, n);
}

void *
realloc(void *p, size_t n)
{
	calls++;
	return __libc_realloc(p, n);
}

void
free(void *p)
{
	calls++;
	__libc_free(p);
}

bool
allocations_begin(void)
{
	return true;
}

bool
allocations_refuse_aligned(bool is_on)
{
	is_refusing = is_on;
	return true;
}

#else

bool
allocations_begin(void)
{
	return false;
}

bool
allocations_refuse_aligned(bool is_on)
{
	(void)is_on;
	return false;
}

#endif

size_t
allocations_count(void)
{
	return calls;
}
