/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/cpu.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

#include "base/compiler.h"

/* Bits of OPENSSL_armcap, OpenSSL 1.1 and 3. */
#define ARMCAP_AES (1ul << 2)
#define ARMCAP_PMULL (1ul << 5)

bool
cpu_armcap_has_aes_gcm(const char *settings)
{
	static const char name[] = "OPENSSL_armcap=";
	if (!settings || strncmp(settings, name, sizeof(name) - 1) != 0) {
		return false;
	}
	unsigned long caps = strtoul(settings + sizeof(name) - 1, NULL, 16);
	return (caps & ARMCAP_AES) && (caps & ARMCAP_PMULL);
}

bool
cpu_has_aes_gcm(void)
{
#if defined(__x86_64__)
	return WEFT_CPU_HAS("aes") && WEFT_CPU_HAS("pclmul");
#else
	/* On Arm the kernel is to be asked, which libcrypto has done. */
	return cpu_armcap_has_aes_gcm(OPENSSL_info(OPENSSL_INFO_CPU_SETTINGS));
#endif
}
