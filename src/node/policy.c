/* SPDX-License-Identifier: Apache-2.0 */
#include "node/policy.h"

#include "base/assert.h"
#include "node/ally.h"
#include "wire/conf.h"

#define US_PER_MS 1000u

_Static_assert(CONF_FEC_DELAY_MS_DEFAULT *US_PER_MS == ALLY_BUDGET_US_DEFAULT, "one default");
_Static_assert((int)CONF_FEC_OFF == (int)FEC_MODE_OFF && (int)CONF_FEC_AUTO == (int)FEC_MODE_AUTO &&
		       (int)CONF_FEC_FIXED == (int)FEC_MODE_FIXED,
	"modes have one number");
_Static_assert((int)CONF_CIPHER_AUTO == (int)ALLY_CIPHER_AUTO &&
		       (int)CONF_CIPHER_CHACHA20_POLY1305 == (int)ALLY_CIPHER_CHACHA20_POLY1305 &&
		       (int)CONF_CIPHER_AES_256_GCM == (int)ALLY_CIPHER_AES_256_GCM,
	"ciphers have one number");

void
policy_from_conf(const struct conf_policy *from, struct ally_policy *out)
{
	*out = (struct ally_policy){
		.has_extensions = from->has_extensions,
		.cipher = (enum ally_cipher)from->cipher,
		.fec = {.mode = (enum fec_mode)from->fec,
			.percent = from->fec_percent,
			.budget_us = from->fec_delay_ms * US_PER_MS},
	};
}

bool
policy_is_default(const struct conf_policy *p)
{
	const struct conf_policy d = CONF_POLICY_DEFAULT;
	return p->has_extensions == d.has_extensions && p->fec == d.fec &&
	       p->fec_delay_ms == d.fec_delay_ms && p->cipher == d.cipher;
}

void
policy_to_conf(const struct ally_policy *from, struct conf_policy *out)
{
	*out = (struct conf_policy){
		.has_extensions = from->has_extensions,
		.cipher = (enum conf_cipher)from->cipher,
		.fec = (enum conf_fec)from->fec.mode,
		.fec_percent = (uint8_t)from->fec.percent,
		.fec_delay_ms = (uint16_t)(from->fec.budget_us / US_PER_MS),
	};
}
