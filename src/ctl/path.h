/* SPDX-License-Identifier: Apache-2.0 */
/* Where the sockets of a device are. */
#ifndef WEFT_CTL_PATH_H
#define WEFT_CTL_PATH_H

#include "base/err.h"

/* Where wg(8) looks for user-space implementations. */
#define CTL_UAPI_DIR "/var/run/wireguard"
#define CTL_CONTROL_DIR "/run/weft"
#define CTL_PATH_MAX 108 /* sun_path, with the final NUL */

/* "DIR/NAME.sock". WEFT_EINVAL: not an interface's name. */
WEFT_MUST_CHECK enum weft_err ctl_path_make(
	const char *dir, const char *name, char out[CTL_PATH_MAX]);

#endif
