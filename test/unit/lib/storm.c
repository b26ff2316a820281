/* SPDX-License-Identifier: Apache-2.0 */
/* Everything at once: threads that dial, listen, accept, send datagrams, ask and cancel, while
 * others stop, start and reload the nodes beneath them. What each call may return is known; what
 * must hold at the end is that the nodes work and nothing was left behind.
 *
 * WEFT_STORM_SEED repeats a run as far as threads can be repeated, WEFT_STORM_MS makes it longer.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "world.h"

#define STORM_MS 2000
#define PATIENCE_MS 60000
#define PORT 7000
#define UNTOUCHED (-7)

struct storm {
	struct world w;
	struct weft_cancel *cancel;
	char *texts[2][3]; /* of each node: as it began, one peer less, one address more */
	_Atomic bool is_over;
	_Atomic unsigned faults, dialed, accepted, starts, reloads;
	uint64_t seed;
};

struct actor {
	pthread_t id;
	struct storm *s;
	int node;
	uint64_t random;
};

static uint32_t
draw(struct actor *a, uint32_t below)
{
	a->random ^= a->random << 13;
	a->random ^= a->random >> 7;
	a->random ^= a->random << 17;
	return (uint32_t)((a->random >> 16) % below);
}

static void
rest(struct actor *a, uint32_t us_max)
{
	struct timespec t = {.tv_nsec = (long)draw(a, us_max) * 1000};
	nanosleep(&t, NULL);
}

/* cmocka's assertions are for the main thread. */
static void
check(struct actor *a, bool ok, const char *what, enum weft_err e, const struct weft_detail *why)
{
	if (!ok) {
		print_error("%s: %s (%s)\n", what, weft_err_text(e), why ? why->text : "");
		atomic_fetch_add(&a->s->faults, 1);
	}
}

/* A call that gives a descriptor: one of these results, *fd and why as they were promised. */
static bool
has_fd(struct actor *a, const char *what, enum weft_err e, int fd, const struct weft_detail *why)
{
	bool is_known = e == WEFT_OK || e == WEFT_ECLOSED || e == WEFT_ECANCELED ||
			e == WEFT_ETIMEDOUT || e == WEFT_EUNREACH || e == WEFT_EREFUSED ||
			e == WEFT_EAGAIN || e == WEFT_EADDRINUSE;
	check(a, is_known, what, e, why);
	if (e) {
		check(a, fd == UNTOUCHED, "descriptor set on failure", e, why);
		check(a, !why || (why->code == e && why->text[0]), "no detail", e, why);
		return false;
	}
	check(a, fcntl(fd, F_GETFD) == FD_CLOEXEC, "no close-on-exec", e, why);
	return fd >= 0;
}

static void
choose(struct actor *a, struct weft_dial_options *o)
{
	*o = (struct weft_dial_options){.size = sizeof(*o),
		.timeout_ms = 1 + (int64_t)draw(a, 100),
		.flags = draw(a, 4) == 0 ? WEFT_NONBLOCK : 0,
		.cancel = draw(a, 2) ? a->s->cancel : NULL};
}

static void
dial_once(struct actor *a)
{
	static const char *const hosts[] = {
		WORLD_A4, WORLD_B4, "[" WORLD_A6 "]", "[" WORLD_B6 "]", WORLD_NOWHERE4, "b"};
	struct weft_node *n = a->s->w.n[draw(a, 2)];
	struct weft_detail why = DETAIL();
	struct weft_dial_options o;
	char at[64], c = 'x';
	int fd = UNTOUCHED;
	choose(a, &o);
	snprintf(at, sizeof(at), "%s:%d", hosts[draw(a, WEFT_ARRAY_LEN(hosts))], PORT);
	enum weft_err e = weft_dial(n, draw(a, 5) ? "tcp" : "udp", at, &o, &fd, &why);
	/* "b" is a name for A alone. */
	if (e == WEFT_ENOENT && at[0] == 'b') {
		return;
	}
	if (has_fd(a, "dial", e, fd, &why)) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		atomic_fetch_add(&a->s->dialed, 1);
		(void)send(fd, &c, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		(void)poll(&p, 1, (int)draw(a, 20));
		(void)recv(fd, &c, 1, MSG_DONTWAIT);
		close(fd);
	}
}

static void *
run_dialer(void *arg)
{
	struct actor *a = arg;
	while (!a->s->is_over) {
		dial_once(a);
		rest(a, 500);
	}
	return NULL;
}

static void
accept_some(struct actor *a, int listener)
{
	for (uint32_t i = 0, n = 1 + draw(a, 20); i < n && !a->s->is_over; i++) {
		struct weft_identity who = {.size = sizeof(who)};
		struct weft_dial_options o;
		int fd = UNTOUCHED;
		char c;
		choose(a, &o);
		enum weft_err e = weft_accept(a->s->w.n[a->node], listener, &o, &fd, &who);
		if (has_fd(a, "accept", e, fd, NULL)) {
			atomic_fetch_add(&a->s->accepted, 1);
			(void)recv(fd, &c, 1, MSG_DONTWAIT);
			(void)send(fd, "y", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
			close(fd);
		} else if (e == WEFT_ECLOSED) {
			return;
		}
	}
}

static void *
run_listener(void *arg)
{
	struct actor *a = arg;
	while (!a->s->is_over) {
		struct weft_detail why = DETAIL();
		struct weft_dial_options o = {.size = sizeof(o), .flags = WEFT_REUSEPORT};
		int fd = UNTOUCHED;
		o.flags |= draw(a, 4) == 0 ? WEFT_NONBLOCK : 0;
		enum weft_err e = weft_listen(a->s->w.n[a->node], "tcp", ":7000", &o, &fd, &why);
		if (has_fd(a, "listen", e, fd, &why)) {
			accept_some(a, fd);
			close(fd);
		}
		rest(a, 1000);
	}
	return NULL;
}

static void *
run_sender(void *arg)
{
	struct actor *a = arg;
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	inet_pton(AF_INET, a->node ? WORLD_A4 : WORLD_B4, &to.sin_addr);
	while (!a->s->is_over) {
		struct weft_detail why = DETAIL();
		char buf[1500] = {0};
		int fd = UNTOUCHED;
		enum weft_err e = weft_packet(a->s->w.n[a->node], "udp4", ":0", NULL, &fd, &why);
		if (has_fd(a, "packet", e, fd, &why)) {
			for (uint32_t i = draw(a, 50); i > 0; i--) {
				(void)sendto(fd, buf, draw(a, sizeof(buf)), MSG_DONTWAIT,
					(struct sockaddr *)&to, sizeof(to));
			}
			(void)recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
			close(fd);
		}
		rest(a, 3000);
	}
	return NULL;
}

static void
ask_names(struct actor *a, struct weft_node *n)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	struct weft_identity who = {.size = sizeof(who)};
	struct addrinfo *list = NULL;
	inet_pton(AF_INET, WORLD_B4, &at.sin_addr);
	enum weft_err e = weft_whois(n, (struct sockaddr *)&at, sizeof(at), &who);
	check(a, e == WEFT_OK || e == WEFT_ENOENT || e == WEFT_ECLOSED, "whois", e, NULL);
	e = weft_getaddrinfo(n, draw(a, 2) ? "b" : "nowhere", "80", NULL, &list);
	check(a, e == WEFT_OK || e == WEFT_ENOENT, "getaddrinfo", e, NULL);
	weft_freeaddrinfo(list);
}

static void *
run_asker(void *arg)
{
	struct actor *a = arg;
	struct weft_node *n = a->s->w.n[a->node];
	while (!a->s->is_over) {
		struct weft_stats stats = {.size = sizeof(stats)};
		struct weft_event event = {.size = sizeof(event)};
		struct weft_peer v[2] = {{.size = sizeof(v[0])}};
		uint8_t key[WEFT_KEY_LEN];
		size_t count;
		int user, net;
		enum weft_err e = weft_node_stats(n, &stats);
		check(a, e == WEFT_OK || e == WEFT_ECLOSED, "stats", e, NULL);
		e = weft_node_peers(n, v, draw(a, 3), &count);
		check(a, e == WEFT_OK || e == WEFT_ECLOSED || e == WEFT_EMSGSIZE, "peers", e, NULL);
		weft_node_public_key(n, key);
		check(a, memcmp(key, a->s->w.public_key[a->node], sizeof(key)) == 0, "key", WEFT_OK,
			NULL);
		uint16_t port = weft_node_port(n);
		check(a, port == 0 || port == a->s->w.port[a->node], "port", WEFT_OK, NULL);
		ask_names(a, n);
		e = weft_node_namespaces(n, &user, &net);
		check(a, e == WEFT_OK || e == WEFT_ECLOSED, "namespaces", e, NULL);
		if (!e) {
			close(net);
			close(user); /* -1 as root */
		}
		e = weft_event_next(n, &event);
		check(a, e == WEFT_OK || e == WEFT_EAGAIN, "event", e, NULL);
		rest(a, 2000);
	}
	return NULL;
}

static void *
run_canceller(void *arg)
{
	struct actor *a = arg;
	while (!a->s->is_over) {
		rest(a, 40000);
		weft_cancel_fire(a->s->cancel);
		rest(a, 2000);
		weft_cancel_clear(a->s->cancel);
	}
	return NULL;
}

static void
start(struct actor *a)
{
	struct weft_detail why = DETAIL();
	enum weft_err e = weft_node_start(a->s->w.n[a->node], &why);
	check(a, e == WEFT_OK || e == WEFT_EEXIST, "start", e, &why);
	atomic_fetch_add(&a->s->starts, e == WEFT_OK);
}

static void
reload(struct actor *a)
{
	struct weft_detail why = DETAIL();
	uint32_t which = draw(a, 4);
	struct weft_config c = {.size = sizeof(c),
		.text = which < 3 ? a->s->texts[a->node][which] : "[Interface]\nMTU = x\n"};
	enum weft_err e = weft_node_reload(a->s->w.n[a->node], &c, &why);
	check(a, e == (which < 3 ? WEFT_OK : WEFT_EPARSE), "reload", e, &why);
	atomic_fetch_add(&a->s->reloads, e == WEFT_OK);
}

static void *
run_master(void *arg)
{
	struct actor *a = arg;
	while (!a->s->is_over) {
		switch (draw(a, 6)) {
		case 0:
			weft_node_stop(a->s->w.n[a->node]);
			break;
		case 1:
		case 2:
			start(a);
			break;
		default:
			reload(a);
		}
		rest(a, 60000);
	}
	return NULL;
}

static void
make_texts(struct storm *s)
{
	for (int i = 0; i < 2; i++) {
		char **t = s->texts[i];
		t[0] = world_text(&s->w, i);
		t[1] = strdup(t[0]);
		assert_non_null(t[1]);
		char *last = strstr(strstr(t[1], "[Peer]") + 1, "[Peer]");
		assert_non_null(last);
		*last = 0;
		t[2] = world_replace(
			t[0], "MTU = 1420", "Address = 10.79.0.1/32, fd79::1/128\nMTU = 1400");
	}
}

static bool
has_done_all(const struct storm *s)
{
	return s->dialed > 0 && s->accepted > 0 && s->starts > 0 && s->reloads > 0;
}

static void
run_all(struct storm *s)
{
	/* One of each a node; the last two are common to both. */
	static void *(*const roles[])(void *) = {run_listener, run_sender, run_asker, run_master,
		run_master, run_dialer, run_dialer, run_canceller};
	struct actor v[2 * WEFT_ARRAY_LEN(roles)];
	const char *wanted = getenv("WEFT_STORM_MS");
	int64_t end = world_ms() + (wanted ? atoi(wanted) : STORM_MS);
	for (size_t i = 0; i < WEFT_ARRAY_LEN(v); i++) {
		v[i] = (struct actor){.s = s,
			.node = (int)(i % 2),
			.random = (s->seed + 1) * 0x9e3779b97f4a7c15u + i * 0xbf58476d1ce4e5b9u};
		assert_int_equal(pthread_create(&v[i].id, NULL, roles[i / 2], &v[i]), 0);
	}
	/* A slow machine gets the time that one of each takes. */
	while (s->faults == 0 &&
		(world_ms() < end || (world_ms() < end + PATIENCE_MS && !has_done_all(s)))) {
		struct timespec t = {.tv_nsec = 10000000};
		nanosleep(&t, NULL);
	}
	s->is_over = true;
	for (size_t i = 0; i < WEFT_ARRAY_LEN(v); i++) {
		pthread_join(v[i].id, NULL);
	}
}

static void
nodes_weather_whatever_is_called_at_once(void **state)
{
	(void)state;
	struct storm s = {.w = {.family = 4}};
	const char *seed = getenv("WEFT_STORM_SEED");
	int n = world_count_descriptors();
	s.seed = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL);
	world_open(&s.w);
	make_texts(&s);
	OK(weft_cancel_new(&s.cancel), NULL);
	run_all(&s);
	print_message("WEFT_STORM_SEED=%llu: %u dialed, %u accepted, %u starts, %u reloads\n",
		(unsigned long long)s.seed, s.dialed, s.accepted, s.starts, s.reloads);
	assert_int_equal(s.faults, 0);
	assert_true(has_done_all(&s));
	for (int i = 0; i < 2; i++) {
		struct weft_config c = {.size = sizeof(c), .text = s.texts[i][0]};
		struct weft_detail why = DETAIL();
		enum weft_err e = weft_node_start(s.w.n[i], &why);
		EXPECT(e, e == WEFT_EEXIST ? WEFT_EEXIST : WEFT_OK, &why);
		OK(weft_node_reload(s.w.n[i], &c, &why), &why);
		for (int k = 0; k < 3; k++) {
			free(s.texts[i][k]);
		}
	}
	int fd[2];
	world_connect(&s.w, fd);
	world_write(fd[0], 10000, 0);
	world_read(fd[1], 10000, 0);
	close(fd[0]);
	close(fd[1]);
	weft_cancel_free(s.cancel);
	world_close(&s.w);
	assert_int_equal(world_count_descriptors(), n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_weather_whatever_is_called_at_once),
	};
	return world_main("storm", tests, WEFT_ARRAY_LEN(tests));
}
