/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings about items of a configuration that are right alone and doubtful together. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/conf_internal.h"

/* A prefix of some peer. Sorted, equal prefixes stand together in the order of the file. */
struct ref {
	const struct conf_prefix *prefix;
	size_t peer;
};

struct refs {
	struct ref *v;
	size_t n;
	bool has_bits[2][129]; /* which lengths occur, by family: IPv4, IPv6 */
};

static int
compare_prefixes(const struct ip_prefix *a, const struct ip_prefix *b)
{
	if (a->addr.family != b->addr.family) {
		return a->addr.family < b->addr.family ? -1 : 1;
	}
	if (a->bits != b->bits) {
		return a->bits < b->bits ? -1 : 1;
	}
	return memcmp(a->addr.b, b->addr.b, sizeof(a->addr.b));
}

static int
compare_refs(const void *a, const void *b)
{
	const struct ref *x = a, *y = b;
	int c = compare_prefixes(&x->prefix->prefix, &y->prefix->prefix);
	if (c != 0) {
		return c;
	}
	if (x->peer != y->peer) {
		return x->peer < y->peer ? -1 : 1;
	}
	return x->prefix < y->prefix ? -1 : x->prefix > y->prefix;
}

static int
compare_places(const void *a, const void *b)
{
	const struct conf_prefix *const *x = a, *const *y = b;
	int c = compare_prefixes(&(*x)->prefix, &(*y)->prefix);
	return c != 0 ? c : *x < *y ? -1 : *x > *y;
}

static int
compare_peers(const void *a, const void *b)
{
	const struct conf_peer *const *x = a, *const *y = b;
	int c = memcmp((*x)->public_key, (*y)->public_key, KEY_LEN);
	return c != 0 ? c : *x < *y ? -1 : *x > *y;
}

static bool
collect(const struct conf *c, struct refs *out)
{
	size_t n = 0;
	for (size_t i = 0; i < c->peers_n; i++) {
		n += c->peers[i].allowed.n;
	}
	*out = (struct refs){.v = malloc((n + 1) * sizeof(*out->v))};
	if (!out->v) {
		return false;
	}
	for (size_t i = 0; i < c->peers_n; i++) {
		for (size_t k = 0; k < c->peers[i].allowed.n; k++) {
			const struct conf_prefix *p = &c->peers[i].allowed.v[k];
			out->v[out->n++] = (struct ref){p, i};
			out->has_bits[p->prefix.addr.family == IP_FAMILY_V6][p->prefix.bits] = true;
		}
	}
	qsort(out->v, out->n, sizeof(*out->v), compare_refs);
	return true;
}

/* How people know the peer: its name, cut if it is long, or the head of its key. */
#define LABEL_MAX 33
static const char *
peer_label(const struct conf_peer *p, char out[LABEL_MAX])
{
	char key[KEY_BASE64_LEN + 1];
	snprintf(out, LABEL_MAX, "%.*s", p->name ? LABEL_MAX - 1 : 10,
		p->name ? p->name : key_encode_base64(p->public_key, key));
	return out;
}

static void
warn_of_overlap(
	const struct conf *c, const struct ref *first, const struct ref *ref, struct conf_report *r)
{
	char text[IP_PREFIX_TEXT_MAX], a[LABEL_MAX], b[LABEL_MAX];
	uint32_t line = first->prefix->pos.line;
	ip_prefix_format(&ref->prefix->prefix, text);
	if (first->peer == ref->peer) {
		conf_note_add(r, CONF_SEVERITY_WARNING, ref->prefix->pos, line, "AllowedIPs",
			"%s is there already, in line %u", text, line);
		return;
	}
	conf_note_add(r, CONF_SEVERITY_WARNING, ref->prefix->pos, line, "AllowedIPs",
		"%s of peer %s is peer %s's too, in line %u; the last peer gets it", text,
		peer_label(&c->peers[ref->peer], b), peer_label(&c->peers[first->peer], a), line);
}

/* Two sections of one peer: lint_peers() has that. */
static bool
is_one_peer(const struct conf *c, const struct ref *a, const struct ref *b)
{
	return a->peer != b->peer &&
	       memcmp(c->peers[a->peer].public_key, c->peers[b->peer].public_key, KEY_LEN) == 0;
}

static void
lint_overlaps(const struct conf *c, const struct refs *refs, struct conf_report *r)
{
	const struct ref *first = NULL; /* of a run of equal prefixes */
	for (size_t i = 0; i < refs->n; i++) {
		const struct ref *ref = &refs->v[i];
		if (!first || compare_prefixes(&first->prefix->prefix, &ref->prefix->prefix) != 0) {
			first = ref;
		} else if (!is_one_peer(c, first, ref)) {
			warn_of_overlap(c, first, ref, r);
		}
	}
}

/* The longest prefix that holds the address, not counting default routes. */
static const struct ref *
find_holder(const struct refs *refs, const struct ip_addr *addr)
{
	unsigned bits = (unsigned)ip_family_len(addr->family) * 8;
	for (; bits > 0; bits--) {
		if (!refs->has_bits[addr->family == IP_FAMILY_V6][bits]) {
			continue;
		}
		struct conf_prefix key = {.prefix = {*addr, (uint8_t)bits}};
		ip_prefix_mask(&key.prefix);
		size_t lo = 0, hi = refs->n;
		while (lo < hi) {
			size_t mid = lo + (hi - lo) / 2;
			if (compare_prefixes(&refs->v[mid].prefix->prefix, &key.prefix) < 0) {
				lo = mid + 1;
			} else {
				hi = mid;
			}
		}
		if (lo < refs->n &&
			compare_prefixes(&refs->v[lo].prefix->prefix, &key.prefix) == 0) {
			return &refs->v[lo];
		}
	}
	return NULL;
}

/* A default route is led round the endpoints by policy routing; a smaller prefix is not. */
static void
lint_loops(const struct conf *c, const struct refs *refs, struct conf_report *r)
{
	for (size_t i = 0; i < c->peers_n && c->interface.table != CONF_TABLE_OFF; i++) {
		const struct conf_endpoint *e = &c->peers[i].endpoint;
		if (!e->host || e->addr.family == IP_FAMILY_NONE) {
			continue;
		}
		const struct ref *ref = find_holder(refs, &e->addr);
		if (ref) {
			conf_note_add(r, CONF_SEVERITY_WARNING, ref->prefix->pos, e->pos.line,
				"AllowedIPs",
				"holds the endpoint of line %u: packets to it would go into the "
				"tunnel",
				e->pos.line);
		}
	}
}

static bool
lint_addresses(const struct conf *c, struct conf_report *r)
{
	const struct conf_prefixes *a = &c->interface.addresses;
	const struct conf_prefix **sorted = malloc((a->n + 1) * sizeof(*sorted));
	if (!sorted) {
		return false;
	}
	for (size_t i = 0; i < a->n; i++) {
		sorted[i] = &a->v[i];
	}
	qsort(sorted, a->n, sizeof(*sorted), compare_places);
	for (size_t i = 1; i < a->n; i++) {
		if (compare_prefixes(&sorted[i - 1]->prefix, &sorted[i]->prefix) == 0) {
			uint32_t line = sorted[i - 1]->pos.line;
			conf_note_add(r, CONF_SEVERITY_WARNING, sorted[i]->pos, line, "Address",
				"given before, in line %u", line);
		}
	}
	free(sorted);
	return true;
}

/* At most this many own addresses are compared with the endpoints: the work is their product. */
#define OWN_ADDRESSES_MAX 64
static void
lint_own_endpoints(const struct conf *c, struct conf_report *r)
{
	const struct conf_prefixes *a = &c->interface.addresses;
	for (size_t i = 0; i < c->peers_n; i++) {
		const struct conf_endpoint *e = &c->peers[i].endpoint;
		for (size_t k = 0; e->host && k < a->n && k < OWN_ADDRESSES_MAX; k++) {
			if (e->addr.family != IP_FAMILY_NONE &&
				ip_addr_is_equal(&e->addr, &a->v[k].prefix.addr)) {
				conf_note_add(r, CONF_SEVERITY_WARNING, e->pos, a->v[k].pos.line,
					"Endpoint", "is this interface's own Address, in line %u",
					a->v[k].pos.line);
			}
		}
	}
}

static bool
lint_peers(const struct conf *c, const uint8_t own_public[KEY_LEN], struct conf_report *r)
{
	const struct conf_peer **sorted = malloc((c->peers_n + 1) * sizeof(*sorted));
	if (!sorted) {
		return false;
	}
	for (size_t i = 0; i < c->peers_n; i++) {
		const struct conf_peer *p = sorted[i] = &c->peers[i];
		if (own_public && memcmp(p->public_key, own_public, KEY_LEN) == 0) {
			uint32_t line = c->interface.private_key_pos.line;
			conf_note_add(r, CONF_SEVERITY_WARNING, p->public_key_pos, line,
				"PublicKey",
				"belongs to the PrivateKey of line %u; the other side's is needed",
				line);
		}
	}
	qsort(sorted, c->peers_n, sizeof(*sorted), compare_peers);
	for (size_t i = 1; i < c->peers_n; i++) {
		const struct conf_peer *a = sorted[i - 1], *b = sorted[i];
		if (memcmp(a->public_key, b->public_key, KEY_LEN) == 0) {
			uint32_t line = a->public_key_pos.line;
			conf_note_add(r, CONF_SEVERITY_WARNING, b->public_key_pos, line,
				"PublicKey",
				"the same peer as in line %u; the later section replaces "
				"AllowedIPs",
				line);
		}
	}
	free(sorted);
	return true;
}

/* What a peer says itself and what then has no effect. What it has by default is meant for the
 * other peers. */
static void
lint_policies(const struct conf *c, struct conf_report *r)
{
	for (size_t i = 0; i < c->peers_n; i++) {
		const struct conf_policy *p = &c->peers[i].policy;
		uint32_t off = p->extensions_pos.line;
		if (!p->has_extensions && p->fec_pos.line && p->fec != CONF_FEC_OFF) {
			conf_note_add(r, CONF_SEVERITY_WARNING, p->fec_pos, off, "Fec",
				"has no effect with Extensions = off");
		}
		if (!p->has_extensions && p->cipher_pos.line &&
			p->cipher == CONF_CIPHER_AES_256_GCM) {
			conf_note_add(r, CONF_SEVERITY_WARNING, p->cipher_pos, off, "Cipher",
				"has no effect with Extensions = off");
		}
		if (p->fec_delay_pos.line && (p->fec == CONF_FEC_OFF || !p->has_extensions)) {
			conf_note_add(r, CONF_SEVERITY_WARNING, p->fec_delay_pos,
				p->has_extensions ? p->fec_pos.line : off, "FecDelay",
				"has no effect with %s = off",
				p->has_extensions ? "Fec" : "Extensions");
		}
	}
}

static void
lint_interface(const struct conf *c, const struct refs *refs, struct conf_report *r)
{
	const struct conf_interface *i = &c->interface;
	bool has_v6 =
		refs->n > 0 && refs->v[refs->n - 1].prefix->prefix.addr.family == IP_FAMILY_V6;
	bool has_hook = false;

	for (size_t k = 0; k < i->addresses.n; k++) {
		has_v6 |= i->addresses.v[k].prefix.addr.family == IP_FAMILY_V6;
	}
	for (size_t k = 0; k < CONF_HOOK_COUNT; k++) {
		has_hook |= i->hooks[k].n > 0;
	}
	/* RFC 8200, section 5: the kernel takes IPv6 off a smaller interface. */
	if (has_v6 && i->mtu != 0 && i->mtu < 1280) {
		conf_note_add(r, CONF_SEVERITY_WARNING, i->mtu_pos, 0, "MTU",
			"less than 1280: IPv6 will not work on the interface");
	}
	if (i->dns.n == 0 && i->dns_search.n > 0) {
		conf_note_add(r, CONF_SEVERITY_WARNING, i->dns_search.v[0].pos, 0, "DNS",
			"a search domain without a server");
	}
	/* A hook may set the key. */
	if (!i->has_private_key && !has_hook) {
		conf_note_add(r, CONF_SEVERITY_WARNING, i->pos, 0, "PrivateKey",
			"none is given; no peer can connect before one is set");
	}
}

enum weft_err
conf_lint(const struct conf *c, const uint8_t own_public[KEY_LEN], struct conf_report *report)
{
	struct refs refs;
	if (!collect(c, &refs)) {
		return WEFT_ENOMEM;
	}
	lint_interface(c, &refs, report);
	lint_overlaps(c, &refs, report);
	lint_loops(c, &refs, report);
	lint_own_endpoints(c, report);
	lint_policies(c, report);
	free(refs.v);
	bool ok = lint_addresses(c, report) && lint_peers(c, own_public, report);
	conf_report_sort(report);
	return ok ? WEFT_OK : WEFT_ENOMEM;
}
