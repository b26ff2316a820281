/* SPDX-License-Identifier: Apache-2.0 */
/* A user without any privilege. */
#ifndef WEFT_TEST_UNIT_OS_NOBODY_H
#define WEFT_TEST_UNIT_OS_NOBODY_H

#define NOBODY 65534

/* From root, for good. Not 0: it failed. */
int nobody_become(void);

#endif
