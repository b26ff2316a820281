/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sandbox.h"

#include <stdio.h>
#include <string.h>

#include "node/node.h"
#include "os/filter.h"
#include "os/privilege.h"
#include "os/process.h"
#include "weft_config.h"

#define USER_FIRST "weft"
#define USER_SECOND "nobody"
#define USER_NONE "none"

/* Of all threads: the first failure. */
struct step {
	unsigned keep;
	enum weft_err e;
};

static void
prepare(void *ctx)
{
	struct step *s = ctx;
	enum weft_err e = os_privilege_prepare();
	s->e = s->e ? s->e : e;
}

static void
keep(void *ctx)
{
	struct step *s = ctx;
	enum weft_err e = os_privilege_keep(s->keep);
	s->e = s->e ? s->e : e;
}

static enum weft_err
on_all_threads(struct node *n, void (*call)(void *ctx), struct step *s)
{
	node_call_on_threads(n, call, s);
	call(s);
	return s->e;
}

/* user->name is empty where nobody is to be become. */
static enum weft_err
choose_user(const struct sandbox_config *c, struct os_privilege_user *user)
{
	user->name[0] = 0;
	if ((c->user && strcmp(c->user, USER_NONE) == 0) || (!c->user && !os_process_is_root())) {
		return WEFT_OK;
	}
	enum weft_err e = os_privilege_find_user(c->user ? c->user : USER_FIRST, user);
	if (e && !c->user) {
		e = os_privilege_find_user(USER_SECOND, user);
	}
	if (e) {
		log_error(c->log,
			"%s: there is no user %s to become for the network: name one with --user, "
			"or "
			"--user none",
			c->name, c->user ? c->user : USER_FIRST " and no user " USER_SECOND);
	}
	return e;
}

static enum weft_err
become(const struct sandbox_config *c, struct os_privilege_user *user)
{
	if (!user->name[0]) {
		return WEFT_OK;
	}
	enum weft_err e = os_privilege_become(user);
	if (e && !c->user) {
		/* A container whose root may not, or that has one user alone. */
		log_warn(c->log, "%s: cannot become %s (%s); capabilities go all the same", c->name,
			user->name, weft_err_text(e));
		user->name[0] = 0;
		return WEFT_OK;
	}
	if (e) {
		log_error(
			c->log, "%s: cannot become %s: %s", c->name, user->name, weft_err_text(e));
	}
	return e;
}

static enum weft_err
enter_filter(const struct sandbox_config *c, struct ctl_sandbox *out)
{
	if (!os_filter_is_possible()) {
		os_privilege_stay_traceable(); /* a sanitizer looks for leaks that way */
	}
	enum weft_err e = os_filter_enter(WEFT_FILTER_KILLS);
	out->has_filter = !e;
	if (e == WEFT_ENOTSUP) {
		log_info(c->log, "%s: system calls are not filtered: %s", c->name,
			os_filter_is_possible() ? "the kernel has no seccomp filters"
						: "this build has a sanitizer");
		e = WEFT_OK;
	} else if (e) {
		log_error(c->log, "%s: cannot filter system calls: %s", c->name, weft_err_text(e));
	}
	return e;
}

enum weft_err
sandbox_enter(const struct sandbox_config *c, struct ctl_sandbox *out)
{
	struct os_privilege_user user;
	struct step s = {.keep = OS_PRIVILEGE_NET_ADMIN};
	s.keep |= c->has_low_port ? OS_PRIVILEGE_NET_BIND_SERVICE : 0;
	enum weft_err e = choose_user(c, &user);
	if (e) {
		return e;
	}
	e = on_all_threads(c->node, prepare, &s);
	e = e ? e : become(c, &user);
	e = e ? e : on_all_threads(c->node, keep, &s);
	if (s.e) {
		log_error(
			c->log, "%s: cannot give up capabilities: %s", c->name, weft_err_text(s.e));
	}
	e = e ? e : enter_filter(c, out);
	if (!e) {
		out->is_on = true;
		snprintf(out->user, sizeof(out->user), "%s", user.name);
	}
	return e;
}
