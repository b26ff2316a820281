/* SPDX-License-Identifier: Apache-2.0 */
#include "fec/mark.h"

/* "Lately": halved when so many were lost. */
#define LATELY_LOST 64.0
/* Lost repairs count as lost, too, and are never recovered: with one for each source, half. */
#define HIDDEN_MIN (1.0 / 3)

void
fec_marks_report(
	struct fec_marks *m, struct mono now, uint32_t lost, uint32_t recovered, double queue_share)
{
	m->lost += lost;
	m->hidden += recovered;
	/* What comes late may be recovered without being lost. */
	m->hidden = m->hidden < m->lost + LATELY_LOST ? m->hidden : m->lost + LATELY_LOST;
	while (m->lost > LATELY_LOST) {
		m->lost /= 2;
		m->hidden /= 2;
	}
	if (recovered == 0 || queue_share <= 0 || m->hidden < HIDDEN_MIN * m->lost) {
		return;
	}
	m->credit += queue_share * recovered;
	m->credit = m->credit < FEC_MARKS_MAX ? m->credit : FEC_MARKS_MAX;
	m->at = now;
}

bool
fec_marks_take(struct fec_marks *m, struct mono now)
{
	if (m->credit < 1) {
		return false;
	}
	if (mono_diff_ns(now, m->at) > FEC_MARKS_NS) {
		m->credit = 0;
		return false;
	}
	m->credit -= 1;
	m->taken++;
	return true;
}
