/* SPDX-License-Identifier: Apache-2.0 */
/* What a recovery holds of packets: how much of it, taken when, and given back when. */
#include "fec/recovery_internal.h"

/* What a sender remembers is what an answer may be asked for: the packets of two round trips and
 * the graces between, at the rate of the flow. It is 2 MiB at 500 Mbit/s and 10 ms. Half as many
 * records again, since frames take counters too. */
#define KEEP_RTTS 2
/* Where a request or its answer is lost every other time, it takes several rounds. */
#define HEAVY_SHARE 0.25
#define KEEP_RTTS_HEAVY 5
#define KEEP_MORE_NS (10 * WEFT_NS_PER_MS)
#define KEEP_RTT_UNKNOWN_NS (10 * WEFT_NS_PER_MS)
#define RECORDS_A_PACKET 1.5
#define RECORDS_MIN 4096u
/* A receiver waits 200 ms at least: of flows of up to 40 Mbit/s all that is remembered. */
#define STORE_BYTES_MIN (1u << 20)
/* Where the budget allows no more: what such a receiver can ask for, at the rate of now. */
#define LEAST_NS (250 * WEFT_NS_PER_MS)
#define RECORDS_LEAST_MIN 512u
#define STORE_BYTES_LEAST_MIN (64u << 10)
#define STORE_BYTES_LEAST_MAX (256u << 10)
/* At first, since the round trip may be one that a standing queue made: 135 ms were believed of 10
 * after a clean flow. Growth goes by what has been reported meanwhile. */
#define STORE_BYTES_FIRST_MAX (2u << 20)
#define RECORDS_FIRST_MAX 8192u
/* What a round trip that seemed long has made grow goes again: 64 KiB in that time. Not at once,
 * since pages that are taken anew cost more than the copies in them. */
#define SHRINK_NS (10 * WEFT_NS_PER_MS)
/* A receiver needs the sources that its repairs reach over, and what TCP it holds back: at most
 * 30 ms of it, half of the ring. */
#define DECODER_RECORDS_MIN 4096u
#define DECODER_RECORDS_MAX 65536u
#define DECODER_BYTES_MIN (512u << 10)
#define DECODER_BYTES_MAX (4u << 20)
/* While calm: some 35 ms of packets of full size at the 5000 packets/s of recovery.c. */
#define CALM_RECORDS 1024u
#define CALM_BYTES (256u << 10)
/* A TCP connection that begins may be past 1000 packets in a round trip before it loses one. */
#define CALM_RECORDS_MAX 4096u
#define CALM_BYTES_MAX (1u << 20)

static uint32_t
power_of_two(uint64_t n, uint32_t min, uint32_t max)
{
	uint32_t p = min;
	while (p < n && p < max) {
		p *= 2;
	}
	return p;
}

static int64_t
window_ns(const struct fec_recovery *r)
{
	int64_t rtt_ns = r->controller.rtt_ns > 0 ? r->controller.rtt_ns : KEEP_RTT_UNKNOWN_NS;
	int64_t rtts = r->controller.all.share > HEAVY_SHARE ? KEEP_RTTS_HEAVY : KEEP_RTTS;
	return rtts * rtt_ns + KEEP_MORE_NS;
}

static uint32_t
records(const struct fec_recovery *r)
{
	double n = r->rate.n_a_ns * (double)window_ns(r) * RECORDS_A_PACKET;
	return power_of_two((uint64_t)n, RECORDS_MIN, RECORDS_FIRST_MAX);
}

static uint32_t
store_bytes(const struct fec_recovery *r)
{
	double n = r->rate.bytes_a_ns * (double)window_ns(r);
	return power_of_two((uint64_t)n, STORE_BYTES_MIN, STORE_BYTES_FIRST_MAX);
}

static uint32_t
records_least(const struct fec_recovery *r)
{
	bool is_known = r->rate.n_a_ns > 0;
	double n = r->rate.n_a_ns * LEAST_NS * RECORDS_A_PACKET;
	return is_known ? power_of_two((uint64_t)n, RECORDS_LEAST_MIN, RECORDS_MIN) : RECORDS_MIN;
}

static uint32_t
store_bytes_least(const struct fec_recovery *r)
{
	bool is_known = r->rate.n_a_ns > 0;
	double n = r->rate.bytes_a_ns * LEAST_NS;
	return is_known ? power_of_two((uint64_t)n, STORE_BYTES_LEAST_MIN, STORE_BYTES_LEAST_MAX)
			: STORE_BYTES_LEAST_MAX;
}

/* Counted, and not asked for with every packet. */
static void
refused(struct fec_recovery *r, struct mono now)
{
	r->stats.memory_refusals++;
	r->starved_until = mono_add_ns(now, FEC_STARVED_NS);
	r->was_calm_refusal = !r->controller.is_armed;
}

/* What was refused to one that has some is no reason why a new session's should not be made. */
static void
grow_encoder(
	struct fec_recovery *r, struct fec_session *s, uint32_t n, uint32_t bytes, struct mono now)
{
	enum fec_budget_use use = s->is_calm ? FEC_BUDGET_SPARE : FEC_BUDGET_GROWTH;
	n = s->is_calm && n > CALM_RECORDS_MAX ? CALM_RECORDS_MAX : n;
	bytes = s->is_calm && bytes > CALM_BYTES_MAX ? CALM_BYTES_MAX : bytes;
	if (!mono_is_before(now, r->growth_starved_until) &&
		!fec_encoder_grow(s->encoder, n, bytes, use)) {
		r->stats.memory_refusals++;
		r->growth_starved_until = mono_add_ns(now, FEC_STARVED_NS);
	}
}

void
fec_recovery_grow(struct fec_recovery *r, struct fec_session *s, struct mono now)
{
	uint32_t n, bytes;
	int64_t keep_ns = window_ns(r);
	if (s->decoder && !mono_is_before(now, r->decoder_starved_until) &&
		!fec_decoder_grow(s->decoder)) {
		r->stats.memory_refusals++;
		r->decoder_starved_until = mono_add_ns(now, FEC_STARVED_NS);
	}
	if (!s->is_given) {
		return;
	}
	if (fec_encoder_is_short(s->encoder, keep_ns, &n, &bytes)) {
		grow_encoder(r, s, n, bytes, now);
	} else if (!mono_is_before(now, s->shrunk_at)) {
		fec_encoder_shrink(s->encoder, keep_ns + keep_ns / 4,
			s->is_calm ? CALM_BYTES : STORE_BYTES_MIN);
		s->shrunk_at = mono_add_ns(now, SHRINK_NS);
	}
}

static void
make_encoder(struct fec_recovery *r, struct fec_session *s, struct mono now)
{
	bool is_armed = r->controller.is_armed;
	struct fec_encoder_config c = {.gf = r->gf,
		.records = is_armed ? records(r) : CALM_RECORDS,
		.bytes = is_armed ? store_bytes(r) : CALM_BYTES,
		.packet_max = r->config.packet_max,
		.frame_max = r->config.frame_max,
		.use = is_armed ? FEC_BUDGET_GROWTH : FEC_BUDGET_CALM,
		.budget = r->config.budget};
	bool has_failed = fec_encoder_new(&c, &s->encoder) != WEFT_OK;
	if (has_failed && is_armed) {
		c.records = records_least(r);
		c.bytes = store_bytes_least(r);
		c.use = FEC_BUDGET_NEED;
		has_failed = fec_encoder_new(&c, &s->encoder) != WEFT_OK;
	}
	r->is_starved = has_failed;
	s->is_calm = !has_failed && !is_armed;
	if (has_failed) {
		s->encoder = NULL;
		refused(r, now);
	}
}

/* A small one while calm, which grows when it is armed, and begins anew when that has ended.
 *
 * It is taken here, with a source at hand, and not before by a timer: the source that would be
 * missed is the first of a flow, or the one behind a first loss. That happens once in many
 * packets, and takes some microseconds: pages are not touched before they are written. */
struct fec_encoder *
fec_recovery_encoder(struct fec_recovery *r, struct fec_session *s, struct mono now)
{
	bool is_armed = r->controller.is_armed;
	bool may_ask = !mono_is_before(now, r->starved_until) || (is_armed && r->was_calm_refusal);
	if (s->encoder && s->is_calm && is_armed && may_ask) {
		if (fec_encoder_grow(s->encoder, records(r), store_bytes(r), FEC_BUDGET_GROWTH) ||
			fec_encoder_grow(s->encoder, records_least(r), store_bytes_least(r),
				FEC_BUDGET_NEED)) {
			s->is_calm = false;
		} else {
			refused(r, now);
		}
	} else if (s->encoder && !s->is_calm && !is_armed) {
		fec_recovery_drop_encoder(s);
	}
	if (!s->encoder && may_ask) {
		make_encoder(r, s, now);
	}
	return s->encoder;
}

struct fec_decoder *
fec_recovery_decoder(struct fec_recovery *r, struct fec_session *s)
{
	if (!s->decoder) {
		struct fec_decoder_config c = {.gf = r->gf,
			.records = DECODER_RECORDS_MIN,
			.bytes = DECODER_BYTES_MIN,
			.records_max = DECODER_RECORDS_MAX,
			.bytes_max = DECODER_BYTES_MAX,
			.packet_max = r->config.packet_max,
			.budget = r->config.budget};
		if (fec_decoder_new(&c, &s->decoder)) {
			s->decoder = NULL;
			return NULL;
		}
		fec_decoder_set_rtt(s->decoder, r->controller.rtt_ns);
		fec_decoder_set_hold(s->decoder, fec_recovery_may_hold(r, s));
	}
	return s->decoder;
}

static bool
is_newest(const struct fec_recovery *r, const struct fec_session *s)
{
	for (int i = 0; i < FEC_SESSIONS; i++) {
		if (r->sessions[i].id > s->id) {
			return false;
		}
	}
	return true;
}

bool
fec_recovery_may_hold(const struct fec_recovery *r, const struct fec_session *s)
{
	return !r->is_hold_off && is_newest(r, s);
}

int64_t
fec_recovery_keep_ns(const struct fec_recovery *r, const struct fec_session *s)
{
	return is_newest(r, s) ? FEC_KEEP_NS : FEC_KEEP_OLD_NS;
}
