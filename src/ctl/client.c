/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/client.h"

#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"
#include "os/fd.h"
#include "os/unixsock.h"
#include "wire/uapi.h"

#define TEXT_MIN (64u << 10)

struct text {
	char *p;
	size_t len, cap;
};

void
ctl_client_free(char *reply, size_t reply_len)
{
	if (reply) {
		secret_wipe(reply, reply_len);
		free(reply);
	}
}

/* Room for one byte at least, and a NUL. */
static enum weft_err
make_room(struct text *t)
{
	if (t->cap - t->len >= 2) {
		return WEFT_OK;
	}
	if (t->len >= CTL_REPLY_MAX) {
		return WEFT_EMSGSIZE;
	}
	size_t cap = t->cap ? t->cap * 2 : TEXT_MIN;
	char *p = malloc(cap);
	if (!p) {
		return WEFT_ENOMEM;
	}
	if (t->p) {
		memcpy(p, t->p, t->len);
		ctl_client_free(t->p, t->len);
	}
	t->p = p;
	t->cap = cap;
	return WEFT_OK;
}

static enum weft_err
read_some(int fd, struct text *t, struct mono deadline)
{
	size_t n = 0;
	enum weft_err e = make_room(t);
	if (!e) {
		e = os_fd_wait(fd, false, deadline);
	}
	if (!e) {
		e = os_fd_read(fd, t->p + t->len, t->cap - t->len - 1, &n);
	}
	t->len += n;
	return e == WEFT_EAGAIN ? WEFT_OK : e;
}

static enum weft_err
ask(int fd, const char *request, struct mono deadline,
	bool (*is_whole)(const char *text, size_t len), struct text *t)
{
	enum weft_err e = os_fd_write_all(fd, request, strlen(request), deadline);
	while (!e && !(t->len > 0 && is_whole(t->p, t->len))) {
		e = read_some(fd, t, deadline);
	}
	if (!e) {
		t->p[t->len] = 0;
	}
	return e;
}

enum weft_err
ctl_client_ask(const char *path, const char *request, struct mono deadline,
	bool (*is_whole)(const char *text, size_t len), char **reply, size_t *reply_len)
{
	struct text t = {0};
	int fd;
	enum weft_err e = os_unixsock_connect(path, deadline, &fd);
	if (e) {
		return e;
	}
	e = ask(fd, request, deadline, is_whole, &t);
	os_fd_close(&fd);
	if (e) {
		ctl_client_free(t.p, t.len);
		return e;
	}
	*reply = t.p;
	*reply_len = t.len;
	return WEFT_OK;
}

enum weft_err
ctl_client_get(const char *path, struct mono deadline, char **reply, size_t *reply_len)
{
	return ctl_client_ask(path, "get=1\n\n", deadline, uapi_reply_is_whole, reply, reply_len);
}

static bool
line_is_whole(const char *text, size_t len)
{
	return text[len - 1] == '\n';
}

static enum weft_err
make_line(const json_t *request, char **out)
{
	char *text = json_dumps(request, JSON_COMPACT);
	if (!text) {
		return WEFT_ENOMEM;
	}
	size_t len = strlen(text);
	char *line = realloc(text, len + 2);
	if (!line) {
		free(text);
		return WEFT_ENOMEM;
	}
	memcpy(line + len, "\n", 2);
	*out = line;
	return WEFT_OK;
}

enum weft_err
ctl_client_request(const char *path, const json_t *request, struct mono deadline, json_t **out)
{
	char *line, *reply;
	size_t len;
	enum weft_err e = make_line(request, &line);
	if (e) {
		return e;
	}
	e = ctl_client_ask(path, line, deadline, line_is_whole, &reply, &len);
	free(line);
	if (e) {
		return e;
	}
	json_t *o = json_loadb(reply, len, 0, NULL);
	ctl_client_free(reply, len);
	if (!json_is_object(o)) {
		json_decref(o);
		return WEFT_EPARSE;
	}
	*out = o;
	return WEFT_OK;
}

enum weft_err
ctl_client_op(const char *path, const char *op, struct mono deadline, json_t **out)
{
	json_t *request = json_pack("{s:s}", "op", op);
	if (!request) {
		return WEFT_ENOMEM;
	}
	enum weft_err e = ctl_client_request(path, request, deadline, out);
	json_decref(request);
	return e;
}

enum weft_err
ctl_client_stop(const char *path, struct mono deadline)
{
	struct text t = {0};
	int fd;
	enum weft_err e = os_unixsock_connect(path, deadline, &fd);
	if (e) {
		return e;
	}
	e = ask(fd, "{\"op\":\"stop\"}\n", deadline, line_is_whole, &t);
	if (!e) {
		json_t *o = json_loadb(t.p, t.len, 0, NULL);
		e = json_object_get(o, "ok") ? WEFT_OK : WEFT_EIO;
		json_decref(o);
	}
	while (!e) {
		e = read_some(fd, &t, deadline);
	}
	os_fd_close(&fd);
	ctl_client_free(t.p, t.len);
	return e == WEFT_ECLOSED ? WEFT_OK : e;
}
