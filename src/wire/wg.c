/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/wg.h"

#include <string.h>

#include "base/bytes.h"

/* Starts a cursor behind type and reserved bytes. */
static bool
begin(struct reader *r, const uint8_t *data, size_t len, enum wire_wg_type type, size_t want)
{
	if (len != want || wire_wg_type(data, len) != type) {
		return false;
	}
	reader_init(r, data + 4, len - 4);
	return true;
}

bool
wire_wg_initiation_decode(const uint8_t *data, size_t len, struct wire_wg_initiation *out)
{
	struct reader r;
	if (!begin(&r, data, len, WIRE_WG_TYPE_INITIATION, WIRE_WG_INITIATION_LEN)) {
		return false;
	}
	out->sender = reader_le32(&r);
	reader_copy(&r, out->ephemeral, sizeof(out->ephemeral));
	reader_copy(&r, out->static_sealed, sizeof(out->static_sealed));
	reader_copy(&r, out->stamp_sealed, sizeof(out->stamp_sealed));
	return !r.failed;
}

bool
wire_wg_response_decode(const uint8_t *data, size_t len, struct wire_wg_response *out)
{
	struct reader r;
	if (!begin(&r, data, len, WIRE_WG_TYPE_RESPONSE, WIRE_WG_RESPONSE_LEN)) {
		return false;
	}
	out->sender = reader_le32(&r);
	out->receiver = reader_le32(&r);
	reader_copy(&r, out->ephemeral, sizeof(out->ephemeral));
	reader_copy(&r, out->empty_sealed, sizeof(out->empty_sealed));
	return !r.failed;
}

bool
wire_wg_cookie_reply_decode(const uint8_t *data, size_t len, struct wire_wg_cookie_reply *out)
{
	struct reader r;
	if (!begin(&r, data, len, WIRE_WG_TYPE_COOKIE_REPLY, WIRE_WG_COOKIE_REPLY_LEN)) {
		return false;
	}
	out->receiver = reader_le32(&r);
	reader_copy(&r, out->nonce, sizeof(out->nonce));
	reader_copy(&r, out->cookie_sealed, sizeof(out->cookie_sealed));
	return !r.failed;
}

void
wire_wg_initiation_encode(const struct wire_wg_initiation *m, uint8_t out[WIRE_WG_INITIATION_LEN])
{
	memset(out, 0, WIRE_WG_INITIATION_LEN);
	store_le32(out, WIRE_WG_TYPE_INITIATION);
	store_le32(out + 4, m->sender);
	memcpy(out + 8, m->ephemeral, sizeof(m->ephemeral));
	memcpy(out + 40, m->static_sealed, sizeof(m->static_sealed));
	memcpy(out + 88, m->stamp_sealed, sizeof(m->stamp_sealed));
}

void
wire_wg_response_encode(const struct wire_wg_response *m, uint8_t out[WIRE_WG_RESPONSE_LEN])
{
	memset(out, 0, WIRE_WG_RESPONSE_LEN);
	store_le32(out, WIRE_WG_TYPE_RESPONSE);
	store_le32(out + 4, m->sender);
	store_le32(out + 8, m->receiver);
	memcpy(out + 12, m->ephemeral, sizeof(m->ephemeral));
	memcpy(out + 44, m->empty_sealed, sizeof(m->empty_sealed));
}

void
wire_wg_cookie_reply_encode(
	const struct wire_wg_cookie_reply *m, uint8_t out[WIRE_WG_COOKIE_REPLY_LEN])
{
	store_le32(out, WIRE_WG_TYPE_COOKIE_REPLY);
	store_le32(out + 4, m->receiver);
	memcpy(out + 8, m->nonce, sizeof(m->nonce));
	memcpy(out + 32, m->cookie_sealed, sizeof(m->cookie_sealed));
}
