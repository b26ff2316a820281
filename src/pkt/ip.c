/* SPDX-License-Identifier: Apache-2.0 */
#include "pkt/ip.h"

#include "base/endian.h"
#include "pkt/csum.h"

#define IP4_MORE_FRAGMENTS 0x2000u
#define IP4_OFFSET_MASK 0x1fffu
#define IP6_OFFSET_MASK 0xfff8u
#define ECN_MASK 3u

enum weft_err
ip_exact_len(const uint8_t *data, size_t padded_len, uint32_t *out)
{
	if (padded_len < IP4_HEADER_LEN) {
		return WEFT_EPARSE;
	}
	uint32_t len;
	switch (data[0] >> 4) {
	case 4: {
		uint32_t header_len = (data[0] & 15u) * 4;
		len = load_be16(data + 2);
		if (header_len < IP4_HEADER_LEN || header_len > len) {
			return WEFT_EPARSE;
		}
		break;
	}
	case 6:
		if (padded_len < IP6_HEADER_LEN) {
			return WEFT_EPARSE;
		}
		len = IP6_HEADER_LEN + (uint32_t)load_be16(data + 4);
		break;
	default:
		return WEFT_EPARSE;
	}
	if (len > padded_len) {
		return WEFT_EPARSE;
	}
	*out = len;
	return WEFT_OK;
}

/* Length of the extension header of type proto at p with left bytes; 0 if it is cut off. */
static uint32_t
extension_len(uint8_t proto, const uint8_t *p, uint32_t left)
{
	if (left < 8) {
		return 0;
	}
	uint32_t len;
	if (proto == IP_PROTO_FRAGMENT) {
		len = 8;
	} else if (proto == IP_PROTO_AH) {
		len = (p[1] + 2u) * 4;
	} else {
		len = (p[1] + 1u) * 8;
	}
	return len <= left ? len : 0;
}

static bool
is_extension(uint8_t proto)
{
	return proto == IP_PROTO_HOP_BY_HOP || proto == IP_PROTO_ROUTING ||
	       proto == IP_PROTO_FRAGMENT || proto == IP_PROTO_AH || proto == IP_PROTO_DEST_OPTIONS;
}

static void
walk_extensions(const uint8_t *data, struct ip_view *v)
{
	for (int i = 0; is_extension(v->proto); i++) {
		const uint8_t *p = data + v->l4_off;
		uint32_t len = extension_len(v->proto, p, v->len - v->l4_off);
		if (len == 0 || i == IP6_EXTENSIONS_MAX) {
			v->has_l4 = false;
			return;
		}
		if (v->proto == IP_PROTO_AH) {
			v->has_ah = true;
		}
		bool is_later_fragment = false;
		if (v->proto == IP_PROTO_FRAGMENT) {
			v->is_fragment = true;
			is_later_fragment = (load_be16(p + 2) & IP6_OFFSET_MASK) != 0;
		}
		v->proto = p[0];
		v->l4_off += len;
		if (is_later_fragment) {
			v->has_l4 = false;
			return;
		}
	}
}

/* Fields go straight to *out: a struct built beside it and copied would be read back by wider
 * loads than it was written with, which the processor stalls on, 10 ns of 15. */
enum weft_err
ip_parse(const uint8_t *data, size_t len, struct ip_view *out)
{
	uint32_t exact_len;
	enum weft_err err = ip_exact_len(data, len, &exact_len);
	if (err) {
		return err;
	}
	out->len = exact_len;
	out->version = data[0] >> 4;
	out->has_ah = false;
	if (out->version == 4) {
		uint16_t fragment = load_be16(data + 6);
		out->src = data + 12;
		out->dst = data + 16;
		out->l4_off = (data[0] & 15u) * 4;
		out->tos = data[1];
		out->proto = data[9];
		out->is_fragment = (fragment & (IP4_MORE_FRAGMENTS | IP4_OFFSET_MASK)) != 0;
		out->has_l4 = (fragment & IP4_OFFSET_MASK) == 0;
	} else {
		out->src = data + 8;
		out->dst = data + 24;
		out->l4_off = IP6_HEADER_LEN;
		out->tos = (uint8_t)(load_be16(data) >> 4);
		out->proto = data[6];
		out->is_fragment = false;
		out->has_l4 = true;
		walk_extensions(data, out);
	}
	return WEFT_OK;
}

uint8_t
ip_ecn(const uint8_t *ip)
{
	uint8_t tos = ip[0] >> 4 == 4 ? ip[1] : (uint8_t)(load_be16(ip) >> 4);
	return tos & ECN_MASK;
}

void
ip_set_ecn(uint8_t *ip, uint8_t ecn)
{
	if (ip[0] >> 4 == 6) {
		ip[1] = (uint8_t)((ip[1] & 0xcf) | (ecn << 4));
		return;
	}
	/* RFC 1624, equation 3: the new sum is the old one less the old word plus the new. */
	uint64_t sum = csum_negate(csum_load(ip + 10)) + csum_negate(csum_load(ip));
	ip[1] = (uint8_t)((ip[1] & ~ECN_MASK) | ecn);
	csum_store(ip + 10, sum + csum_load(ip));
}
