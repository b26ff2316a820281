/* SPDX-License-Identifier: Apache-2.0 */
/* DNS = of a file: told to systemd-resolved, or to resolvconf, or written into /etc/resolv.conf. */
#ifndef WEFT_QUICK_DNS_H
#define WEFT_QUICK_DNS_H

#include <stdbool.h>

#include "base/err.h"

struct conf;
struct quick_host;

#define DNS_KEY_MAX 64

enum dns_means {
	DNS_MEANS_NONE,
	DNS_MEANS_RESOLVECTL,
	DNS_MEANS_RESOLVCONF,
	DNS_MEANS_FILE,
};

/* What was done. Zero at first. */
struct dns {
	enum dns_means means;
	char key[DNS_KEY_MAX]; /* that resolvconf knows it by */
};

/* Puts what c says in the place of what was set. The log says what failed. */
WEFT_MUST_CHECK enum weft_err dns_set(
	const struct quick_host *h, struct dns *d, const struct conf *c);
/* Takes it back. A file that somebody has changed since is left alone, and the log says so. */
void dns_unset(const struct quick_host *h, struct dns *d);
/* Takes back what a killed process has set for this device. True: there was something. */
bool dns_clean(const struct quick_host *h);

#endif
