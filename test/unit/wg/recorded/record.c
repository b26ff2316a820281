/* SPDX-License-Identifier: Apache-2.0 */
/* Our side of a recording: see README.md. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "base/compiler.h"
#include "crypto/aead.h"
#include "crypto/crypto.h"
#include "crypto/dh.h"
#include "wg/cookie.h"
#include "wg/noise.h"

#define OUR_PORT 40001
#define THEIR_PORT 40002
#define OUR_INDEX 0x0badcafe

struct side {
	struct crypto *crypto;
	struct wg_noise_identity us;
	struct wg_noise_remote them;
	uint8_t ephemeral[32];
	int fd;
};

WEFT_NORETURN static void
fail(const char *what)
{
	perror(what);
	exit(1);
}

static void
check(enum weft_err e, const char *what)
{
	if (e) {
		fprintf(stderr, "%s: %s\n", what, weft_err_text(e));
		exit(1);
	}
}

static void
print(const char *name, const uint8_t *bytes, size_t len)
{
	printf("%s ", name);
	for (size_t i = 0; i < len; i++) {
		printf("%02x", bytes[i]);
	}
	printf("\n");
}

static void
print_base64(const char *name, const uint8_t bytes[32])
{
	char text[48];
	EVP_EncodeBlock((unsigned char *)text, bytes, 32);
	printf("%s=%s\n", name, text);
}

/* Theirs: bytes 0x60 up. Ours: 0x20 up. Both clamped. */
static void
make_private(uint8_t key[32], uint8_t from)
{
	for (uint8_t i = 0; i < 32; i++) {
		key[i] = (uint8_t)(from + i);
	}
	dh_clamp(key);
}

static void
side_init(struct side *s)
{
	uint8_t ours[32], theirs[32];
	make_private(ours, 0x20);
	make_private(theirs, 0x60);
	memset(s, 0, sizeof(*s));
	check(crypto_new(&s->crypto), "crypto");
	check(wg_noise_identity_set(s->crypto, &s->us, ours), "key");
	check(dh_public(s->crypto, s->them.public_key, theirs), "key");
	for (uint8_t i = 0; i < 32; i++) {
		s->them.psk[i] = (uint8_t)(0xa0 + i);
		s->ephemeral[i] = (uint8_t)(0xc0 + i);
	}
}

static int
open_socket(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in at = {.sin_family = AF_INET,
		.sin_port = htons(OUR_PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct timeval limit = {.tv_sec = 10};
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) ||
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit))) {
		fail("socket");
	}
	at.sin_port = htons(THEIR_PORT);
	if (connect(fd, (struct sockaddr *)&at, sizeof(at))) {
		fail("connect");
	}
	return fd;
}

/* The next datagram of one type; others are passed over. */
static size_t
receive(struct side *s, enum wire_wg_type type, uint8_t *buf, size_t cap)
{
	for (;;) {
		ssize_t n = recv(s->fd, buf, cap, 0);
		if (n < 0) {
			fail("recv");
		}
		if (wire_wg_type(buf, (size_t)n) == type &&
			(type != WIRE_WG_TYPE_DATA || n > WIRE_WG_DATA_LEN_MIN)) {
			return (size_t)n;
		}
	}
}

static void
transmit(struct side *s, const uint8_t *buf, size_t len)
{
	if (send(s->fd, buf, len, 0) != (ssize_t)len) {
		fail("send");
	}
}

static void
print_constants(const struct side *s)
{
	print("private_key", s->us.private_key, 32);
	print("their_public_key", s->them.public_key, 32);
	print("psk", s->them.psk, 32);
	print("ephemeral_private", s->ephemeral, 32);
}

static uint16_t
checksum(const uint8_t *p, size_t len)
{
	uint32_t sum = 0;
	for (size_t i = 0; i < len; i += 2) {
		sum += load_be16(p + i);
	}
	sum = (sum >> 16) + (sum & 0xffff);
	return (uint16_t) ~(sum + (sum >> 16));
}

/* An echo request from 10.9.0.1 to 10.9.0.2, 64 bytes, sealed. */
static void
send_echo(struct side *s, const struct wg_noise_keys *keys, uint32_t receiver)
{
	uint8_t buf[16 + 64 + 16] = {0};
	uint8_t *ip = buf + 16, *icmp = ip + 20;
	static const uint8_t header[20] = {
		0x45, 0, 0, 64, 0, 1, 0, 0, 64, 1, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2};
	memcpy(ip, header, sizeof(header));
	store_be16(ip + 10, checksum(ip, 20));
	icmp[0] = 8;
	memcpy(icmp + 8, "recorded by weft", 16);
	store_be16(icmp + 2, checksum(icmp, 44));
	wire_wg_data_write_header(buf, AEAD_CIPHER_CHACHA20_POLY1305, receiver, 0);
	struct aead *a;
	struct aead_key k;
	check(aead_new(AEAD_BACKEND_LIBCRYPTO, &a), "aead");
	aead_key_init(&k, AEAD_CIPHER_CHACHA20_POLY1305, keys->send);
	struct aead_op op = {ip, 64, false, 0};
	aead_seal(a, &k, &op, 1);
	aead_free(a);
	transmit(s, buf, sizeof(buf));
}

static void
initiate(struct side *s)
{
	uint8_t bytes[2048], stamp[WIRE_WG_STAMP_LEN];
	struct wire_wg_initiation m = {.sender = OUR_INDEX};
	struct wg_noise_pending pending;
	struct wg_cookie_jar jar = {0};
	store_be64(stamp, (UINT64_C(0x4000000000000000) + 10) + (uint64_t)time(NULL));
	store_be32(stamp + 8, 0);
	memcpy(pending.ephemeral_private, s->ephemeral, 32);
	check(wg_noise_initiate(s->crypto, &s->us, &s->them, &pending, stamp, &m), "initiate");
	wire_wg_initiation_encode(&m, bytes);
	wg_cookie_jar_sign(s->crypto, &jar, s->them.public_key, (struct mono){0}, bytes,
		WIRE_WG_INITIATION_LEN);
	print_constants(s);
	print("stamp", stamp, sizeof(stamp));
	print("initiation", bytes, WIRE_WG_INITIATION_LEN);
	transmit(s, bytes, WIRE_WG_INITIATION_LEN);

	struct wire_wg_response r;
	struct wg_noise_keys keys;
	size_t n = receive(s, WIRE_WG_TYPE_RESPONSE, bytes, sizeof(bytes));
	print("response", bytes, n);
	if (!wire_wg_response_decode(bytes, n, &r)) {
		fail("response");
	}
	check(wg_noise_open_response(s->crypto, &s->us, &s->them, &pending, &r, &keys), "response");
	send_echo(s, &keys, r.sender);
	n = receive(s, WIRE_WG_TYPE_DATA, bytes, sizeof(bytes));
	print("data", bytes, n);
}

static void
respond(struct side *s)
{
	uint8_t bytes[2048];
	struct wire_wg_initiation m;
	struct wg_noise_incoming in;
	size_t n = receive(s, WIRE_WG_TYPE_INITIATION, bytes, sizeof(bytes));
	print_constants(s);
	print("initiation", bytes, n);
	if (!wire_wg_initiation_decode(bytes, n, &m)) {
		fail("initiation");
	}
	check(wg_noise_open_static(s->crypto, &s->us, &m, &in), "static");
	check(wg_noise_open_stamp(s->crypto, &s->us, &s->them, &m, &in), "stamp");
	struct wire_wg_response r = {.sender = OUR_INDEX};
	struct wg_noise_keys keys;
	struct wg_cookie_jar jar = {0};
	check(wg_noise_respond(s->crypto, &s->them, &in, s->ephemeral, &r, &keys), "respond");
	wire_wg_response_encode(&r, bytes);
	wg_cookie_jar_sign(
		s->crypto, &jar, s->them.public_key, (struct mono){0}, bytes, WIRE_WG_RESPONSE_LEN);
	print("response", bytes, WIRE_WG_RESPONSE_LEN);
	transmit(s, bytes, WIRE_WG_RESPONSE_LEN);
	n = receive(s, WIRE_WG_TYPE_DATA, bytes, sizeof(bytes));
	print("data", bytes, n);
}

int
main(int argc, char **argv)
{
	struct side s;
	side_init(&s);
	if (argc == 2 && strcmp(argv[1], "keys") == 0) {
		uint8_t theirs[32];
		make_private(theirs, 0x60);
		print_base64("OUR_PUBLIC", s.us.public_key);
		print_base64("THEIR_PRIVATE", theirs);
		print_base64("PSK", s.them.psk);
	} else if (argc == 2 && strcmp(argv[1], "initiate") == 0) {
		s.fd = open_socket();
		initiate(&s);
	} else if (argc == 2 && strcmp(argv[1], "respond") == 0) {
		s.fd = open_socket();
		respond(&s);
	} else {
		fprintf(stderr, "usage: wg-record keys|initiate|respond\n");
		return 2;
	}
	crypto_free(s.crypto);
	return 0;
}
