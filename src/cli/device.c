/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/device.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "os/clock.h"
#include "os/file.h"
#include "wire/conf.h"

#define SOCKET_SUFFIX ".sock"
#define ANSWER_NS (10 * WEFT_NS_PER_S)

static void
add_name(void *ctx, const char *file)
{
	struct cli_devices *d = ctx;
	size_t len = strlen(file), suffix_len = strlen(SOCKET_SUFFIX);
	if (len <= suffix_len || strcmp(file + len - suffix_len, SOCKET_SUFFIX) != 0 ||
		!conf_name_is_valid(file, len - suffix_len)) {
		return;
	}
	if (d->n == d->cap) {
		size_t cap = d->cap ? d->cap * 2 : 16;
		void *names = realloc(d->names, cap * sizeof(*d->names));
		if (!names) {
			return;
		}
		d->names = names;
		d->cap = cap;
	}
	memcpy(d->names[d->n], file, len - suffix_len);
	d->names[d->n++][len - suffix_len] = 0;
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

enum weft_err
cli_devices_find(const char *dir, struct cli_devices *out)
{
	struct cli_devices d = {0};
	enum weft_err e = os_file_list(dir, add_name, &d);
	if (e && e != WEFT_ENOENT) {
		cli_devices_fini(&d);
		return e;
	}
	if (d.n > 0) {
		qsort(d.names, d.n, sizeof(*d.names), compare_names);
	}
	*out = d;
	return WEFT_OK;
}

void
cli_devices_fini(struct cli_devices *d)
{
	free(d->names);
	*d = (struct cli_devices){0};
}

struct mono
cli_device_deadline(void)
{
	return mono_add_ns(os_clock_mono(), ANSWER_NS);
}

int
cli_device_fail(const char *name, enum weft_err e)
{
	switch (e) {
	case WEFT_ENOENT:
		return cli_fail(
			"%s: no such device is running; `weft show interfaces` lists those that do",
			name);
	case WEFT_EPERM:
		return cli_fail("%s: permission denied; try as root", name);
	default:
		return cli_fail("%s: %s", name, weft_err_text(e));
	}
}

char *
cli_time_text(int64_t seconds, unsigned parts_max, char out[CLI_TIME_TEXT_MAX])
{
	static const struct {
		int64_t seconds;
		const char *name;
	} units[] = {{365 * 24 * 3600, "year"}, {24 * 3600, "day"}, {3600, "hour"}, {60, "minute"},
		{1, "second"}};
	size_t at = 0;
	out[0] = 0;
	for (size_t i = 0; i < WEFT_ARRAY_LEN(units) && parts_max > 0; i++) {
		int64_t n = seconds / units[i].seconds;
		seconds %= units[i].seconds;
		if (n > 0) {
			at += (size_t)snprintf(out + at, CLI_TIME_TEXT_MAX - at,
				"%s%" PRId64 " %s%s", at ? ", " : "", n, units[i].name,
				n == 1 ? "" : "s");
			parts_max--;
		}
	}
	if (at == 0) {
		snprintf(out, CLI_TIME_TEXT_MAX, "0 seconds");
	}
	return out;
}

char *
cli_bytes_text(uint64_t bytes, char out[CLI_BYTES_TEXT_MAX])
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
	double v = (double)bytes / 1024;
	size_t i = 0;
	if (bytes < 1024) {
		snprintf(out, CLI_BYTES_TEXT_MAX, "%" PRIu64 " B", bytes);
		return out;
	}
	while (v >= 1024 && i + 1 < WEFT_ARRAY_LEN(units)) {
		v /= 1024;
		i++;
	}
	snprintf(out, CLI_BYTES_TEXT_MAX, "%.2f %s", v, units[i]);
	return out;
}
