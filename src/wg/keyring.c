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
 * Initiations that cross: both sides answer, and two sessions arise. Each side would take the
 * other's for the newer one, and they would never agree. So when both are of the same moment,
 * the session initiated by the greater public key is the one to send with; the other stays in
 * next, where it opens what is under way. One side of the two is then the initiator, who will
 * renew it. A stock peer knows nothing of this: it drops its own initiation when ours comes,
 * and has only one session. */
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

void
wg_keyring_add_initiated(struct wg_device *d, struct wg_peer *p, struct wg_session *s)
{
	drop(d, &p->previous);
	p->previous = p->current;
	p->current = s;
}

void
wg_keyring_add_answered(struct wg_device *d, struct wg_peer *p, struct wg_session *s)
{
	drop(d, &p->next);
	p->next = s;
}

/* Is current ours of two that arose from initiations that crossed, and the better one? */
static bool
is_current_preferred(const struct wg_device *d, const struct wg_peer *p)
{
	if (!p->current || !p->current->is_initiator) {
		return false;
	}
	int64_t apart_ns = mono_diff_ns(p->next->born, p->current->born);
	return apart_ns < WG_REKEY_TIMEOUT_NS && apart_ns > -WG_REKEY_TIMEOUT_NS &&
	       memcmp(d->identity.public_key, p->remote.public_key, WG_KEY_LEN) > 0;
}

bool
wg_keyring_confirm(struct wg_device *d, struct wg_peer *p, struct wg_session *s)
{
	if (s != p->next || s->is_confirmed) {
		return false;
	}
	s->is_confirmed = true;
	if (!is_current_preferred(d, p)) {
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
