/* SPDX-License-Identifier: Apache-2.0 */
#include "sniffer.h"

#include <string.h>

#include "host.h"
#include "wg/peer.h"
#include "wg/session.h"
#include "wire/wg.h"

void
sim_sniffer_init(struct sim_sniffer *s, struct sim_report *report, struct sim_host *hosts)
{
	*s = (struct sim_sniffer){.report = report, .hosts = hosts};
	sim_check(report, !aead_new(AEAD_BACKEND_LIBCRYPTO, &s->aead), "no cipher engine");
}

void
sim_sniffer_fini(struct sim_sniffer *s)
{
	aead_free(s->aead);
}

static const struct wg_session *
session_of(const struct sim_host *h, uint32_t receiver)
{
	for (unsigned i = 0; i < SIM_HOSTS_MAX; i++) {
		const struct wg_peer *p = sim_host_peer(h, i);
		const struct wg_session *all[] = {
			p ? p->current : NULL, p ? p->previous : NULL, p ? p->next : NULL};
		for (unsigned k = 0; k < WEFT_ARRAY_LEN(all); k++) {
			if (all[k] && all[k]->remote_index == receiver) {
				return all[k];
			}
		}
	}
	return NULL;
}

static const struct aead_key *
key_of(struct sim_sniffer *s, unsigned from, uint32_t receiver, enum aead_cipher cipher)
{
	for (unsigned i = 0; i < SIM_SNIFFED_KEYS; i++) {
		const struct sim_sniffed_key *k = &s->keys[i];
		if (k->is_used && k->host == from && k->receiver == receiver &&
			k->key.cipher == cipher) {
			return &k->key;
		}
	}
	const struct wg_session *session = session_of(&s->hosts[from], receiver);
	if (!session) {
		return NULL;
	}
	struct sim_sniffed_key *k = &s->keys[s->next++ % SIM_SNIFFED_KEYS];
	*k = (struct sim_sniffed_key){true, from, receiver, session->send[cipher]};
	return &k->key;
}

static bool
open_with(struct sim_sniffer *s, const struct aead_key *key, const uint8_t *data, uint32_t len)
{
	uint32_t text = len - WIRE_WG_DATA_LEN_MIN;
	memcpy(s->text, data + WIRE_WG_DATA_HEADER_LEN, len - WIRE_WG_DATA_HEADER_LEN);
	struct aead_op op = {.data = s->text, .len = text, .counter = wire_wg_data_counter(data)};
	return key && aead_open(s->aead, key, &op, 1) == 1;
}

/* The text of a data message is in s->text. */
static void
read_text(struct sim_sniffer *s, uint32_t len, struct sim_inner *out)
{
	struct wire_ext_hello hello;
	struct wire_ext_repair repair;
	struct wire_ext_feedback feedback;
	if (len == 0) {
		out->kind = SIM_KIND_KEEPALIVE;
	} else if (!wire_ext_is_frame(s->text, len)) {
		out->kind = SIM_KIND_PACKET;
		out->id = sim_packet_id(s->text, len);
	} else if (wire_ext_hello_decode(s->text, len, &hello)) {
		out->kind = SIM_KIND_HELLO;
		out->is_answer = hello.is_answer;
	} else if (wire_ext_repair_decode(s->text, len, &repair)) {
		out->kind = SIM_KIND_REPAIR;
		out->why = repair.why;
	} else if (wire_ext_feedback_decode(s->text, len, &feedback)) {
		out->kind = SIM_KIND_FEEDBACK;
	} else {
		sim_fail(s->report, "a frame of type %u that nobody can read", s->text[0]);
	}
}

struct sim_inner
sim_sniffer_look(struct sim_sniffer *s, unsigned from, const uint8_t *data, uint32_t len)
{
	struct sim_inner in = {.kind = SIM_KIND_OTHER};
	if (!s->is_on || wire_wg_type(data, len) != WIRE_WG_TYPE_DATA) {
		return in;
	}
	enum aead_cipher cipher = wire_wg_data_cipher(data);
	in.receiver = wire_wg_data_receiver(data);
	in.is_aes = cipher == AEAD_CIPHER_AES_256_GCM;
	sim_check(s->report, len <= sizeof(s->text), "a datagram of %u bytes", len);
	const struct aead_key *key = key_of(s, from, in.receiver, cipher);
	if (!open_with(s, key, data, len)) {
		/* An index may come again in another life. */
		memset(s->keys, 0, sizeof(s->keys));
		key = key_of(s, from, in.receiver, cipher);
		sim_check(s->report, open_with(s, key, data, len),
			"host %u sends what its own keys do not open, session %08x", from,
			in.receiver);
	}
	read_text(s, len - WIRE_WG_DATA_LEN_MIN, &in);
	return in;
}
