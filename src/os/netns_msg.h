/* SPDX-License-Identifier: Apache-2.0 */
/* What the two sides of os/netns.h share, and why a namespace may be refused. */
#ifndef WEFT_OS_NETNS_MSG_H
#define WEFT_OS_NETNS_MSG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "os/netns.h"

enum os_netns_op { OS_NETNS_OP_SOCKET, OS_NETNS_OP_TUN };

/* What the holder was doing when it failed. */
enum os_netns_stage {
	OS_NETNS_STAGE_CLONE_NET,  /* a plain namespace */
	OS_NETNS_STAGE_CLONE_USER, /* with a user namespace */
	OS_NETNS_STAGE_MAP,        /* writing its user and group */
	OS_NETNS_STAGE_LOOPBACK,
};

struct os_netns_request {
	uint32_t number;
	int32_t op;
	int32_t family, type, protocol;
};

/* With a descriptor beside it on success. The first one, numbered 0, tells of the start. */
struct os_netns_answer {
	uint32_t number;
	int32_t errnum; /* 0 = success */
	int32_t stage;  /* of the start */
};

struct os_netns_start {
	int socket;    /* the holder's end */
	int parent_fd; /* becomes readable when the program ends; -1 = there is none */
	bool has_user;
	char uid_map[48], gid_map[48]; /* lines of /proc/PID/uid_map and gid_map */
	const void *thread; /* where the C library has the data of the thread that we begin as */
};

/* The holder's life, in a process that has one thread and may do nothing but system calls. */
WEFT_NORETURN void os_netns_hold(const struct os_netns_start *s);
/* In the holder: gives back the memory that is a copy of the program's, as far as can be. */
void os_netns_give_back(const struct os_netns_start *s);

/* What the system says of namespaces; -1 where it says nothing. */
struct os_netns_facts {
	int64_t user_max;                  /* user.max_user_namespaces */
	int64_t net_max;                   /* user.max_net_namespaces */
	int64_t userns_clone;              /* kernel.unprivileged_userns_clone */
	int64_t apparmor;                  /* kernel.apparmor_restrict_unprivileged_userns */
	int64_t seccomp;                   /* Seccomp of /proc/self/status: 2 = a filter */
	bool is_chrooted;                  /* the root folder is no root of the mount namespace */
	bool is_uid_mapped, is_gid_mapped; /* in the user namespace that we are in */
	bool can_user_alone; /* a user namespace without a network namespace was allowed */
	char label[64];      /* of the security module: "unconfined"; empty = none */
};
void os_netns_facts_read(struct os_netns_facts *f);
/* Fills why, and returns the result to give: never WEFT_OK. */
enum weft_err os_netns_explain(const struct os_netns_facts *f, enum os_netns_stage stage,
	int errnum, struct os_netns_fault *why);

#endif
