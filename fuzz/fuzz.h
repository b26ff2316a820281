/* SPDX-License-Identifier: Apache-2.0 */
/* What every target defines. Input is bytes alone; a finding is a sanitizer report or a failed
 * weft_assert. Returns 0. */
#ifndef WEFT_FUZZ_FUZZ_H
#define WEFT_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
