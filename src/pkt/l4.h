/* SPDX-License-Identifier: Apache-2.0 */
/* Where the fields of TCP (RFC 9293, 3.1) and UDP (RFC 768) headers lie. Both begin with the
 * two ports. */
#ifndef WEFT_PKT_L4_H
#define WEFT_PKT_L4_H

#define TCP_SEQ 4
#define TCP_ACK_NUMBER 8
#define TCP_DATA_OFFSET 12 /* upper 4 bits: header length in units of 4 */
#define TCP_FLAGS 13
#define TCP_WINDOW 14
#define TCP_CHECKSUM 16
#define TCP_URGENT 18
#define TCP_HEADER_LEN 20 /* without options */

#define TCP_FIN 0x01u
#define TCP_SYN 0x02u
#define TCP_RST 0x04u
#define TCP_PSH 0x08u
#define TCP_ACK 0x10u
#define TCP_URG 0x20u
#define TCP_ECE 0x40u
#define TCP_CWR 0x80u

#define UDP_LEN 4
#define UDP_CHECKSUM 6
#define UDP_HEADER_LEN 8

#endif
