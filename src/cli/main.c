/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "cli/emulate.h"
#include "weft_config.h"

int
main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "emulate") == 0) {
		return emulate_main(argc - 1, argv + 1);
	}
	puts("weft " WEFT_VERSION);
	return 0;
}
