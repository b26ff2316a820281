/* SPDX-License-Identifier: Apache-2.0 */
#include "node/device.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "node/job.h"
#include "node/veth.h"
#include "os/clock.h"

/* 45 segments of 1452 B sealed are 65,340 B: one super-frame is one UDP_SEGMENT send. */
#define GSO_BYTES_MAX 61000
/* A super-frame of more segments fits no job and would be dropped each time it is sent again: a
 * peer behind a small MTU asks for them. The kernel cuts what would be longer. */
#define GSO_SEGS_MAX 128
_Static_assert(GSO_SEGS_MAX <= JOB_SEGS_MAX &&
		       GSO_BYTES_MAX + GSO_SEGS_MAX * JOB_SEG_EXTRA_BYTES <= JOB_ARENA_LEN,
	"the longest super-frame does not fit a job");
/* A queue in packets at the interface, as wireguard interfaces have it. The tunnel itself holds
 * no more than a batch, so this is all the buffer there is. */
#define TXQUEUELEN 1000
/* In a private namespace it stands between a program's socket and its own node, and the kernel
 * does not hold a UDP sender back: 79 ms of 1200-byte datagrams at 1 Gbit/s. That many take 19 MB
 * of the kernel's memory, while they are there; the queue itself 64 KiB. */
#define TXQUEUELEN_PRIVATE 8192

#define WAIT_TRIES 1000 /* of 1 ms */

static enum weft_err
say(const struct log *log, const struct node_device *d, enum weft_err e, const char *what)
{
	log_error(log, "%s: cannot %s: %s", d->name, what, os_netlink_error_text(d->netlink));
	return e;
}

static enum weft_err
set_up_link(struct node_device *d, const struct node_config *c)
{
	struct os_link_info info;
	enum weft_err e =
		os_netlink_link_by_name(d->netlink, d->veth ? c->name : d->tun.name, &info);
	if (e) {
		return say(c->log, d, e, "find the new interface");
	}
	d->ifindex = info.index;
	d->mtu = c->mtu ? c->mtu : NODE_MTU_DEFAULT;
	struct os_link_change change = {
		.mtu = d->mtu, .txqueuelen = d->is_private ? TXQUEUELEN_PRIVATE : TXQUEUELEN};
	e = os_netlink_link_change(d->netlink, d->ifindex, &change);
	if (e) {
		return say(c->log, d, e, "set the MTU");
	}
	/* Router solicitations would be for no peer. Beside other interfaces it stays as the
	 * administrator has it. */
	if (d->is_private && os_netlink_link_set_silent(d->netlink, d->ifindex)) {
		log_debug(c->log, "%s: cannot do without a link-local address: %s", d->name,
			os_netlink_error_text(d->netlink));
	}
	/* An older kernel without these settings costs a second send a full frame, and drops of
	 * tiny segments. Apart, since a kernel may know one of them only. */
	const struct os_link_change gso[] = {{.gso_max_size = GSO_BYTES_MAX},
		{.gso_max_segs = d->veth && !c->has_offload ? 1 : GSO_SEGS_MAX}};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(gso); i++) {
		if (os_netlink_link_change(d->netlink, d->ifindex, &gso[i])) {
			log_debug(c->log, "%s: the kernel does not take %s: %s", d->name,
				gso[i].gso_max_size ? "gso_max_size" : "gso_max_segs",
				os_netlink_error_text(d->netlink));
		}
	}
	return WEFT_OK;
}

/* Where /dev/net/tun cannot be had, a private namespace has another way. */
static enum weft_err
open_interface(struct node_device *d, const struct node_config *c, unsigned queues)
{
	bool has_other_way = c->netns != NULL;
	struct os_tun_config tc = {.ns = c->netns,
		.name = c->name,
		.queues = queues,
		.offload = c->has_offload ? OS_TUN_OFFLOAD_USO : OS_TUN_OFFLOAD_NONE,
		.is_quiet = has_other_way,
		.log = c->log};
	if (!has_other_way || !c->no_tun) {
		enum weft_err e = os_tun_open_in(&d->tun, &tc);
		/* Containers hide the device in many ways: no file, no rights, /dev/null in its
		 * place. */
		bool is_hidden = e && e != WEFT_ENOMEM && e != WEFT_ECLOSED && e != WEFT_ETIMEDOUT;
		if (!has_other_way || !is_hidden) {
			if (has_other_way && e) { /* which was quiet so far */
				log_error(c->log, "%s: cannot create the interface: %s", c->name,
					weft_err_text(e));
			}
			return e;
		}
		log_info(c->log, "%s: no /dev/net/tun: a veth pair takes its place", c->name);
	}
	d->tun.offload = c->has_offload ? OS_TUN_OFFLOAD_USO : OS_TUN_OFFLOAD_CSUM;
	return node_veth_open(d->netlink, c, queues, &d->veth);
}

static void
close_interface(struct node_device *d)
{
	node_veth_close(d->veth, d->netlink);
	os_tun_close(&d->tun);
}

enum weft_err
node_device_open(struct node_device *d, const struct node_config *c, unsigned queues)
{
	*d = (struct node_device){.is_private = c->netns != NULL};
	snprintf(d->name, sizeof(d->name), "%s", c->name);
	enum weft_err e = os_netlink_open_in(c->netns, &d->netlink);
	if (e) {
		log_error(c->log, "%s: cannot open netlink: %s", d->name, weft_err_text(e));
		return e;
	}
	/* Before the interface is there, so that none of its news is missed. */
	e = os_netmon_open_in(c->netns, &d->netmon);
	if (e) {
		log_error(c->log, "%s: cannot watch interfaces: %s", d->name, weft_err_text(e));
		goto undo_netlink;
	}
	struct os_link_info other;
	if (os_netlink_link_by_name(d->netlink, c->name, &other) == WEFT_OK) {
		log_error(c->log,
			"%s: an interface of this name exists already; if it is weft's, `weft down "
			"%s` takes it down",
			d->name, d->name);
		e = WEFT_EEXIST;
		goto undo_netmon;
	}
	e = open_interface(d, c, queues);
	if (e) {
		goto undo_netmon;
	}
	e = set_up_link(d, c);
	if (e) {
		goto undo_interface;
	}
	return WEFT_OK;

undo_interface:
	close_interface(d);
undo_netmon:
	os_netmon_close(d->netmon);
undo_netlink:
	os_netlink_close(d->netlink);
	return e;
}

void
node_device_close(struct node_device *d)
{
	close_interface(d);
	os_netmon_close(d->netmon);
	os_netlink_close(d->netlink);
}

enum weft_err
node_device_port(
	struct node_device *d, unsigned i, const struct log *log, struct port **out, int *fd)
{
	struct port_tun_config c = {.offload = d->tun.offload, .mtu = d->mtu, .log = log};
	if (d->veth) {
		node_veth_port(d->veth, i, &c);
	} else {
		c.fd = d->tun.fds[i];
	}
	*fd = c.fd;
	return port_tun_new(&c, out);
}

int
node_device_monitor_fd(const struct node_device *d)
{
	return os_netmon_fd(d->netmon);
}

static void
take_link(struct node_device *d, const char *name, bool is_up, uint32_t mtu, const struct log *log)
{
	if (strncmp(d->name, name, sizeof(d->name)) != 0) {
		log_info(log, "%s: renamed to %s", d->name, name);
		snprintf(d->name, sizeof(d->name), "%s", name);
	}
	d->is_up = is_up;
	d->mtu = mtu <= UINT16_MAX ? (uint16_t)mtu : UINT16_MAX;
}

enum weft_err
node_device_read_news(struct node_device *d, const struct log *log)
{
	struct os_netmon_event e;
	enum weft_err err;
	while ((err = os_netmon_next(d->netmon, &e)) == WEFT_OK) {
		struct os_link_info info;
		if (e.kind == OS_NETMON_LOST) {
			if (os_netlink_link_by_index(d->netlink, d->ifindex, &info) ==
				WEFT_ENOENT) {
				return WEFT_ECLOSED;
			}
			take_link(d, info.name, info.is_up, info.mtu, log);
		} else if (e.index == d->ifindex && e.kind == OS_NETMON_LINK) {
			take_link(d, e.name, e.is_up, e.mtu, log);
		} else if (e.index == d->ifindex && e.kind == OS_NETMON_LINK_DEL) {
			log_info(log, "%s: the interface was deleted", d->name);
			return WEFT_ECLOSED;
		}
	}
	return err == WEFT_EAGAIN ? WEFT_OK : err;
}

uint64_t
node_device_dropped(const struct node_device *d)
{
	struct os_link_info info;
	uint64_t n = d->veth ? node_veth_dropped(d->veth) : 0;
	/* When the interface is gone, what it counted went with it. */
	return os_netlink_link_by_index(d->netlink, d->ifindex, &info) ? n : n + info.tx_dropped;
}

void
node_device_wait(const struct node_device *d)
{
	/* A TUN is there at once. The end of a veth pair that was set up first throws away what is
	 * sent until the kernel has seen, on a thread of its own, that the other one is up. */
	for (int i = 0; d->veth && i < WAIT_TRIES; i++) {
		struct os_link_info info;
		if (os_netlink_link_by_index(d->netlink, d->veth->far_index, &info) ||
			info.is_running) {
			return;
		}
		os_clock_sleep_ns(WEFT_NS_PER_MS);
	}
}
