/* SPDX-License-Identifier: Apache-2.0 */
#include "ext_model.h"

#include <string.h>

/* A little-endian number at `at`. */
static uint32_t
number(const uint8_t *d, size_t at, size_t bytes)
{
	uint32_t v = 0;
	for (size_t i = 0; i < bytes; i++) {
		v += (uint32_t)d[at + i] << (8 * i);
	}
	return v;
}

static bool
bit(const uint8_t *d, size_t i)
{
	return d[i / 8] >> (i % 8) & 1;
}

static void
set_bit(uint8_t *d, size_t i)
{
	d[i / 8] = (uint8_t)(d[i / 8] | 1u << (i % 8));
}

bool
ext_model_hello(const uint8_t *d, size_t n, struct wire_ext_hello *out)
{
	if (n < 24 || d[0] != 1) {
		return false;
	}
	memset(out, 0, sizeof(*out));
	out->is_answer = d[1] % 2 == 1;
	out->version_min = d[2];
	out->version_max = d[3];
	out->ciphers = d[4];
	out->name_len = d[5];
	out->datagram_max = (uint16_t)number(d, 6, 2);
	out->features = number(d, 8, 4);
	out->clock_us = number(d, 12, 4);
	out->echo_us = number(d, 16, 4);
	out->delay_us = number(d, 20, 4);
	bool good = d[2] >= 1 && d[3] >= d[2] && d[5] < 64 && n >= 24u + d[5];
	good = good && (out->is_answer || (out->echo_us == 0 && out->delay_us == 0));
	for (size_t i = 0; good && i < d[5]; i++) {
		out->name[i] = (char)d[24 + i];
		good = d[24 + i] > ' ' && d[24 + i] < 127;
	}
	return good;
}

bool
ext_model_repair(const uint8_t *d, size_t n, struct wire_ext_repair *out)
{
	if (n < 5 || d[0] != 2 || d[1] >= 32 || d[2] >= 128) {
		return false;
	}
	memset(out, 0, sizeof(*out));
	size_t at = 5, span = d[2] + 1u, set = 0;
	out->class = d[1] % 2 ? WIRE_EXT_CLASS_LARGE : WIRE_EXT_CLASS_SMALL;
	out->why = (enum wire_ext_repair_why)(d[1] / 2 % 4);
	out->span = (uint8_t)span;
	out->back = (uint16_t)number(d, 3, 2);
	bool has_bitmap = d[1] / 8 % 2 == 1;
	out->is_alone = d[1] / 16 == 1;
	if (has_bitmap) {
		at += (span + 7) / 8;
		if (n < at) {
			return false;
		}
		for (size_t i = span; i < (at - 5) * 8; i++) {
			if (bit(d + 5, i)) {
				return false;
			}
		}
	}
	for (size_t i = 0; i < span; i++) {
		if (!has_bitmap || bit(d + 5, i)) {
			set_bit(out->sources, i);
			set++;
		}
	}
	out->payload = d + at;
	out->payload_len = n - at;
	return d[1] / 2 % 4 != 3 && out->back >= span && !(has_bitmap && set == span) &&
	       (set == 0 ? n == at : n >= at + 22);
}

bool
ext_model_feedback(const uint8_t *d, size_t n, struct wire_ext_feedback *out)
{
	if (n < 38 || d[0] != 3 || d[1] > 8) {
		return false;
	}
	memset(out, 0, sizeof(*out));
	out->blocks_n = d[1];
	uint32_t *totals[9] = {&out->highest, &out->received, &out->lost, &out->runs,
		&out->recovered_ahead, &out->recovered_answer, &out->given_up, &out->clock_us,
		&out->delay_us};
	for (size_t i = 0; i < 9; i++) {
		*totals[i] = number(d, 2 + 4 * i, 4);
	}
	size_t at = 38;
	for (size_t k = 0; k < d[1]; k++) {
		struct wire_ext_block *b = &out->blocks[k];
		if (n < at + 4) {
			return false;
		}
		size_t span = d[at + 2] + 1u, bytes = (span + 7) / 8;
		if (span > 128 || d[at + 3] > 64 || n < at + 4 + bytes) {
			return false;
		}
		b->back = (uint16_t)number(d, at, 2);
		b->span = (uint8_t)span;
		b->want = d[at + 3];
		if (b->back < span - 1) {
			return false;
		}
		for (size_t i = 0; i < bytes * 8; i++) {
			if (bit(d + at + 4, i)) {
				if (i >= span) {
					return false;
				}
				set_bit(b->missing, i);
			}
		}
		at += 4 + bytes;
	}
	if (n >= at + 6 && number(d, at, 2) != 0) {
		out->edge_back = (uint16_t)number(d, at, 2);
		out->edge_us = number(d, at + 2, 4);
	}
	return true;
}

bool
ext_model_same_hello(const struct wire_ext_hello *a, const struct wire_ext_hello *b)
{
	return a->is_answer == b->is_answer && a->version_min == b->version_min &&
	       a->version_max == b->version_max && a->ciphers == b->ciphers &&
	       a->features == b->features && a->datagram_max == b->datagram_max &&
	       a->clock_us == b->clock_us && a->echo_us == b->echo_us &&
	       a->delay_us == b->delay_us && a->name_len == b->name_len &&
	       memcmp(a->name, b->name, sizeof(a->name)) == 0;
}

bool
ext_model_same_repair(const struct wire_ext_repair *a, const struct wire_ext_repair *b)
{
	return a->class == b->class && a->why == b->why && a->is_alone == b->is_alone &&
	       a->span == b->span && a->back == b->back &&
	       memcmp(a->sources, b->sources, sizeof(a->sources)) == 0 &&
	       a->payload_len == b->payload_len &&
	       (a->payload_len == 0 || memcmp(a->payload, b->payload, a->payload_len) == 0);
}

static bool
same_block(const struct wire_ext_block *a, const struct wire_ext_block *b)
{
	return a->back == b->back && a->span == b->span && a->want == b->want &&
	       memcmp(a->missing, b->missing, sizeof(a->missing)) == 0;
}

bool
ext_model_same_feedback(const struct wire_ext_feedback *a, const struct wire_ext_feedback *b)
{
	bool same = a->highest == b->highest && a->received == b->received && a->lost == b->lost &&
		    a->runs == b->runs && a->recovered_ahead == b->recovered_ahead &&
		    a->recovered_answer == b->recovered_answer && a->given_up == b->given_up &&
		    a->clock_us == b->clock_us && a->delay_us == b->delay_us &&
		    a->edge_back == b->edge_back && a->edge_us == b->edge_us &&
		    a->blocks_n == b->blocks_n;
	for (size_t i = 0; same && i < a->blocks_n; i++) {
		same = same_block(&a->blocks[i], &b->blocks[i]);
	}
	return same;
}
