/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/domain.h"
#include "daemon/listener.h"
#include "daemon/log.h"
#include "daemon/loudness.h"
#include "daemon/manager.h"

#define MANAGER_STATUS_BYTES 128u

struct manager {
	const struct options *options;
	struct configurator *configurator;
	struct loudness *loudness;
	sd_event *event;
	struct worker *worker;
	struct domain *domain;
	struct listener *client, *admin;
	gid_t client_group, admin_group;
	sd_event_source *sigterm, *sigint, *sighup, *status;
	char said[MANAGER_STATUS_BYTES]; /* the last status line */
};

static int manager_on_signal(sd_event_source *source, const struct signalfd_siginfo *si, void *ctx)
{
	struct manager *m = ctx;

	log_line(LOG_NOTICE, "stopping", LOG_NUMBER("signal", si->ssi_signo));
	(void)sd_notify(0, "STOPPING=1\nSTATUS=Stopping");
	domain_stop(m->domain);
	return sd_event_exit(m->event, 0);
}

static void manager_on_client(void *ctx, int sock, struct peer *peer)
{
	struct manager *m = ctx;

	domain_admit(m->domain, sock, peer, 0);
}

static void manager_on_admin(void *ctx, int sock, struct peer *peer)
{
	struct manager *m = ctx;

	domain_admit(m->domain, sock, peer, 1);
}

/* "3 clients; host 6.4/8.0 GiB; hit 71%": the last part once somebody asked for something. */
static void manager_status_line(const struct manager *m, char line[MANAGER_STATUS_BYTES])
{
	struct domain_census census;
	struct pool_stats stats;
	struct usage usage;
	uint64_t lost;
	char hit[24] = "";

	domain_census(m->domain, &census);
	pool_get_stats(m->domain->pool, &stats);
	domain_usage(m->domain, &usage, &lost);
	if (usage.asked)
		snprintf(hit, sizeof(hit), "; hit %.0f%%",
			 100 * (double)usage.hit / (double)usage.asked);
	snprintf(line, MANAGER_STATUS_BYTES, "%u client%s; host %.1f/%.1f GiB%s",
		 census.clients - census.draining, census.clients - census.draining == 1 ? "" : "s",
		 (double)stats.handed_bytes / (double)GIB(1),
		 (double)stats.pool_bytes / (double)GIB(1), hit);
}

/* The service manager is told when there is something new to say. */
static void manager_tell_status(struct manager *m, const char *state)
{
	char line[MANAGER_STATUS_BYTES];

	manager_status_line(m, line);
	if (!*state && !strcmp(line, m->said))
		return;
	memcpy(m->said, line, sizeof(line));
	(void)sd_notifyf(0, "%sSTATUS=%s", state, line);
}

static void manager_status_later(struct manager *m)
{
	const struct config *config = configurator_config(m->configurator);

	if (!m->status)
		return;
	(void)sd_event_source_set_time_relative(m->status,
						config->daemon.status_interval_ns / NSEC_PER_USEC);
	(void)sd_event_source_set_enabled(m->status, SD_EVENT_ONESHOT);
}

static int manager_on_status(sd_event_source *source, uint64_t usec, void *ctx)
{
	struct manager *m = ctx;

	manager_tell_status(m, "");
	manager_status_later(m);
	return 0;
}

/* Complaints go to the log; there is nobody else to tell. */
static int manager_on_reload(sd_event_source *source, const struct signalfd_siginfo *si, void *ctx)
{
	struct manager *m = ctx;
	struct configurator_changes changes = { 0 };
	struct complaints wrong = COMPLAINTS_INIT;

	(void)configurator_reload(m->configurator, &changes, &wrong);
	configurator_changes_clear(&changes);
	complaint_clear(&wrong);
	return 0;
}

static int manager_add_signal(struct manager *m, int sig, sd_event_signal_handler_t handler,
			      sd_event_source **ret)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	return sd_event_add_signal(m->event, ret, sig, handler, m);
}

static int manager_make_event(struct manager *m)
{
	const struct config *config = configurator_config(m->configurator);
	uint64_t interval = config->daemon.status_interval_ns / NSEC_PER_USEC;
	int r = sd_event_new(&m->event);

	if (r >= 0)
		r = manager_add_signal(m, SIGTERM, manager_on_signal, &m->sigterm);
	if (r >= 0)
		r = manager_add_signal(m, SIGINT, manager_on_signal, &m->sigint);
	if (r >= 0)
		r = manager_add_signal(m, SIGHUP, manager_on_reload, &m->sighup);
	if (r >= 0)
		r = sd_event_set_watchdog(m->event, 1);
	/* Nobody else wants to know, and asking the pool costs a scan. */
	if (r >= 0 && getenv("NOTIFY_SOCKET"))
		r = sd_event_add_time_relative(m->event, &m->status, CLOCK_BOOTTIME, interval, 0,
					       manager_on_status, m);
	if (r < 0)
		log_line(LOG_ERR, "cannot make the event loop", LOG_ERRNO(r));
	return r < 0 ? r : 0;
}

static gid_t manager_group(const struct options *o, const char *name)
{
	const struct group *g = o->instance == INSTANCE_SYSTEM ? getgrnam(name) : NULL;

	return g ? g->gr_gid : DOMAIN_NO_GROUP;
}

/* What is wrong when the pool cannot be made, in the operator's terms. */
static const char *manager_pool_advice(int r)
{
	switch (r) {
	case -EINVAL:
		return "host.pool_size or host.max_blocks is out of bounds (64 KiB at least)";
	case -ENOMEM:
		return "lower host.pool_size or host.max_blocks, or raise the memory limit of this "
		       "service";
	default:
		return NULL;
	}
}

static int manager_check_config(void *ctx, const struct config *now,
				char why[CONFIGURATOR_WHY_BYTES])
{
	struct manager *m = ctx;

	return domain_check_config(m->domain, now, why);
}

static void manager_apply_config(void *ctx, const struct config *was, const struct config *now)
{
	struct manager *m = ctx;

	if (was->daemon.log_level != now->daemon.log_level)
		loudness_set(m->loudness, now->daemon.log_level);
	if (was->daemon.status_interval_ns != now->daemon.status_interval_ns)
		manager_status_later(m);
	domain_apply_config(m->domain, now);
}

static const struct configurator_ops manager_config_ops = {
	.check = manager_check_config,
	.apply = manager_apply_config,
};

static int manager_make_loudness(struct manager *m)
{
	const struct config *config = configurator_config(m->configurator);
	int r = loudness_new(m->event, config->daemon.log_level, &m->loudness);

	if (r < 0)
		log_line(LOG_ERR, "cannot make a timer", LOG_ERRNO(r));
	return r;
}

static int manager_make_domain(struct manager *m)
{
	const struct config *config = configurator_config(m->configurator);
	const struct domain_config cfg = {
		.name = "default",
		.instance = m->options->instance,
		.config = config,
		.configurator = m->configurator,
		.loudness = m->loudness,
		.client_group = m->client_group,
		.admin_group = m->admin_group,
	};
	int r = worker_new(m->event, &m->worker);

	if (r < 0) {
		log_line(LOG_ERR, "cannot start the worker thread", LOG_ERRNO(r));
		return r;
	}
	r = domain_new(m->event, m->worker, &cfg, &m->domain);
	if (r == 0)
		configurator_listen(m->configurator, &manager_config_ops, m);
	if (r < 0)
		log_line(LOG_ERR, "cannot make the pool",
			 LOG_NUMBER("pool_bytes", config->host.pool_bytes),
			 LOG_NUMBER("max_blocks", config->host.max_blocks), LOG_ERRNO(r),
			 LOG_TEXT("advice", manager_pool_advice(r)));
	return r;
}

/* Sockets that the service manager passed, by their names. */
static int manager_adopt(struct manager *m, char why[LISTENER_WHY_BYTES])
{
	char **names = NULL;
	int r = 0, n = sd_listen_fds_with_names(1, &names);

	for (int i = 0; i < n; i++) {
		struct listener **to = NULL;

		if (!strcmp(names[i], "client"))
			to = &m->client;
		else if (!strcmp(names[i], "admin"))
			to = &m->admin;
		if (r == 0 && to && !*to)
			r = listener_adopt(SD_LISTEN_FDS_START + i, to, why);
		else
			close_fd(SD_LISTEN_FDS_START + i);
		free(names[i]);
	}
	free(names);
	return r;
}

static int manager_listen(struct manager *m, char why[LISTENER_WHY_BYTES])
{
	static const mode_t folder_modes[] = {
		[INSTANCE_SYSTEM] = 0755,
		[INSTANCE_USER] = 0700,
		[INSTANCE_PRIVATE] = 0700,
	};
	struct listener_config cfg = {
		.path = m->options->socket,
		.mode = m->client_group == DOMAIN_NO_GROUP ? 0600 : 0660,
		.group = m->client_group,
		.folder_mode = folder_modes[m->options->instance],
	};
	int r = m->client ? 0 : listener_open(&cfg, &m->client, why);

	if (r < 0)
		return r;
	cfg.path = m->options->admin_socket;
	cfg.mode = m->admin_group == DOMAIN_NO_GROUP ? 0600 : 0660;
	cfg.group = m->admin_group;
	return m->admin ? 0 : listener_open(&cfg, &m->admin, why);
}

static int manager_make_listeners(struct manager *m)
{
	char why[LISTENER_WHY_BYTES];
	int r = manager_adopt(m, why);

	if (r == 0)
		r = manager_listen(m, why);
	if (r < 0)
		log_line(LOG_ERR, why);
	return r;
}

static int manager_watch(struct manager *m)
{
	int r = listener_watch(m->client, m->event, manager_on_client, m);

	if (r == 0)
		r = listener_watch(m->admin, m->event, manager_on_admin, m);
	if (r < 0)
		log_line(LOG_ERR, "cannot watch the sockets", LOG_ERRNO(r));
	return r;
}

int manager_new(const struct options *o, struct configurator *c, struct manager **ret)
{
	struct manager *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->options = o;
	m->configurator = c;
	m->client_group = manager_group(o, "kvpool");
	m->admin_group = manager_group(o, "kvpool-admin");
	/*
	 * The sockets first: a second daemon must not take memory before it learns that it is one.
	 */
	r = manager_make_event(m);
	if (r == 0)
		r = manager_make_loudness(m);
	if (r == 0)
		r = manager_make_listeners(m);
	if (r == 0)
		r = manager_make_domain(m);
	if (r == 0)
		r = manager_watch(m);
	if (r < 0) {
		manager_free(m);
		return r;
	}
	*ret = m;
	return 0;
}

static int manager_tell_ready(struct manager *m)
{
	int fd = m->options->ready_fd;

	log_line(LOG_NOTICE, "ready", LOG_TEXT("version", KVPOOL_VERSION),
		 LOG_TEXT("instance", instance_name(m->options->instance)),
		 LOG_TEXT("socket", m->options->socket),
		 LOG_NUMBER("pool_bytes", pool_limit_bytes(m->domain->pool)),
		 LOG_NUMBER("max_blocks", pool_control(m->domain->pool)->max_blocks));
	manager_tell_status(m, "READY=1\n");
	if (fd < 0)
		return 0;
	if (write(fd, "\n", 1) != 1) {
		int r = -errno;

		log_line(LOG_ERR, "cannot write to the descriptor of --ready-fd",
			 LOG_NUMBER("fd", fd), LOG_ERRNO(r));
		return r;
	}
	close_fd(fd);
	return 0;
}

int manager_run(struct manager *m)
{
	int r = manager_tell_ready(m);

	if (r < 0)
		return r;
	r = sd_event_loop(m->event);
	if (r < 0)
		log_line(LOG_ERR, "the event loop failed", LOG_ERRNO(r));
	return r;
}

struct manager *manager_free(struct manager *m)
{
	if (!m)
		return NULL;
	listener_free(m->client);
	listener_free(m->admin);
	/* Before what its jobs belong to. */
	worker_free(m->worker);
	domain_free(m->domain);
	sd_event_source_disable_unref(m->sigterm);
	sd_event_source_disable_unref(m->sigint);
	sd_event_source_disable_unref(m->sighup);
	sd_event_source_disable_unref(m->status);
	loudness_free(m->loudness);
	sd_event_unref(m->event);
	free(m);
	return NULL;
}
