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
#include "daemon/manager.h"

/* How often the service manager gets a new line about what goes on. */
#define MANAGER_STATUS_NS (10 * NSEC_PER_SEC)

struct manager {
	struct options options;
	struct config *config;
	sd_event *event;
	struct worker *worker;
	struct domain *domain;
	struct listener *client, *admin;
	gid_t client_group, admin_group;
	sd_event_source *sigterm, *sigint, *status;
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

static void manager_tell_status(struct manager *m, const char *state)
{
	struct domain_census census;
	struct pool_stats stats;

	domain_census(m->domain, &census);
	pool_get_stats(m->domain->pool, &stats);
	(void)sd_notifyf(0, "%sSTATUS=%u clients; host %.1f/%.1f GiB", state,
			 census.clients - census.draining,
			 (double)stats.handed_bytes / (double)GIB(1),
			 (double)stats.pool_bytes / (double)GIB(1));
}

static int manager_on_status(sd_event_source *source, uint64_t usec, void *ctx)
{
	struct manager *m = ctx;

	manager_tell_status(m, "");
	(void)sd_event_source_set_time_relative(source, MANAGER_STATUS_NS / NSEC_PER_USEC);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int manager_add_signal(struct manager *m, int sig, sd_event_source **ret)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	return sd_event_add_signal(m->event, ret, sig, manager_on_signal, m);
}

static int manager_make_event(struct manager *m)
{
	int r = sd_event_new(&m->event);

	if (r >= 0)
		r = manager_add_signal(m, SIGTERM, &m->sigterm);
	if (r >= 0)
		r = manager_add_signal(m, SIGINT, &m->sigint);
	if (r >= 0)
		r = sd_event_set_watchdog(m->event, 1);
	/* Nobody else wants to know, and asking the pool costs a scan. */
	if (r >= 0 && getenv("NOTIFY_SOCKET"))
		r = sd_event_add_time_relative(m->event, &m->status, CLOCK_BOOTTIME,
					       MANAGER_STATUS_NS / NSEC_PER_USEC, 0,
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
		return "--pool-size or --max-blocks is out of bounds (64 KiB at least)";
	case -ENOMEM:
		return "lower --pool-size or --max-blocks, or raise the memory limit of this "
		       "service";
	default:
		return NULL;
	}
}

static int manager_make_domain(struct manager *m)
{
	const struct domain_config cfg = {
		.name = "default",
		.instance = m->options.instance,
		.config = m->config,
		.client_group = m->client_group,
		.admin_group = m->admin_group,
	};
	int r = worker_new(m->event, &m->worker);

	if (r < 0) {
		log_line(LOG_ERR, "cannot start the worker thread", LOG_ERRNO(r));
		return r;
	}
	r = domain_new(m->event, m->worker, &cfg, &m->domain);
	if (r < 0)
		log_line(LOG_ERR, "cannot make the pool", LOG_NUMBER("pool_bytes", m->config->host.pool_bytes),
			 LOG_NUMBER("max_blocks", m->config->host.max_blocks), LOG_ERRNO(r),
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
		.path = m->options.socket,
		.mode = m->client_group == DOMAIN_NO_GROUP ? 0600 : 0660,
		.group = m->client_group,
		.folder_mode = folder_modes[m->options.instance],
	};
	int r = m->client ? 0 : listener_open(&cfg, &m->client, why);

	if (r < 0)
		return r;
	cfg.path = m->options.admin_socket;
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

int manager_new(const struct options *o, struct manager **ret)
{
	struct manager *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->options = *o;
	m->config = config_new(o->pool_bytes);
	if (!m->config) {
		free(m);
		return -ENOMEM;
	}
	m->config->host.pool_bytes = o->pool_bytes;
	m->config->host.max_blocks = o->max_blocks;
	m->client_group = manager_group(o, "kvpool");
	m->admin_group = manager_group(o, "kvpool-admin");
	/*
	 * The sockets first: a second daemon must not take memory before it learns that it is one.
	 */
	r = manager_make_event(m);
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
	int fd = m->options.ready_fd;

	log_line(LOG_NOTICE, "ready", LOG_TEXT("version", KVPOOL_VERSION),
		 LOG_TEXT("instance", instance_name(m->options.instance)),
		 LOG_TEXT("socket", m->options.socket),
		 LOG_NUMBER("pool_bytes", pool_memory_bytes(m->domain->pool)),
		 LOG_NUMBER("max_blocks", pool_control(m->domain->pool)->max_blocks));
	manager_tell_status(m, "READY=1\n");
	if (fd < 0)
		return 0;
	m->options.ready_fd = -1;
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
	sd_event_source_disable_unref(m->status);
	sd_event_unref(m->event);
	config_free(m->config);
	free(m);
	return NULL;
}
