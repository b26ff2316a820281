/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/recovery.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/number.h"
#include "cli/reply.h"

static const json_t *
fec_of(const json_t *peer)
{
	return json_object_get(peer, "fec");
}

static bool
has_state(const json_t *peer, const char *state)
{
	const json_t *e = json_object_get(peer, "extensions");
	return strcmp(reply_text(e, "state", ""), state) == 0;
}

char *
recovery_extensions(const json_t *peer, char out[RECOVERY_TEXT_MAX])
{
	static const struct {
		const char *state, *text;
	} texts[] = {{"unknown", "no session yet"}, {"asking", "the other side is being asked"},
		{"agreed", "agreed"}, {"stock", "none: the other side is plain WireGuard"},
		{"off", "off"}};
	const json_t *e = json_object_get(peer, "extensions");
	const char *text = "?", *name = reply_text(e, "name", "");
	for (size_t i = 0; i < WEFT_ARRAY_LEN(texts); i++) {
		if (has_state(peer, texts[i].state)) {
			text = texts[i].text;
		}
	}
	bool is_named = has_state(peer, "agreed") && name[0];
	snprintf(out, RECOVERY_TEXT_MAX, "%s%s%.63s; cipher %s", text, is_named ? " with " : "",
		is_named ? name : "", reply_text(peer, "cipher", "?"));
	return out;
}

bool
recovery_is_running(const json_t *peer)
{
	return reply_has(fec_of(peer), "rx");
}

bool
recovery_has_why(const json_t *peer)
{
	return recovery_is_running(peer) || has_state(peer, "agreed");
}

char *
recovery_why(const json_t *peer, char out[RECOVERY_TEXT_MAX])
{
	const json_t *policy = json_object_get(peer, "policy"), *f = fec_of(peer);
	const char *text = reply_text(f, "why_text", "?");
	if (strcmp(reply_text(f, "why", ""), "off") == 0) {
		snprintf(out, RECOVERY_TEXT_MAX, "%.160s", text);
	} else {
		snprintf(out, RECOVERY_TEXT_MAX, "%s within %" PRId64 " ms: %.160s",
			reply_text(policy, "fec", "?"), reply_count(policy, "fec_delay_ms"), text);
	}
	return out;
}

char *
recovery_out(const json_t *peer, char out[RECOVERY_TEXT_MAX])
{
	const json_t *f = fec_of(peer);
	char loss[NUMBER_TEXT_MAX], residual[NUMBER_TEXT_MAX], overhead[NUMBER_TEXT_MAX],
		ahead[NUMBER_TEXT_MAX], answer[NUMBER_TEXT_MAX], runs[NUMBER_TEXT_MAX + 16] = "";
	if (reply_number(f, "loss") > 0 && reply_number(f, "burst") > 0) {
		snprintf(runs, sizeof(runs), " in runs of %.1f", reply_number(f, "burst"));
	}
	snprintf(out, RECOVERY_TEXT_MAX,
		"loss %s%s, residual %s, overhead %s, recovered %s ahead + %s on request",
		number_share(reply_number(f, "loss"), loss), runs,
		number_share(reply_number(f, "residual"), residual),
		number_share(reply_number(f, "overhead"), overhead),
		number_count((uint64_t)reply_count(f, "peer_recovered_ahead"), ahead),
		number_count((uint64_t)reply_count(f, "peer_recovered_answer"), answer));
	return out;
}

static double
share_of(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

char *
recovery_in(const json_t *peer, char out[RECOVERY_TEXT_MAX])
{
	const json_t *r = json_object_get(fec_of(peer), "rx");
	char loss[NUMBER_TEXT_MAX], residual[NUMBER_TEXT_MAX], ahead[NUMBER_TEXT_MAX],
		answer[NUMBER_TEXT_MAX], hold[NUMBER_TEXT_MAX], runs[NUMBER_TEXT_MAX + 16] = "";
	double lost = reply_number(r, "lost"), all = reply_number(r, "received") + lost;
	if (reply_number(r, "runs") > 0) {
		snprintf(runs, sizeof(runs), " in runs of %.1f", lost / reply_number(r, "runs"));
	}
	snprintf(out, RECOVERY_TEXT_MAX,
		"loss %s%s, residual %s, recovered %s ahead + %s on request, held %s",
		number_share(share_of(lost, all), loss), runs,
		number_share(share_of(reply_number(r, "given_up"), all), residual),
		number_count((uint64_t)reply_count(r, "recovered_ahead"), ahead),
		number_count((uint64_t)reply_count(r, "recovered_answer"), answer),
		number_ms(reply_number(r, "hold_avg_ms"), hold));
	return out;
}
