/* SPDX-License-Identifier: Apache-2.0 */
#include "port/packet.h"

#include <errno.h>
#include <string.h>

#include "base/endian.h"
#include "pkt/gro.h"
#include "wire/vnet.h"

#define TYPE_AT 12
#define TYPE_V4 0x0800
#define TYPE_V6 0x86dd
#define NEEDS_CSUM 1u
#define HDR_LEN_AT 2
#define GSO_SIZE_AT 4
#define CSUM_START_AT 6
#define CSUM_OFFSET_AT 8
#define NOT_OURS_MAX 16 /* frames skipped in one read */
/* The header, the Ethernet header, and what a frame of joined packets has. */
#define IOV_MAX_HERE (2 + 2 * GRO_PACKETS_MAX)

_Static_assert(OS_PKTRING_VNET_LEN == VNET_HDR_LEN, "one header");

static uint16_t
load_host(const uint8_t *p)
{
	uint16_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static void
store_host(uint8_t *p, uint16_t v)
{
	memcpy(p, &v, sizeof(v));
}

/* Packet sockets have the header in the byte order of the host, with offsets from the Ethernet
 * header. False: they point into that. */
static bool
take_off(uint8_t vnet[VNET_HDR_LEN])
{
	uint16_t hdr_len = load_host(vnet + HDR_LEN_AT), start = load_host(vnet + CSUM_START_AT);
	bool needs_csum = vnet[0] & NEEDS_CSUM;
	if (needs_csum && start < OS_PKTRING_ETHER_LEN) {
		return false;
	}
	hdr_len = hdr_len < OS_PKTRING_ETHER_LEN ? 0 : (uint16_t)(hdr_len - OS_PKTRING_ETHER_LEN);
	store_le16(vnet + HDR_LEN_AT, hdr_len);
	store_le16(vnet + GSO_SIZE_AT, load_host(vnet + GSO_SIZE_AT));
	store_le16(vnet + CSUM_START_AT,
		needs_csum ? (uint16_t)(start - OS_PKTRING_ETHER_LEN) : start);
	store_le16(vnet + CSUM_OFFSET_AT, load_host(vnet + CSUM_OFFSET_AT));
	return true;
}

static void
put_on(const uint8_t from[VNET_HDR_LEN], uint8_t vnet[VNET_HDR_LEN])
{
	memcpy(vnet, from, 2);
	uint16_t hdr_len = load_le16(from + HDR_LEN_AT);
	uint16_t start = load_le16(from + CSUM_START_AT);
	store_host(vnet + HDR_LEN_AT,
		hdr_len ? (uint16_t)(hdr_len + OS_PKTRING_ETHER_LEN) : (uint16_t)0);
	store_host(vnet + GSO_SIZE_AT, load_le16(from + GSO_SIZE_AT));
	store_host(vnet + CSUM_START_AT,
		from[0] & NEEDS_CSUM ? (uint16_t)(start + OS_PKTRING_ETHER_LEN) : start);
	store_host(vnet + CSUM_OFFSET_AT, load_le16(from + CSUM_OFFSET_AT));
}

static ssize_t
read_packet(void *ctx, int fd, const struct iovec *iov, int n)
{
	const struct port_packet *p = ctx;
	uint8_t ether[OS_PKTRING_ETHER_LEN], *vnet = iov[0].iov_base;
	(void)fd, (void)n;
	for (int i = 0; i < NOT_OURS_MAX; i++) {
		ssize_t len =
			os_pktring_read(p->ring, vnet, ether, iov[1].iov_base, iov[1].iov_len);
		if (len < 0) {
			return -1;
		}
		uint16_t type = load_be16(ether + TYPE_AT);
		/* A TUN would not hand out anything else either. */
		if (type == TYPE_V4 || type == TYPE_V6) {
			if (!take_off(vnet)) {
				memset(vnet, 0xff,
					VNET_HDR_LEN); /* nobody reads that, and it is counted */
			}
			return len + VNET_HDR_LEN;
		}
	}
	errno = EAGAIN;
	return -1;
}

static ssize_t
write_packet(void *ctx, int fd, const struct iovec *iov, int n)
{
	const struct port_packet *p = ctx;
	uint8_t vnet[VNET_HDR_LEN], ether[OS_PKTRING_ETHER_LEN];
	struct iovec out[IOV_MAX_HERE];
	(void)fd;
	if (n < 2 || n + 1 > IOV_MAX_HERE) {
		errno = EMSGSIZE;
		return -1;
	}
	put_on(iov[0].iov_base, vnet);
	memcpy(ether, p->near_mac, PORT_PACKET_MAC_LEN);
	memcpy(ether + PORT_PACKET_MAC_LEN, p->far_mac, PORT_PACKET_MAC_LEN);
	bool is_v6 = *(const uint8_t *)iov[1].iov_base >> 4 == 6;
	store_be16(ether + TYPE_AT, is_v6 ? TYPE_V6 : TYPE_V4);
	out[0] = (struct iovec){.iov_base = vnet, .iov_len = sizeof(vnet)};
	out[1] = (struct iovec){.iov_base = ether, .iov_len = sizeof(ether)};
	memcpy(out + 2, iov + 1, (size_t)(n - 1) * sizeof(*iov));
	ssize_t sent = os_pktring_write(p->ring, out, (size_t)n + 1);
	return sent < 0 ? sent : sent - OS_PKTRING_ETHER_LEN;
}

void
port_packet_init(struct port_packet *p, struct os_pktring *ring,
	const uint8_t near_mac[PORT_PACKET_MAC_LEN], const uint8_t far_mac[PORT_PACKET_MAC_LEN])
{
	*p = (struct port_packet){
		.calls = {.readv = read_packet, .writev = write_packet, .ctx = p}, .ring = ring};
	memcpy(p->near_mac, near_mac, PORT_PACKET_MAC_LEN);
	memcpy(p->far_mac, far_mac, PORT_PACKET_MAC_LEN);
}
