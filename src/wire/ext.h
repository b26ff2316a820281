/* SPDX-License-Identifier: Apache-2.0 */
/* weft's extension frames as bytes and as structs: what lies inside the AEAD of a data message
 * when its first nibble is neither 4 nor 6. docs/protocol.md draws them.
 *
 * Decoders check every field against the bounds below and leave *out alone on failure; bytes
 * behind a HELLO or a FEEDBACK are ignored, for later versions. A frame is sealed without
 * padding, since a REPAIR ends with its plaintext. Encoders are given structs within bounds.
 * Integers are little-endian. */
#ifndef WEFT_WIRE_EXT_H
#define WEFT_WIRE_EXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_EXT_VERSION 1

enum wire_ext_type {
	WIRE_EXT_TYPE_NONE = 0,
	WIRE_EXT_TYPE_HELLO = 1,
	WIRE_EXT_TYPE_REPAIR = 2,
	WIRE_EXT_TYPE_FEEDBACK = 3,
};

/* Is this plaintext a frame of ours, and not an IP packet? */
static inline bool
wire_ext_is_frame(const uint8_t *data, size_t len)
{
	return len > 0 && data[0] >> 4 != 4 && data[0] >> 4 != 6;
}

/* The type in the first byte; NONE when unknown or the frame is empty. */
static inline enum wire_ext_type
wire_ext_type(const uint8_t *data, size_t len)
{
	return len > 0 && data[0] >= WIRE_EXT_TYPE_HELLO && data[0] <= WIRE_EXT_TYPE_FEEDBACK
		       ? (enum wire_ext_type)data[0]
		       : WIRE_EXT_TYPE_NONE;
}

/* --- HELLO --- */
#define WIRE_EXT_NAME_MAX 63
/* type, flags, versions, ciphers, name's length, datagram_max, features, 3 clocks, name */
#define WIRE_EXT_HELLO_MAX (24 + WIRE_EXT_NAME_MAX)
/* Bits of features. Unknown ones are ignored. */
#define WIRE_EXT_FEATURE_FEC 1u
/* Bits of ciphers: what the sender of the HELLO is ready to receive and wants used. */
#define WIRE_EXT_CIPHER_CHACHA20_POLY1305 1u
#define WIRE_EXT_CIPHER_AES_256_GCM 2u

struct wire_ext_hello {
	bool is_answer;
	uint8_t version_min, version_max; /* 1..255, min <= max */
	uint8_t ciphers;
	uint32_t features;
	uint16_t datagram_max; /* largest outer UDP payload the sender can receive; 0 = not said */
	uint32_t clock_us;     /* sender's clock when it was sent, modulo 2^32 */
	uint32_t echo_us;      /* answer: clock_us of the HELLO answered; else 0 */
	uint32_t delay_us;     /* answer: from its arrival to this one's departure; else 0 */
	uint8_t name_len;      /* 0..WIRE_EXT_NAME_MAX */
	char name[WIRE_EXT_NAME_MAX + 1]; /* printable ASCII (0x21..0x7e) only; NUL-terminated */
};

/* Returns the length written; 0 when cap is too small. */
size_t wire_ext_hello_encode(const struct wire_ext_hello *h, uint8_t *out, size_t cap);
bool wire_ext_hello_decode(const uint8_t *data, size_t len, struct wire_ext_hello *out);

/* --- REPAIR --- */
#define WIRE_EXT_SPAN_MAX 128
#define WIRE_EXT_BITMAP_MAX (WIRE_EXT_SPAN_MAX / 8)
/* type, flags, span - 1, back as 16 bit, bitmap */
#define WIRE_EXT_REPAIR_HEADER_MAX (5 + WIRE_EXT_BITMAP_MAX)

/* Packets of up to WIRE_EXT_SMALL_MAX bytes are of the small class. */
#define WIRE_EXT_SMALL_MAX 256
enum wire_ext_class {
	WIRE_EXT_CLASS_SMALL,
	WIRE_EXT_CLASS_LARGE,
};
#define WIRE_EXT_CLASS_COUNT 2

enum wire_ext_repair_why {
	WIRE_EXT_WHY_AHEAD,  /* proactive */
	WIRE_EXT_WHY_ANSWER, /* to a FEEDBACK */
	WIRE_EXT_WHY_TAIL,   /* tail probe */
};

/* A combination of the source packets of one class whose counters are base + i with bit i of
 * `sources` set, i < span. Bit i is sources[i / 8] >> (i % 8) & 1. On the wire the base is `back`,
 * the repair's own counter minus base, and the bitmap is left out when all bits are set.
 * Coefficients follow from the repair's own counter.
 *
 * A clear bit speaks as well: that counter carries no source of the class that a repair could
 * bring back, or one that the receiver had already when it wrote the FEEDBACK answered. So a
 * receiver that misses it takes it for no source of the class, whatever `why` says; an answer may
 * leave out what was not asked for, since a FEEDBACK lists all that is missing in its spans, and
 * what is missing later was missing then. With is_alone all this holds for the other class too:
 * a clear bit is no source at all. A sender covers no counter whose source it has forgotten or
 * never remembered. No bit set: a frame that says just that. */
struct wire_ext_repair {
	enum wire_ext_class class;
	enum wire_ext_repair_why why;
	bool is_alone;
	uint8_t span;  /* 1..WIRE_EXT_SPAN_MAX */
	uint16_t back; /* own counter - base; span..65535, since all of the span came before */
	uint8_t sources[WIRE_EXT_BITMAP_MAX]; /* bits from span on are zero */
	const uint8_t *payload; /* decoded: into the frame; the combination of [len | packet] */
	size_t payload_len;     /* 0 with no source; else 2 + 20 at least */
};

/* Writes the header alone; the payload follows at the returned length. 0: cap is too small. */
size_t wire_ext_repair_encode(const struct wire_ext_repair *r, uint8_t *out, size_t cap);
bool wire_ext_repair_decode(const uint8_t *data, size_t len, struct wire_ext_repair *out);

/* --- FEEDBACK --- */
#define WIRE_EXT_BLOCKS_MAX 8

/* Counters that are missing: base + i with bit i of missing set. All that are missing between the
 * first and the last are listed, those too that were asked for a moment ago, so that answers
 * cover them together; the last is older than the reordering grace. */
struct wire_ext_block {
	uint16_t back; /* highest - base; span - 1 .. 65535 */
	uint8_t span;  /* 1..WIRE_EXT_SPAN_MAX */
	uint8_t want;  /* repairs asked for over these beyond what arrived up to `highest` and what
			* was  asked for within the last round trip, 0..64; repairs over them that
			* left  after `highest` count. May include counters that carry no source. */
	uint8_t missing[WIRE_EXT_BITMAP_MAX];
};

/* About the session that it travels in, in the other direction. Totals count modulo 2^32 since
 * the session began. */
struct wire_ext_feedback {
	uint32_t highest;  /* low half of the highest counter received */
	uint32_t received; /* packets of any kind */
	uint32_t lost;     /* missing after the reordering grace, before any recovery */
	uint32_t runs;     /* runs of consecutive counters that these were lost in */
	uint32_t recovered_ahead, recovered_answer; /* by repairs sent ahead; on request */
	uint32_t given_up; /* lost for good (of any kind: repairs too unless known) */
	uint32_t clock_us; /* receiver's clock when `highest` arrived */
	uint32_t delay_us; /* from then to the departure of this */
	/* The packet that came last before the newest gap: highest minus its counter, and how long
	 * before `highest` it arrived. What a queue was like when it dropped a packet shows in the
	 * one before, and no longer in `highest`. back 0: none. */
	uint16_t edge_back;
	uint32_t edge_us;
	uint8_t blocks_n; /* 0..WIRE_EXT_BLOCKS_MAX */
	struct wire_ext_block blocks[WIRE_EXT_BLOCKS_MAX];
};
/* type, blocks, 9 totals, blocks with full bitmaps, edge */
#define WIRE_EXT_FEEDBACK_MAX (2 + 9 * 4 + WIRE_EXT_BLOCKS_MAX * (4 + WIRE_EXT_BITMAP_MAX) + 6)

size_t wire_ext_feedback_encode(const struct wire_ext_feedback *f, uint8_t *out, size_t cap);
bool wire_ext_feedback_decode(const uint8_t *data, size_t len, struct wire_ext_feedback *out);

#endif
