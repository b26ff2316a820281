/* SPDX-License-Identifier: Apache-2.0 */
/* What this CPU has for the ciphers, as far as it decides which one to offer. */
#ifndef WEFT_CRYPTO_CPU_H
#define WEFT_CRYPTO_CPU_H

#include <stdbool.h>

/* AES rounds and carry-less multiplication as instructions. */
bool cpu_has_aes_gcm(void);
/* The same from what libcrypto 3 tells of its settings on Arm, as "OPENSSL_armcap=0xbd". NULL or
 * any other text: no. */
bool cpu_armcap_has_aes_gcm(const char *settings);

#endif
