/* SPDX-License-Identifier: Apache-2.0 */
/* The format wants all samples of a metric together: every metric walks all devices and peers.
 * That is one walk of about 50 for each, and nothing is kept meanwhile. */
#include "ctl/metrics.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"

#define PATH_MAX_PARTS 24

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

struct output {
	void (*put)(void *ctx, const char *text, size_t len);
	void *ctx;
	const struct metric *metric;
	bool has_head;
};

static void
put_text(struct output *o, const char *text)
{
	o->put(o->ctx, text, strlen(text));
}

static void
put_head(struct output *o)
{
	char line[256];
	if (o->has_head) {
		return;
	}
	o->has_head = true;
	snprintf(line, sizeof(line), "# HELP %s %s\n# TYPE %s %s\n", o->metric->name,
		o->metric->help, o->metric->name, o->metric->is_counter ? "counter" : "gauge");
	put_text(o, line);
}

/* Values of labels hold anything but an unescaped backslash, quote or line end. */
static void
put_label(struct output *o, const char *separator, const char *name, const char *value)
{
	put_text(o, separator);
	put_text(o, name);
	put_text(o, "=\"");
	for (const char *p = value; *p; p++) {
		const char *escaped = *p == '\\'   ? "\\\\"
				      : *p == '"'  ? "\\\""
				      : *p == '\n' ? "\\n"
						   : NULL;
		if (escaped) {
			put_text(o, escaped);
		} else {
			o->put(o->ctx, p, 1);
		}
	}
	put_text(o, "\"");
}

static const char *
text_of(const json_t *o, const char *name)
{
	const char *s = json_string_value(json_object_get(o, name));
	return s ? s : "";
}

static void
begin_sample(struct output *o, const json_t *status)
{
	put_head(o);
	put_text(o, o->metric->name);
	put_label(o, "{", "device", text_of(json_object_get(status, "device"), "name"));
}

static void
end_sample(struct output *o, const json_t *value)
{
	char text[64];
	double scale = o->metric->scale;
	if (o->metric->label) {
		put_label(o, ",", o->metric->label, o->metric->label_value);
	}
	if (json_is_integer(value) && scale == 0) {
		snprintf(text, sizeof(text), "} %" JSON_INTEGER_FORMAT "\n",
			json_integer_value(value));
	} else if (json_is_number(value)) {
		snprintf(text, sizeof(text), "} %.15g\n",
			json_number_value(value) * (scale == 0 ? 1 : scale));
	} else {
		snprintf(text, sizeof(text), "} %d\n", !json_is_false(value));
	}
	put_text(o, text);
}

/* "fec.rx.lost" */
static const json_t *
value_at(const json_t *o, const char *path)
{
	char part[PATH_MAX_PARTS];
	for (const char *dot; (dot = strchr(path, '.')) != NULL; path = dot + 1) {
		snprintf(part, sizeof(part), "%.*s", (int)(dot - path), path);
		o = json_object_get(o, part);
	}
	o = json_object_get(o, path);
	return json_is_number(o) || json_is_boolean(o) ? o : NULL;
}

static void
put_device_info(struct output *o, const json_t *status)
{
	const json_t *d = json_object_get(status, "device");
	begin_sample(o, status);
	put_label(o, ",", "public_key", text_of(d, "public_key"));
	put_label(o, ",", "aead", text_of(d, "aead"));
	put_label(o, ",", "version", text_of(status, "version"));
	end_sample(o, json_true());
}

static void
put_peer(struct output *o, const json_t *status, const json_t *peer)
{
	const struct metric *m = o->metric;
	const json_t *value = m->path ? value_at(peer, m->path) : json_true();
	if (!value) {
		return;
	}
	begin_sample(o, status);
	put_label(o, ",", "public_key", text_of(peer, "public_key"));
	if (m->scope == SCOPE_PEER_INFO) {
		const json_t *e = json_object_get(peer, "extensions");
		put_label(o, ",", "name", text_of(e, "name"));
		put_label(o, ",", "endpoint", text_of(peer, "endpoint"));
		put_label(o, ",", "extensions", text_of(e, "state"));
		put_label(o, ",", "cipher", text_of(peer, "cipher"));
		put_label(o, ",", "fec", text_of(json_object_get(peer, "fec"), "why"));
	}
	end_sample(o, value);
}

static void
put_drops(struct output *o, const json_t *status)
{
	const char *reason;
	json_t *n;
	json_object_foreach(json_object_get(status, o->metric->path), reason, n)
	{
		begin_sample(o, status);
		put_label(o, ",", "reason", reason);
		end_sample(o, n);
	}
}

static void
put_device(struct output *o, const json_t *status)
{
	const json_t *value, *peers = json_object_get(status, "peers");
	switch (o->metric->scope) {
	case SCOPE_DEVICE:
		value = value_at(status, o->metric->path);
		if (value) {
			begin_sample(o, status);
			end_sample(o, value);
		}
		break;
	case SCOPE_DROPS:
		put_drops(o, status);
		break;
	case SCOPE_DEVICE_INFO:
		put_device_info(o, status);
		break;
	case SCOPE_PEER:
	case SCOPE_PEER_INFO:
		for (size_t i = 0; i < json_array_size(peers); i++) {
			put_peer(o, status, json_array_get(peers, i));
		}
		break;
	}
}

void
ctl_metrics_write(
	const json_t *statuses, void (*put)(void *ctx, const char *text, size_t len), void *ctx)
{
	struct output o = {.put = put, .ctx = ctx};
	for (size_t m = 0; m < WEFT_ARRAY_LEN(metrics); m++) {
		bool is_same = m > 0 && strcmp(metrics[m].name, metrics[m - 1].name) == 0;
		o.metric = &metrics[m];
		o.has_head = is_same && o.has_head;
		for (size_t i = 0; i < json_array_size(statuses); i++) {
			put_device(&o, json_array_get(statuses, i));
		}
	}
}
