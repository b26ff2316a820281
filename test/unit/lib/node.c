/* SPDX-License-Identifier: Apache-2.0 */
/* A node's life: start, stop, reload, what it tells, and what it leaves of the process alone. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "os/netlink.h"
#include "world.h"

static void
new_refuses_what_is_no_configuration(void **state)
{
	(void)state;
	struct weft_node *n = NULL;
	struct weft_detail why = DETAIL();
	struct weft_config c = {.size = sizeof(c), .text = "[Interface]\nPrivateKey = x\n"};
	EXPECT(weft_node_new(&c, &n, &why), WEFT_EPARSE, &why);
	assert_int_equal(why.line, 2);
	EXPECT(weft_node_new(NULL, &n, &why), WEFT_EINVAL, &why);
	EXPECT(weft_node_new(&c, NULL, &why), WEFT_EINVAL, &why);
	c.size = 3;
	EXPECT(weft_node_new(&c, &n, &why), WEFT_EINVAL, &why);
	c = (struct weft_config){.size = sizeof(c), .text = "", .workers = 17};
	EXPECT(weft_node_new(&c, &n, &why), WEFT_EINVAL, &why);
	c = (struct weft_config){.size = sizeof(c), .text = "", .flags = 0x80};
	EXPECT(weft_node_new(&c, &n, &why), WEFT_EINVAL, &why);
	c = (struct weft_config){
		.size = sizeof(c), .text = "", .log_level = (enum weft_log_level)9};
	EXPECT(weft_node_new(&c, &n, &why), WEFT_EINVAL, &why);
	assert_null(n);
	struct weft_event event = {.size = sizeof(event)};
	EXPECT(weft_node_start(NULL, &why), WEFT_EINVAL, &why);
	EXPECT(weft_node_reload(NULL, &c, &why), WEFT_EINVAL, &why);
	EXPECT(weft_event_next(NULL, &event), WEFT_EINVAL, NULL);
	EXPECT(weft_node_namespaces(NULL, NULL, NULL), WEFT_EINVAL, NULL);
	weft_node_free(NULL);
}

static void
start_stop_and_start_again(void **state)
{
	(void)state;
	struct world w = {.family = 4};
	struct weft_detail why = DETAIL();
	struct weft_stats s = {.size = sizeof(s)};
	uint8_t key[WEFT_KEY_LEN];
	size_t count;
	int user, net;
	world_open(&w);
	EXPECT(weft_node_start(w.n[0], &why), WEFT_EEXIST, &why);
	assert_int_equal(weft_node_port(w.n[0]), w.port[0]);
	for (int i = 0; i < 3; i++) {
		int fd[2];
		weft_node_stop(w.n[0]);
		weft_node_stop(w.n[0]);
		assert_int_equal(weft_node_port(w.n[0]), 0);
		assert_int_equal(weft_node_stats(w.n[0], &s), WEFT_ECLOSED);
		assert_int_equal(weft_node_peers(w.n[0], NULL, 0, &count), WEFT_ECLOSED);
		assert_int_equal(weft_node_namespaces(w.n[0], &user, &net), WEFT_ECLOSED);
		OK(weft_node_start(w.n[0], &why), &why);
		world_connect(&w, fd);
		world_write(fd[0], 10000, 0);
		world_read(fd[1], 10000, 0);
		close(fd[0]);
		close(fd[1]);
	}
	weft_node_public_key(w.n[0], key);
	assert_memory_equal(key, w.public_key[0], WEFT_KEY_LEN);
	world_close(&w);
}

static void
start_on_a_port_that_is_taken_says_so(void **state)
{
	(void)state;
	struct world w = {.family = 4};
	struct weft_detail why = DETAIL();
	world_open(&w);
	struct weft_node *again = world_node(&w, 0);
	EXPECT(weft_node_start(again, &why), WEFT_EADDRINUSE, &why);
	assert_true(strlen(why.text) > 10);
	weft_node_stop(w.n[0]);
	OK(weft_node_start(again, &why), &why);
	weft_node_free(again);
	world_close(&w);
}

static void
sockets_outlive_their_node(void **state)
{
	(void)state;
	struct world w = {.family = 4};
	int fd[2];
	char c;
	world_open(&w);
	world_connect(&w, fd);
	weft_node_free(w.n[0]);
	w.n[0] = NULL;
	assert_int_equal(recv(fd[0], &c, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(close(fd[0]), 0);
	close(fd[1]);
	world_close(&w);
}

static void
stats_and_peers_count_what_went_through(void **state)
{
	(void)state;
	struct world w = {.family = 4};
	struct weft_stats s = {.size = sizeof(s)};
	struct weft_peer v[3] = {{.size = sizeof(v[0])}};
	size_t count = 0;
	int fd[2];
	world_open(&w);
	OK(weft_node_peers(w.n[0], v, 3, &count), NULL);
	assert_int_equal(count, 2);
	assert_string_equal(v[0].name, "b");
	assert_int_equal(v[0].is_up, 0);
	assert_int_equal(v[0].handshake_age_ms, -1);
	assert_string_equal(v[1].name, "nowhere");
	world_connect(&w, fd);
	world_write(fd[0], 100000, 0);
	world_read(fd[1], 100000, 0);
	OK(weft_node_stats(w.n[0], &s), NULL);
	assert_true(s.tx_bytes >= 100000 && s.tx_frames > 0 && s.rx_bytes > 0);
	assert_true(s.tx_datagrams >= 100000 / 1500 && s.rx_datagrams > 0);
	OK(weft_node_peers(w.n[0], v, 3, &count), NULL);
	assert_int_equal(v[0].is_up, 1);
	assert_in_range(v[0].handshake_age_ms, 0, 20000);
	assert_true(v[0].tx_bytes > 100000);
	assert_non_null(strstr(v[0].endpoint, "127.0.0.1:"));
	assert_memory_equal(v[0].public_key, w.public_key[1], WEFT_KEY_LEN);
	assert_int_equal(weft_node_peers(w.n[0], v, 1, &count), WEFT_EMSGSIZE);
	assert_int_equal(count, 2);
	s.size = v[0].size = 5;
	assert_int_equal(weft_node_stats(w.n[0], &s), WEFT_EINVAL);
	assert_int_equal(weft_node_peers(w.n[0], v, 3, &count), WEFT_EINVAL);
	close(fd[0]);
	close(fd[1]);
	world_close(&w);
}

/* Waits for an event of that kind; others are passed over. */
static struct weft_event
wait_event(struct weft_node *n, enum weft_event_kind kind, int ms)
{
	struct weft_event e = {.size = sizeof(e)};
	int64_t end = world_ms() + ms;
	while (world_ms() < end) {
		struct pollfd p = {.fd = weft_event_fd(n), .events = POLLIN};
		if (poll(&p, 1, 100) == 1) {
			while (weft_event_next(n, &e) == WEFT_OK) {
				if (e.kind == kind) {
					return e;
				}
			}
		}
	}
	fail_msg("no event of kind %d within %d ms", kind, ms);
	return e;
}

static void
events_tell_of_peers(void **state)
{
	(void)state;
	struct world w = {.family = 4};
	struct weft_detail why = DETAIL();
	struct weft_event e = {.size = sizeof(e)};
	int fd[2];
	world_open(&w);
	struct pollfd p = {.fd = weft_event_fd(w.n[0]), .events = POLLIN};
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(weft_event_next(w.n[0], &e), WEFT_EAGAIN);
	world_connect(&w, fd);
	e = wait_event(w.n[0], WEFT_EVENT_PEER_UP, 10000);
	assert_string_equal(e.name, "b");
	assert_memory_equal(e.public_key, w.public_key[1], WEFT_KEY_LEN);
	e = wait_event(w.n[1], WEFT_EVENT_PEER_UP, 10000);
	assert_string_equal(e.name, "a");
	/* A speaks from another port from now on. */
	weft_node_stop(w.n[0]);
	uint16_t old = w.port[0];
	w.port[0] = 0;
	char *text = world_text(&w, 0);
	struct weft_config c = {.size = sizeof(c), .text = text};
	OK(weft_node_reload(w.n[0], &c, &why), &why);
	free(text);
	OK(weft_node_start(w.n[0], &why), &why);
	w.port[0] = weft_node_port(w.n[0]);
	assert_int_not_equal(w.port[0], old);
	int again[2];
	world_connect(&w, again);
	e = wait_event(w.n[1], WEFT_EVENT_ENDPOINT_MOVED, 10000);
	char endpoint[40];
	snprintf(endpoint, sizeof(endpoint), "127.0.0.1:%u", w.port[0]);
	assert_string_equal(e.endpoint, endpoint);
	assert_string_equal(e.name, "a");
	/* A peer that is taken out is gone. */
	text = world_text(&w, 1);
	*strstr(text, "[Peer]") = 0;
	c.text = text;
	OK(weft_node_reload(w.n[1], &c, &why), &why);
	free(text);
	e = wait_event(w.n[1], WEFT_EVENT_PEER_DOWN, 10000);
	assert_memory_equal(e.public_key, w.public_key[0], WEFT_KEY_LEN);
	close(fd[0]);
	close(fd[1]);
	close(again[0]);
	close(again[1]);
	world_close(&w);
}

/* In a child, which has one thread, as setns(2) into a user namespace demands. */
static void
delete_interface(struct weft_node *n)
{
	int user, net, status;
	OK(weft_node_namespaces(n, &user, &net), NULL);
	pid_t pid = fork();
	if (pid == 0) {
		struct os_netlink *nl;
		struct os_link_info link;
		_exit((user >= 0 && setns(user, CLONE_NEWUSER)) || setns(net, CLONE_NEWNET) ||
			os_netlink_open(&nl) || os_netlink_link_by_name(nl, "weft0", &link) ||
			os_netlink_link_delete(nl, link.index));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(net);
	if (user >= 0) {
		close(user);
	}
}

static void
an_interface_that_was_deleted_is_an_error_event(void **state)
{
	(void)state;
	struct world w = {.family = 4};
	struct weft_detail why = DETAIL();
	world_open(&w);
	struct weft_event odd = {.size = 2};
	delete_interface(w.n[0]);
	struct pollfd p = {.fd = weft_event_fd(w.n[0]), .events = POLLIN};
	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_int_equal(weft_event_next(w.n[0], &odd), WEFT_EINVAL);
	struct weft_event e = wait_event(w.n[0], WEFT_EVENT_ERROR, 10000);
	assert_int_equal(e.code, WEFT_ECLOSED);
	assert_true(strlen(e.text) > 10);
	weft_node_stop(w.n[0]);
	OK(weft_node_start(w.n[0], &why), &why);
	world_meet(&w);
	world_close(&w);
}

static void
namespaces_are_others_than_the_programs(void **state)
{
	(void)state;
	struct world w = {.family = 4};
	struct stat own, theirs[2];
	world_open(&w);
	assert_int_equal(stat("/proc/self/ns/net", &own), 0);
	for (int i = 0; i < 2; i++) {
		int user = -7, net = -7;
		OK(weft_node_namespaces(w.n[i], &user, &net), NULL);
		assert_int_equal(fstat(net, &theirs[i]), 0);
		assert_true(fcntl(net, F_GETFD) & FD_CLOEXEC);
		assert_int_not_equal(theirs[i].st_ino, own.st_ino);
		assert_true(user == -1 || (fcntl(user, F_GETFD) & FD_CLOEXEC));
		close(net);
		if (user >= 0) {
			close(user);
		}
	}
	assert_int_not_equal(theirs[0].st_ino, theirs[1].st_ino);
	world_close(&w);
}

/* Numbers of the descriptors that a program has which this one runs. */
static void
list_descriptors(char *out, size_t cap)
{
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(ends[1], 1);
		execl("/bin/ls", "ls", "/proc/self/fd", (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	size_t at = 0;
	ssize_t n;
	while ((n = read(ends[0], out + at, cap - 1 - at)) > 0) {
		at += (size_t)n;
	}
	out[at] = 0;
	close(ends[0]);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void
fork_and_exec_leak_no_descriptor(void **state)
{
	(void)state;
	char before[1024], after[1024];
	struct world w = {.family = 4};
	struct weft_detail why = DETAIL();
	struct weft_cancel *c;
	int fd[2], packet, user, net;
	uint16_t port;
	list_descriptors(before, sizeof(before));
	world_open(&w);
	world_connect(&w, fd);
	int listener = world_listen(&w, 0, &port);
	OK(weft_packet(w.n[0], "udp", ":0", NULL, &packet, &why), &why);
	OK(weft_node_namespaces(w.n[0], &user, &net), NULL);
	OK(weft_cancel_new(&c), NULL);
	list_descriptors(after, sizeof(after));
	assert_string_equal(before, after);
	weft_cancel_free(c);
	int all[] = {fd[0], fd[1], packet, user, net, listener};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(all); i++) {
		if (all[i] >= 0) {
			close(all[i]);
		}
	}
	world_close(&w);
}

/* The ring of a packet socket is shared memory that holds the socket; the holder of another node's
 * namespace is such a fork, too. */
static void
a_fork_has_no_mapping_of_a_nodes_sockets(void **state)
{
	(void)state;
	struct world w = {.family = 4};
	int status = -1;
	world_open(&w);
	pid_t pid = fork();
	if (pid == 0) {
		char line[512];
		FILE *f = fopen("/proc/self/maps", "re");
		bool is_clean = f != NULL;
		while (f && fgets(line, sizeof(line), f)) {
			is_clean = is_clean && !strstr(line, "socket:");
		}
		_exit(is_clean ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	world_close(&w);
}

/* At each number of descriptors that is not enough, start says so and leaves nothing behind. */
static void
start_without_descriptors_fails_and_can_be_repeated(void **state)
{
	(void)state;
	struct world w = {.family = 4};
	struct rlimit old, few;
	enum weft_err e = WEFT_ENOMEM;
	unsigned spare = 0, failures = 0;
	world_open(&w);
	weft_node_stop(w.n[0]);
	weft_node_stop(w.n[1]);
	int n = world_count_descriptors(), lowest = 0;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	while (fcntl(lowest, F_GETFD) >= 0) {
		lowest++;
	}
	for (; e && spare < 200; spare++) {
		struct weft_detail why = DETAIL();
		few = old;
		few.rlim_cur = (rlim_t)lowest + spare;
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		e = weft_node_start(w.n[0], &why);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
		if (e) {
			failures++;
			assert_int_equal(why.code, e);
			assert_non_null(strstr(why.text, "ulimit -n"));
			assert_int_equal(world_count_descriptors(), n);
		}
	}
	assert_int_equal(e, WEFT_OK);
	assert_true(failures > 5);
	weft_node_stop(w.n[0]);
	assert_int_equal(world_count_descriptors(), n);
	OK(weft_node_start(w.n[0], NULL), NULL);
	OK(weft_node_start(w.n[1], NULL), NULL);
	world_meet(&w);
	world_close(&w);
}

/* All addresses lead to B, as a client of a gateway has it; the outer packets find their way. */
static void
a_default_route_leads_into_the_overlay_alone(void **state)
{
	(void)state;
	for (int family = 4; family <= 6; family += 2) {
		struct world w = {.family = family};
		struct weft_detail why = DETAIL();
		int fd[2];
		world_open(&w);
		char *text = world_text(&w, 0);
		char *all = world_replace(text, "10.77.0.2/32, fd77::2/128", "0.0.0.0/0, ::/0");
		struct weft_config c = {.size = sizeof(c), .text = all};
		OK(weft_node_reload(w.n[0], &c, &why), &why);
		world_meet(&w);
		weft_node_stop(w.n[0]);
		OK(weft_node_start(w.n[0], &why), &why);
		world_connect(&w, fd);
		world_write(fd[0], 10000, 0);
		world_read(fd[1], 10000, 0);
		close(fd[0]);
		close(fd[1]);
		free(text);
		free(all);
		world_close(&w);
	}
}

static atomic_int children_ended;

static void
on_child(int sig)
{
	(void)sig;
	children_ended++;
}

static void
nothing_of_the_process_is_changed(void **state)
{
	(void)state;
	struct sigaction act = {.sa_handler = on_child}, old, now;
	struct world w = {.family = 4};
	sigset_t before, after;
	int status, n = world_count_descriptors();
	children_ended = 0;
	assert_int_equal(sigaction(SIGCHLD, &act, &old), 0);
	assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &before), 0);
	world_open(&w);
	world_meet(&w);
	/* The helper is nobody's child. */
	assert_int_equal(waitpid(-1, &status, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	world_close(&w);
	assert_int_equal(children_ended, 0);
	assert_int_equal(world_count_descriptors(), n);
	assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &after), 0);
	for (int sig = 1; sig < NSIG; sig++) {
		assert_int_equal(sigismember(&before, sig), sigismember(&after, sig));
	}
	assert_int_equal(sigaction(SIGCHLD, &old, &now), 0);
	assert_ptr_equal(now.sa_handler, on_child);
	assert_int_equal(sigaction(SIGPIPE, NULL, &now), 0);
	assert_ptr_equal(now.sa_handler, SIG_DFL);
}

struct lines {
	atomic_int n, inside, overlaps;
	char key[WEFT_KEY_TEXT_LEN];
	atomic_bool has_key;
};

static void
take_line(void *ctx, enum weft_log_level level, const char *text)
{
	struct lines *l = ctx;
	l->overlaps += l->inside++ != 0;
	l->n++;
	if (strstr(text, l->key) || level > WEFT_LOG_DEBUG) {
		l->has_key = true;
	}
	l->inside--;
}

static void
log_lines_come_one_at_a_time_and_without_keys(void **state)
{
	(void)state;
	struct world w = {.family = 4};
	struct weft_detail why = DETAIL();
	struct lines lines = {0};
	world_open(&w);
	weft_node_free(w.n[0]);
	char *text = world_text(&w, 0);
	weft_key_format(w.private_key[0], lines.key);
	struct weft_config c = {.size = sizeof(c),
		.text = text,
		.log = take_line,
		.log_ctx = &lines,
		.log_level = WEFT_LOG_DEBUG,
		.flags = world_is_without_tun() ? WEFT_NODE_NO_TUN : 0};
	OK(weft_node_new(&c, &w.n[0], &why), &why);
	free(text);
	OK(weft_node_start(w.n[0], &why), &why);
	world_meet(&w);
	world_close(&w);
	assert_true(lines.n > 0);
	assert_int_equal(lines.overlaps, 0);
	assert_false(lines.has_key);
}

static void
many_nodes_live_in_one_process(void **state)
{
	(void)state;
	struct world w[4];
	int fd[4][2];
	for (int i = 0; i < 4; i++) {
		w[i] = (struct world){.family = i % 2 ? 6 : 4};
		world_open(&w[i]);
	}
	/* The same overlay addresses in each pair. */
	for (int i = 0; i < 4; i++) {
		world_connect(&w[i], fd[i]);
		world_write(fd[i][0], 1000, (uint64_t)i);
	}
	for (int i = 0; i < 4; i++) {
		world_read(fd[i][1], 1000, (uint64_t)i);
		close(fd[i][0]);
		close(fd[i][1]);
		world_close(&w[i]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_refuses_what_is_no_configuration),
		cmocka_unit_test(start_stop_and_start_again),
		cmocka_unit_test(start_on_a_port_that_is_taken_says_so),
		cmocka_unit_test(sockets_outlive_their_node),
		cmocka_unit_test(stats_and_peers_count_what_went_through),
		cmocka_unit_test(events_tell_of_peers),
		cmocka_unit_test(an_interface_that_was_deleted_is_an_error_event),
		cmocka_unit_test(namespaces_are_others_than_the_programs),
		cmocka_unit_test(fork_and_exec_leak_no_descriptor),
		cmocka_unit_test(a_fork_has_no_mapping_of_a_nodes_sockets),
		cmocka_unit_test(start_without_descriptors_fails_and_can_be_repeated),
		cmocka_unit_test(a_default_route_leads_into_the_overlay_alone),
		cmocka_unit_test(nothing_of_the_process_is_changed),
		cmocka_unit_test(log_lines_come_one_at_a_time_and_without_keys),
		cmocka_unit_test(many_nodes_live_in_one_process),
	};
	return world_main("node", tests, WEFT_ARRAY_LEN(tests));
}
