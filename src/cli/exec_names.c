/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/exec_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/compiler.h"
#include "os/file.h"
#include "os/inet.h"
#include "weft/dial.h"
#include "wire/conf.h"

#define HOSTS "/etc/hosts"
#define RESOLV "/etc/resolv.conf"
#define NSSWITCH "/etc/nsswitch.conf"
#define FILE_BYTES_MAX (4u << 20)
#define SERVERS_MAX 3 /* that the C library reads: MAXNS of resolv.h */

/* Memory that grows under a FILE, or what became of it. */
static enum weft_err
finish(FILE *f, char **text, char **out)
{
	bool has_failed = ferror(f) != 0;
	if (fclose(f) || has_failed) {
		free(*text);
		return WEFT_ENOMEM;
	}
	*out = *text;
	return WEFT_OK;
}

static void
write_name(FILE *f, struct weft_node *n, const char *name)
{
	struct addrinfo *list;
	if (weft_getaddrinfo(n, name, NULL, NULL, &list)) {
		return; /* none of its AllowedIPs is a single host */
	}
	for (const struct addrinfo *i = list; i; i = i->ai_next) {
		struct ip_addr a;
		uint16_t port;
		char text[IP_ADDR_TEXT_MAX];
		if (os_inet_read(i->ai_addr, i->ai_addrlen, &a, &port)) {
			fprintf(f, "%s\t%s\n", ip_addr_format(&a, text), name);
		}
	}
	weft_freeaddrinfo(list);
}

static enum weft_err
list_peers(struct weft_node *n, struct weft_peer **out, size_t *count)
{
	struct weft_peer first = {.size = sizeof(first)};
	enum weft_err e = weft_node_peers(n, &first, 1, count);
	if (e && e != WEFT_EMSGSIZE) {
		return e;
	}
	struct weft_peer *v = calloc(*count + 1, sizeof(*v));
	if (!v) {
		return WEFT_ENOMEM;
	}
	v[0].size = sizeof(*v);
	e = weft_node_peers(n, v, *count + 1, count);
	if (e) {
		free(v);
		return e;
	}
	*out = v;
	return WEFT_OK;
}

enum weft_err
exec_names_hosts(struct weft_node *n, const char *was, char **out, size_t *len)
{
	struct weft_peer *v;
	size_t count;
	char *text;
	enum weft_err e = list_peers(n, &v, &count);
	if (e) {
		return e;
	}
	FILE *f = open_memstream(&text, len);
	if (!f) {
		free(v);
		return WEFT_ENOMEM;
	}
	fputs("# peers of the overlay\n", f);
	for (size_t i = 0; i < count; i++) {
		if (v[i].name[0]) {
			write_name(f, n, v[i].name);
		}
	}
	fputs("\n", f);
	fputs(was, f);
	free(v);
	return finish(f, &text, out);
}

enum weft_err
exec_names_resolv(const struct conf *c, char **out, size_t *len)
{
	const struct conf_interface *i = &c->interface;
	char *text;
	FILE *f = open_memstream(&text, len);
	if (!f) {
		return WEFT_ENOMEM;
	}
	fputs("# DNS of the overlay's configuration\n", f);
	for (size_t k = 0; k < i->dns.n && k < SERVERS_MAX; k++) {
		fprintf(f, "nameserver %s\n", i->dns.v[k].text);
	}
	for (size_t k = 0; k < i->dns_search.n; k++) {
		fprintf(f, "%s%s", k == 0 ? "search " : " ", i->dns_search.v[k].text);
	}
	fputs(i->dns_search.n > 0 ? "\n" : "", f);
	return finish(f, &text, out);
}

static bool
is_hosts_line(const char *line)
{
	while (*line == ' ' || *line == '\t') {
		line++;
	}
	return strncmp(line, "hosts:", 6) == 0;
}

enum weft_err
exec_names_nsswitch(const char *was, char **out, size_t *len)
{
	char *text;
	FILE *f = open_memstream(&text, len);
	if (!f) {
		return WEFT_ENOMEM;
	}
	while (*was) {
		const char *end = strchrnul(was, '\n');
		if (!is_hosts_line(was)) {
			fprintf(f, "%.*s\n", (int)(end - was), was);
		}
		was = *end ? end + 1 : end;
	}
	fputs("hosts: files dns\n", f);
	return finish(f, &text, out);
}

/* Its text, to be freed; empty where it cannot be read. NULL: no memory. */
static char *
read_file(const char *path)
{
	char *text;
	size_t len;
	return os_file_read(path, FILE_BYTES_MAX, &text, &len) ? strdup("") : text;
}

static void
add(struct exec_names *names, const char *path, char *text, size_t len)
{
	names->files[names->files_n] =
		(struct os_exec_file){.path = path, .text = text, .len = len};
	names->texts[names->files_n++] = text;
}

enum weft_err
exec_names_make(struct weft_node *n, const struct conf *c, struct exec_names *out)
{
	*out = (struct exec_names){0};
	char *text, *hosts = read_file(HOSTS), *nsswitch = read_file(NSSWITCH);
	size_t len;
	enum weft_err e = hosts && nsswitch ? WEFT_OK : WEFT_ENOMEM;
	if (!e && os_file_exists(HOSTS)) {
		e = exec_names_hosts(n, hosts, &text, &len);
		if (!e) {
			add(out, HOSTS, text, len);
		}
	}
	if (!e && c->interface.dns.n > 0) {
		e = exec_names_resolv(c, &text, &len);
		if (!e) {
			add(out, RESOLV, text, len);
		}
	}
	if (!e && os_file_exists(NSSWITCH)) {
		e = exec_names_nsswitch(nsswitch, &text, &len);
		if (!e) {
			add(out, NSSWITCH, text, len);
		}
	}
	free(hosts);
	free(nsswitch);
	if (e) {
		exec_names_fini(out);
	}
	return e;
}

void
exec_names_fini(struct exec_names *names)
{
	for (size_t i = 0; i < names->files_n; i++) {
		free(names->texts[i]);
	}
	*names = (struct exec_names){0};
}
