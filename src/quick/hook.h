/* SPDX-License-Identifier: Apache-2.0 */
/* PreUp, PostUp, PreDown, PostDown. */
#ifndef WEFT_QUICK_HOOK_H
#define WEFT_QUICK_HOOK_H

#include "base/err.h"
#include "wire/conf.h"

struct quick_host;

/* Runs the commands of one kind in the order of the file, %i replaced by the interface's name.
 * Those of PreUp and PostUp must not fail: after the first that does, none follows, and the log
 * says which. The others all run, and what fails is logged. */
WEFT_MUST_CHECK enum weft_err hook_run(
	const struct quick_host *h, const struct conf *c, enum conf_hook kind);

#endif
