/* SPDX-License-Identifier: Apache-2.0 */
/* Two things.
 *
 * Packets to our inner addresses that come from elsewhere than the tunnel, and not from this
 * machine, are dropped: else whoever shares a network with us could probe connections inside the
 * tunnel.
 *
 * The mark of our own datagrams is kept with their flow and given to what comes back: else a strict
 * reverse path filter looks up the way to a peer without the mark, finds the tunnel, and drops it.
 */
#include "quick/firewall.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/child.h"
#include "quick/host.h"
#include "quick/program.h"
#include "wire/conf.h"

#define TABLE_NAME_MAX 64
#define PATH_BYTES 4096
#define LIMIT_NS (20 * WEFT_NS_PER_S)
#define TEXT_FIXED 1024
#define TEXT_ADDRESS 200

static bool
needs_table(const struct conf *c)
{
	if (!c || c->interface.table != CONF_TABLE_AUTO) {
		return false;
	}
	for (size_t i = 0; i < c->peers_n; i++) {
		for (size_t k = 0; k < c->peers[i].allowed.n; k++) {
			if (c->peers[i].allowed.v[k].prefix.bits == 0) {
				return true;
			}
		}
	}
	return false;
}

/* Of an interface's name, nftables does not take '=' and '+'. */
static void
table_name(const char *name, char out[TABLE_NAME_MAX])
{
	size_t n = (size_t)snprintf(out, TABLE_NAME_MAX, "weft-");
	for (const char *p = name; *p && n + 4 < TABLE_NAME_MAX; p++) {
		n += (size_t)snprintf(out + n, TABLE_NAME_MAX - n,
			*p == '=' || *p == '+' ? "/%02x" : "%c", (unsigned char)*p);
	}
}

/* NULL: no memory. With c NULL the table goes. */
static char *
make_text(const char *name, const struct conf *c, uint32_t mark)
{
	char table[TABLE_NAME_MAX];
	size_t cap = TEXT_FIXED + (c ? c->interface.addresses.n : 0) * TEXT_ADDRESS, n = 0;
	char *out = malloc(cap);
	if (!out) {
		return NULL;
	}
	table_name(name, table);
	/* One transaction: whatever stood there is replaced. */
	n += (size_t)snprintf(
		out + n, cap - n, "add table inet %s\ndelete table inet %s\n", table, table);
	if (!c) {
		return out;
	}
	n += (size_t)snprintf(out + n, cap - n,
		"table inet %s {\n\tchain preraw {\n"
		"\t\ttype filter hook prerouting priority -300;\n",
		table);
	for (size_t i = 0; i < c->interface.addresses.n; i++) {
		const struct ip_addr *a = &c->interface.addresses.v[i].prefix.addr;
		char text[IP_ADDR_TEXT_MAX];
		n += (size_t)snprintf(out + n, cap - n,
			"\t\tiifname != \"%s\" %s daddr %s fib saddr type != local drop\n", name,
			a->family == IP_FAMILY_V4 ? "ip" : "ip6", ip_addr_format(a, text));
	}
	snprintf(out + n, cap - n,
		"\t}\n\tchain premangle {\n"
		"\t\ttype filter hook prerouting priority -150;\n"
		"\t\tmeta l4proto udp meta mark set ct mark\n\t}\n"
		"\tchain postmangle {\n"
		"\t\ttype filter hook postrouting priority -150;\n"
		"\t\tmeta l4proto udp meta mark %u ct mark set meta mark\n\t}\n}\n",
		mark);
	return out;
}

static enum weft_err
run_nft(const struct quick_host *h, const struct conf *c, uint32_t mark)
{
	char path[PATH_BYTES];
	const char *const argv[] = {"nft", "-f", "-", NULL};
	int status = 0;
	if (!os_child_find("nft", path, sizeof(path))) {
		return WEFT_ENOENT;
	}
	char *text = make_text(h->name, c, mark);
	if (!text) {
		return WEFT_ENOMEM;
	}
	const struct program p = {
		.path = path, .argv = argv, .input = text, .is_bound = true, .limit_ns = LIMIT_NS};
	enum weft_err e = program_run(h, &p, &status);
	free(text);
	return e ? e : status ? WEFT_EIO : WEFT_OK;
}

bool
firewall_set(const struct quick_host *h, const struct conf *c, uint32_t mark, bool had_table)
{
	if (!needs_table(c)) {
		return had_table && !firewall_unset(h);
	}
	enum weft_err e = run_nft(h, c, mark);
	if (e == WEFT_ENOENT) {
		log_info(h->log,
			"%s: there is no nft: with a strict rp_filter the default route does not "
			"work, and inner addresses can be probed from the local network",
			h->name);
	} else if (e) {
		log_warn(h->log, "%s: nft refused the rules of the default route", h->name);
	}
	return !e || had_table; /* what nft refuses changes nothing: the table of before stays */
}

bool
firewall_unset(const struct quick_host *h)
{
	enum weft_err e = run_nft(h, NULL, 0);
	if (e == WEFT_OK || e == WEFT_ENOENT) { /* without nft there never was a table */
		return true;
	}
	log_warn(h->log, "%s: nft could not remove its table", h->name);
	return false;
}
