/* SPDX-License-Identifier: Apache-2.0 */
/* weft set: changes what a running device does with its peers beyond WireGuard. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/device.h"
#include "cli/reply.h"
#include "ctl/client.h"
#include "ctl/path.h"
#include "wire/conf.h"
#include "wire/key.h"

static const char help[] =
	"Usage: weft set NAME peer KEY [SETTING VALUE]... [peer KEY [SETTING VALUE]...]...\n"
	"Changes settings of peers of the running device NAME at once. KEY is a public key. All "
	"of\n"
	"it is checked before any of it is done. Files are not changed: the same settings stand\n"
	"there as Fec, FecDelay, Cipher and Extensions.\n\n"
	"  fec off|auto|N%           loss recovery: auto sends as much as the path needs, and\n"
	"                            nothing where nothing is lost; N% (1 to 100) always sends so\n"
	"                            many repairs ahead\n"
	"  fec-delay MS              what recovery may take, 1 to 1000 ms; 20 by default\n"
	"  cipher auto|chacha20poly1305|aes-256-gcm\n"
	"                            auto: AES where both sides have it fast\n"
	"  extensions on|off         off: the peer is treated as plain WireGuard\n\n"
	"Both sides must have it on. What the other side must hear of is offered in a new "
	"session,\n"
	"within 5 s; what was agreed is in `weft status NAME`.\n"
	"Example: weft set home peer xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg= fec 20%\n"
	"Keys, endpoints and AllowedIPs are set by `wg set`.\n";

static int
read_fec(json_t *peer, const char *text)
{
	struct conf_policy ignored;
	if (!conf_fec_parse(text, strlen(text), &ignored)) {
		return cli_misuse(
			"set", "fec %s: off, auto or a share from 1%% to 100%% is wanted", text);
	}
	json_object_set_new(peer, "fec", json_string(text));
	return CLI_OK;
}

static int
read_fec_delay(json_t *peer, const char *text)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || v < 1 || v > CONF_FEC_DELAY_MS_MAX) {
		return cli_misuse("set",
			"fec-delay %s: a number of milliseconds from 1 to %d is wanted", text,
			CONF_FEC_DELAY_MS_MAX);
	}
	json_object_set_new(peer, "fec_delay_ms", json_integer((json_int_t)v));
	return CLI_OK;
}

static int
read_cipher(json_t *peer, const char *text)
{
	struct conf_policy ignored;
	if (!conf_cipher_parse(text, strlen(text), &ignored)) {
		return cli_misuse(
			"set", "cipher %s: auto, chacha20poly1305 or aes-256-gcm is wanted", text);
	}
	json_object_set_new(peer, "cipher", json_string(text));
	return CLI_OK;
}

static int
read_extensions(json_t *peer, const char *text)
{
	bool is_on = strcmp(text, "on") == 0;
	if (!is_on && strcmp(text, "off") != 0) {
		return cli_misuse("set", "extensions %s: on or off is wanted", text);
	}
	json_object_set_new(peer, "extensions", json_boolean(is_on));
	return CLI_OK;
}

static const struct {
	const char *name;
	int (*read)(json_t *peer, const char *text);
} settings[] = {{"fec", read_fec}, {"fec-delay", read_fec_delay}, {"cipher", read_cipher},
	{"extensions", read_extensions}};

static int
read_setting(json_t *peer, const char *name, const char *value)
{
	for (size_t i = 0; i < WEFT_ARRAY_LEN(settings); i++) {
		if (strcmp(settings[i].name, name) == 0) {
			return value ? settings[i].read(peer, value)
				     : cli_misuse("set", "%s wants a value", name);
		}
	}
	return cli_misuse("set", "%s is no setting: fec, fec-delay, cipher, extensions", name);
}

/* One "peer KEY ..."; *at goes behind it. */
static int
read_peer(json_t *peers, char **argv, int argc, int *at)
{
	uint8_t key[KEY_LEN];
	const char *text = *at + 1 < argc ? argv[*at + 1] : NULL;
	if (strcmp(argv[*at], "peer") != 0) {
		return cli_misuse("set", "\"peer\" is wanted where %s stands", argv[*at]);
	}
	if (!text || key_decode_base64(text, strlen(text), key)) {
		return cli_misuse("set", "peer wants a public key: %d characters that end in '='",
			KEY_BASE64_LEN);
	}
	json_t *peer = json_pack("{s:s}", "public_key", text);
	if (json_array_append_new(peers, peer)) {
		return cli_fail("%s", weft_err_text(WEFT_ENOMEM));
	}
	int rc = CLI_OK;
	for (*at += 2; !rc && *at < argc && strcmp(argv[*at], "peer") != 0; *at += 2) {
		rc = read_setting(peer, argv[*at], *at + 1 < argc ? argv[*at + 1] : NULL);
	}
	if (!rc && json_object_size(peer) == 1) {
		return cli_misuse("set", "there is nothing to set for the peer %s", text);
	}
	return rc;
}

static int
send_request(const char *name, const json_t *request)
{
	char path[CTL_PATH_MAX];
	json_t *o;
	enum weft_err e = ctl_path_make(CTL_CONTROL_DIR, name, path);
	if (!e) {
		e = ctl_client_request(path, request, cli_device_deadline(), &o);
	} else {
		e = WEFT_ENOENT; /* no possible name */
	}
	if (e) {
		return cli_device_fail(name, e);
	}
	int rc = CLI_OK;
	if (!reply_is_true(o, "ok")) {
		rc = cli_fail("%s: %s", name,
			reply_text(json_object_get(o, "error"), "text", "it gave no answer"));
	}
	json_decref(o);
	return rc;
}

int
set_main(int argc, char **argv)
{
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		fputs(help, stdout);
		return CLI_OK;
	}
	if (argc < 3) {
		return cli_misuse("set", argc < 2 ? "a NAME is wanted" : "a peer is wanted");
	}
	if (argv[1][0] == '-') {
		return cli_misuse("set", "%s is not an option of it", argv[1]);
	}
	json_t *peers = json_array();
	json_t *request = json_pack("{s:s, s:o}", "op", "set", "peers", peers);
	if (!request) {
		return cli_fail("%s", weft_err_text(WEFT_ENOMEM));
	}
	int rc = CLI_OK;
	for (int at = 2; !rc && at < argc;) {
		rc = read_peer(peers, argv, argc, &at);
	}
	if (!rc) {
		rc = send_request(argv[1], request);
	}
	json_decref(request);
	return rc;
}
