/* SPDX-License-Identifier: Apache-2.0 */
/* `weft emulate`: its arguments. What it does is in emulate_run.c. */
#include "cli/emulate.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/text.h"
#include "os/file.h"

#define SCRIPT_BYTES_MAX (1u << 20)
#define RING_BYTES_DEFAULT (32u << 20)
#define CLIENTS_DEFAULT 64
#define GATHER_NS_DEFAULT (50 * WEFT_NS_PER_US)

/* Exit status. */
#define FAILED 1
#define MISUSED 2

static const char help[] =
	"Usage: weft emulate [OPTIONS] INTERFACE-A INTERFACE-B\n"
	"       weft emulate [OPTIONS] --udp LISTEN --to ADDRESS:PORT\n"
	"A link with delay, loss, reordering and a rate, in user space. Between two interfaces\n"
	"(Ethernet, such as two veth ends in a namespace of their own) every frame that comes in\n"
	"at one goes out at the other. As a relay, datagrams that arrive at LISTEN (PORT or\n"
	"ADDRESS:PORT) go to the address of --to, from a port for each sender, and answers go\n"
	"back. Runs until SIGINT or SIGTERM and then prints what it has counted.\n"
	"\n"
	"What happens to packets, both ways. The value \"none\" turns a thing off.\n"
	"  --loss SHARE                  each packet is lost with this chance: 5%\n"
	"  --loss-gilbert SHARE,BURST    lost in bursts of this mean length: 5%,4\n"
	"  --loss-elliott TO-BAD,TO-GOOD,IN-BAD,IN-GOOD\n"
	"                                two states; chance of changing, and of loss, in each:\n"
	"                                1%,25%,80%,0.1%\n"
	"  --delay TIME                  5ms\n"
	"  --jitter TIME[,uniform|normal][,unordered]\n"
	"                                the delay varies by +-TIME, or with TIME as standard\n"
	"                                deviation; packets keep their order unless unordered\n"
	"  --reorder SHARE,TIME          some packets leave so much later: 1%,3ms\n"
	"  --reorder SHARE,COUNT[-COUNT] or after so many later ones have passed: 1%,3-30\n"
	"  --duplicate SHARE             some packets arrive twice\n"
	"  --corrupt SHARE[,BITS]        in some packets bits are flipped (1 unless given)\n"
	"  --rate RATE                   20mbit; kbit, mbit, gbit are powers of 1000\n"
	"  --queue SIZE|TIME             what may wait for the rated line: 64KiB or 50ms\n"
	"                                (50ms unless given); the rest is dropped\n"
	"  --mtu BYTES                   longer IP packets vanish silently\n"
	"  --ab LIST, --ba LIST          such settings for one direction only, as in\n"
	"                                --ab \"loss 5% delay 3ms\" --ba \"rate=20mbit\"\n"
	"\n"
	"Changes over time.\n"
	"  --script FILE                 lines like: at 5s loss 15% ab.rate 20mbit\n"
	"                                            at 20s rebind\n"
	"  --script-text TEXT            the same inline, separated by semicolons\n"
	"\n"
	"Relay only. SIGUSR1 or `rebind` in a script gives each sender's port a new number.\n"
	"  --clients COUNT               senders at a time (64; at most 1024)\n"
	"  --record FILE                 write what comes in as pcap\n"
	"\n"
	"Other.\n"
	"  --seed NUMBER                 of all chance (1): the same packets, the same fate\n"
	"  --duration TIME               end by itself\n"
	"  --memory SIZE                 for packets on their way, each direction (32MiB)\n"
	"  --json FILE                   write the counters as JSON at the end; - for standard\n"
	"                                output, which then has nothing else\n"
	"  --gather TIME                 packets due so close together leave together (50us):\n"
	"                                less costs more processor time\n"
	"  --no-realtime                 do not run before all that is not real-time\n"
	"  --quiet                       print nothing but errors\n"
	"  --help\n";

enum option_id {
	OPT_KEY = 256, /* + enum emu_key */
	OPT_AB = OPT_KEY + EMU_KEY_COUNT,
	OPT_BA,
	OPT_SCRIPT,
	OPT_SCRIPT_TEXT,
	OPT_UDP,
	OPT_TO,
	OPT_CLIENTS,
	OPT_RECORD,
	OPT_SEED,
	OPT_DURATION,
	OPT_MEMORY,
	OPT_GATHER,
	OPT_JSON,
	OPT_NO_REALTIME,
	OPT_QUIET,
	OPT_HELP,
};

static const struct option fixed_options[] = {
	{"ab", required_argument, NULL, OPT_AB},
	{"ba", required_argument, NULL, OPT_BA},
	{"script", required_argument, NULL, OPT_SCRIPT},
	{"script-text", required_argument, NULL, OPT_SCRIPT_TEXT},
	{"udp", required_argument, NULL, OPT_UDP},
	{"to", required_argument, NULL, OPT_TO},
	{"clients", required_argument, NULL, OPT_CLIENTS},
	{"record", required_argument, NULL, OPT_RECORD},
	{"seed", required_argument, NULL, OPT_SEED},
	{"duration", required_argument, NULL, OPT_DURATION},
	{"memory", required_argument, NULL, OPT_MEMORY},
	{"gather", required_argument, NULL, OPT_GATHER},
	{"json", required_argument, NULL, OPT_JSON},
	{"no-realtime", no_argument, NULL, OPT_NO_REALTIME},
	{"quiet", no_argument, NULL, OPT_QUIET},
	{"help", no_argument, NULL, OPT_HELP},
};

struct parse {
	struct emulate_options *o;
	const char *udp, *to; /* as given */
	const char *option;   /* "--loss", for messages */
	bool has_help;
};

/* Returns the exit status. */
WEFT_PRINTF(1, 2)
static int
misuse(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fputs("weft emulate: ", stderr);
	vfprintf(stderr, format, args);
	fputs("; see `weft emulate --help`\n", stderr);
	va_end(args);
	return MISUSED;
}

/* "--loss: 1:1: expected ..." */
static int
say_error(const char *where, const struct emu_error *e)
{
	return misuse("%s: %u:%u: %s", where, e->line, e->column, e->text);
}

static int
parse_key(struct parse *p, enum emu_key key, const char *value)
{
	struct emu_assign a;
	struct emu_error e;
	if (emu_assign_parse(key, value, strlen(value), &a, &e)) {
		return say_error(p->option, &e);
	}
	emu_settings_assign(p->o->set, &a);
	return 0;
}

static int
parse_list(struct parse *p, unsigned dirs, const char *value)
{
	struct emu_error e;
	if (emu_settings_parse(value, strlen(value), dirs, p->o->set, &e)) {
		return say_error(p->option, &e);
	}
	return 0;
}

static int
parse_script(struct parse *p, const char *where, const char *text, size_t len)
{
	struct emu_error e;
	if (p->o->script.steps) {
		return misuse("more than one script");
	}
	enum weft_err err = emu_script_parse(text, len, &p->o->script, &e);
	if (err == WEFT_EPARSE) {
		return say_error(where, &e);
	}
	return err ? misuse("%s: %s", where, weft_err_text(err)) : 0;
}

static int
read_script(struct parse *p, const char *path)
{
	char *text;
	size_t len;
	enum weft_err err = os_file_read(path, SCRIPT_BYTES_MAX, &text, &len);
	if (err) {
		fprintf(stderr, "weft emulate: cannot read %s: %s\n", path, weft_err_text(err));
		return FAILED;
	}
	int status = parse_script(p, path, text, len);
	free(text);
	return status;
}

/* A value of one quantity, read by the same words as settings. */
static int
parse_quantity(struct parse *p, enum option_id id, const char *value)
{
	struct emu_error e;
	struct emu_text t;
	emu_text_init(&t, value, strlen(value), &e);
	switch ((unsigned)id) {
	case OPT_CLIENTS:
		p->o->clients_max =
			(unsigned)emu_text_count(&t, 1, EMULATE_CLIENTS_MAX, "1 to 1024 clients");
		break;
	case OPT_SEED:
		p->o->seed = emu_text_count(&t, 0, INT64_MAX / 4, "a whole number");
		break;
	case OPT_GATHER:
		p->o->gather_ns = emu_text_duration(&t);
		break;
	case OPT_DURATION:
		p->o->duration_ns = emu_text_duration(&t);
		break;
	default:
		p->o->ring_bytes = (size_t)emu_text_size(&t);
	}
	emu_text_finish(&t, "the end of the value");
	return t.failed ? say_error(p->option, &e) : 0;
}

static int
take_option(struct parse *p, int id, const char *value)
{
	if (id >= OPT_KEY && id < OPT_KEY + EMU_KEY_COUNT) {
		return parse_key(p, (enum emu_key)(id - OPT_KEY), value);
	}
	switch (id) {
	case OPT_AB:
		return parse_list(p, EMU_AB, value);
	case OPT_BA:
		return parse_list(p, EMU_BA, value);
	case OPT_SCRIPT:
		return read_script(p, value);
	case OPT_SCRIPT_TEXT:
		return parse_script(p, p->option, value, strlen(value));
	case OPT_UDP:
		p->udp = value;
		return 0;
	case OPT_TO:
		p->to = value;
		return 0;
	case OPT_RECORD:
		p->o->record_path = value;
		return 0;
	case OPT_JSON:
		p->o->json_path = value;
		p->o->is_quiet |= strcmp(value, "-") == 0;
		return 0;
	case OPT_NO_REALTIME:
		p->o->is_realtime = false;
		return 0;
	case OPT_QUIET:
		p->o->is_quiet = true;
		return 0;
	case OPT_HELP:
		p->has_help = true;
		return 0;
	default:
		return parse_quantity(p, (enum option_id)id, value);
	}
}

/* "PORT", "ADDRESS:PORT", "[ADDRESS]:PORT"; port 0 lets the kernel choose one. */
static int
parse_listen(struct parse *p)
{
	struct endpoint *e = &p->o->listen;
	char *end;
	unsigned long port = strtoul(p->udp, &end, 10);
	if (p->udp[0] >= '0' && p->udp[0] <= '9' && *end == 0 && port <= 65535) {
		e->port = (uint16_t)port;
		return 0;
	}
	if (endpoint_parse(p->udp, strlen(p->udp), e)) {
		return misuse("--udp %s is neither PORT nor ADDRESS:PORT", p->udp);
	}
	return 0;
}

static bool
has_rebind(const struct emu_script *s)
{
	for (size_t i = 0; i < s->n; i++) {
		if (s->steps[i].is_rebind) {
			return true;
		}
	}
	return false;
}

static int
check_interfaces(struct parse *p, int argc, char **argv, int first)
{
	struct emulate_options *o = p->o;
	if (argc - first != 2) {
		return misuse("two interfaces, or --udp and --to, are needed");
	}
	if (o->record_path) {
		return misuse("--record is for the relay; see tcpdump(8)");
	}
	if (has_rebind(&o->script)) {
		return misuse("rebind is for the relay: interfaces have no ports");
	}
	o->interface[0] = argv[first];
	o->interface[1] = argv[first + 1];
	if (strcmp(o->interface[0], o->interface[1]) == 0) {
		return misuse("the interfaces are the same");
	}
	return 0;
}

static int
check_mode(struct parse *p, int argc, char **argv, int first)
{
	struct emulate_options *o = p->o;
	if (!p->udp && !p->to) {
		return check_interfaces(p, argc, argv, first);
	}
	if (!p->udp || !p->to) {
		return misuse("--udp and --to go together");
	}
	if (argc > first) {
		return misuse("%s: a relay has no interfaces", argv[first]);
	}
	if (endpoint_parse(p->to, strlen(p->to), &o->to)) {
		return misuse("--to %s is not ADDRESS:PORT", p->to);
	}
	o->is_udp = true;
	return parse_listen(p);
}

static int
parse_arguments(struct parse *p, int argc, char **argv)
{
	enum { FIXED = WEFT_ARRAY_LEN(fixed_options) };
	struct option all[EMU_KEY_COUNT + FIXED + 1] = {0};
	for (unsigned k = 0; k < EMU_KEY_COUNT; k++) {
		all[k] = (struct option){
			emu_key_name((enum emu_key)k), required_argument, NULL, (int)(OPT_KEY + k)};
	}
	memcpy(all + EMU_KEY_COUNT, fixed_options, sizeof(fixed_options));
	opterr = 0;
	optind = 1;
	for (;;) {
		int index = 0, at = optind;
		int id = getopt_long(argc, argv, ":h", all, &index);
		if (id == -1) {
			break;
		}
		if (id == 'h') {
			id = OPT_HELP;
		}
		if (id == ':' || id == '?') {
			return misuse(id == ':' ? "%s needs a value" : "no option %s", argv[at]);
		}
		char name[32];
		snprintf(name, sizeof(name), "--%s", all[index].name);
		p->option = name;
		int status = take_option(p, id, optarg);
		if (status || p->has_help) {
			return status;
		}
	}
	return check_mode(p, argc, argv, optind);
}

int
emulate_main(int argc, char **argv)
{
	struct emulate_options o = {.set = {emu_settings_default, emu_settings_default},
		.seed = 1,
		.ring_bytes = RING_BYTES_DEFAULT,
		.gather_ns = GATHER_NS_DEFAULT,
		.is_realtime = true,
		.clients_max = CLIENTS_DEFAULT};
	struct parse p = {.o = &o};
	int status = parse_arguments(&p, argc, argv);
	if (p.has_help) {
		fputs(help, stdout);
	} else if (!status) {
		status = emulate_run(&o);
	}
	emu_script_fini(&o.script);
	return status;
}
