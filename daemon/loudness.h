/* SPDX-License-Identifier: Apache-2.0 */
/* The level of the log while the daemon runs: the configuration's, or for a while another one. */
#ifndef KVP_DAEMON_LOUDNESS_H
#define KVP_DAEMON_LOUDNESS_H

#include <stdint.h>
#include <systemd/sd-event.h>

struct loudness;

/* level: that of the configuration. Returns 0 or -errno. */
int loudness_new(sd_event *event, int level, struct loudness **ret);

/* Accepts NULL, returns NULL. */
struct loudness *loudness_free(struct loudness *l);

/* The configuration has another level: in force at once, and what was for a while is over. */
void loudness_set(struct loudness *l, int level);

/* Another one for so many seconds; that of the configuration ends this. Returns 0 or -errno. */
int loudness_lend(struct loudness *l, int level, uint32_t seconds);

/* How many seconds, rounded up, until it goes back; 0: it does not. */
uint32_t loudness_left(const struct loudness *l);

#endif
