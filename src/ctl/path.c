/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/path.h"

#include <stdio.h>
#include <string.h>

#include "wire/conf.h"

enum weft_err
ctl_path_make(const char *dir, const char *name, char out[CTL_PATH_MAX])
{
	if (!conf_name_is_valid(name, strlen(name))) {
		return WEFT_EINVAL;
	}
	int n = snprintf(out, CTL_PATH_MAX, "%s/%s.sock", dir, name);
	return n > 0 && n < CTL_PATH_MAX ? WEFT_OK : WEFT_EINVAL;
}
