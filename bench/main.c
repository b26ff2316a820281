/* SPDX-License-Identifier: Apache-2.0 */
/* `weft bench`: options, and the benches one after the other. */
#include "bench/bench.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/net.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/thread.h"
#include "bench/report.h"

#define SECONDS_DEFAULT 0.3
#define ROUNDS_DEFAULT 9
#define STACK_BYTES (1u << 20)

struct options {
	double seconds;
	unsigned rounds;
	const char *json, *html;
	bool wants_list, wants_help;
	char **names;
	size_t names_n;
};

struct bench {
	const struct options *options;
	const struct bench_case *at;
	struct report report;
	bool has_failed;
	bool has_terminal;
	volatile uint64_t sink;
};

static const struct bench_case cases[] = {
	{"crypto", "sealing and opening a packet, by backend and batch", true, bench_crypto},
	{"split-join", "splitting super-frames, joining packets", true, bench_split_join},
	{"trie", "finding the peer of an address", true, bench_trie},
	{"engine", "handshakes, counters and memory of the protocol engine", true, bench_engine},
	{"extract", "views of a packet's headers and payload", true, bench_extract},
	{"fec", "GF(256) of loss recovery, by instruction set", true, bench_fec},
	{"recovery", "loss recovery a packet, sender and receiver", true, bench_recovery},
	{"tx", "transmit path end to end between two nodes in memory", false, bench_tx},
};

static const char help[] =
	"Usage: weft bench [NAME...] [options]\n"
	"       weft bench net [options]          tunnels side by side (see weft bench net "
	"--help)\n"
	"       weft bench loss [options]         the same through a lossy path\n"
	"       weft bench dial [options]         libweft beside a TUN: forwarders, connections\n"
	"       weft bench control [options]      10,000 peers set and shown beside a flow\n"
	"       weft bench report IN.json OUT.html\n"
	"\n"
	"Measures this machine and prints tables. Without NAME all but net, loss, dial and control "
	"run.\n"
	"\n"
	"  --seconds S    time of each row of results (default 0.3)\n"
	"  --rounds N     windows that it is cut into; the median counts (default 9)\n"
	"  --json FILE    write the results as JSON\n"
	"  --html FILE    write one page with diagrams\n"
	"  --list         names of the benches\n"
	"  --help         this text\n";

double
bench_seconds(const struct bench *b)
{
	return b->options->seconds;
}

unsigned
bench_rounds(const struct bench *b)
{
	return b->options->rounds;
}

static void
show_progress(struct bench *b, const struct bench_label *l)
{
	char x[64] = "";
	if (!b->has_terminal) {
		return;
	}
	if (l && l->x_text) {
		snprintf(x, sizeof(x), ", %s", l->x_text);
	} else if (l && l->x_name) {
		snprintf(x, sizeof(x), ", %g %s", l->x, l->x_name);
	}
	if (l) {
		fprintf(stderr, "\r\033[K%s: %s, %s%s", b->at->name, l->plot, l->series, x);
	} else {
		fprintf(stderr, "\r\033[K");
	}
	fflush(stderr);
}

static double
time_step_ns(bench_step *step, void *ctx, uint64_t n)
{
	struct mono t0 = os_clock_mono();
	step(ctx, n);
	return (double)mono_diff_ns(os_clock_mono(), t0);
}

double
bench_time(
	struct bench *b, const struct bench_label *l, bench_step *step, void *ctx, unsigned items)
{
	double window_ns = bench_seconds(b) * 1e9 / bench_rounds(b);
	double *values = calloc(bench_rounds(b), sizeof(*values));
	if (!values) {
		bench_fail(b, "out of memory");
		return 0;
	}
	show_progress(b, l);
	/* Warm-up and calibration in one: doubles until a tenth of a window is filled. */
	uint64_t n = 1;
	double took_ns = time_step_ns(step, ctx, n);
	while (took_ns < window_ns / 10 && n < UINT64_MAX / 2) {
		n *= 2;
		took_ns = time_step_ns(step, ctx, n);
	}
	double scaled = (double)n * window_ns / (took_ns > 0 ? took_ns : 1);
	n = scaled < 1 ? 1 : (uint64_t)scaled;
	for (unsigned i = 0; i < bench_rounds(b); i++) {
		values[i] = time_step_ns(step, ctx, n) / ((double)n * items);
	}
	double median = bench_add(b, l, values, bench_rounds(b));
	free(values);
	return median;
}

void
bench_time_steps(struct bench *b, const struct bench_label *l, const struct bench_steps *steps,
	void *ctx, unsigned items)
{
	int64_t window_ns = (int64_t)(bench_seconds(b) * 1e9 / bench_rounds(b));
	double *values = calloc(bench_rounds(b) + 1, sizeof(*values));
	if (!values) {
		bench_fail(b, "out of memory");
		return;
	}
	show_progress(b, l);
	/* Window 0 is the warm-up. */
	for (unsigned i = 0; i <= bench_rounds(b); i++) {
		int64_t took_ns = 0;
		uint64_t n = 0;
		while (took_ns < window_ns) {
			steps->prepare(ctx);
			struct mono t0 = os_clock_mono();
			steps->step(ctx);
			took_ns += mono_diff_ns(os_clock_mono(), t0);
			n++;
		}
		values[i] = (double)took_ns / ((double)n * items);
	}
	bench_add(b, l, values + 1, bench_rounds(b));
	free(values);
}

double
bench_add(struct bench *b, const struct bench_label *l, const double *values, size_t n)
{
	show_progress(b, l);
	return report_add(&b->report, b->at->name, l, values, n)->median;
}

void
bench_note(struct bench *b, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	report_add_note(&b->report, b->at->name, text);
}

void
bench_fail(struct bench *b, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	b->has_failed = true;
	show_progress(b, NULL);
	fprintf(stderr, "weft bench %s: %s\n", b->at->name, text);
	report_add_note(&b->report, b->at->name, text);
}

void
bench_use(struct bench *b, uint64_t value)
{
	b->sink ^= value;
}

static void
run_case(void *arg)
{
	struct bench *b = arg;
	if (b->at->is_pinned) {
		/* The last processor: interrupts and daemons favour the first. */
		for (unsigned cpu = 256; cpu-- > 0;) {
			if (os_thread_pin(cpu) == WEFT_OK) {
				break;
			}
		}
	}
	b->at->run(b);
}

static bool
is_wanted(const struct options *o, const char *name)
{
	for (size_t i = 0; i < o->names_n; i++) {
		if (strcmp(o->names[i], name) == 0) {
			return true;
		}
	}
	return o->names_n == 0;
}

/* Each bench on a thread of its own, so that a pinned one leaves no trace. */
static void
run_cases(struct bench *b)
{
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		if (!is_wanted(b->options, cases[i].name)) {
			continue;
		}
		struct os_thread t = {0};
		b->at = &cases[i];
		if (os_thread_start(&t, "bench", STACK_BYTES, run_case, b) != WEFT_OK) {
			bench_fail(b, "cannot start a thread");
			return;
		}
		os_thread_join(&t);
	}
	show_progress(b, NULL);
}

static bool
write_file(const char *path, enum weft_err e)
{
	if (e) {
		fprintf(stderr, "weft bench: %s: %s\n", path, weft_err_text(e));
		return false;
	}
	printf("wrote %s\n", path);
	return true;
}

static int
run(const struct options *o, const char *command)
{
	struct bench b = {.options = o, .has_terminal = isatty(STDERR_FILENO)};
	report_init(&b.report);
	report_describe(&b.report, command);
	printf("weft %s, %u x %s, Linux %s\n", b.report.version, b.report.cores,
		b.report.cpu ? b.report.cpu : "unknown processor",
		b.report.kernel ? b.report.kernel : "?");
	fflush(stdout);
	run_cases(&b);
	report_table(&b.report, stdout);
	bool is_ok = !b.has_failed;
	if (o->json) {
		is_ok &= write_file(o->json, report_to_json(&b.report, o->json));
	}
	if (o->html) {
		is_ok &= write_file(o->html, report_to_html(&b.report, o->html));
	}
	report_fini(&b.report);
	return is_ok ? 0 : 1;
}

static bool
is_case(const char *name)
{
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		if (strcmp(cases[i].name, name) == 0) {
			return true;
		}
	}
	return false;
}

static bool
parse_number(const char *text, double min, double max, double *out)
{
	char *end;
	errno = 0;
	double v = strtod(text, &end);
	if (end == text || *end || errno || !(v >= min && v <= max)) {
		return false;
	}
	*out = v;
	return true;
}

/* Prints what is wrong. The names end up behind the options, at argv[o->names]. */
static bool
parse_options(struct options *o, int argc, char **argv)
{
	static const struct option known[] = {{"seconds", required_argument, NULL, 's'},
		{"rounds", required_argument, NULL, 'r'}, {"json", required_argument, NULL, 'j'},
		{"html", required_argument, NULL, 'w'}, {"list", no_argument, NULL, 'l'},
		{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	double v;
	int c;
	optind = 0; /* starts anew: the command line's own options are behind us */
	while ((c = getopt_long(argc, argv, "h", known, NULL)) != -1) {
		switch (c) {
		case 's':
			if (!parse_number(optarg, 0.001, 3600, &o->seconds)) {
				fputs("weft bench: --seconds takes 0.001 to 3600\n", stderr);
				return false;
			}
			break;
		case 'r':
			if (!parse_number(optarg, 1, 1000, &v) || v != (double)(unsigned)v) {
				fputs("weft bench: --rounds takes 1 to 1000\n", stderr);
				return false;
			}
			o->rounds = (unsigned)v;
			break;
		case 'j':
			o->json = optarg;
			break;
		case 'w':
			o->html = optarg;
			break;
		case 'l':
			o->wants_list = true;
			break;
		case 'h':
			o->wants_help = true;
			break;
		default:
			return false; /* getopt has said what it is */
		}
	}
	o->names = argv + optind;
	o->names_n = (size_t)(argc - optind);
	for (size_t i = 0; i < o->names_n; i++) {
		if (!is_case(o->names[i])) {
			fprintf(stderr,
				"weft bench: no bench is named %s; see `weft bench --list`\n",
				o->names[i]);
			return false;
		}
	}
	return true;
}

static int
draw(int argc, char **argv)
{
	char why[256];
	if (argc != 4) {
		fputs("Usage: weft bench report IN.json OUT.html\n", stderr);
		return 2;
	}
	struct report r;
	report_init(&r);
	enum weft_err e = report_from_json(&r, argv[2], why, sizeof(why));
	if (e) {
		fprintf(stderr, "weft bench: %s: %s\n", argv[2], why);
	} else {
		e = report_to_html(&r, argv[3]);
		if (e) {
			fprintf(stderr, "weft bench: %s: %s\n", argv[3], weft_err_text(e));
		}
	}
	report_fini(&r);
	return e ? 1 : 0;
}

static void
list(void)
{
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		printf("%-12s %s\n", cases[i].name, cases[i].what);
	}
	printf("%-12s %s\n", "net", "tunnels side by side in network namespaces (root)");
	printf("%-12s %s\n", "loss", "the same through a path that loses packets (root)");
	printf("%-12s %s\n", "dial", "libweft beside a TUN: forwarders, connections (root)");
	printf("%-12s %s\n", "control", "10,000 peers set and shown beside a flow (root)");
}

int
bench_main(int argc, char **argv)
{
	if (argc > 1 && net_has(argv[1])) {
		return net_exec(argv[1], argc - 2, argv + 2);
	}
	if (argc > 1 && strcmp(argv[1], "report") == 0) {
		return draw(argc, argv);
	}
	struct options o = {.seconds = SECONDS_DEFAULT, .rounds = ROUNDS_DEFAULT};
	char *command = report_command(argc, argv); /* as typed: parsing moves the names back */
	int status = 0;
	if (!parse_options(&o, argc, argv)) {
		status = 2;
	} else if (o.wants_help) {
		fputs(help, stdout);
	} else if (o.wants_list) {
		list();
	} else {
		status = run(&o, command);
	}
	free(command);
	return status;
}
