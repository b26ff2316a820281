/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CLI_CHECK_H
#define WEFT_CLI_CHECK_H

/* weft check. Returns the exit status. */
int check_main(int argc, char **argv);

#endif
