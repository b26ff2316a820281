/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever a client writes to the control socket, it gets lines of JSON: replies, and errors with
 * codes of docs/control.md; and the socket goes on. */
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "../test/unit/ctl/fake_node.h"
#include "base/assert.h"
#include "fuzz.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/unixsock.h"

#define PEERS 3
#define INPUT_MAX (200u << 10)

static const char last_request[] = "\n{\"op\":\"version\"}\n";

static struct node node;

static void
end(void)
{
	node.has_stopped = true; /* it had no thread */
	fake_node_fini(&node);
}

static void
begin(void)
{
	fake_node_init(&node);
	for (unsigned i = 1; i <= PEERS; i++) {
		fake_node_add_peer(&node, i);
	}
	weft_assert(atexit(end) == 0 && signal(SIGPIPE, SIG_IGN) != SIG_ERR);
}

static bool
is_known_code(const char *code)
{
	static const char *const codes[] = {"parse", "request", "unknown_op", "too_long", "value",
		"config", "unknown_peer", "memory"};
	for (size_t i = 0; code && i < WEFT_ARRAY_LEN(codes); i++) {
		if (strcmp(code, codes[i]) == 0) {
			return true;
		}
	}
	return false;
}

/* False: nothing that matters follows. */
static bool
check_line(const char *text, size_t len)
{
	json_t *o = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	const json_t *error = json_object_get(o, "error");
	weft_assert(json_is_object(o));
	weft_assert(!error || is_known_code(json_string_value(json_object_get(error, "code"))));
	weft_assert(!error || json_string_length(json_object_get(error, "text")) > 0);
	bool is_last = json_object_get(o, "version") && !json_object_get(o, "device");
	json_decref(o);
	return !is_last;
}

/* Takes whole lines out of text. */
static bool
check_lines(char *text, size_t *len)
{
	char *newline;
	while ((newline = memchr(text, '\n', *len))) {
		size_t line_len = (size_t)(newline - text) + 1;
		if (!check_line(text, line_len)) {
			return false;
		}
		*len -= line_len;
		memmove(text, text + line_len, *len);
	}
	return true;
}

/* Until the reply to the last request has come, or the end of the connection. */
static void
converse(int fd, const char *text, size_t len)
{
	static char came[1u << 20];
	size_t at = 0, came_len = 0, n;
	enum weft_err e = WEFT_OK;
	while (!e || e == WEFT_EAGAIN) {
		if (at < len && os_fd_write(fd, text + at, len - at, &n) == WEFT_OK) {
			at += n;
		}
		struct mono now = os_clock_mono();
		os_loop_wait(node.loop, now);
		ctl_control_turn(node.control, now);
		weft_assert(came_len < sizeof(came));
		e = os_fd_read(fd, came + came_len, sizeof(came) - came_len, &n);
		came_len += e ? 0 : n;
		if (!e && !check_lines(came, &came_len)) {
			return;
		}
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char text[INPUT_MAX + sizeof(last_request)];
	int fd;
	if (!node.loop) {
		begin();
	}
	size_t len = size < INPUT_MAX ? size : INPUT_MAX;
	memcpy(text, data, len);
	memcpy(text + len, last_request, sizeof(last_request) - 1);
	struct mono soon = mono_add_ns(os_clock_mono(), 10 * WEFT_NS_PER_S);
	weft_assert(os_unixsock_connect(node.control_path, soon, &fd) == WEFT_OK);
	converse(fd, text, len + sizeof(last_request) - 1);
	os_fd_close(&fd);
	os_loop_wait(node.loop, os_clock_mono());
	return 0;
}
