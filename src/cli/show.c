/* SPDX-License-Identifier: Apache-2.0 */
/* weft show: what wg(8) shows, of every user-space device. */
#include "cli/show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/device.h"
#include "crypto/crypto.h"
#include "crypto/dh.h"
#include "crypto/secret.h"
#include "ctl/client.h"
#include "ctl/path.h"
#include "os/clock.h"
#include "os/netlink.h"

static const char help[] =
	"Usage: weft show [NAME|all|interfaces] [FIELD]\n"
	"Shows running devices as `wg show` does: all of them, or NAME. With a FIELD, one value a\n"
	"line for scripts:\n"
	"  public-key private-key listen-port fwmark peers preshared-keys endpoints allowed-ips\n"
	"  latest-handshakes transfer persistent-keepalive dump\n"
	"`weft show interfaces` prints names alone. Keys that are secret are shown by "
	"private-key,\n"
	"preshared-keys and dump alone.\n";

char *
show_endpoint(const struct uapi_peer_info *p, char out[SHOW_ENDPOINT_MAX])
{
	struct os_netlink *netlink;
	struct os_link_info link;
	struct endpoint plain = p->endpoint;
	char scope[OS_NETLINK_NAME_MAX] = "";

	/* Interfaces by name, as people know them. */
	if (p->scope[0]) {
		memcpy(scope, p->scope, sizeof(scope));
	} else if (plain.scope_id != 0 && os_netlink_open(&netlink) == WEFT_OK) {
		if (os_netlink_link_by_index(netlink, plain.scope_id, &link) == WEFT_OK) {
			memcpy(scope, link.name, sizeof(scope));
		}
		os_netlink_close(netlink);
	}
	if (!scope[0]) {
		return endpoint_format(&plain, out);
	}
	char addr[IP_ADDR_TEXT_MAX];
	snprintf(out, SHOW_ENDPOINT_MAX, "[%s%%%s]:%u", ip_addr_format(&plain.addr, addr), scope,
		plain.port);
	return out;
}

static int
compare_handshakes(const void *a, const void *b)
{
	const struct uapi_peer_info *x = &((const struct show_peer *)a)->info;
	const struct uapi_peer_info *y = &((const struct show_peer *)b)->info;
	if (x->last_handshake_s != y->last_handshake_s) {
		return x->last_handshake_s > y->last_handshake_s ? -1 : 1;
	}
	return x->last_handshake_ns > y->last_handshake_ns   ? -1
	       : x->last_handshake_ns < y->last_handshake_ns ? 1
							     : 0;
}

static void
print_handshake(int64_t at_s, int64_t now_s)
{
	char text[CLI_TIME_TEXT_MAX];
	if (at_s > now_s) {
		puts("  latest handshake: in the future; the clock was set back");
	} else if (at_s == now_s) {
		puts("  latest handshake: now");
	} else {
		printf("  latest handshake: %s ago\n", cli_time_text(now_s - at_s, 5, text));
	}
}

static void
print_peer(const struct show_peer *p, int64_t now_s)
{
	char text[CLI_TIME_TEXT_MAX + SHOW_ENDPOINT_MAX], more[CLI_BYTES_TEXT_MAX];
	struct uapi_reply_cursor lines = p->lines;
	struct ip_prefix prefix;
	const char *separator = "";

	printf("\npeer: %s\n", key_encode_base64(p->info.public_key, text));
	if (!secret_is_zero(p->info.psk, KEY_LEN)) {
		puts("  preshared key: (hidden)");
	}
	if (p->info.endpoint.addr.family != IP_FAMILY_NONE) {
		printf("  endpoint: %s\n", show_endpoint(&p->info, text));
	}
	printf("  allowed ips: ");
	while (uapi_reply_allowed(&lines, &prefix) == WEFT_OK) {
		printf("%s%s", separator, ip_prefix_format(&prefix, text));
		separator = ", ";
	}
	puts(*separator ? "" : "(none)");
	if (p->info.last_handshake_s != 0) {
		print_handshake(p->info.last_handshake_s, now_s);
	}
	if (p->info.rx_bytes != 0 || p->info.tx_bytes != 0) {
		printf("  transfer: %s received, %s sent\n", cli_bytes_text(p->info.rx_bytes, text),
			cli_bytes_text(p->info.tx_bytes, more));
	}
	if (p->info.keepalive_s != 0) {
		printf("  persistent keepalive: every %s\n",
			cli_time_text(p->info.keepalive_s, 5, text));
	}
}

void
show_pretty(struct show_device *d, int64_t now_s)
{
	char text[KEY_BASE64_LEN + 1];
	printf("interface: %s\n", d->name);
	if (d->has_public_key) {
		printf("  public key: %s\n", key_encode_base64(d->public_key, text));
		puts("  private key: (hidden)");
	}
	if (d->info.listen_port) {
		printf("  listening port: %u\n", d->info.listen_port);
	}
	if (d->info.fwmark) {
		printf("  fwmark: 0x%" PRIx32 "\n", d->info.fwmark);
	}
	if (d->n > 0) {
		qsort(d->peers, d->n, sizeof(*d->peers), compare_handshakes);
	}
	for (size_t i = 0; i < d->n; i++) {
		print_peer(&d->peers[i], now_s);
	}
}

static enum weft_err
read_peers(struct show_device *d, struct uapi_reply_cursor *cursor)
{
	size_t cap = 0;
	for (;;) {
		struct show_peer p;
		enum weft_err e = uapi_reply_peer(cursor, &p.info, &p.lines);
		if (e) {
			return e == WEFT_ENOENT ? WEFT_OK : e;
		}
		if (d->n == cap) {
			cap = cap ? cap * 2 : 64;
			struct show_peer *v = realloc(d->peers, cap * sizeof(*v));
			if (!v) {
				return WEFT_ENOMEM;
			}
			d->peers = v;
		}
		d->peers[d->n++] = p;
	}
}

static enum weft_err
read_device(struct crypto *crypto, const char *reply, size_t len, struct show_device *d)
{
	struct uapi_reply_cursor cursor;
	int error;
	enum weft_err e = uapi_reply_begin(reply, len, &d->info, &error, &cursor);
	if (!e && error != 0) {
		e = WEFT_EIO;
	}
	if (!e && d->info.has_private_key) {
		e = dh_public(crypto, d->public_key, d->info.private_key);
		d->has_public_key = e == WEFT_OK;
	}
	return e ? e : read_peers(d, &cursor);
}

struct show {
	struct crypto *crypto;
	const struct show_field *field; /* NULL: for people */
	bool is_all;
	bool has_printed;
};

static enum weft_err
show_device(struct show *s, const char *name)
{
	struct show_device d = {.name = name};
	char path[CTL_PATH_MAX], *reply;
	size_t len;
	enum weft_err e = ctl_path_make(CTL_UAPI_DIR, name, path);
	if (e) {
		return WEFT_ENOENT;
	}
	e = ctl_client_get(path, cli_device_deadline(), &reply, &len);
	if (e) {
		return e;
	}
	e = read_device(s->crypto, reply, len, &d);
	if (!e && s->field) {
		s->field->print(&d, s->is_all);
	} else if (!e) {
		fputs(s->has_printed ? "\n" : "", stdout);
		show_pretty(&d, os_clock_wall_ns() / WEFT_NS_PER_S);
	}
	s->has_printed |= !e;
	if (d.peers) {
		secret_wipe(d.peers, d.n * sizeof(*d.peers));
		free(d.peers);
	}
	secret_wipe(&d, sizeof(d));
	ctl_client_free(reply, len);
	return e;
}

static int
show_all(struct show *s)
{
	struct cli_devices devices;
	int rc = CLI_OK;
	enum weft_err e = cli_devices_find(CTL_UAPI_DIR, &devices);
	if (e) {
		return cli_fail("%s: %s", CTL_UAPI_DIR, weft_err_text(e));
	}
	for (size_t i = 0; i < devices.n; i++) {
		e = show_device(s, devices.names[i]);
		/* A socket that nobody serves is what a killed device left. */
		if (e && e != WEFT_ENOENT) {
			rc = cli_device_fail(devices.names[i], e);
		}
	}
	cli_devices_fini(&devices);
	return rc;
}

static int
show_interfaces(void)
{
	struct cli_devices devices;
	enum weft_err e = cli_devices_find(CTL_UAPI_DIR, &devices);
	if (e) {
		return cli_fail("%s: %s", CTL_UAPI_DIR, weft_err_text(e));
	}
	for (size_t i = 0; i < devices.n; i++) {
		printf("%s%s", i > 0 ? " " : "", devices.names[i]);
	}
	puts("");
	cli_devices_fini(&devices);
	return CLI_OK;
}

int
show_main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "all";
	struct show s = {.is_all = strcmp(what, "all") == 0};

	if (strcmp(what, "--help") == 0 || strcmp(what, "-h") == 0) {
		fputs(help, stdout);
		return CLI_OK;
	}
	if (argc > 3) {
		return cli_misuse("show", "%s is an argument too many", argv[3]);
	}
	if (what[0] == '-') {
		return cli_misuse("show", "%s is not an option of it", what);
	}
	if (argc == 2 && strcmp(what, "interfaces") == 0) {
		return show_interfaces();
	}
	if (argc == 3) {
		s.field = show_field_find(argv[2]);
		if (!s.field) {
			return cli_misuse("show", "%s is not a field", argv[2]);
		}
	}
	enum weft_err e = crypto_new(&s.crypto);
	if (e) {
		return cli_fail("%s", weft_err_text(e));
	}
	int rc = CLI_OK;
	if (s.is_all) {
		rc = show_all(&s);
	} else {
		e = show_device(&s, what);
		rc = e ? cli_device_fail(what, e) : CLI_OK;
	}
	crypto_free(s.crypto);
	return rc;
}
