/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/reply.h"

const char *
reply_text(const json_t *o, const char *name, const char *otherwise)
{
	const char *s = json_string_value(json_object_get(o, name));
	return s ? s : otherwise;
}

int64_t
reply_count(const json_t *o, const char *name)
{
	const json_t *v = json_object_get(o, name);
	return json_is_real(v) ? (int64_t)json_real_value(v) : json_integer_value(v);
}

double
reply_number(const json_t *o, const char *name)
{
	return json_number_value(json_object_get(o, name));
}

bool
reply_is_true(const json_t *o, const char *name)
{
	return json_is_true(json_object_get(o, name));
}

bool
reply_has(const json_t *o, const char *name)
{
	const json_t *v = json_object_get(o, name);
	return v && !json_is_null(v);
}
