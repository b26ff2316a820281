/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

static const char *const texts[WEFT_ERR_COUNT] = {
	[WEFT_OK] = "success",
	[WEFT_EINVAL] = "invalid value",
	[WEFT_ENOMEM] = "out of memory or table space",
	[WEFT_EIO] = "input/output error",
	[WEFT_EAGAIN] = "not ready",
	[WEFT_EPERM] = "permission denied",
	[WEFT_ENOENT] = "not found",
	[WEFT_EEXIST] = "already exists",
	[WEFT_EPARSE] = "malformed input",
	[WEFT_ECRYPTO] = "authentication or key failure",
	[WEFT_EUNREACH] = "destination unreachable",
	[WEFT_EMSGSIZE] = "message too long",
	[WEFT_ENOTSUP] = "not supported here",
	[WEFT_ETIMEDOUT] = "timed out",
	[WEFT_ECLOSED] = "closed",
	[WEFT_EADDRINUSE] = "address or port in use",
	[WEFT_EISDIR] = "is a folder",
	[WEFT_ESTALE] = "stale or replayed",
	[WEFT_ECANCELED] = "cancelled",
	[WEFT_EREFUSED] = "connection refused",
};

const char *
weft_err_text(enum weft_err e)
{
	if ((unsigned)e >= WEFT_ERR_COUNT) {
		return "unknown error";
	}
	return texts[e];
}
