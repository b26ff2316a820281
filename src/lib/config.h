/* SPDX-License-Identifier: Apache-2.0 */
/* From a caller's struct weft_config to a configuration.
 *
 * What the caller gives as a struct becomes a file's text first, so that there is one reader with
 * one set of checks. The text is what a node keeps: a stopped one is started from it again. */
#ifndef WEFT_LIB_CONFIG_H
#define WEFT_LIB_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "weft/node.h"

struct conf;

/* Zero-initialised, it is empty. */
struct config_text {
	char *p; /* holds keys */
	size_t len, cap;
	bool is_struct; /* made from one, so that lines mean nothing to the caller */
};

/* Reads the source that c names. c is a whole struct of ours. */
WEFT_MUST_CHECK enum weft_err config_read(
	const struct weft_config *c, struct config_text *out, struct weft_detail *why);
/* Wipes. */
void config_text_fini(struct config_text *t);
/* What the text says, made fit for a private namespace: routes always follow AllowedIPs. *out is
 * the caller's. */
WEFT_MUST_CHECK enum weft_err config_parse(
	const struct config_text *t, struct conf **out, struct weft_detail *why);

#endif
