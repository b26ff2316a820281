/* SPDX-License-Identifier: Apache-2.0 */
#include "quick/around.h"

#include <stdio.h>

#include "node/left.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/netlink.h"
#include "os/privilege.h"
#include "os/process.h"
#include "os/unixsock.h"
#include "quick/firewall.h"
#include "quick/hook.h"
#include "quick/save.h"
#include "wire/conf.h"

#define RUN_DIR "/run/weft"
#define FIX_MAX 320
#define PATH_BYTES 4096

/* What a process holds goes a moment after its end. */
#define DYING_TRIES 30
#define DYING_NS (10 * WEFT_NS_PER_MS)

static enum weft_err
take_lock(struct around *a)
{
	a->lock_fd = -1;
	snprintf(a->lock_path, sizeof(a->lock_path), RUN_DIR "/%s.lock", a->host.name);
	snprintf(a->left_path, sizeof(a->left_path), RUN_DIR "/%s.left", a->host.name);
	enum weft_err e = os_file_mkdir(RUN_DIR, 0755);
	if (e) {
		return e;
	}
	e = os_file_lock(a->lock_path, 0600, &a->lock_fd);
	for (int i = 0; e == WEFT_EEXIST && i < DYING_TRIES; i++) {
		os_clock_sleep_ns(DYING_NS);
		e = os_file_lock(a->lock_path, 0600, &a->lock_fd);
	}
	return e;
}

static void
drop_lock(struct around *a)
{
	if (a->lock_fd >= 0) {
		os_file_unlock(a->lock_path, &a->lock_fd);
	}
}

/* Sockets of a killed process refuse. Another implementation may serve the second. */
static bool
clean_sockets(const struct quick_host *h)
{
	bool is_done = false;
	for (size_t i = 0; i < WEFT_ARRAY_LEN(h->sockets); i++) {
		int fd;
		if (!h->sockets[i] || !os_file_exists(h->sockets[i])) {
			continue;
		}
		enum weft_err e = os_unixsock_connect(
			h->sockets[i], mono_add_ns(os_clock_mono(), WEFT_NS_PER_S), &fd);
		if (!e) {
			os_fd_close(&fd);
		} else if (e == WEFT_ENOENT || e == WEFT_EREFUSED) {
			is_done |= os_file_remove(h->sockets[i]) == WEFT_OK;
		}
	}
	return is_done;
}

/* SaveConfig may have been killed in the middle. */
static bool
clean_file(const struct quick_host *h)
{
	char path[PATH_BYTES];
	return h->path && h->path[0] && os_file_real(h->path, path, sizeof(path)) == WEFT_OK &&
	       save_clean(path);
}

/* Nothing of it is ours: we hold the lock. True: there was something. */
static bool
clean(struct around *a)
{
	/* The note goes last: whoever is killed here leaves what the next start can know of. */
	bool has_left = os_file_exists(a->left_path);
	if (has_left) {
		left_clean(a->left_path, !firewall_unset(&a->host), a->host.log);
	}
	has_left |= os_file_sweep(a->left_path);
	bool has_dns = dns_clean(&a->host);
	bool has_sockets = clean_sockets(&a->host);
	bool has_file = clean_file(&a->host);
	return has_left || has_dns || has_sockets || has_file;
}

/* Hooks must not run for nothing. Without the right to look, the start itself fails. */
static bool
is_taken(const char *name)
{
	struct os_netlink *nl;
	struct os_link_info link;
	if (os_netlink_open(&nl)) {
		return false;
	}
	bool is_there = os_netlink_link_by_name(nl, name, &link) == WEFT_OK;
	for (int i = 0; is_there && i < DYING_TRIES; i++) {
		os_clock_sleep_ns(DYING_NS);
		is_there = os_netlink_link_by_name(nl, name, &link) == WEFT_OK;
	}
	os_netlink_close(nl);
	return is_there;
}

/* Before anything is changed and a hook runs for nothing. */
static enum weft_err
check_privilege(struct around *a)
{
	char fix[FIX_MAX];
	if (os_privilege_has_net_admin()) {
		return WEFT_OK;
	}
	a->lock_fd = -1;
	log_error(a->host.log,
		"%s: CAP_NET_ADMIN is missing, without which there is no interface: %s",
		a->host.name, os_privilege_net_admin_fix(os_process_is_root(), fix, sizeof(fix)));
	return WEFT_EPERM;
}

enum weft_err
around_begin(struct around *a, const struct quick_host *h, const struct conf *c)
{
	*a = (struct around){.host = *h};
	enum weft_err e = check_privilege(a);
	if (e) {
		return e;
	}
	e = take_lock(a);
	if (e == WEFT_EEXIST) {
		log_error(h->log,
			"%s is up already; `weft reload` puts another configuration in force",
			h->name);
		return e;
	}
	if (e) {
		log_error(h->log, "%s: cannot write to " RUN_DIR ": %s%s", h->name,
			weft_err_text(e),
			e != WEFT_EPERM        ? ""
			: os_process_is_root() ? "; is /run read-only? Mount a tmpfs there"
					       : "; the folder must be this user's: "
						 "RuntimeDirectory=weft wireguard in the unit");
		return e;
	}
	if (is_taken(h->name)) {
		log_error(h->log, "there is an interface %s already, which is not weft's", h->name);
		drop_lock(a);
		return WEFT_EEXIST;
	}
	if (clean(a)) {
		log_info(h->log, "%s: removed what a killed process had left", h->name);
	}
	e = c ? hook_run(&a->host, c, CONF_HOOK_PRE_UP) : WEFT_OK;
	if (e) {
		drop_lock(a);
	}
	return e;
}

enum weft_err
around_bring_up(struct around *a, const struct conf *c, uint32_t mark)
{
	enum weft_err e = WEFT_OK;
	if (c) {
		a->has_firewall = firewall_set(&a->host, c, mark, false);
		e = dns_set(&a->host, &a->dns, c);
		e = e ? e : hook_run(&a->host, c, CONF_HOOK_POST_UP);
	}
	if (!e && a->host.is_over && a->host.is_over(a->host.ctx)) {
		log_error(a->host.log, "%s: the start was called off", a->host.name);
		e = WEFT_ECANCELED;
	}
	a->is_up = !e;
	return e;
}

void
around_change(struct around *a, const struct conf *c, uint32_t mark)
{
	a->has_firewall = firewall_set(&a->host, c, mark, a->has_firewall);
	if (dns_set(&a->host, &a->dns, c)) {
		log_warn(a->host.log, "%s: DNS is not as the file says", a->host.name);
	}
}

void
around_pre_down(const struct around *a, const struct conf *c)
{
	if (a->is_up && c) {
		enum weft_err e = hook_run(&a->host, c, CONF_HOOK_PRE_DOWN);
		(void)e; /* logged */
	}
}

void
around_take_down(struct around *a)
{
	dns_unset(&a->host, &a->dns);
	a->has_firewall = a->has_firewall && !firewall_unset(&a->host);
}

void
around_end(struct around *a, const struct conf *c)
{
	if (a->lock_fd < 0) {
		return;
	}
	/* What a start that failed has noted. */
	left_clean(a->left_path, a->has_firewall, a->host.log);
	if (a->is_up && c) {
		enum weft_err e = hook_run(&a->host, c, CONF_HOOK_POST_DOWN);
		(void)e; /* logged */
	}
	drop_lock(a);
}

enum weft_err
around_clean(const struct quick_host *h, bool *was_there)
{
	struct around a = {.host = *h};
	enum weft_err e = take_lock(&a);
	if (e) {
		return e;
	}
	*was_there = clean(&a);
	drop_lock(&a);
	return WEFT_OK;
}
