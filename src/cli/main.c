/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "weft_config.h"

int
main(void)
{
	puts("weft " WEFT_VERSION);
	return 0;
}
