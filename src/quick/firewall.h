/* SPDX-License-Identifier: Apache-2.0 */
/* The nftables rules that a default route through the tunnel needs, as wg-quick has them, in a
 * table of our own: "inet weft-NAME". */
#ifndef WEFT_QUICK_FIREWALL_H
#define WEFT_QUICK_FIREWALL_H

#include <stdbool.h>
#include <stdint.h>

struct conf;
struct quick_host;

/* Makes the table what c needs; without a default route that is no table. Where there is no nft the
 * log says what is missing. had_table: there is one. Returns whether there is one now. */
bool firewall_set(const struct quick_host *h, const struct conf *c, uint32_t mark, bool had_table);
/* False: it may be there still; logged. */
bool firewall_unset(const struct quick_host *h);

#endif
