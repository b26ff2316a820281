/* SPDX-License-Identifier: Apache-2.0 */
/* The format wants all samples of a metric together, and peers come one by one: each metric has a
 * text of its own, to which every peer adds its line, and the texts follow each other in the end.
 * So a peer is looked at once, and whoever makes the text can do it in slices. */
#include "ctl/metrics.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "ctl/field.h"
#include "wg/device.h"

#define PATH_MAX_PARTS 24
#define TEXT_MIN 256

enum scope {
	SCOPE_DEVICE, /* label: device */
	SCOPE_PEER,   /* labels: device, public_key */
	SCOPE_DROPS,  /* labels: device, reason */
	SCOPE_DEVICE_INFO,
	SCOPE_PEER_INFO,
};

struct metric {
	const char *name;
	const char *help;
	enum scope scope;
	bool is_counter;
	const char *path; /* of the value in the status, or in the peer */
	double scale;     /* 0: as it is */
	const char *label, *label_value;
};

#define KIND "kind"
#define MS 0.001

/* Rows of one name stand together. */
static const struct metric metrics[] = {
	{"weft_device_info", "What the device is; always 1.", SCOPE_DEVICE_INFO, false, NULL, 0,
		NULL, NULL},
	{"weft_device_up", "Whether the interface is up.", SCOPE_DEVICE, false, "device.is_up", 0,
		NULL, NULL},
	{"weft_uptime_seconds", "Time since the device was started.", SCOPE_DEVICE, false,
		"device.uptime_s", 0, NULL, NULL},
	{"weft_workers", "Threads that carry packets.", SCOPE_DEVICE, false, "device.workers", 0,
		NULL, NULL},
	{"weft_peers", "Peers that are configured.", SCOPE_DEVICE, false, "peer_count", 0, NULL,
		NULL},
	{"weft_link_receive_bytes_total", "Bytes that came at the socket.", SCOPE_DEVICE, true,
		"link.rx_bytes", 0, NULL, NULL},
	{"weft_link_transmit_bytes_total", "Bytes that left by the socket.", SCOPE_DEVICE, true,
		"link.tx_bytes", 0, NULL, NULL},
	{"weft_link_receive_datagrams_total", "Datagrams that came at the socket.", SCOPE_DEVICE,
		true, "link.rx_datagrams", 0, NULL, NULL},
	{"weft_link_transmit_datagrams_total", "Datagrams that left by the socket.", SCOPE_DEVICE,
		true, "link.tx_datagrams", 0, NULL, NULL},
	{"weft_port_receive_bytes_total", "Bytes read from the interface, on their way to peers.",
		SCOPE_DEVICE, true, "port.rx_bytes", 0, NULL, NULL},
	{"weft_port_transmit_bytes_total", "Bytes written to the interface.", SCOPE_DEVICE, true,
		"port.tx_bytes", 0, NULL, NULL},
	{"weft_port_receive_frames_total", "Frames read from the interface.", SCOPE_DEVICE, true,
		"port.rx_frames", 0, NULL, NULL},
	{"weft_port_transmit_frames_total", "Frames written to the interface.", SCOPE_DEVICE, true,
		"port.tx_frames", 0, NULL, NULL},
	{"weft_handshakes_received_total", "Handshake messages received.", SCOPE_DEVICE, true,
		"handshakes_rx", 0, NULL, NULL},
	{"weft_keepalives_received_total", "Keepalives received.", SCOPE_DEVICE, true,
		"keepalives_rx", 0, NULL, NULL},
	{"weft_gaps_total", "Times that the daemon did not run though it was to.", SCOPE_DEVICE,
		true, "gaps", 0, NULL, NULL},
	{"weft_dropped_total", "Packets that went no further, by reason.", SCOPE_DROPS, true,
		"drops", 0, NULL, NULL},
	{"weft_peer_info", "What the peer is; always 1.", SCOPE_PEER_INFO, false, NULL, 0, NULL,
		NULL},
	{"weft_peer_receive_bytes_total", "Bytes of datagrams received from the peer.", SCOPE_PEER,
		true, "rx_bytes", 0, NULL, NULL},
	{"weft_peer_transmit_bytes_total", "Bytes of datagrams sent to the peer.", SCOPE_PEER, true,
		"tx_bytes", 0, NULL, NULL},
	{"weft_peer_receive_packets_total", "Datagrams received from the peer.", SCOPE_PEER, true,
		"rx_packets", 0, NULL, NULL},
	{"weft_peer_transmit_packets_total", "Datagrams sent to the peer.", SCOPE_PEER, true,
		"tx_packets", 0, NULL, NULL},
	{"weft_peer_latest_handshake_seconds", "When the last handshake was, since 1970.",
		SCOPE_PEER, false, "latest_handshake_s", 0, NULL, NULL},
	{"weft_peer_handshakes_total", "Handshakes completed.", SCOPE_PEER, true, "handshakes", 0,
		NULL, NULL},
	{"weft_peer_handshake_tries_total", "Handshake initiations sent.", SCOPE_PEER, true,
		"handshake_tries", 0, NULL, NULL},
	{"weft_peer_stale_initiations_total", "Initiations refused for an old timestamp.",
		SCOPE_PEER, true, "stale_initiations", 0, NULL, NULL},
	{"weft_peer_rejected_moves_total",
		"Datagrams from another address that did not move the endpoint.", SCOPE_PEER, true,
		"rejected_moves", 0, NULL, NULL},
	{"weft_peer_staged_packets", "Packets that wait for a handshake.", SCOPE_PEER, false,
		"staged_packets", 0, NULL, NULL},
	{"weft_peer_staged_bytes", "Bytes that wait for a handshake.", SCOPE_PEER, false,
		"staged_bytes", 0, NULL, NULL},
	{"weft_peer_fec_loss_ratio", "Share of packets to the peer lost before recovery.",
		SCOPE_PEER, false, "fec.loss", 0, NULL, NULL},
	{"weft_peer_fec_burst_packets", "Mean length of a run of lost packets.", SCOPE_PEER, false,
		"fec.burst", 0, NULL, NULL},
	{"weft_peer_fec_residual_ratio", "Share of packets to the peer lost for good, lately.",
		SCOPE_PEER, false, "fec.residual", 0, NULL, NULL},
	{"weft_peer_fec_overhead_ratio", "Repair bytes to source bytes, lately.", SCOPE_PEER, false,
		"fec.overhead", 0, NULL, NULL},
	{"weft_peer_fec_ahead_ratio", "Repairs sent ahead for each source, as decided now.",
		SCOPE_PEER, false, "fec.ahead_share", 0, NULL, NULL},
	{"weft_peer_fec_rtt_seconds", "Round-trip time; none while unknown.", SCOPE_PEER, false,
		"fec.rtt_ms", MS, NULL, NULL},
	{"weft_peer_fec_queue_seconds", "One-way delay above the least seen.", SCOPE_PEER, false,
		"fec.queue_ms", MS, NULL, NULL},
	{"weft_peer_fec_sources_total", "Packets sent under protection.", SCOPE_PEER, true,
		"fec.sources", 0, NULL, NULL},
	{"weft_peer_fec_source_bytes_total", "Bytes sent under protection.", SCOPE_PEER, true,
		"fec.source_bytes", 0, NULL, NULL},
	{"weft_peer_fec_repairs_total", "Repairs sent.", SCOPE_PEER, true, "fec.repairs_ahead", 0,
		KIND, "ahead"},
	{"weft_peer_fec_repairs_total", "", SCOPE_PEER, true, "fec.repairs_answer", 0, KIND,
		"answer"},
	{"weft_peer_fec_repairs_total", "", SCOPE_PEER, true, "fec.repairs_tail", 0, KIND, "tail"},
	{"weft_peer_fec_repair_bytes_total", "Bytes of repairs sent.", SCOPE_PEER, true,
		"fec.repair_bytes", 0, NULL, NULL},
	{"weft_peer_fec_feedback_transmit_total", "Feedback frames sent.", SCOPE_PEER, true,
		"fec.feedback_tx", 0, NULL, NULL},
	{"weft_peer_fec_feedback_receive_total", "Feedback frames received.", SCOPE_PEER, true,
		"fec.feedback_rx", 0, NULL, NULL},
	{"weft_peer_fec_ce_marked_total",
		"Packets sent marked CE, for losses by a queue that recovery hid.", SCOPE_PEER,
		true, "fec.ce_marked", 0, NULL, NULL},
	{"weft_peer_fec_transmit_lost_total", "Packets that the peer missed before recovery.",
		SCOPE_PEER, true, "fec.peer_lost", 0, NULL, NULL},
	{"weft_peer_fec_transmit_recovered_total", "Packets that the peer recovered.", SCOPE_PEER,
		true, "fec.peer_recovered_ahead", 0, KIND, "ahead"},
	{"weft_peer_fec_transmit_recovered_total", "", SCOPE_PEER, true,
		"fec.peer_recovered_answer", 0, KIND, "answer"},
	{"weft_peer_fec_transmit_given_up_total", "Packets that the peer lost for good.",
		SCOPE_PEER, true, "fec.peer_given_up", 0, NULL, NULL},
	{"weft_peer_fec_receive_packets_total", "Packets of any kind received.", SCOPE_PEER, true,
		"fec.rx.received", 0, NULL, NULL},
	{"weft_peer_fec_receive_lost_total", "Packets missed before recovery.", SCOPE_PEER, true,
		"fec.rx.lost", 0, NULL, NULL},
	{"weft_peer_fec_receive_loss_runs_total", "Runs of packets missed.", SCOPE_PEER, true,
		"fec.rx.runs", 0, NULL, NULL},
	{"weft_peer_fec_receive_recovered_total", "Packets recovered.", SCOPE_PEER, true,
		"fec.rx.recovered_ahead", 0, KIND, "ahead"},
	{"weft_peer_fec_receive_recovered_total", "", SCOPE_PEER, true, "fec.rx.recovered_answer",
		0, KIND, "answer"},
	{"weft_peer_fec_receive_given_up_total", "Packets lost for good.", SCOPE_PEER, true,
		"fec.rx.given_up", 0, NULL, NULL},
	{"weft_peer_fec_receive_late_total", "Missing packets that came by themselves.", SCOPE_PEER,
		true, "fec.rx.late", 0, NULL, NULL},
	{"weft_peer_fec_receive_overflowed_total",
		"Packets missing after an overflow of our own socket.", SCOPE_PEER, true,
		"fec.rx.overflowed", 0, NULL, NULL},
	{"weft_peer_fec_receive_repairs_total", "Repairs received.", SCOPE_PEER, true,
		"fec.rx.repairs", 0, NULL, NULL},
	{"weft_peer_fec_receive_repairs_useless_total",
		"Repairs received with nothing new in them.", SCOPE_PEER, true,
		"fec.rx.repairs_useless", 0, NULL, NULL},
	{"weft_peer_fec_receive_held_total", "Packets held back to keep their order.", SCOPE_PEER,
		true, "fec.rx.held", 0, NULL, NULL},
	{"weft_peer_fec_receive_hold_seconds_total", "How long these were held, in sum.",
		SCOPE_PEER, true, "fec.rx.hold_sum_ms", MS, NULL, NULL},
};

struct text {
	char *p;
	size_t len, cap;
	bool has_failed; /* for want of memory */
};

struct row {
	struct text head; /* in front of the first text of a metric, or empty */
	struct text samples;
	const struct ctl_field *field;
	size_t name_len;
};

struct ctl_metrics {
	struct text device; /* labels of the device at hand, without the last brace */
	struct text peer;   /* the same of the peer at hand */
	struct row rows[WEFT_ARRAY_LEN(metrics)];
};

/* Where the values of a peer are: in one of both. */
struct source {
	const json_t *json;
	const struct ctl_peer *peer;
	struct wg_time now;
};

/* NULL: no memory. */
static char *
take(struct text *t, size_t n)
{
	if (t->cap - t->len < n && !t->has_failed) {
		size_t cap = t->cap ? t->cap : TEXT_MIN;
		while (cap - t->len < n) {
			cap *= 2;
		}
		char *p = realloc(t->p, cap);
		t->has_failed = !p;
		t->p = p ? p : t->p;
		t->cap = p ? cap : t->cap;
	}
	if (t->has_failed) {
		return NULL;
	}
	t->len += n;
	return t->p + t->len - n;
}

static void
put(struct text *t, const char *piece, size_t len)
{
	char *p = take(t, len);
	if (p && len > 0) {
		memcpy(p, piece, len);
	}
}

static void
put_text(struct text *t, const char *text)
{
	put(t, text, strlen(text));
}

/* Values of labels hold anything but an unescaped backslash, quote or line end. */
static void
put_label(struct text *t, const char *separator, const char *name, const char *value)
{
	put_text(t, separator);
	put_text(t, name);
	put_text(t, "=\"");
	for (size_t plain; *value; value += plain + (value[plain] != 0)) {
		plain = strcspn(value, "\\\"\n");
		put(t, value, plain);
		put_text(t, value[plain] == '\\'   ? "\\\\"
			    : value[plain] == '"'  ? "\\\""
			    : value[plain] == '\n' ? "\\n"
						   : "");
	}
	put_text(t, "\"");
}

/* Empty: it is null, or none. */
static const char *
text_of(const json_t *o, const char *name)
{
	const char *s = json_string_value(json_object_get(o, name));
	return s ? s : "";
}

static struct text *
begin_sample(struct row *r, size_t m, const struct text *labels)
{
	put(&r->samples, metrics[m].name, r->name_len);
	put(&r->samples, labels->p, labels->len);
	r->samples.has_failed |= labels->has_failed;
	return &r->samples;
}

static void
end_sample(struct row *r, size_t m, const struct ctl_value *v)
{
	char text[CTL_NUMBER_TEXT_MAX];
	struct ctl_value scaled;
	struct writer w;
	if (metrics[m].label) {
		put_label(&r->samples, ",", metrics[m].label, metrics[m].label_value);
	}
	if (metrics[m].scale != 0) {
		double n = v->kind == CTL_VALUE_COUNT   ? (double)v->count
			   : v->kind == CTL_VALUE_MILLI ? (double)v->milli / 1000
							: v->real;
		scaled.kind = CTL_VALUE_REAL;
		scaled.real = n * metrics[m].scale;
		v = &scaled;
	}
	writer_init(&w, text, sizeof(text));
	ctl_value_write_number(&w, v, false);
	put_text(&r->samples, "} ");
	put(&r->samples, text, (size_t)(w.p - (uint8_t *)text));
	put_text(&r->samples, "\n");
}

static bool
read_json(const json_t *o, struct ctl_value *out)
{
	if (json_is_integer(o)) {
		out->kind = CTL_VALUE_COUNT;
		out->count = (uint64_t)json_integer_value(o);
	} else if (json_is_real(o)) {
		out->kind = CTL_VALUE_REAL;
		out->real = json_real_value(o);
	} else if (json_is_boolean(o)) {
		out->kind = CTL_VALUE_BOOL;
		out->is_true = json_is_true(o);
	} else if (json_is_string(o)) {
		out->kind = CTL_VALUE_TEXT;
		out->text = json_string_value(o);
	} else {
		return false;
	}
	return true;
}

/* "fec.rx.lost" */
static bool
read_path(const json_t *o, const char *path, struct ctl_value *out)
{
	char part[PATH_MAX_PARTS];
	for (const char *dot; (dot = strchr(path, '.')) != NULL; path = dot + 1) {
		snprintf(part, sizeof(part), "%.*s", (int)(dot - path), path);
		o = json_object_get(o, part);
	}
	return read_json(json_object_get(o, path), out);
}

static bool
read_peer(
	const struct source *s, const char *path, const struct ctl_field *f, struct ctl_value *out)
{
	if (s->json) {
		return read_path(s->json, path, out);
	}
	return ctl_field_read(f, s->peer, s->now, out) && out->kind != CTL_VALUE_NONE;
}

static void
put_peer_label(struct text *t, const struct source *s, const char *name, const char *path)
{
	struct ctl_value v;
	bool is_text = read_peer(s, path, ctl_field_find(path), &v) && v.kind == CTL_VALUE_TEXT;
	put_label(t, ",", name, is_text ? v.text : "");
}

static const struct ctl_value one = {.kind = CTL_VALUE_COUNT, .count = 1};

static void
add_peer_info(struct ctl_metrics *m, size_t i, const struct source *s)
{
	struct text *t = begin_sample(&m->rows[i], i, &m->peer);
	put_peer_label(t, s, "name", "extensions.name");
	put_peer_label(t, s, "endpoint", "endpoint");
	put_peer_label(t, s, "extensions", "extensions.state");
	put_peer_label(t, s, "cipher", "cipher");
	put_peer_label(t, s, "fec", "fec.why");
	end_sample(&m->rows[i], i, &one);
}

static void
add_peer(struct ctl_metrics *m, const struct source *s)
{
	struct ctl_value v;
	m->peer.len = 0;
	put(&m->peer, m->device.p, m->device.len);
	put_peer_label(&m->peer, s, "public_key", "public_key");
	for (size_t i = 0; i < WEFT_ARRAY_LEN(metrics); i++) {
		if (metrics[i].scope == SCOPE_PEER_INFO) {
			add_peer_info(m, i, s);
		} else if (metrics[i].scope == SCOPE_PEER &&
			   read_peer(s, metrics[i].path, m->rows[i].field, &v) &&
			   v.kind != CTL_VALUE_TEXT) {
			begin_sample(&m->rows[i], i, &m->peer);
			end_sample(&m->rows[i], i, &v);
		}
	}
}

void
ctl_metrics_add_peer(struct ctl_metrics *m, const struct ctl_peer *p, struct wg_time now)
{
	const struct source s = {.peer = p, .now = now};
	add_peer(m, &s);
}

static void
add_device_info(struct ctl_metrics *m, size_t i, const json_t *status)
{
	const json_t *d = json_object_get(status, "device");
	struct text *t = begin_sample(&m->rows[i], i, &m->device);
	put_label(t, ",", "public_key", text_of(d, "public_key"));
	put_label(t, ",", "aead", text_of(d, "aead"));
	put_label(t, ",", "version", text_of(status, "version"));
	end_sample(&m->rows[i], i, &one);
}

static void
add_drops(struct ctl_metrics *m, size_t i, const json_t *status)
{
	const char *reason;
	json_t *n;
	struct ctl_value v;
	json_object_foreach(json_object_get(status, metrics[i].path), reason, n)
	{
		if (read_json(n, &v)) {
			put_label(begin_sample(&m->rows[i], i, &m->device), ",", "reason", reason);
			end_sample(&m->rows[i], i, &v);
		}
	}
}

void
ctl_metrics_add_device(struct ctl_metrics *m, const json_t *status)
{
	struct ctl_value v;
	m->device.len = 0;
	put_label(&m->device, "{", "device", text_of(json_object_get(status, "device"), "name"));
	for (size_t i = 0; i < WEFT_ARRAY_LEN(metrics); i++) {
		if (metrics[i].scope == SCOPE_DROPS) {
			add_drops(m, i, status);
		} else if (metrics[i].scope == SCOPE_DEVICE_INFO) {
			add_device_info(m, i, status);
		} else if (metrics[i].scope == SCOPE_DEVICE &&
			   read_path(status, metrics[i].path, &v)) {
			begin_sample(&m->rows[i], i, &m->device);
			end_sample(&m->rows[i], i, &v);
		}
	}
}

struct ctl_metrics *
ctl_metrics_new(void)
{
	struct ctl_metrics *m = calloc(1, sizeof(*m));
	for (size_t i = 0; m && i < WEFT_ARRAY_LEN(metrics); i++) {
		m->rows[i].name_len = strlen(metrics[i].name);
		m->rows[i].field =
			metrics[i].scope == SCOPE_PEER ? ctl_field_find(metrics[i].path) : NULL;
		weft_assert(m->rows[i].field || metrics[i].scope != SCOPE_PEER);
	}
	return m;
}

void
ctl_metrics_free(struct ctl_metrics *m)
{
	if (!m) {
		return;
	}
	for (size_t i = 0; i < WEFT_ARRAY_LEN(metrics); i++) {
		free(m->rows[i].head.p);
		free(m->rows[i].samples.p);
	}
	free(m->device.p);
	free(m->peer.p);
	free(m);
}

enum weft_err
ctl_metrics_end(struct ctl_metrics *m)
{
	bool has_failed = false, has_head = false;
	for (size_t i = 0; i < WEFT_ARRAY_LEN(metrics); i++) {
		struct row *r = &m->rows[i];
		has_head &= i > 0 && strcmp(metrics[i].name, metrics[i - 1].name) == 0;
		if (r->samples.len > 0 && !has_head) {
			/* Only the first row of a name has the words. */
			size_t first = i;
			while (first > 0 && strcmp(metrics[first - 1].name, metrics[i].name) == 0) {
				first--;
			}
			put_text(&r->head, "# HELP ");
			put_text(&r->head, metrics[i].name);
			put_text(&r->head, " ");
			put_text(&r->head, metrics[first].help);
			put_text(&r->head, "\n# TYPE ");
			put_text(&r->head, metrics[i].name);
			put_text(&r->head, metrics[i].is_counter ? " counter\n" : " gauge\n");
			has_head = true;
		}
		has_failed |= r->head.has_failed || r->samples.has_failed;
	}
	return has_failed ? WEFT_ENOMEM : WEFT_OK;
}

bool
ctl_metrics_piece(const struct ctl_metrics *m, size_t i, const char **text, size_t *len)
{
	if (i >= 2 * WEFT_ARRAY_LEN(metrics)) {
		return false;
	}
	const struct text *t = i % 2 ? &m->rows[i / 2].samples : &m->rows[i / 2].head;
	*text = t->p ? t->p : "";
	*len = t->len;
	return true;
}

static void
add_status(struct ctl_metrics *m, const json_t *status)
{
	const json_t *peers = json_object_get(status, "peers");
	ctl_metrics_add_device(m, status);
	for (size_t i = 0; i < json_array_size(peers); i++) {
		const struct source s = {.json = json_array_get(peers, i)};
		add_peer(m, &s);
	}
}

enum weft_err
ctl_metrics_write(
	const json_t *statuses, void (*put_out)(void *ctx, const char *text, size_t len), void *ctx)
{
	const char *text;
	size_t len;
	struct ctl_metrics *m = ctl_metrics_new();
	if (!m) {
		return WEFT_ENOMEM;
	}
	for (size_t i = 0; i < json_array_size(statuses); i++) {
		add_status(m, json_array_get(statuses, i));
	}
	enum weft_err e = ctl_metrics_end(m);
	for (size_t i = 0; !e && ctl_metrics_piece(m, i, &text, &len); i++) {
		put_out(ctx, text, len);
	}
	ctl_metrics_free(m);
	return e;
}
