/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of the UAPI: cut anywhere they decode the same, and what was accepted reads without
 * a failed assertion. The same bytes as a reply. */
#include <string.h>

#include "base/assert.h"
#include "fuzz.h"
#include "wire/uapi.h"

static void
read_set(const struct uapi_request *r)
{
	struct uapi_set_device device;
	struct uapi_set_cursor cursor;
	struct uapi_set_peer peer;
	size_t peers = 0, allowed = 0;

	uapi_set_begin(r, &device, &cursor);
	while (uapi_set_peer(&cursor, &peer)) {
		struct ip_prefix prefix;
		bool is_removal;
		peers++;
		weft_assert(!peer.scope[0] || peer.has_endpoint);
		while (uapi_set_allowed(&peer, &prefix, &is_removal)) {
			allowed++;
		}
	}
	weft_assert(peers * 76 + allowed * 13 <= r->len);
	weft_assert(cursor.left == 0);
}

static void
check_same(const struct uapi_decoder *a, const struct uapi_decoder *b)
{
	weft_assert(a->request.kind == b->request.kind && a->request.error == b->request.error);
	weft_assert(a->request.len == b->request.len);
	weft_assert(a->request.len == 0 ||
		    memcmp(a->request.text, b->request.text, a->request.len) == 0);
}

static void
decode(const char *data, size_t len, size_t piece)
{
	struct uapi_decoder whole = {0}, cut = {0};
	size_t at = 0, cut_at = 0;

	while (at < len) {
		size_t used, cut_used;
		enum uapi_step step = uapi_decoder_feed(&whole, data + at, len - at, &used);
		enum uapi_step cut_step = UAPI_STEP_MORE;
		at += used;
		while (cut_at < len && cut_step == UAPI_STEP_MORE) {
			size_t n = len - cut_at < piece ? len - cut_at : piece;
			cut_step = uapi_decoder_feed(&cut, data + cut_at, n, &cut_used);
			cut_at += cut_used;
		}
		weft_assert(step == cut_step);
		check_same(&whole, &cut);
		if (step != UAPI_STEP_DONE) {
			break;
		}
		weft_assert(at == cut_at);
		if (whole.request.kind == UAPI_SET && whole.request.error == 0) {
			read_set(&whole.request);
		}
		uapi_decoder_next(&whole);
		uapi_decoder_next(&cut);
	}
	uapi_decoder_fini(&whole);
	uapi_decoder_fini(&cut);
}

static void
read_reply(const char *data, size_t len)
{
	struct uapi_device_info device;
	struct uapi_peer_info peer;
	struct uapi_reply_cursor cursor, lines;
	int error;

	if (uapi_reply_begin(data, len, &device, &error, &cursor)) {
		return;
	}
	weft_assert(error >= 0);
	while (uapi_reply_peer(&cursor, &peer, &lines) == WEFT_OK) {
		struct ip_prefix prefix;
		while (uapi_reply_allowed(&lines, &prefix) == WEFT_OK) {
		}
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	decode((const char *)data, len, 1);
	decode((const char *)data, len, 7);
	read_reply((const char *)data, len);
	return 0;
}
