/* SPDX-License-Identifier: Apache-2.0 */
/* Commands are run by bash, as wg-quick does, since many a file relies on it (`<(...)`); where
 * there is none, by /bin/sh. Messages name the line and not the command, which may hold a secret.
 */
#include "quick/hook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"
#include "os/child.h"
#include "os/file.h"
#include "quick/host.h"
#include "quick/program.h"

/* Nobody waits for more than that when a device ends: what hangs is ended. At the start whoever has
 * called waits, and can call it off. */
#define DOWN_LIMIT_NS (60 * WEFT_NS_PER_S)
#define SHELL_MAX 4096
#define VARIABLES 4
#define VARIABLE_MAX 4200
#define STATUS_SIGNALED 128

static const char *const names[CONF_HOOK_COUNT] = {"PreUp", "PostUp", "PreDown", "PostDown"};

static bool
is_up(enum conf_hook kind)
{
	return kind == CONF_HOOK_PRE_UP || kind == CONF_HOOK_POST_UP;
}

/* NULL: no memory. */
static char *
expand(const char *text, const char *name)
{
	size_t n = strlen(name), len = 0;
	char *out = malloc(strlen(text) * (n > 2 ? n : 2) / 2 + n + 1);
	if (!out) {
		return NULL;
	}
	for (const char *p = text; *p;) {
		if (p[0] == '%' && p[1] == 'i') {
			memcpy(out + len, name, n);
			len += n;
			p += 2;
		} else {
			out[len++] = *p++;
		}
	}
	out[len] = 0;
	return out;
}

static bool
is_variable(const char *entry, const char *like)
{
	size_t n = strcspn(like, "=") + 1;
	return strncmp(entry, like, n) == 0;
}

/* Our environment with extra ones in front. NULL: no memory. */
static char **
environment(char extra[VARIABLES][VARIABLE_MAX], size_t extra_n)
{
	char *const *ours = os_child_environment();
	size_t n = 0, used = 0;
	while (ours[n]) {
		n++;
	}
	char **out = calloc(n + extra_n + 1, sizeof(*out));
	if (!out) {
		return NULL;
	}
	for (; used < extra_n; used++) {
		out[used] = extra[used];
	}
	for (size_t i = 0; i < n; i++) {
		bool is_hidden = false;
		for (size_t k = 0; k < extra_n; k++) {
			is_hidden |= is_variable(ours[i], extra[k]);
		}
		if (!is_hidden) {
			out[used++] = ours[i];
		}
	}
	return out;
}

static char **
make_environment(
	const struct quick_host *h, enum conf_hook kind, char text[VARIABLES][VARIABLE_MAX])
{
	size_t n = 0;
	snprintf(text[n++], VARIABLE_MAX, "WEFT_INTERFACE=%s", h->name);
	snprintf(text[n++], VARIABLE_MAX, "WEFT_CONFIG=%s", h->path);
	snprintf(text[n++], VARIABLE_MAX, "WEFT_HOOK=%s", names[kind]);
	if (!os_child_variable("PATH")) {
		snprintf(text[n++], VARIABLE_MAX,
			"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	}
	return environment(text, n);
}

static void
tell(const struct quick_host *h, enum conf_hook kind, uint32_t line, enum weft_err e, int status)
{
	char why[160];
	if (e == WEFT_ETIMEDOUT) {
		snprintf(why, sizeof(why), "was ended after %d s",
			(int)(DOWN_LIMIT_NS / WEFT_NS_PER_S));
	} else if (e == WEFT_ECANCELED) {
		snprintf(why, sizeof(why), "was called off");
	} else if (e) {
		snprintf(why, sizeof(why), "cannot be run: %s", weft_err_text(e));
	} else if (status > STATUS_SIGNALED) {
		snprintf(why, sizeof(why), "failed with exit status %d (maybe by signal %d)",
			status, status - STATUS_SIGNALED);
	} else {
		snprintf(why, sizeof(why), "failed with exit status %d", status);
	}
	if (is_up(kind)) {
		log_error(
			h->log, "%s:%u: %s %s; all is taken back", h->path, line, names[kind], why);
	} else {
		log_warn(h->log, "%s:%u: %s %s", h->path, line, names[kind], why);
	}
}

static enum weft_err
run_one(const struct quick_host *h, enum conf_hook kind, const struct conf_text *hook,
	char *const *envp)
{
	char shell[SHELL_MAX];
	char *command = expand(hook->text, h->name);
	if (!command) {
		return WEFT_ENOMEM;
	}
	if (os_file_exists("/bin/bash")) {
		snprintf(shell, sizeof(shell), "/bin/bash");
	} else if (!os_child_find("bash", shell, sizeof(shell))) {
		snprintf(shell, sizeof(shell), "/bin/sh");
	}
	const char *const argv[] = {shell, "-c", command, NULL};
	const struct program p = {.path = shell,
		.argv = argv,
		.envp = envp,
		.limit_ns = is_up(kind) ? PROGRAM_ENDLESS : DOWN_LIMIT_NS};
	int status = 0;
	enum weft_err e = program_run(h, &p, &status);
	secret_wipe(command, strlen(command));
	free(command);
	if (e || status != 0) {
		tell(h, kind, hook->pos.line, e, status);
		e = e ? e : WEFT_EIO;
	}
	return e;
}

enum weft_err
hook_run(const struct quick_host *h, const struct conf *c, enum conf_hook kind)
{
	const struct conf_texts *t = &c->interface.hooks[kind];
	if (t->n == 0) {
		return WEFT_OK;
	}
	char(*text)[VARIABLE_MAX] = calloc(VARIABLES, sizeof(*text));
	char **envp = text ? make_environment(h, kind, text) : NULL;
	enum weft_err e = envp ? WEFT_OK : WEFT_ENOMEM;
	for (size_t i = 0; envp && i < t->n; i++) {
		e = run_one(h, kind, &t->v[i], envp);
		if (e && is_up(kind)) {
			break;
		}
	}
	free(envp);
	free(text);
	return is_up(kind) || e == WEFT_ENOMEM ? e : WEFT_OK;
}
