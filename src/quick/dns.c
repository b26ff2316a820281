/* SPDX-License-Identifier: Apache-2.0 */
/* What resolvconf was told is noted in /run/weft, for whoever cleans up behind a killed process;
 * systemd-resolved forgets on its own with the interface; the file bears its mark itself, so that
 * it is found even after the machine has stopped. */
#include "quick/dns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/child.h"
#include "os/clock.h"
#include "os/file.h"
#include "quick/host.h"
#include "quick/program.h"
#include "quick/resolv.h"
#include "wire/conf.h"

#define RESOLV_CONF "/etc/resolv.conf"
#define RESOLV_BEFORE "/etc/resolv.conf.before-weft"
#define RESOLVED_RUNS "/run/systemd/resolve"
#define INTERFACE_ORDER "/etc/resolvconf/interface-order"
#define NOTE_DIR "/run/weft"
#define FILE_LOCK NOTE_DIR "/resolv" /* no file of a device: those have a dot and a suffix */
#define LOCK_TRIES 500
#define LOCK_NS (10 * WEFT_NS_PER_MS)
#define FILE_MAX (1u << 20)
#define PATH_BYTES 4096
#define LIMIT_NS (20 * WEFT_NS_PER_S)

static bool
has_dns(const struct conf *c)
{
	return c && (c->interface.dns.n > 0 || c->interface.dns_search.n > 0);
}

/* Runs a program that must give 0. */
static enum weft_err
command(const struct quick_host *h, const char *path, const char *const *argv, const char *input)
{
	const struct program p = {
		.path = path, .argv = argv, .input = input, .is_bound = true, .limit_ns = LIMIT_NS};
	int status = 0;
	enum weft_err e = program_run(h, &p, &status);
	return e ? e : status ? WEFT_EIO : WEFT_OK;
}

/* --- systemd-resolved --- */

static enum weft_err
resolvectl_list(const struct quick_host *h, const char *path, const char *const head[3],
	const struct conf_texts *t)
{
	const char **argv = calloc(t->n + 5, sizeof(*argv));
	size_t n = 0;
	if (!argv) {
		return WEFT_ENOMEM;
	}
	argv[n++] = path;
	for (size_t i = 0; i < 3 && head[i]; i++) {
		argv[n++] = head[i];
	}
	for (size_t i = 0; i < t->n; i++) {
		argv[n++] = t->v[i].text;
	}
	enum weft_err e = command(h, path, argv, NULL);
	free(argv);
	return e;
}

/* All names are asked of these servers, as with resolvconf -x. */
static enum weft_err
resolvectl_set(const struct quick_host *h, const char *path, const struct conf *c)
{
	/* Without servers the empty word takes away those that a reload has left out. */
	const char *const dns[3] = {"dns", h->name, c->interface.dns.n > 0 ? NULL : ""};
	const char *const domain[3] = {"domain", h->name, c->interface.dns.n > 0 ? "~." : NULL};
	enum weft_err e = resolvectl_list(h, path, dns, &c->interface.dns);
	return e ? e : resolvectl_list(h, path, domain, &c->interface.dns_search);
}

static void
resolvectl_unset(const struct quick_host *h)
{
	char path[PATH_BYTES];
	const char *const argv[] = {"resolvectl", "revert", h->name, NULL};
	if (os_child_find("resolvectl", path, sizeof(path)) && command(h, path, argv, NULL)) {
		/* The interface goes in a moment, and with it what is known of it. */
		log_info(h->log, "%s: resolvectl revert failed", h->name);
	}
}

/* --- text for the others --- */

/* "nameserver A\nnameserver B\nsearch a b\n". NULL: no memory. */
static char *
make_lines(const struct conf *c)
{
	const struct conf_texts *dns = &c->interface.dns, *search = &c->interface.dns_search;
	size_t cap = 16, at = 0;
	for (size_t i = 0; i < dns->n; i++) {
		cap += strlen(dns->v[i].text) + 16;
	}
	for (size_t i = 0; i < search->n; i++) {
		cap += strlen(search->v[i].text) + 1;
	}
	char *out = malloc(cap);
	if (!out) {
		return NULL;
	}
	for (size_t i = 0; i < dns->n; i++) {
		at += (size_t)snprintf(out + at, cap - at, "nameserver %s\n", dns->v[i].text);
	}
	for (size_t i = 0; i < search->n; i++) {
		at += (size_t)snprintf(out + at, cap - at, "%s%s%s", i ? " " : "search ",
			search->v[i].text, i + 1 == search->n ? "\n" : "");
	}
	return out;
}

/* --- resolvconf --- */

/* Debian's sorts by the interface's kind: a pattern of its list, as "tun*", gives ours. */
static void
make_key(const char *name, char out[DNS_KEY_MAX])
{
	char *text;
	size_t len, kind = 0;
	snprintf(out, DNS_KEY_MAX, "tun.%s", name);
	if (os_file_read(INTERFACE_ORDER, FILE_MAX, &text, &len)) {
		return;
	}
	for (const char *p = text; *p; p += strcspn(p, "\n") + (p[strcspn(p, "\n")] == '\n')) {
		kind = strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-");
		if (kind > 0 && kind < 32 && p[kind] == '*' &&
			(p[kind + 1] == '\n' || !p[kind + 1])) {
			snprintf(out, DNS_KEY_MAX, "%.*s.%s", (int)kind, p, name);
			break;
		}
	}
	free(text);
}

static void
note_path(const char *name, char *out, size_t cap)
{
	snprintf(out, cap, NOTE_DIR "/%s.dns", name);
}

static enum weft_err
resolvconf_set(const struct quick_host *h, const char *path, const char *key, const char *lines)
{
	char note[PATH_BYTES];
	const char *const argv[] = {"resolvconf", "-a", key, "-m", "0", "-x", NULL};
	note_path(h->name, note, sizeof(note));
	enum weft_err e = os_file_mkdir(NOTE_DIR, 0755);
	if (!e) {
		e = os_file_write_unsynced(note, key, strlen(key), 0600);
	}
	return e ? e : command(h, path, argv, lines);
}

static void
resolvconf_unset(const struct quick_host *h, const char *key)
{
	char path[PATH_BYTES], note[PATH_BYTES];
	const char *const argv[] = {"resolvconf", "-d", key, "-f", NULL};
	if (!os_child_find("resolvconf", path, sizeof(path)) || command(h, path, argv, NULL)) {
		log_warn(h->log, "%s: resolvconf -d %s failed: its DNS servers are still known",
			h->name, key);
	}
	note_path(h->name, note, sizeof(note));
	enum weft_err e = os_file_remove(note);
	(void)e; /* it is not there when we were killed before writing it */
}

/* --- the file --- */

struct file {
	char *text; /* NULL: there is none */
	size_t len;
	enum resolv_kind kind;
};

/* Devices come up side by side, and each reads the file, then writes it. */
static enum weft_err
lock_file(int *fd)
{
	enum weft_err e = os_file_mkdir(NOTE_DIR, 0755);
	e = e ? e : os_file_lock(FILE_LOCK, 0600, fd);
	for (int i = 0; e == WEFT_EEXIST && i < LOCK_TRIES; i++) {
		os_clock_sleep_ns(LOCK_NS);
		e = os_file_lock(FILE_LOCK, 0600, fd);
	}
	return e;
}

static enum weft_err
read_file(struct file *f)
{
	*f = (struct file){0};
	enum weft_err e = os_file_read(RESOLV_CONF, FILE_MAX, &f->text, &f->len);
	if (e) {
		f->text = NULL;
		return e == WEFT_ENOENT ? WEFT_OK : e;
	}
	f->kind = resolv_look(f->text, f->len);
	return WEFT_OK;
}

/* The present file gets a second name, by which it comes back as the very file, or symbolic link,
 * that it was. An older one by that name is of a start that was overtaken. */
static enum weft_err
keep_before(bool *has_before)
{
	enum weft_err e = os_file_link(RESOLV_CONF, RESOLV_BEFORE);
	if (e == WEFT_EEXIST) {
		e = os_file_remove(RESOLV_BEFORE);
		e = e ? e : os_file_link(RESOLV_CONF, RESOLV_BEFORE);
	}
	*has_before = !e;
	return e == WEFT_ENOENT ? WEFT_OK : e;
}

static enum weft_err
file_set_locked(const struct quick_host *h, const char *lines)
{
	struct file f;
	enum weft_err e = read_file(&f);
	if (e) {
		log_error(h->log, "DNS: cannot read " RESOLV_CONF ": %s", weft_err_text(e));
		return e;
	}
	if (f.kind == RESOLV_CHANGED) {
		log_error(h->log,
			"DNS: " RESOLV_CONF " was written by weft and changed by somebody "
			"since; remove its first line if it shall be as it is, or "
			"move " RESOLV_BEFORE " back");
		free(f.text);
		return WEFT_EEXIST;
	}
	bool is_ours = f.text && f.kind == RESOLV_OURS;
	bool has_before = is_ours && resolv_has_before(f.text, f.len);
	if (!is_ours) {
		e = keep_before(&has_before);
	}
	size_t blocks;
	char *out = e ? NULL
		      : resolv_edit(is_ours ? f.text : NULL, is_ours ? f.len : 0, h->name, lines,
				has_before, &blocks);
	if (!e) {
		e = out ? os_file_write_over(RESOLV_CONF, out, strlen(out), 0644) : WEFT_ENOMEM;
	}
	if (e) {
		log_error(h->log, "DNS: cannot write " RESOLV_CONF ": %s", weft_err_text(e));
		if (!is_ours && has_before) {
			enum weft_err undone = os_file_remove(RESOLV_BEFORE);
			(void)undone;
		}
	}
	free(out);
	free(f.text);
	return e;
}

static enum weft_err
file_set(const struct quick_host *h, const char *lines)
{
	int fd;
	enum weft_err e = lock_file(&fd);
	if (e) {
		log_error(h->log, "DNS: cannot lock " FILE_LOCK ": %s", weft_err_text(e));
		return e;
	}
	e = file_set_locked(h, lines);
	os_file_unlock(FILE_LOCK, &fd);
	return e;
}

static enum weft_err
file_restore(const struct file *f, const char *name)
{
	size_t blocks;
	char *out = resolv_edit(
		f->text, f->len, name, NULL, resolv_has_before(f->text, f->len), &blocks);
	enum weft_err e = out ? WEFT_OK : WEFT_ENOMEM;
	if (!e && blocks > 0) {
		e = os_file_write_over(RESOLV_CONF, out, strlen(out), 0644);
	} else if (!e && resolv_has_before(f->text, f->len)) {
		e = os_file_move(RESOLV_BEFORE, RESOLV_CONF);
	} else if (!e) {
		e = os_file_remove(RESOLV_CONF);
	}
	free(out);
	return e;
}

/* Of a start that was killed before it had written its own: a second name, or a copy. */
static bool
drop_second_name(void)
{
	char *a, *b;
	size_t a_len, b_len;
	bool is_same = os_file_is_same(RESOLV_CONF, RESOLV_BEFORE);
	if (!is_same && os_file_read(RESOLV_BEFORE, FILE_MAX, &b, &b_len) == WEFT_OK) {
		if (os_file_read(RESOLV_CONF, FILE_MAX, &a, &a_len) == WEFT_OK) {
			is_same = a_len == b_len && memcmp(a, b, a_len) == 0;
			free(a);
		}
		free(b);
	}
	return is_same && os_file_remove(RESOLV_BEFORE) == WEFT_OK;
}

/* must: it was set by us, so it is worth a word when it is not there. True: taken back. */
static bool
file_unset(const struct quick_host *h, bool must)
{
	struct file f = {0};
	bool is_done = false;
	int fd = -1;
	enum weft_err e = lock_file(&fd);
	if (!e) {
		is_done = os_file_sweep(RESOLV_CONF);
		is_done |= os_file_sweep(RESOLV_BEFORE);
		is_done |= drop_second_name();
		e = read_file(&f);
	}
	if (e) {
		log_warn(h->log, "DNS: cannot read " RESOLV_CONF ": %s", weft_err_text(e));
	} else if (f.text && f.kind == RESOLV_OURS && resolv_has_device(f.text, f.len, h->name)) {
		e = file_restore(&f, h->name);
		is_done |= !e;
		if (e) {
			log_warn(h->log, "DNS: cannot bring back " RESOLV_CONF ": %s",
				weft_err_text(e));
		}
	} else if (must || (f.text && f.kind == RESOLV_CHANGED)) {
		log_warn(h->log,
			"DNS: somebody has changed " RESOLV_CONF " since; it is left as it is%s",
			os_file_exists(RESOLV_BEFORE) ? ", and the one of before is " RESOLV_BEFORE
						      : "");
	}
	free(f.text);
	if (fd >= 0) {
		os_file_unlock(FILE_LOCK, &fd);
	}
	return is_done;
}

/* --- all --- */

/* Noted before it is done: a half is taken back, too. */
static enum weft_err
set_by_others(const struct quick_host *h, struct dns *d, const struct conf *c, const char *lines)
{
	char path[PATH_BYTES];
	/* What resolvconf was told, it alone can take back. */
	if (d->means != DNS_MEANS_RESOLVCONF && os_file_exists(RESOLVED_RUNS) &&
		os_child_find("resolvectl", path, sizeof(path))) {
		d->means = DNS_MEANS_RESOLVECTL;
		if (resolvectl_set(h, path, c) == WEFT_OK) {
			return WEFT_OK;
		}
		log_warn(h->log, "DNS: resolvectl failed; trying another way");
		resolvectl_unset(h);
		d->means = DNS_MEANS_NONE;
	}
	if (os_child_find("resolvconf", path, sizeof(path))) {
		make_key(h->name, d->key);
		d->means = DNS_MEANS_RESOLVCONF;
		enum weft_err e = resolvconf_set(h, path, d->key, lines);
		if (e) {
			log_error(h->log, "DNS: resolvconf -a %s failed", d->key);
		}
		return e;
	}
	return WEFT_ENOENT;
}

enum weft_err
dns_set(const struct quick_host *h, struct dns *d, const struct conf *c)
{
	if (!has_dns(c)) {
		dns_unset(h, d);
		return WEFT_OK;
	}
	char *lines = make_lines(c);
	if (!lines) {
		return WEFT_ENOMEM;
	}
	enum dns_means before = d->means;
	enum weft_err e = before == DNS_MEANS_FILE ? WEFT_ENOENT : set_by_others(h, d, c, lines);
	if (e == WEFT_ENOENT && (before == DNS_MEANS_NONE || before == DNS_MEANS_FILE)) {
		e = file_set(h, lines);
		d->means = e ? before : DNS_MEANS_FILE;
	}
	free(lines);
	return e;
}

void
dns_unset(const struct quick_host *h, struct dns *d)
{
	switch (d->means) {
	case DNS_MEANS_NONE:
		break;
	case DNS_MEANS_RESOLVECTL:
		resolvectl_unset(h);
		break;
	case DNS_MEANS_RESOLVCONF:
		resolvconf_unset(h, d->key);
		break;
	case DNS_MEANS_FILE:
		file_unset(h, true);
		break;
	}
	*d = (struct dns){0};
}

bool
dns_clean(const struct quick_host *h)
{
	char note[PATH_BYTES];
	char *key;
	size_t len;
	bool is_done = file_unset(h, false);
	note_path(h->name, note, sizeof(note));
	is_done |= os_file_sweep(note);
	if (os_file_read(note, DNS_KEY_MAX, &key, &len) == WEFT_OK) {
		resolvconf_unset(h, key);
		free(key);
		is_done = true;
	}
	return is_done;
}
