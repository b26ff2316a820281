/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the configuration reader share. Not for others. */
#ifndef WEFT_WIRE_CONF_INTERNAL_H
#define WEFT_WIRE_CONF_INTERNAL_H

#include "wire/conf.h"

enum conf_section {
	CONF_SECTION_NONE, /* before the first */
	CONF_SECTION_INTERFACE,
	CONF_SECTION_PEER,
	CONF_SECTION_UNKNOWN, /* was reported; its lines are passed over */
};

enum conf_key_id {
	CONF_KEY_PRIVATE_KEY,
	CONF_KEY_LISTEN_PORT,
	CONF_KEY_FWMARK,
	CONF_KEY_ADDRESS,
	CONF_KEY_DNS,
	CONF_KEY_MTU,
	CONF_KEY_TABLE,
	CONF_KEY_PRE_UP,
	CONF_KEY_POST_UP,
	CONF_KEY_PRE_DOWN,
	CONF_KEY_POST_DOWN,
	CONF_KEY_SAVE_CONFIG,
	CONF_KEY_WORKERS,
	CONF_KEY_OFFLOAD,
	CONF_KEY_AEAD,
	CONF_KEY_PUBLIC_KEY,
	CONF_KEY_NAME,
	CONF_KEY_PRESHARED_KEY,
	CONF_KEY_ALLOWED_IPS,
	CONF_KEY_ENDPOINT,
	CONF_KEY_PERSISTENT_KEEPALIVE,
	CONF_KEY_EXTENSIONS,
	CONF_KEY_FEC,
	CONF_KEY_FEC_DELAY,
	CONF_KEY_CIPHER,
	CONF_KEY_COUNT
};

#define CONF_TRAIT_SECRET 1u       /* its value is never repeated in a message */
#define CONF_TRAIT_MAY_BE_EMPTY 2u /* an empty value is as good as no line */
#define CONF_TRAIT_HOOK 4u         /* the value is a shell command */
#define CONF_TRAIT_DEFAULT 8u      /* of [Peer], and in [Interface] what peers have by default */

struct conf_key {
	const char *name;
	enum conf_key_id id;
	enum conf_section section;
	unsigned traits;
};

/* A piece of the file. pos is that of its first byte. */
struct conf_value {
	const char *p;
	size_t len;
	struct conf_pos pos;
	const struct conf_key *key;
};

struct conf_reader {
	const struct conf_options *options;
	struct conf_report *report;
	struct conf *conf;
	enum conf_section section;
	struct conf_peer *peer;   /* of the section; NULL outside [Peer] */
	bool has_seen_public_key; /* in this [Peer], right or wrong */
	bool has_said_outside;    /* lines before any section are reported once */
	bool has_memory;          /* false: reading ends with WEFT_ENOMEM */
};

/* --- conf_item.c --- */
/* Stores a value that is not empty; its key belongs to the section. */
void conf_item_read(struct conf_reader *p, const struct conf_value *v);
/* Returns v with room for one more item behind n, or NULL. An old block is wiped: it may hold
 * keys. */
void *conf_grow(void *v, size_t n, size_t *cap, size_t size);

/* --- conf_key.c --- */
bool conf_key_belongs(const struct conf_key *key, enum conf_section section);
/* Any letter case; blanks inside are passed over. NULL: unknown. */
const struct conf_key *conf_key_find(const char *name, size_t len);
/* The key that was probably meant, of the same section if possible; NULL: none is near. */
const struct conf_key *conf_key_near(const char *name, size_t len, enum conf_section section);
/* "AmneziaWG" when the key belongs to a known other program; NULL otherwise. */
const char *conf_key_origin(const char *name, size_t len);
const char *conf_section_origin(const char *name, size_t len);

/* --- conf_note.c --- */
WEFT_PRINTF(6, 7)
void conf_note_add(struct conf_report *r, enum conf_severity severity, struct conf_pos pos,
	uint32_t line2, const char *key, const char *fmt, ...);
/* An error at the value's first byte. Returns false, for the caller to pass on. */
WEFT_PRINTF(3, 4)
bool conf_value_refuse(struct conf_report *r, const struct conf_value *v, const char *fmt, ...);
WEFT_PRINTF(3, 4)
void conf_value_warn(struct conf_report *r, const struct conf_value *v, const char *fmt, ...);
void conf_report_sort(struct conf_report *r);
/* The value in quotes with a blank after it, or nothing when it might be part of a key, is long
 * or cannot be printed. Returns out. */
#define CONF_QUOTE_MAX 52
char *conf_value_quote(const struct conf_value *v, char out[CONF_QUOTE_MAX]);
/* The same for an unknown name, without quotes. near: the known one that it resembles, or NULL;
 * what resembles one is no key. */
char *conf_value_name(
	const struct conf_value *v, const struct conf_key *near, char out[CONF_NOTE_KEY_MAX]);

/* --- conf_value.c: read the whole value; on failure an error is in the report --- */
bool conf_char_is_blank(char c);
/* Case-blind comparison with a word in lower case. */
bool conf_value_is(const struct conf_value *v, const char *word);
struct conf_value conf_value_trim(struct conf_value v);
/* Takes the next item of a list off *rest; false at the end. Separators are commas, and blanks
 * too where the stock tools split there. Empty items come out as such. */
bool conf_value_next(struct conf_value *rest, bool splits_at_blanks, struct conf_value *item);
bool conf_value_key(struct conf_report *r, const struct conf_value *v, uint8_t out[KEY_LEN]);
bool conf_value_number(struct conf_report *r, const struct conf_value *v, uint32_t min,
	uint32_t max, uint32_t *out);
bool conf_value_fwmark(struct conf_report *r, const struct conf_value *v, uint32_t *out);
bool conf_value_switch(struct conf_report *r, const struct conf_value *v, const char *on,
	const char *off, bool *out);
bool conf_value_table(
	struct conf_report *r, const struct conf_value *v, struct conf_interface *out);
bool conf_value_allowed(struct conf_report *r, const struct conf_value *v, struct ip_prefix *out);
bool conf_value_address(struct conf_report *r, const struct conf_value *v, struct ip_prefix *out);
bool conf_value_dns(struct conf_report *r, const struct conf_value *v, bool *is_server);
/* --- conf_name.c --- */
/* *out is allocated. */
bool conf_value_peer_name(struct conf_reader *p, const struct conf_value *v, char **out);
/* Are there two peers of one name? */
void conf_names_check(struct conf_reader *p);
/* --- conf_policy.c --- */
bool conf_value_fec(struct conf_report *r, const struct conf_value *v, struct conf_policy *out);
bool conf_value_cipher(struct conf_report *r, const struct conf_value *v, struct conf_policy *out);
/* Gives each peer what it does not say itself. */
void conf_policy_spread(struct conf *c);
/* --- conf_host.c --- */
/* Letters, digits, '-' and '_' in labels of 1 to 63, a final dot allowed, the last label not a
 * number. NULL, or what is wrong with it. */
const char *conf_host_fault(const char *p, size_t len);
/* host is allocated; *has_memory = false when that failed. */
bool conf_value_endpoint(struct conf_report *r, const struct conf_value *v,
	struct conf_endpoint *out, bool *has_memory);

#endif
