/* SPDX-License-Identifier: Apache-2.0 */
/* What a network process that is not ours any more may send its steward: a request, and a state,
 * which then is put into a file. What is understood comes back the same. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "fuzz.h"
#include "wire/steward.h"

static struct wire_steward_request request;
static struct wire_steward_reply reply;
static uint8_t bytes[WIRE_STEWARD_REPLY_MAX];

static const char file[] =
	"# a comment\n[Interface]\nPrivateKey = YAnz5TF+lXXJte14tji3zlMNftTL41Wn6LMNTOQgIG8=\n"
	"PostDown = true\n[Peer]\nPublicKey = xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg=\n"
	"AllowedIPs = 10.0.0.0/8\n";

static void
edit(const struct conf_state *s)
{
	char *text;
	size_t len;
	enum weft_err e = conf_edit(file, sizeof(file) - 1, s, &text, &len);
	if (e) {
		return;
	}
	/* Hooks are not theirs to change. */
	const char *hook = strstr(text, "PostDown = true\n");
	weft_assert(hook && !strstr(hook + 1, "PostDown") && !strstr(text, "PostUp"));
	conf_text_free(text, len);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct conf_state s;
	if (size > 0 && wire_steward_request_decode(data, size, &request) == WEFT_OK) {
		weft_assert(wire_steward_request_encode(&request, bytes) == size);
		weft_assert(memcmp(bytes, data, size) == 0);
	}
	if (size > 0 && wire_steward_reply_decode(data, size, &reply) == WEFT_OK) {
		weft_assert(wire_steward_reply_encode(&reply, bytes) == size);
	}
	if (wire_steward_state_decode(data, size, &s) == WEFT_OK) {
		char *again;
		size_t len;
		weft_assert(wire_steward_state_encode(&s, &again, &len) == WEFT_OK && len == size);
		conf_text_free(again, len);
		edit(&s);
		wire_steward_state_fini(&s);
	}
	return 0;
}
