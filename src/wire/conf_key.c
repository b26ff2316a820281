/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a configuration file, and guesses at what an unknown one was meant to be. */
#include <string.h>

#include "wire/conf_internal.h"

static const struct conf_key keys[CONF_KEY_COUNT] = {
	{"PrivateKey", CONF_KEY_PRIVATE_KEY, CONF_SECTION_INTERFACE, CONF_TRAIT_SECRET},
	{"ListenPort", CONF_KEY_LISTEN_PORT, CONF_SECTION_INTERFACE, 0},
	{"FwMark", CONF_KEY_FWMARK, CONF_SECTION_INTERFACE, 0},
	{"Address", CONF_KEY_ADDRESS, CONF_SECTION_INTERFACE, CONF_TRAIT_MAY_BE_EMPTY},
	{"DNS", CONF_KEY_DNS, CONF_SECTION_INTERFACE, CONF_TRAIT_MAY_BE_EMPTY},
	{"MTU", CONF_KEY_MTU, CONF_SECTION_INTERFACE, CONF_TRAIT_MAY_BE_EMPTY},
	{"Table", CONF_KEY_TABLE, CONF_SECTION_INTERFACE, CONF_TRAIT_MAY_BE_EMPTY},
	{"PreUp", CONF_KEY_PRE_UP, CONF_SECTION_INTERFACE,
		CONF_TRAIT_HOOK | CONF_TRAIT_MAY_BE_EMPTY},
	{"PostUp", CONF_KEY_POST_UP, CONF_SECTION_INTERFACE,
		CONF_TRAIT_HOOK | CONF_TRAIT_MAY_BE_EMPTY},
	{"PreDown", CONF_KEY_PRE_DOWN, CONF_SECTION_INTERFACE,
		CONF_TRAIT_HOOK | CONF_TRAIT_MAY_BE_EMPTY},
	{"PostDown", CONF_KEY_POST_DOWN, CONF_SECTION_INTERFACE,
		CONF_TRAIT_HOOK | CONF_TRAIT_MAY_BE_EMPTY},
	{"SaveConfig", CONF_KEY_SAVE_CONFIG, CONF_SECTION_INTERFACE, CONF_TRAIT_MAY_BE_EMPTY},
	{"Workers", CONF_KEY_WORKERS, CONF_SECTION_INTERFACE, 0},
	{"Offload", CONF_KEY_OFFLOAD, CONF_SECTION_INTERFACE, 0},
	{"Aead", CONF_KEY_AEAD, CONF_SECTION_INTERFACE, 0},
	{"PublicKey", CONF_KEY_PUBLIC_KEY, CONF_SECTION_PEER, CONF_TRAIT_SECRET},
	{"Name", CONF_KEY_NAME, CONF_SECTION_PEER, CONF_TRAIT_MAY_BE_EMPTY},
	{"PresharedKey", CONF_KEY_PRESHARED_KEY, CONF_SECTION_PEER, CONF_TRAIT_SECRET},
	{"AllowedIPs", CONF_KEY_ALLOWED_IPS, CONF_SECTION_PEER, CONF_TRAIT_MAY_BE_EMPTY},
	{"Endpoint", CONF_KEY_ENDPOINT, CONF_SECTION_PEER, 0},
	{"PersistentKeepalive", CONF_KEY_PERSISTENT_KEEPALIVE, CONF_SECTION_PEER, 0},
	{"Extensions", CONF_KEY_EXTENSIONS, CONF_SECTION_PEER, CONF_TRAIT_DEFAULT},
	{"Fec", CONF_KEY_FEC, CONF_SECTION_PEER, CONF_TRAIT_DEFAULT},
	{"FecDelay", CONF_KEY_FEC_DELAY, CONF_SECTION_PEER, CONF_TRAIT_DEFAULT},
	{"Cipher", CONF_KEY_CIPHER, CONF_SECTION_PEER, CONF_TRAIT_DEFAULT},
};

struct origin {
	const char *name; /* lower case */
	const char *program;
};

static const struct origin key_origins[] = {{"jc", "AmneziaWG"}, {"jmin", "AmneziaWG"},
	{"jmax", "AmneziaWG"}, {"s1", "AmneziaWG"}, {"s2", "AmneziaWG"}, {"s3", "AmneziaWG"},
	{"s4", "AmneziaWG"}, {"h1", "AmneziaWG"}, {"h2", "AmneziaWG"}, {"h3", "AmneziaWG"},
	{"h4", "AmneziaWG"}, {"i1", "AmneziaWG"}, {"i2", "AmneziaWG"}, {"i3", "AmneziaWG"},
	{"i4", "AmneziaWG"}, {"i5", "AmneziaWG"}};
static const struct origin section_origins[] = {{"netdev", "systemd-networkd"},
	{"network", "systemd-networkd"}, {"match", "systemd-networkd"},
	{"wireguard", "systemd-networkd"}, {"wireguardpeer", "systemd-networkd"},
	{"socks5", "a proxy program"}, {"http", "a proxy program"},
	{"tcpclienttunnel", "a proxy program"}, {"tcpservertunnel", "a proxy program"},
	{"connection", "NetworkManager"}, {"ipv4", "NetworkManager"}, {"ipv6", "NetworkManager"}};

static char
lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool
is_same_name(const char *known, const char *name, size_t len)
{
	size_t n = 0;
	for (size_t i = 0; i < len; i++) {
		if (conf_char_is_blank(name[i])) {
			continue;
		}
		if (known[n] == 0 || lower(known[n]) != lower(name[i])) {
			return false;
		}
		n++;
	}
	return known[n] == 0;
}

const struct conf_key *
conf_key_find(const char *name, size_t len)
{
	for (size_t i = 0; i < CONF_KEY_COUNT; i++) {
		if (is_same_name(keys[i].name, name, len)) {
			return &keys[i];
		}
	}
	return NULL;
}

bool
conf_key_belongs(const struct conf_key *key, enum conf_section section)
{
	return key->section == section ||
	       ((key->traits & CONF_TRAIT_DEFAULT) && section == CONF_SECTION_INTERFACE);
}

/* Insertions, removals, replacements and swaps of neighbours that turn a into b (the optimal
 * string alignment distance). Both shorter than NEAR_MAX. */
#define NEAR_MAX 24
static unsigned
distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	unsigned rows[3][NEAR_MAX + 1];
	for (size_t j = 0; j <= b_len; j++) {
		rows[0][j] = (unsigned)j;
	}
	for (size_t i = 1; i <= a_len; i++) {
		unsigned *row = rows[i % 3];
		const unsigned *above = rows[(i + 2) % 3];
		const unsigned *above2 = rows[(i + 1) % 3];
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= b_len; j++) {
			unsigned cost = lower(a[i - 1]) != lower(b[j - 1]);
			unsigned best = above[j - 1] + cost;
			best = above[j] + 1 < best ? above[j] + 1 : best;
			best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
			if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
				lower(a[i - 2]) == lower(b[j - 1]) && above2[j - 2] + 1 < best) {
				best = above2[j - 2] + 1;
			}
			row[j] = best;
		}
	}
	return rows[a_len % 3][b_len];
}

static bool
begins_with(const char *p, size_t len, const char *head, size_t head_len)
{
	bool is_same = head_len <= len;
	for (size_t i = 0; is_same && i < head_len; i++) {
		is_same = lower(p[i]) == lower(head[i]);
	}
	return is_same;
}

/* "Port" of ListenPort, "DNSServers". */
static bool
shares_a_word(const char *name, size_t len, const char *known)
{
	size_t known_len = strlen(known);
	bool is_part = begins_with(name, len, known, known_len);
	for (size_t i = 0; !is_part && i + len <= known_len; i++) {
		is_part = begins_with(known + i, known_len - i, name, len);
	}
	return is_part;
}

/* NULL: no key shares a word with the name, or several do. */
static const struct conf_key *
find_word(const char *name, size_t len, enum conf_section section)
{
	const struct conf_key *found[2] = {NULL, NULL}; /* elsewhere, here */
	unsigned n[2] = {0, 0};
	for (size_t i = 0; i < CONF_KEY_COUNT; i++) {
		if (shares_a_word(name, len, keys[i].name)) {
			bool is_here = conf_key_belongs(&keys[i], section);
			found[is_here] = &keys[i];
			n[is_here]++;
		}
	}
	return n[1] == 1 ? found[1] : n[1] == 0 && n[0] == 1 ? found[0] : NULL;
}

#define WORD_MIN 3
const struct conf_key *
conf_key_near(const char *name, size_t len, enum conf_section section)
{
	const struct conf_key *best = NULL;
	unsigned best_score = UINT32_MAX;

	if (len < 2 || len > NEAR_MAX) {
		return NULL;
	}
	for (size_t i = 0; i < CONF_KEY_COUNT; i++) {
		size_t known_len = strlen(keys[i].name);
		unsigned d = distance(name, len, keys[i].name, known_len);
		/* A third of the letters wrong is another word. */
		if (d * 3 > known_len) {
			continue;
		}
		unsigned score = d * 2 + !conf_key_belongs(&keys[i], section);
		if (score < best_score) {
			best_score = score;
			best = &keys[i];
		}
	}
	return best || len < WORD_MIN ? best : find_word(name, len, section);
}

static const char *
origin_of(const struct origin *o, size_t n, const char *name, size_t len)
{
	for (size_t i = 0; i < n; i++) {
		if (is_same_name(o[i].name, name, len)) {
			return o[i].program;
		}
	}
	return NULL;
}

const char *
conf_key_origin(const char *name, size_t len)
{
	return origin_of(key_origins, WEFT_ARRAY_LEN(key_origins), name, len);
}

const char *
conf_section_origin(const char *name, size_t len)
{
	return origin_of(section_origins, WEFT_ARRAY_LEN(section_origins), name, len);
}
