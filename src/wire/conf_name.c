/* SPDX-License-Identifier: Apache-2.0 */
/* Names of peers: their form, and that each belongs to one peer. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "wire/conf_internal.h"

/* As a host's, but for '_' and a final dot. */
static const char *
name_fault(const char *p, size_t len)
{
	if (len > CONF_PEER_NAME_MAX) {
		return "it is longer than 63 characters";
	}
	if (len > 0 && p[len - 1] == '.') {
		return "it ends with a dot";
	}
	if (memchr(p, '_', len)) {
		return "a character in it is not a letter, digit, '-' or '.'";
	}
	size_t digits = 0;
	while (digits < len && p[len - 1 - digits] >= '0' && p[len - 1 - digits] <= '9') {
		digits++;
	}
	if (digits > 0 && (digits == len || p[len - 1 - digits] == '.')) {
		return "it ends in a number, as an address does";
	}
	return conf_host_fault(p, len);
}

bool
conf_value_peer_name(struct conf_reader *p, const struct conf_value *v, char **out)
{
	char quote[CONF_QUOTE_MAX];
	const char *fault = name_fault(v->p, v->len);
	if (fault) {
		return conf_value_refuse(
			p->report, v, "%sis no name: %s", conf_value_quote(v, quote), fault);
	}
	char *name = strndup(v->p, v->len);
	if (!name) {
		return p->has_memory = false;
	}
	*out = name;
	return true;
}

static int
compare_names(const void *a, const void *b)
{
	const struct conf_peer *x = *(const struct conf_peer *const *)a;
	const struct conf_peer *y = *(const struct conf_peer *const *)b;
	int order = strcasecmp(x->name, y->name);
	return order ? order : x->name_pos.line < y->name_pos.line ? -1 : 1;
}

void
conf_names_check(struct conf_reader *p)
{
	const struct conf *c = p->conf;
	size_t n = 0;
	for (size_t i = 0; i < c->peers_n; i++) {
		n += c->peers[i].name != NULL;
	}
	if (n < 2) {
		return;
	}
	const struct conf_peer **named = calloc(n, sizeof(*named));
	if (!named) {
		p->has_memory = false;
		return;
	}
	n = 0;
	for (size_t i = 0; i < c->peers_n; i++) {
		if (c->peers[i].name) {
			named[n++] = &c->peers[i];
		}
	}
	qsort(named, n, sizeof(*named), compare_names);
	for (size_t i = 1; i < n; i++) {
		/* One peer may stand in several sections. */
		if (strcasecmp(named[i - 1]->name, named[i]->name) == 0 &&
			memcmp(named[i - 1]->public_key, named[i]->public_key, KEY_LEN) != 0) {
			conf_note_add(p->report, CONF_SEVERITY_ERROR, named[i]->name_pos,
				named[i - 1]->name_pos.line, "Name",
				"another peer has that name, in line %u",
				named[i - 1]->name_pos.line);
		}
	}
	free(named);
}
