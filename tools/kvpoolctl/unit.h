/* SPDX-License-Identifier: Apache-2.0 */
/* The systemd unit or container that a process belongs to. */
#ifndef KVP_TOOLS_KVPOOLCTL_UNIT_H
#define KVP_TOOLS_KVPOOLCTL_UNIT_H

#include <stdint.h>

#define UNIT_BYTES 64u

/*
 * From a path of a control group: "vllm.service", "user@1000" for what a user's manager runs,
 * "docker:4be1f2c9a0d1". Returns 0, or -ENOENT when the path names none.
 */
int unit_of_path(const char *path, char buf[UNIT_BYTES]);

/* From /proc. Returns 0, -ENOENT, or what opening the file said. */
int unit_of_pid(uint32_t pid, char buf[UNIT_BYTES]);

#endif
