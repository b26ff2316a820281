/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/emulate_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "base/mono.h"
#include "pkt/csum.h"
#include "pkt/ip.h"

#define PCAP_MAGIC_NS 0xa1b23c4du
#define LINKTYPE_RAW 101u
#define SNAP_BYTES 65575u /* the longest UDP datagram over IPv6 */
#define UDP_HEADER_BYTES 8u
#define TTL 64u

struct emulate_record {
	FILE *file;
	bool has_failed;
};

static void
put(struct emulate_record *r, const void *data, size_t len)
{
	r->has_failed |= fwrite(data, 1, len, r->file) != len;
}

static void
put_le32(struct emulate_record *r, uint32_t v)
{
	uint8_t b[4];
	store_le32(b, v);
	put(r, b, sizeof(b));
}

enum weft_err
emulate_record_open(const char *path, struct emulate_record **out)
{
	struct emulate_record *r = calloc(1, sizeof(*r));
	if (!r) {
		return WEFT_ENOMEM;
	}
	r->file = fopen(path, "wbe");
	if (!r->file) {
		free(r);
		return WEFT_EIO;
	}
	put_le32(r, PCAP_MAGIC_NS);
	put_le32(r, 2 | 4 << 16); /* version 2.4 */
	put_le32(r, 0);
	put_le32(r, 0);
	put_le32(r, SNAP_BYTES);
	put_le32(r, LINKTYPE_RAW);
	*out = r;
	return WEFT_OK;
}

enum weft_err
emulate_record_close(struct emulate_record *r)
{
	if (!r) {
		return WEFT_OK;
	}
	bool has_failed = r->has_failed;
	has_failed |= fclose(r->file) != 0;
	free(r);
	return has_failed ? WEFT_EIO : WEFT_OK;
}

static size_t
make_ip(uint8_t *h, const struct endpoint *from, const struct endpoint *to, uint32_t udp_len)
{
	static const uint8_t unspecified[16];
	const uint8_t *dst = to->addr.family == from->addr.family ? to->addr.b : unspecified;
	if (from->addr.family == IP_FAMILY_V4) {
		h[0] = 0x45;
		store_be16(h + 2, (uint16_t)(IP4_HEADER_LEN + udp_len));
		h[8] = TTL;
		h[9] = IP_PROTO_UDP;
		memcpy(h + 12, from->addr.b, 4);
		memcpy(h + 16, dst, 4);
		csum_store(h + 10, csum_header(h, IP4_HEADER_LEN));
		return IP4_HEADER_LEN;
	}
	h[0] = 0x60;
	store_be16(h + 4, (uint16_t)udp_len);
	h[6] = IP_PROTO_UDP;
	h[7] = TTL;
	memcpy(h + 8, from->addr.b, 16);
	memcpy(h + 24, dst, 16);
	return IP6_HEADER_LEN;
}

void
emulate_record_add(struct emulate_record *r, int64_t wall_ns, const struct endpoint *from,
	const struct endpoint *to, const uint8_t *data, uint16_t len)
{
	uint8_t h[IP6_HEADER_LEN + UDP_HEADER_BYTES] = {0};
	uint32_t udp_len = UDP_HEADER_BYTES + len;
	size_t ip_len = make_ip(h, from, to, udp_len);
	store_be16(h + ip_len, from->port);
	store_be16(h + ip_len + 2, to->port);
	store_be16(h + ip_len + 4, (uint16_t)udp_len);
	uint32_t total = (uint32_t)ip_len + udp_len;
	put_le32(r, (uint32_t)(wall_ns / WEFT_NS_PER_S));
	put_le32(r, (uint32_t)(wall_ns % WEFT_NS_PER_S));
	put_le32(r, total);
	put_le32(r, total);
	put(r, h, ip_len + UDP_HEADER_BYTES);
	put(r, data, len);
}
