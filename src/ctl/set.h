/* SPDX-License-Identifier: Apache-2.0 */
/* Policies of running peers changed: the operation "set" of the control socket. */
#ifndef WEFT_CTL_SET_H
#define WEFT_CTL_SET_H

#include <jansson.h>

struct node;

#define CTL_SET_TEXT_MAX 200

struct ctl_set_error {
	const char *code; /* NULL: none */
	char text[CTL_SET_TEXT_MAX];
};

/* The request is checked whole, and all its peers are found, before anything changes. */
void ctl_set(struct node *n, const json_t *request, struct ctl_set_error *out);

#endif
