/* SPDX-License-Identifier: Apache-2.0 */
/* Results of every weft call that can fail. */
#ifndef WEFT_ERROR_H
#define WEFT_ERROR_H

/* On what the library exports: it is built with all else hidden. */
#if defined(__GNUC__)
#define WEFT_API __attribute__((visibility("default")))
#else
#define WEFT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* WEFT_OK is 0; every other value is positive and stable within a major version. */
enum weft_err {
	WEFT_OK = 0,
	WEFT_EINVAL,     /* an argument or a value is out of its range */
	WEFT_ENOMEM,     /* memory, or a table of stated size, is exhausted */
	WEFT_EIO,        /* the operating system reported an unexpected failure */
	WEFT_EAGAIN,     /* nothing to do now; try again when ready */
	WEFT_EPERM,      /* a privilege or a firewall forbids it */
	WEFT_ENOENT,     /* no such file, device, peer or key */
	WEFT_EEXIST,     /* it exists already */
	WEFT_EPARSE,     /* text or bytes do not have the form they must have */
	WEFT_ECRYPTO,    /* an authentication tag or a key is wrong, or libcrypto failed */
	WEFT_EUNREACH,   /* no route, or no address of the needed family */
	WEFT_EMSGSIZE,   /* longer than the path or the buffer allows */
	WEFT_ENOTSUP,    /* this kernel or build cannot do it */
	WEFT_ETIMEDOUT,  /* the deadline passed */
	WEFT_ECLOSED,    /* the other side, or the device, is gone */
	WEFT_EADDRINUSE, /* the address or port is taken */
	WEFT_EISDIR,     /* a folder stands where a file is wanted */
	WEFT_ESTALE,     /* a replayed or outdated message */
	WEFT_ECANCELED,  /* weft_cancel_fire() ended the call */
	WEFT_EREFUSED,   /* nobody listens at that address and port */
	WEFT_ERR_COUNT
};

/* Gives a short English text for e: "permission denied". Never NULL; static storage.
 * Threads: any. Blocks: no. Since: 0.1 */
WEFT_API const char *weft_err_text(enum weft_err e);

#ifdef __cplusplus
}
#endif
#endif
