/* SPDX-License-Identifier: Apache-2.0 */
/* weft genkey, genpsk, pubkey. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/entropy.h"
#include "cli/cli.h"
#include "crypto/crypto.h"
#include "crypto/dh.h"
#include "crypto/secret.h"
#include "os/entropy.h"
#include "os/fd.h"
#include "os/file.h"
#include "wire/key.h"

#define STDOUT_FD 1
/* A key and whatever blanks stand round it. */
#define INPUT_MAX 4096

static const char genkey_help[] = "Usage: weft genkey\n"
				  "Prints a new private key.\n";
static const char genpsk_help[] = "Usage: weft genpsk\n"
				  "Prints a new preshared key.\n";
static const char pubkey_help[] =
	"Usage: weft pubkey\n"
	"Reads a private key from standard input and prints its public key:\n"
	"  (umask 077; weft genkey | tee private | weft pubkey > public)\n";

/* Returns true when there is nothing more to do. */
static bool
takes_no_arguments(const char *command, const char *help, int argc, char **argv, int *rc)
{
	*rc = CLI_OK;
	if (argc > 1 && strcmp(argv[1], "--help") == 0) {
		fputs(help, stdout);
		return true;
	}
	if (argc > 1) {
		*rc = cli_misuse(command, "%s is not an argument of it", argv[1]);
	}
	return argc > 1;
}

/* Wipes the key. */
static int
print_key(uint8_t key[KEY_LEN])
{
	char text[KEY_BASE64_LEN + 2];
	key_encode_base64(key, text);
	text[KEY_BASE64_LEN] = '\n';
	/* No buffer of stdio's keeps a copy. */
	setvbuf(stdout, NULL, _IONBF, 0);
	bool ok = fwrite(text, 1, KEY_BASE64_LEN + 1, stdout) == KEY_BASE64_LEN + 1;
	secret_wipe(text, sizeof(text));
	secret_wipe(key, KEY_LEN);
	return ok ? CLI_OK : cli_fail("cannot write the key");
}

static int
print_random(bool is_private)
{
	uint8_t key[KEY_LEN];
	struct entropy entropy = os_entropy();
	if (os_fd_is_world_accessible(STDOUT_FD)) {
		fputs("weft: warning: everybody may read the file that the key goes to; umask 077 "
		      "helps\n",
			stderr);
	}
	entropy.fill(entropy.ctx, key, sizeof(key));
	if (is_private) {
		dh_clamp(key);
	}
	return print_key(key);
}

int
genkey_main(int argc, char **argv)
{
	int rc;
	if (takes_no_arguments("genkey", genkey_help, argc, argv, &rc)) {
		return rc;
	}
	return print_random(true);
}

int
genpsk_main(int argc, char **argv)
{
	int rc;
	if (takes_no_arguments("genpsk", genpsk_help, argc, argv, &rc)) {
		return rc;
	}
	return print_random(false);
}

static bool
is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool
read_private(uint8_t out[KEY_LEN])
{
	char *text;
	size_t len, start = 0;
	if (os_file_read("/dev/stdin", INPUT_MAX, &text, &len)) {
		return false;
	}
	size_t end = len;
	while (end > 0 && is_blank(text[end - 1])) {
		end--;
	}
	while (start < end && is_blank(text[start])) {
		start++;
	}
	bool ok = key_decode_base64(text + start, end - start, out) == WEFT_OK;
	secret_wipe(text, len);
	free(text);
	return ok;
}

int
pubkey_main(int argc, char **argv)
{
	int rc;
	uint8_t key[KEY_LEN];
	struct crypto *crypto;
	if (takes_no_arguments("pubkey", pubkey_help, argc, argv, &rc)) {
		return rc;
	}
	if (!read_private(key)) {
		return cli_fail(
			"standard input is not a key of %d base64 characters", KEY_BASE64_LEN);
	}
	enum weft_err e = crypto_new(&crypto);
	if (!e) {
		e = dh_public(crypto, key, key);
		crypto_free(crypto);
	}
	if (e) {
		secret_wipe(key, sizeof(key));
		return cli_fail("cannot compute the public key: %s", weft_err_text(e));
	}
	return print_key(key);
}
