/* SPDX-License-Identifier: Apache-2.0 */
#include "nobody.h"

#include <stddef.h>
#include <grp.h>
#include <unistd.h>

int
nobody_become(void)
{
	return setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	       setresuid(NOBODY, NOBODY, NOBODY);
}
