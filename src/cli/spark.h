/* SPDX-License-Identifier: Apache-2.0 */
/* A line of small bars, one a value, as high as the greatest allows. */
#ifndef WEFT_CLI_SPARK_H
#define WEFT_CLI_SPARK_H

#include <stdbool.h>
#include <stddef.h>

#define SPARK_WIDTH_MAX 60
#define SPARK_TEXT_MAX (SPARK_WIDTH_MAX * 3 + 1) /* bytes; a bar is 3 in UTF-8 */

/* The last width of n values, the newest on the right, blanks where there are fewer. width: up
 * to SPARK_WIDTH_MAX. Values are not negative. Without is_utf8 in ASCII. Returns out. */
char *spark_draw(const float *v, size_t n, size_t width, bool is_utf8, char out[SPARK_TEXT_MAX]);

#endif
