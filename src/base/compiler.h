/* SPDX-License-Identifier: Apache-2.0 */
/* The only place where compiler extensions are spelled. */
#ifndef WEFT_BASE_COMPILER_H
#define WEFT_BASE_COMPILER_H

#define WEFT_MUST_CHECK __attribute__((warn_unused_result))
#define WEFT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define WEFT_ALIGNED(n) __attribute__((aligned(n)))
#define WEFT_PACKED __attribute__((packed))
#define WEFT_NORETURN __attribute__((noreturn))
#define WEFT_NOINLINE __attribute__((noinline))
#define WEFT_ALWAYS_INLINE inline __attribute__((always_inline))
#define WEFT_COLD __attribute__((cold))
#define WEFT_UNUSED __attribute__((unused))
#define WEFT_TYPEOF(x) __typeof__(x)
/* The loop that follows has a constant count of at most 32 and becomes straight code, so that an
 * array it walks can live in registers. */
#if defined(__clang__)
#define WEFT_UNROLL _Pragma("clang loop unroll(full)")
#else
#define WEFT_UNROLL _Pragma("GCC unroll 32")
#endif
/* clang's AddressSanitizer checks loads and stores under a mask byte by byte: a function that has
 * many takes minutes to compile. gcc leaves them alone. */
#if defined(__clang__)
#define WEFT_MASKED_UNCHECKED __attribute__((no_sanitize("address")))
#else
#define WEFT_MASKED_UNCHECKED
#endif
/* Built with a sanitizer that keeps notes of each byte of memory in another place. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WEFT_HAS_SHADOW_MEMORY 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
	__has_feature(memory_sanitizer)
#define WEFT_HAS_SHADOW_MEMORY 1
#endif
#endif
#ifndef WEFT_HAS_SHADOW_MEMORY
#define WEFT_HAS_SHADOW_MEMORY 0
#endif
#define WEFT_TARGET(isa) __attribute__((target(isa)))
/* For functions with a twin under WEFT_TARGET_POPCNT, chosen at run time. */
#if defined(__x86_64__)
#define WEFT_TARGET_POPCNT WEFT_TARGET("popcnt")
#define WEFT_CPU_HAS_POPCNT() (WEFT_CPU_HAS("popcnt") != 0)
#else
#define WEFT_TARGET_POPCNT
#define WEFT_CPU_HAS_POPCNT() 1
#endif
#define WEFT_LIKELY(x) __builtin_expect(!!(x), 1)
#define WEFT_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define WEFT_PREFETCH(p) __builtin_prefetch(p)
/* Index of the highest and of the lowest bit set; x != 0. */
#define WEFT_TOP_BIT64(x) (63u - (unsigned)__builtin_clzll(x))
#define WEFT_LOW_BIT64(x) ((unsigned)__builtin_ctzll(x))
/* Does this processor, and the system on it, run that instruction set? One load and one test of
 * what libgcc's start code found out. isa: a string literal. */
#define WEFT_CPU_HAS(isa) __builtin_cpu_supports(isa)
#define WEFT_POPCOUNT64(x) ((unsigned)__builtin_popcountll(x))
/* Inside a loop that waits for another thread's next few instructions. */
#if defined(__x86_64__) || defined(__i386__)
#define WEFT_CPU_RELAX() __builtin_ia32_pause()
#else
#define WEFT_CPU_RELAX() ((void)0)
#endif
#define WEFT_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define WEFT_CONTAINER_OF(ptr, type, member)                                                       \
	((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#endif
