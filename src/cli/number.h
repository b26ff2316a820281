/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people read them. Each returns out. */
#ifndef WEFT_CLI_NUMBER_H
#define WEFT_CLI_NUMBER_H

#include <stdint.h>

#define NUMBER_TEXT_MAX 32

/* "12.3 Mbit/s": three digits, decimal units. */
char *number_rate(double bits_per_s, char out[NUMBER_TEXT_MAX]);
/* A share of 0..1: "0", "<0.01 %", "0.32 %", "4.9 %", "100 %". */
char *number_share(double share, char out[NUMBER_TEXT_MAX]);
/* "1,234,567" */
char *number_count(uint64_t n, char out[NUMBER_TEXT_MAX]);
/* "1.2 ms"; "0" */
char *number_ms(double ms, char out[NUMBER_TEXT_MAX]);
/* The greater unit alone: "12 s", "3 min", "5 h", "2 d" */
char *number_age(int64_t seconds, char out[NUMBER_TEXT_MAX]);

#endif
