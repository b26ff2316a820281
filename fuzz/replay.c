/* SPDX-License-Identifier: Apache-2.0 */
/* A main for a target without libFuzzer: runs fuzz/corpus/WEFT_TEST_NAME/ through it, and every
 * prefix of the shorter files, as a unit test. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fuzz.h"

#define FILE_BYTES_MAX (1u << 20)
/* Of each file of up to this length all prefixes are run too: cut input is what decoders meet. */
#define PREFIX_BYTES_MAX 512u

static void
run_copy(const uint8_t *data, size_t len)
{
	/* A block of its own length, so that ASan sees the first byte read past the end. */
	uint8_t *copy = malloc(len ? len : 1);
	assert_non_null(copy);
	memcpy(copy, data, len);
	assert_int_equal(LLVMFuzzerTestOneInput(copy, len), 0);
	free(copy);
}

static void
run_file(const char *path, uint8_t *buf)
{
	FILE *f = fopen(path, "rb");
	if (!f) {
		fail_msg("cannot open %s", path);
		return;
	}
	size_t len = fread(buf, 1, FILE_BYTES_MAX, f);
	int is_whole = fgetc(f) == EOF && !ferror(f);
	fclose(f);
	if (!is_whole) {
		fail_msg("%s: unreadable or over %u bytes", path, FILE_BYTES_MAX);
		return;
	}
	run_copy(buf, len);
	for (size_t n = 0; len <= PREFIX_BYTES_MAX && n < len; n++) {
		run_copy(buf, n);
	}
}

static void
target_survives_its_corpus(void **state)
{
	(void)state;
	static const char dir[] = WEFT_FUZZ_DIR "/corpus/" WEFT_TEST_NAME;
	DIR *d = opendir(dir);
	if (!d) {
		fail_msg("no corpus at %s", dir);
		return;
	}
	uint8_t *buf = malloc(FILE_BYTES_MAX);
	assert_non_null(buf);
	size_t count = 0;
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		if (e->d_name[0] == '.') {
			continue;
		}
		char path[sizeof(dir) + sizeof(e->d_name) + 1];
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		run_file(path, buf);
		count++;
	}
	free(buf);
	closedir(d);
	if (count == 0) {
		fail_msg("corpus %s is empty", dir);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(target_survives_its_corpus),
	};
	return cmocka_run_group_tests_name("fuzz corpus " WEFT_TEST_NAME, tests, NULL, NULL);
}
