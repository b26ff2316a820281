/* SPDX-License-Identifier: Apache-2.0 */
/* The three sessions of a peer.
 *
 *               initiator got the response      responder got first data
 *   previous <- current                          current
 *   current  <- the new one                      next
 *   next     <- (stays)                          (empty)
 *
 * A responder's new session waits in next. A second handshake replaces next alone, so that a
 * handshake that is never finished pushes no live session out.
 *
 * Initiations that cross: both sides answer, and two sessions arise. If each side took the
 * other's for the newer one, they would swap for ever. So of two that crossed, the one initiated
 * by the greater public key is the one to send with; the other is kept to open what is under
 * way. Then one side is the initiator, who will renew it. Crossed is what we answered between
 * our own initiation and its response; only that, since a peer that starts anew a moment after
 * a handshake must not be taken for one that crossed. A stock peer knows nothing of this: it
 * drops its own initiation when ours comes, and has only one session. */
#include "wg/engine.h"

#include <string.h>

#include "crypto/secret.h"

static void
drop(struct wg_device *d, struct wg_session **slot)
{
	if (*slot) {
		wg_index_remove(&d->index, (*slot)->local_index);
		wg_session_put(*slot);
		*slot = NULL;
	}
}

/* Did we answer `answered` while `initiated`, ours, had no response yet? Known already: ours
 * was not complete before it was answered. */
static bool
are_crossed(const struct wg_session *initiated, const struct wg_session *answered)
{
	return initiated->is_initiator && !answered->is_initiator &&
	       answered->born.ns >= initiated->initiated.ns;
}

/* Of sessions that crossed, is ours the one to send with? */
static bool
is_ours_preferred(const struct wg_device *d, const struct wg_peer *p)
{
	return memcmp(d->identity.public_key, p->remote.public_key, WG_KEY_LEN) > 0;
}

void
wg_keyring_add_initiated(struct wg_device *d, struct wg_peer *p, struct wg_session *s)
{
	drop(d, &p->previous);
	if (p->current && are_crossed(s, p->current) && !is_ours_preferred(d, p)) {
		p->previous = s;
		return;
	}
	p->previous = p->current;
	p->current = s;
}

void
wg_keyring_add_answered(struct wg_device *d, struct wg_peer *p, struct wg_session *s)
{
	drop(d, &p->next);
	p->next = s;
}

/* next has been used by the other side. Is it the one to send with now? */
static bool
is_next_preferred(const struct wg_device *d, const struct wg_peer *p)
{
	if (!p->current || mono_is_before(p->current->born, p->next->born)) {
		return true;
	}
	return are_crossed(p->current, p->next) && !is_ours_preferred(d, p);
}

bool
wg_keyring_confirm(struct wg_device *d, struct wg_peer *p, struct wg_session *s)
{
	if (s != p->next || s->is_confirmed) {
		return false;
	}
	s->is_confirmed = true;
	if (is_next_preferred(d, p)) {
		drop(d, &p->previous);
		p->previous = p->current;
		p->current = s;
		p->next = NULL;
	}
	return true;
}

void
wg_keyring_drop_pending(struct wg_device *d, struct wg_peer *p)
{
	if (p->has_pending) {
		wg_index_remove(&d->index, p->pending_index);
		p->has_pending = false;
	}
	secret_wipe(&p->pending, sizeof(p->pending));
}

void
wg_keyring_clear(struct wg_device *d, struct wg_peer *p)
{
	drop(d, &p->previous);
	drop(d, &p->current);
	drop(d, &p->next);
	wg_keyring_drop_pending(d, p);
}
