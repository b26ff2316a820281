/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a sample: the device, each peer that has changed, and the end. */
#ifndef WEFT_CTL_SAMPLE_H
#define WEFT_CTL_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node/ally.h"
#include "node/node.h"
#include "wg/device.h"

/* Bytes at the sample before; rates are since then. */
struct sample_base {
	uint64_t rx_bytes, tx_bytes;
};

struct sample_device {
	struct node_facts facts;
	struct node_stats stats;
	int64_t wall_ns;
	int64_t elapsed_ns; /* since the sample before; 0: there was none */
	struct sample_base base;
	size_t peers_n;
	bool is_full;
	const uint8_t (*gone)[WG_KEY_LEN]; /* since then; of one that is not full */
	size_t gone_n;
};

struct sample_peer {
	struct wg_peer_info info;
	struct ally_info ally;
	const char *name;   /* empty: none */
	int64_t elapsed_ns; /* as above */
	struct sample_base base;
};

/* Each is to be freed; NULL: no memory. */
char *ctl_sample_device(const struct sample_device *s);
char *ctl_sample_peer(const struct sample_peer *s);
/* peers: lines since the device's. */
char *ctl_sample_end(uint64_t peers);

#endif
