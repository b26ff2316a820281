/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a device one a line, byte for byte as wg(8) prints them: scripts read them. One
 * difference: `wg show all endpoints` leaves the device's name out from the second peer on. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/show.h"
#include "crypto/secret.h"

static void
print_name(const struct show_device *d, bool is_named)
{
	if (is_named) {
		printf("%s\t", d->name);
	}
}

static void
print_key(const uint8_t key[KEY_LEN], bool is_there)
{
	char text[KEY_BASE64_LEN + 1];
	fputs(is_there ? key_encode_base64(key, text) : "(none)", stdout);
	secret_wipe(text, sizeof(text));
}

/* The start of a peer's line. */
static void
print_peer(const struct show_device *d, bool is_named, size_t i)
{
	print_name(d, is_named);
	print_key(d->peers[i].info.public_key, true);
}

static void
print_allowed(const struct show_peer *p, char separator)
{
	struct uapi_reply_cursor lines = p->lines;
	struct ip_prefix prefix;
	char text[IP_PREFIX_TEXT_MAX];
	bool is_first = true;
	while (uapi_reply_allowed(&lines, &prefix) == WEFT_OK) {
		if (!is_first) {
			putchar(separator);
		}
		fputs(ip_prefix_format(&prefix, text), stdout);
		is_first = false;
	}
	if (is_first) {
		fputs("(none)", stdout);
	}
}

static void
print_fwmark(const struct show_device *d)
{
	if (d->info.fwmark) {
		printf("0x%" PRIx32, d->info.fwmark);
	} else {
		fputs("off", stdout);
	}
}

static void
print_keepalive(const struct show_peer *p)
{
	if (p->info.keepalive_s) {
		printf("%u", p->info.keepalive_s);
	} else {
		fputs("off", stdout);
	}
}

static void
show_public_key(const struct show_device *d, bool is_named)
{
	print_name(d, is_named);
	print_key(d->public_key, d->has_public_key);
	putchar('\n');
}

static void
show_private_key(const struct show_device *d, bool is_named)
{
	print_name(d, is_named);
	print_key(d->info.private_key, d->info.has_private_key);
	putchar('\n');
}

static void
show_listen_port(const struct show_device *d, bool is_named)
{
	print_name(d, is_named);
	printf("%u\n", d->info.listen_port);
}

static void
show_fwmark(const struct show_device *d, bool is_named)
{
	print_name(d, is_named);
	print_fwmark(d);
	putchar('\n');
}

static void
show_peers(const struct show_device *d, bool is_named)
{
	for (size_t i = 0; i < d->n; i++) {
		print_peer(d, is_named, i);
		putchar('\n');
	}
}

static void
show_preshared_keys(const struct show_device *d, bool is_named)
{
	for (size_t i = 0; i < d->n; i++) {
		print_peer(d, is_named, i);
		putchar('\t');
		print_key(d->peers[i].info.psk, !secret_is_zero(d->peers[i].info.psk, KEY_LEN));
		putchar('\n');
	}
}

static void
show_endpoints(const struct show_device *d, bool is_named)
{
	char text[SHOW_ENDPOINT_MAX];
	for (size_t i = 0; i < d->n; i++) {
		print_peer(d, is_named, i);
		printf("\t%s\n", show_endpoint(&d->peers[i].info, text));
	}
}

static void
show_allowed_ips(const struct show_device *d, bool is_named)
{
	for (size_t i = 0; i < d->n; i++) {
		print_peer(d, is_named, i);
		putchar('\t');
		print_allowed(&d->peers[i], ' ');
		putchar('\n');
	}
}

static void
show_latest_handshakes(const struct show_device *d, bool is_named)
{
	for (size_t i = 0; i < d->n; i++) {
		print_peer(d, is_named, i);
		printf("\t%" PRId64 "\n", d->peers[i].info.last_handshake_s);
	}
}

static void
show_transfer(const struct show_device *d, bool is_named)
{
	for (size_t i = 0; i < d->n; i++) {
		print_peer(d, is_named, i);
		printf("\t%" PRIu64 "\t%" PRIu64 "\n", d->peers[i].info.rx_bytes,
			d->peers[i].info.tx_bytes);
	}
}

static void
show_persistent_keepalive(const struct show_device *d, bool is_named)
{
	for (size_t i = 0; i < d->n; i++) {
		print_peer(d, is_named, i);
		putchar('\t');
		print_keepalive(&d->peers[i]);
		putchar('\n');
	}
}

static void
show_dump(const struct show_device *d, bool is_named)
{
	char text[SHOW_ENDPOINT_MAX];
	print_name(d, is_named);
	print_key(d->info.private_key, d->info.has_private_key);
	putchar('\t');
	print_key(d->public_key, d->has_public_key);
	printf("\t%u\t", d->info.listen_port);
	print_fwmark(d);
	putchar('\n');
	for (size_t i = 0; i < d->n; i++) {
		const struct show_peer *p = &d->peers[i];
		print_peer(d, is_named, i);
		putchar('\t');
		print_key(p->info.psk, !secret_is_zero(p->info.psk, KEY_LEN));
		printf("\t%s\t", show_endpoint(&p->info, text));
		print_allowed(p, ',');
		printf("\t%" PRId64 "\t%" PRIu64 "\t%" PRIu64 "\t", p->info.last_handshake_s,
			p->info.rx_bytes, p->info.tx_bytes);
		print_keepalive(p);
		putchar('\n');
	}
}

static const struct show_field fields[] = {
	{"public-key", show_public_key},
	{"private-key", show_private_key},
	{"listen-port", show_listen_port},
	{"fwmark", show_fwmark},
	{"peers", show_peers},
	{"preshared-keys", show_preshared_keys},
	{"endpoints", show_endpoints},
	{"allowed-ips", show_allowed_ips},
	{"latest-handshakes", show_latest_handshakes},
	{"transfer", show_transfer},
	{"persistent-keepalive", show_persistent_keepalive},
	{"dump", show_dump},
};

const struct show_field *
show_field_find(const char *name)
{
	for (size_t i = 0; i < WEFT_ARRAY_LEN(fields); i++) {
		if (strcmp(fields[i].name, name) == 0) {
			return &fields[i];
		}
	}
	return NULL;
}
