/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration files in the format of wg-quick(8), with weft's own keys, as plain data.
 *
 * Reads a superset of what wg(8) and wg-quick(8) read: any letter case, CRLF, a byte order
 * mark, comments at line ends, lists over several lines. Every item keeps its line and column
 * (from 1, in bytes, a byte order mark not counted), so that later checks can point at it.
 * All faults of a file are collected, not the first alone. No message holds key material.
 *
 * Knows no files: text comes in as bytes. Names of hosts are kept, not resolved. */
#ifndef WEFT_WIRE_CONF_H
#define WEFT_WIRE_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "wire/key.h"

/* Limits. There is none on a line: 60,000 AllowedIPs in one line of 1 MiB are odd but right. */
#define CONF_BYTES_MAX (64u << 20)
#define CONF_PEERS_MAX (1u << 20)
#define CONF_HOOK_MAX (128u << 10) /* bytes; the kernel's limit for one argument of a command */
#define CONF_HOST_MAX 253          /* characters of a host name, as in RFC 1035 */
#define CONF_SCOPE_MAX 15          /* characters of an interface name */
#define CONF_PEER_NAME_MAX 63      /* characters of a peer's name: a label's, RFC 1035 */
#define CONF_TABLE_MAX 31          /* characters of a routing table's name */
#define CONF_WORKERS_MAX 16
#define CONF_FEC_PERCENT_MAX 100
#define CONF_FEC_DELAY_MS_DEFAULT 20
#define CONF_FEC_DELAY_MS_MAX 1000
#define CONF_NOTES_MAX 100 /* messages kept; further ones are counted */
#define CONF_NOTE_KEY_MAX 26

struct conf_pos {
	uint32_t line; /* from 1; 0 = the item was not given */
	uint32_t column;
};

enum conf_severity {
	CONF_SEVERITY_ERROR,
	CONF_SEVERITY_WARNING,
};

struct conf_note {
	enum conf_severity severity;
	struct conf_pos pos;
	uint32_t line2;              /* the other line that the text names; 0 = none */
	char key[CONF_NOTE_KEY_MAX]; /* "AllowedIPs", "[Peer]"; as written if unknown; empty = none
				      */
	char text[200];
};

/* What a file's reader has to say, in the order of lines after conf_parse(). */
struct conf_report {
	struct conf_note notes[CONF_NOTES_MAX];
	size_t n;
	size_t errors, warnings; /* also those that were not kept */
};

struct conf_text {
	char *text; /* ends with a NUL */
	struct conf_pos pos;
};

struct conf_texts {
	struct conf_text *v;
	size_t n, cap;
};

struct conf_prefix {
	struct ip_prefix prefix; /* AllowedIPs: masked; Address: host bits kept */
	struct conf_pos pos;
};

struct conf_prefixes {
	struct conf_prefix *v;
	size_t n, cap;
};

struct conf_endpoint {
	char *host;          /* as written, without brackets and scope; NULL = no endpoint */
	struct ip_addr addr; /* IP_FAMILY_NONE: host is a name */
	uint16_t port;
	char scope[CONF_SCOPE_MAX + 1]; /* interface name or index; empty = none */
	struct conf_pos pos;
};

enum conf_fec {
	CONF_FEC_OFF,
	CONF_FEC_AUTO,
	CONF_FEC_FIXED,
};

enum conf_cipher {
	CONF_CIPHER_AUTO,
	CONF_CIPHER_CHACHA20_POLY1305,
	CONF_CIPHER_AES_256_GCM,
};

/* What is done with a peer beyond WireGuard. In [Interface], for peers that do not say it; what
 * a peer takes from there keeps a place of line 0. */
struct conf_policy {
	bool has_extensions; /* default: true */
	struct conf_pos extensions_pos;
	enum conf_fec fec;   /* default: auto */
	uint8_t fec_percent; /* of CONF_FEC_FIXED: 1..CONF_FEC_PERCENT_MAX; else 0 */
	struct conf_pos fec_pos;
	uint16_t fec_delay_ms; /* 1..CONF_FEC_DELAY_MS_MAX */
	struct conf_pos fec_delay_pos;
	enum conf_cipher cipher; /* default: auto */
	struct conf_pos cipher_pos;
};
#define CONF_POLICY_DEFAULT                                                                        \
	((struct conf_policy){.has_extensions = true,                                              \
		.fec = CONF_FEC_AUTO,                                                              \
		.fec_delay_ms = CONF_FEC_DELAY_MS_DEFAULT,                                         \
		.cipher = CONF_CIPHER_AUTO})

struct conf_peer {
	struct conf_pos pos; /* of [Peer] */
	uint8_t public_key[KEY_LEN];
	struct conf_pos public_key_pos;
	char *name; /* no two peers have the same, in any letter case; NULL = none */
	struct conf_pos name_pos;
	bool has_psk; /* a preshared key of zeros means none */
	uint8_t psk[KEY_LEN];
	struct conf_pos psk_pos;
	struct conf_prefixes allowed;
	struct conf_endpoint endpoint;
	uint16_t keepalive_s; /* 0 = off */
	struct conf_pos keepalive_pos;
	struct conf_policy policy; /* with what it takes from [Interface] */
};

enum conf_table {
	CONF_TABLE_AUTO,
	CONF_TABLE_OFF,
	CONF_TABLE_NUMBER,
	CONF_TABLE_NAME, /* of /etc/iproute2/rt_tables */
};

enum conf_aead {
	CONF_AEAD_AUTO,
	CONF_AEAD_LIBCRYPTO,
	CONF_AEAD_IPSEC_MB,
};

enum conf_hook {
	CONF_HOOK_PRE_UP,
	CONF_HOOK_POST_UP,
	CONF_HOOK_PRE_DOWN,
	CONF_HOOK_POST_DOWN,
	CONF_HOOK_COUNT
};

struct conf_interface {
	struct conf_pos pos; /* of [Interface] */
	bool has_private_key;
	uint8_t private_key[KEY_LEN];
	struct conf_pos private_key_pos;
	uint16_t listen_port; /* 0 = chosen by the kernel */
	struct conf_pos listen_port_pos;
	uint32_t fwmark; /* 0 = off */
	struct conf_pos fwmark_pos;
	struct conf_prefixes addresses;
	struct conf_texts dns;        /* servers: numeric, maybe with a scope */
	struct conf_texts dns_search; /* domains */
	uint16_t mtu;                 /* 0 = not given */
	struct conf_pos mtu_pos;
	enum conf_table table;
	uint32_t table_number;
	char table_name[CONF_TABLE_MAX + 1];
	struct conf_pos table_pos;
	struct conf_texts hooks[CONF_HOOK_COUNT]; /* as written, %i unexpanded */
	bool save_config;
	struct conf_pos save_config_pos;
	unsigned workers; /* 0 = auto */
	struct conf_pos workers_pos;
	bool has_offload; /* default: true */
	struct conf_pos offload_pos;
	enum conf_aead aead;
	struct conf_pos aead_pos;
	struct conf_policy policy; /* of peers that do not say it */
};

struct conf {
	uint64_t text_sum; /* conf_text_sum() of what it was read from */
	struct conf_interface interface;
	struct conf_peer *peers; /* in the order of the file; one key may come twice */
	size_t peers_n, peers_cap;
};

struct conf_options {
	bool is_lenient; /* unknown keys and sections are warnings */
};

/* WEFT_OK: *out is the caller's, to be freed by conf_free(); report may hold warnings.
 * WEFT_EPARSE: report holds at least one error. WEFT_ENOMEM: memory, or CONF_BYTES_MAX, which
 * is also in the report. Threads: any. Blocks: no. */
WEFT_MUST_CHECK enum weft_err conf_parse(const char *text, size_t len,
	const struct conf_options *options, struct conf **out, struct conf_report *report);
/* Wipes keys and frees; NULL is allowed. */
void conf_free(struct conf *c);

/* Adds warnings about items that are right alone and doubtful together: equal prefixes of two
 * peers, endpoints inside AllowedIPs, an MTU too small for IPv6. own_public: the key that
 * belongs to PrivateKey, NULL = not known. WEFT_ENOMEM: the report is not complete. */
WEFT_MUST_CHECK enum weft_err conf_lint(
	const struct conf *c, const uint8_t own_public[KEY_LEN], struct conf_report *report);

/* "FILE:LINE:COLUMN: error: Key: text", cut to cap bytes with the final NUL. Returns out.
 * CONF_NOTE_LINE_MAX is enough for every path that the system takes. */
#define CONF_NOTE_LINE_MAX (4096 + sizeof(struct conf_note) + 64)
char *conf_note_format(const struct conf_note *n, const char *file, char *out, size_t cap);

/* Values of Fec and Cipher, in any letter case: "off", "auto", "30%" or "30"; "auto",
 * "chacha20poly1305", "aes-256-gcm". False: another text, *out is left alone. */
bool conf_fec_parse(const char *text, size_t len, struct conf_policy *out);
bool conf_cipher_parse(const char *text, size_t len, struct conf_policy *out);
/* As one would write it. */
#define CONF_FEC_TEXT_MAX 8
char *conf_fec_format(const struct conf_policy *p, char out[CONF_FEC_TEXT_MAX]);
const char *conf_cipher_text(enum conf_cipher c);

/* May an interface, and so a file before its ".conf", be called that? 1 to 15 letters, digits
 * and _ = + . - */
bool conf_name_is_valid(const char *name, size_t len);

#endif
