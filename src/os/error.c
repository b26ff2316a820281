/* SPDX-License-Identifier: Apache-2.0 */
#include "os/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum weft_err
os_error(int errnum)
{
	switch (errnum) {
	case EPERM:
	case EACCES:
	case EROFS:
		return WEFT_EPERM;
	case ENOENT:
	case ENODEV:
	case ENXIO:
	case ESRCH:
		return WEFT_ENOENT;
	case EEXIST:
		return WEFT_EEXIST;
	case EINVAL:
		return WEFT_EINVAL;
	case ENOMEM:
	case ENFILE:
	case EMFILE:
	case ENOSPC:
	case ENOBUFS:
		return WEFT_ENOMEM;
	case EAGAIN:
		return WEFT_EAGAIN;
	case EMSGSIZE:
	case EFBIG:
	case E2BIG:
	case ENAMETOOLONG:
		return WEFT_EMSGSIZE;
	case ENETUNREACH:
	case EHOSTUNREACH:
	case ENETDOWN:
	case EADDRNOTAVAIL:
	case ECONNREFUSED:
		return WEFT_EUNREACH;
	case ETIMEDOUT:
		return WEFT_ETIMEDOUT;
	case EPIPE:
	case ECONNRESET:
	case ENOTCONN:
	case EBADFD:
		return WEFT_ECLOSED;
	case EADDRINUSE:
	case EBUSY:
		return WEFT_EADDRINUSE;
	case EOPNOTSUPP:
	case ENOSYS:
	case EAFNOSUPPORT:
	case ENOPROTOOPT:
	case EPROTONOSUPPORT:
		return WEFT_ENOTSUP;
	default:
		return WEFT_EIO;
	}
}

const char *
os_error_text(int errnum, char *buf, size_t cap)
{
	/* strerrordesc_np() needs no locale and no static buffer. */
	const char *text = strerrordesc_np(errnum);
	if (text) {
		snprintf(buf, cap, "%s", text);
	} else {
		snprintf(buf, cap, "error %d", errnum);
	}
	return buf;
}
