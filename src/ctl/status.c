/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/status.h"

#include <string.h>

#include "node/node.h"
#include "pkt/drop.h"
#include "wire/key.h"

static json_t *
key_json(bool has_key, const uint8_t key[KEY_LEN])
{
	char text[KEY_BASE64_LEN + 1];
	return has_key ? json_string(key_encode_base64(key, text)) : json_null();
}

static json_t *
count_json(uint64_t n)
{
	/* JSON numbers of jansson are signed; a counter needs centuries to get there. */
	return json_integer((json_int_t)n);
}

/* JSON readers agree on whole numbers up to 2^53 alone; milliseconds are fine enough. */
static json_t *
seconds_json(int64_t ns)
{
	return json_real((double)(ns / WEFT_NS_PER_MS) / 1000.0);
}

static json_t *
facts_json(struct node *n)
{
	struct node_facts f;
	uint8_t public_key[WG_KEY_LEN] = {0};
	node_facts(n, &f);
	bool has_key = wg_device_public_key(node_lock_shared(n), public_key);
	node_unlock_shared(n);
	return json_pack(
		"{s:s, s:o, s:I, s:i, s:b, s:i, s:I, s:i, s:s, s:{s:b, s:b, s:b, s:b}, s:o}",
		"name", f.name, "public_key", key_json(has_key, public_key), "ifindex",
		(json_int_t)f.ifindex, "mtu", (int)f.mtu, "is_up", (int)f.is_up, "listen_port",
		(int)f.listen_port, "fwmark", (json_int_t)f.fwmark, "workers", (int)f.workers,
		"aead", f.aead, "offload", "tso", (int)f.has_tso, "uso", (int)f.has_uso, "udp_gso",
		(int)f.has_udp_gso, "udp_gro", (int)f.has_udp_gro, "uptime_s",
		seconds_json(f.uptime_ns));
}

static json_t *
drops_json(const struct drop_counts *d)
{
	json_t *o = json_object();
	for (unsigned i = 0; o && i < DROP_COUNT; i++) {
		if (json_object_set_new(o, drop_name((enum drop_reason)i), count_json(d->n[i]))) {
			json_decref(o);
			return NULL;
		}
	}
	return o;
}

static json_t *
link_json(const struct link_stats *l)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "rx_bytes", count_json(l->rx_bytes),
		"rx_datagrams", count_json(l->rx_datagrams), "rx_calls", count_json(l->rx_calls),
		"tx_bytes", count_json(l->tx_bytes), "tx_datagrams", count_json(l->tx_datagrams),
		"tx_calls", count_json(l->tx_calls), "gso_off", count_json(l->gso_off_count));
}

static json_t *
port_json(const struct port_stats *p)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "rx_bytes", count_json(p->rx_bytes),
		"rx_frames", count_json(p->rx_frames), "tx_bytes", count_json(p->tx_bytes),
		"tx_frames", count_json(p->tx_frames), "join_off", count_json(p->join_off_count));
}

json_t *
ctl_status_device(struct node *n, const char *version)
{
	struct node_stats s;
	node_stats(n, &s);
	size_t peers = wg_device_peer_count(node_lock_shared(n));
	node_unlock_shared(n);
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "version", version,
		"device", facts_json(n), "link", link_json(&s.link), "port", port_json(&s.port),
		"drops", drops_json(&s.drops), "handshakes_rx", count_json(s.handshakes_rx),
		"keepalives_rx", count_json(s.keepalives_rx), "gaps", count_json(s.gaps),
		"peer_count", count_json(peers));
}
