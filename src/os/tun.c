/* SPDX-License-Identifier: Apache-2.0 */
#include "os/tun.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "os/error.h"
#include "os/fd.h"
#include "os/netns.h"
#include "os/privilege.h"
#include "os/process.h"
#include "os/tun_why.h"

/* Linux 6.2; older headers lack them. */
#ifndef TUN_F_USO4
#define TUN_F_USO4 0x20
#define TUN_F_USO6 0x40
#endif

#define TUN_PATH "/dev/net/tun"
#define WHY_MAX 512

static ssize_t
real_readv(void *ctx, int fd, const struct iovec *iov, int n)
{
	(void)ctx;
	return readv(fd, iov, n);
}

static ssize_t
real_writev(void *ctx, int fd, const struct iovec *iov, int n)
{
	(void)ctx;
	return writev(fd, iov, n);
}

const struct os_tun_calls os_tun_calls_real = {.readv = real_readv, .writev = real_writev};

static unsigned
flags_of(enum os_tun_offload level)
{
	switch (level) {
	case OS_TUN_OFFLOAD_USO:
		return TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN | TUN_F_USO4 |
		       TUN_F_USO6;
	case OS_TUN_OFFLOAD_TSO:
		return TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
	case OS_TUN_OFFLOAD_CSUM:
		return TUN_F_CSUM;
	case OS_TUN_OFFLOAD_NONE:
		break;
	}
	return 0;
}

static bool
is_good_name(const char *name)
{
	size_t len = strlen(name);
	if (len == 0 || len >= IFNAMSIZ || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
		return false;
	}
	unsigned percents = 0;
	for (const char *p = name; *p; p++) {
		if (*p == '/' || *p == ':' || *p <= ' ' || *p == 0x7f) {
			return false;
		}
		if (*p == '%') {
			if (p[1] != 'd') {
				return false;
			}
			percents++;
		}
	}
	return percents <= 1;
}

static enum weft_err
say(const struct os_tun_config *c, bool is_open, const char *name, int errnum)
{
	char text[OS_ERROR_TEXT_MAX], why[WHY_MAX];
	const struct os_tun_refusal r = {.is_open = is_open,
		.errnum = errnum,
		.is_root = os_process_is_root(),
		.has_net_admin = os_privilege_has_net_admin()};
	log_write(c->log, c->is_quiet ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR, "cannot %s %s: %s%s",
		is_open ? "open" : "create interface", name,
		os_error_text(errnum, text, sizeof(text)), os_tun_explain(&r, why, sizeof(why)));
	return os_error(errnum);
}

static enum weft_err
open_queue(struct os_tun *t, const struct os_tun_config *c, short flags)
{
	int fd, errnum = 0;
	enum weft_err err = os_netns_open_tun(c->ns, &fd, &errnum);
	if (err && !errnum) {
		log_error(c->log, "cannot open " TUN_PATH ": %s", weft_err_text(err));
		return err;
	}
	if (err) {
		return say(c, true, TUN_PATH, errnum);
	}
	struct ifreq r = {.ifr_flags = flags};
	memcpy(r.ifr_name, t->name, sizeof(t->name));
	if (ioctl(fd, TUNSETIFF, &r)) {
		errnum = errno;
		os_fd_close(&fd);
		return say(c, false, t->name, errnum);
	}
	memcpy(t->name, r.ifr_name, sizeof(t->name));
	t->name[sizeof(t->name) - 1] = 0;
	t->fds[t->queues++] = fd;
	return WEFT_OK;
}

/* The best level up to wanted that the kernel takes. */
static enum weft_err
choose_offload(struct os_tun *t, enum os_tun_offload wanted, const struct log *log)
{
	int len = OS_VNET_HDR_LEN, is_little = 1;
	for (unsigned i = 0; i < t->queues; i++) {
		if (ioctl(t->fds[i], TUNSETVNETHDRSZ, &len) ||
			ioctl(t->fds[i], TUNSETVNETLE, &is_little)) {
			return os_error(errno);
		}
	}
	for (int level = wanted; level > OS_TUN_OFFLOAD_NONE; level--) {
		if (os_tun_set_offload(t, (enum os_tun_offload)level) == WEFT_OK) {
			return WEFT_OK;
		}
		log_debug(log, "%s: the kernel refuses offload flags 0x%x", t->name,
			flags_of((enum os_tun_offload)level));
	}
	return WEFT_ENOTSUP;
}

enum weft_err
os_tun_open(struct os_tun *t, const char *name, unsigned queues, enum os_tun_offload wanted,
	const struct log *log)
{
	return os_tun_open_in(
		t, &(struct os_tun_config){
			   .name = name, .queues = queues, .offload = wanted, .log = log});
}

enum weft_err
os_tun_open_in(struct os_tun *t, const struct os_tun_config *c)
{
	if (!is_good_name(c->name) || c->queues == 0 || c->queues > OS_TUN_QUEUES_MAX) {
		log_error(c->log, "\"%s\" is no interface name of 1 to 15 characters", c->name);
		return WEFT_EINVAL;
	}
	struct os_tun new = {.offload = OS_TUN_OFFLOAD_NONE};
	memcpy(new.name, c->name, strlen(c->name));
	int flags = IFF_TUN | IFF_NO_PI;
	flags |= c->offload == OS_TUN_OFFLOAD_NONE ? 0 : IFF_VNET_HDR;
	flags |= c->queues > 1 ? IFF_MULTI_QUEUE : 0;

	enum weft_err err = WEFT_OK;
	for (unsigned i = 0; i < c->queues && !err; i++) {
		/* The first makes the interface; only then others may join it. Without this, a
		 * second process would join the queues of the first. */
		err = open_queue(&new, c, (short)(i == 0 ? flags | IFF_TUN_EXCL : flags));
	}
	if (!err && c->offload != OS_TUN_OFFLOAD_NONE) {
		err = choose_offload(&new, c->offload, c->log);
		if (err) {
			/* A kernel that took IFF_VNET_HDR and knows none of its flags. */
			log_warn(c->log, "%s: no offload at all", new.name);
			os_tun_close(&new);
			struct os_tun_config plain = *c;
			plain.offload = OS_TUN_OFFLOAD_NONE;
			return os_tun_open_in(t, &plain);
		}
	}
	if (err) {
		os_tun_close(&new);
		return err;
	}
	*t = new;
	return WEFT_OK;
}

void
os_tun_close(struct os_tun *t)
{
	for (unsigned i = 0; i < t->queues; i++) {
		os_fd_close(&t->fds[i]);
	}
	t->queues = 0;
}

enum weft_err
os_tun_set_offload(struct os_tun *t, enum os_tun_offload level)
{
	if (ioctl(t->fds[0], TUNSETOFFLOAD, (unsigned long)flags_of(level))) {
		return os_error(errno);
	}
	t->offload = level;
	return WEFT_OK;
}
