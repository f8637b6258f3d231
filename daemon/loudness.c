/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "daemon/log.h"
#include "daemon/loudness.h"

struct loudness {
	int level;      /* of the configuration */
	uint64_t until; /* when another one goes back; 0: there is none */
	sd_event_source *timer;
};

void loudness_set(struct loudness *l, int level)
{
	l->level = level;
	l->until = 0;
	(void)sd_event_source_set_enabled(l->timer, SD_EVENT_OFF);
	log_set_level(level);
}

static int loudness_on_timer(sd_event_source *source, uint64_t usec, void *ctx)
{
	struct loudness *l = ctx;

	loudness_set(l, l->level);
	log_line(LOG_NOTICE, "log level is back", LOG_TEXT("level", log_level_name(l->level)));
	return 0;
}

int loudness_new(sd_event *event, int level, struct loudness **ret)
{
	struct loudness *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->level = level;
	r = sd_event_add_time(event, &l->timer, CLOCK_BOOTTIME, 0, 0, loudness_on_timer, l);
	if (r >= 0)
		r = sd_event_source_set_enabled(l->timer, SD_EVENT_OFF);
	if (r < 0) {
		loudness_free(l);
		return r;
	}
	*ret = l;
	return 0;
}

struct loudness *loudness_free(struct loudness *l)
{
	if (!l)
		return NULL;
	sd_event_source_disable_unref(l->timer);
	free(l);
	return NULL;
}

int loudness_lend(struct loudness *l, int level, uint32_t seconds)
{
	uint64_t until = clock_ns() + seconds * NSEC_PER_SEC;
	int r;

	if (level == l->level) {
		loudness_set(l, level);
		return 0;
	}
	r = sd_event_source_set_time(l->timer, until / NSEC_PER_USEC);
	if (r >= 0)
		r = sd_event_source_set_enabled(l->timer, SD_EVENT_ONESHOT);
	if (r < 0)
		return r;
	l->until = until;
	log_set_level(level);
	return 0;
}

uint32_t loudness_left(const struct loudness *l)
{
	uint64_t now = clock_ns();

	if (!l->until)
		return 0;
	return l->until <= now ? 1 : (uint32_t)((l->until - now + NSEC_PER_SEC - 1) / NSEC_PER_SEC);
}
