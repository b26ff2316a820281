/* SPDX-License-Identifier: Apache-2.0 */
/* weft fmt: configuration files in canonical form. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "os/file.h"
#include "wire/conf.h"
#include "wire/conf_edit.h"

#define PATH_BYTES 4096

static const char help[] =
	"Usage: weft fmt [--check] FILE...\n"
	"Writes configuration files in canonical form: names of keys as in the manual, \"Key = "
	"value\",\n"
	"lists with \", \", an empty line before a section. Comments stay, and it means the same.\n"
	"- is standard input, and goes to standard output. A file with faults is left alone.\n\n"
	"  --check  change nothing; name the files that would change, and exit with 1\n"
	"  --help   this text\n";

static int
write_back(const char *file, const char *text, size_t len)
{
	char path[PATH_BYTES];
	enum weft_err e = os_file_real(file, path, sizeof(path));
	e = e ? e : os_file_rewrite(path, text, len);
	return e ? cli_fail("cannot write %s: %s", file, weft_err_text(e)) : CLI_OK;
}

static int
format(const char *file, const char *old, size_t old_len, bool is_check)
{
	char *text;
	size_t len;
	bool is_stdin = strcmp(file, "-") == 0;
	enum weft_err e = conf_format(old, old_len, &text, &len);
	if (e) {
		return cli_fail("%s: %s", file, weft_err_text(e));
	}
	bool is_same = len == old_len && memcmp(text, old, len) == 0;
	int rc = CLI_OK;
	if (is_check) {
		rc = is_same ? CLI_OK : CLI_FAILED;
		if (!is_same) {
			printf("%s\n", file);
		}
	} else if (is_stdin) {
		rc = fwrite(text, 1, len, stdout) == len && fflush(stdout) == 0
			     ? CLI_OK
			     : cli_fail("cannot write to standard output");
	} else if (!is_same) {
		rc = write_back(file, text, len);
	}
	conf_text_free(text, len);
	return rc;
}

static int
format_file(const char *file, bool is_check)
{
	const char *path = strcmp(file, "-") == 0 ? "/dev/stdin" : file;
	char *text;
	size_t len;
	struct conf *c;
	struct conf_report *report = calloc(1, sizeof(*report));
	enum weft_err e = os_file_read(path, CONF_BYTES_MAX, &text, &len);
	if (e || !report) {
		free(report);
		return cli_fail("cannot read %s: %s", file, weft_err_text(e ? e : WEFT_ENOMEM));
	}
	int rc = CLI_FAILED;
	e = conf_parse(text, len, NULL, &c, report);
	if (e == WEFT_EPARSE) {
		char line[CONF_NOTE_LINE_MAX];
		for (size_t i = 0; i < report->n; i++) {
			if (report->notes[i].severity == CONF_SEVERITY_ERROR) {
				fprintf(stderr, "%s\n",
					conf_note_format(
						&report->notes[i], file, line, sizeof(line)));
			}
		}
	} else if (e) {
		cli_fail("%s: %s", file, weft_err_text(e));
	} else {
		conf_free(c);
		rc = format(file, text, len, is_check);
	}
	conf_text_free(text, len);
	free(report);
	return rc;
}

int
fmt_main(int argc, char **argv)
{
	static const struct option longs[] = {
		{"help", no_argument, NULL, 'h'}, {"check", no_argument, NULL, 'c'}, {0}};
	bool is_check = false;
	opterr = 0;
	for (int c; (c = getopt_long(argc, argv, "h", longs, NULL)) != -1;) {
		switch (c) {
		case 'h':
			fputs(help, stdout);
			return CLI_OK;
		case 'c':
			is_check = true;
			break;
		default:
			return cli_misuse("fmt", "%s is not an option of it", argv[optind - 1]);
		}
	}
	if (optind == argc) {
		return cli_misuse("fmt", "a FILE is wanted");
	}
	int rc = CLI_OK;
	for (int i = optind; i < argc; i++) {
		int one = format_file(argv[i], is_check);
		rc = one > rc ? one : rc;
	}
	return rc;
}
