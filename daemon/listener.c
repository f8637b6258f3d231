/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/listener.h"
#include "daemon/log.h"

#define LISTENER_BACKLOG 128
/* Connections in one round of the loop. */
#define LISTENER_ROUND 16u
/*
 * After accept() failed for lack of descriptors or memory: the socket stays ready, so look later.
 */
#define LISTENER_PAUSE_NS (200 * NSEC_PER_MSEC)

struct listener {
	int sock, lock;
	int made; /* the path, by us: removed at the end */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char lock_path[sizeof(((struct sockaddr_un *)0)->sun_path) + 8];
	sd_event_source *io, *pause;
	void (*accepted)(void *ctx, int sock, struct peer *peer);
	void *ctx;
};

static int listener_fail(int r, char why[LISTENER_WHY_BYTES], const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Returns r, which is never 0. */
static int listener_fail(int r, char why[LISTENER_WHY_BYTES], const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(why, LISTENER_WHY_BYTES, format, ap);
	va_end(ap);
	return r < 0 ? r : -EIO;
}

static int listener_make_folder(const struct listener_config *cfg, char why[LISTENER_WHY_BYTES])
{
	char folder[PATH_MAX];
	char *slash;

	snprintf(folder, sizeof(folder), "%s", cfg->path);
	slash = strrchr(folder, '/');
	if (!cfg->folder_mode || !slash || slash == folder)
		return 0;
	*slash = '\0';
	/* The umask would take bits away. */
	if (mkdir(folder, cfg->folder_mode) == 0 && chmod(folder, cfg->folder_mode) == 0)
		return 0;
	if (errno == EEXIST)
		return 0;
	return listener_fail(-errno, why, "cannot make folder %s: %s", folder,
			     strerrordesc_np(errno));
}

/* 1 when the lock is ours, 0 when the file was replaced while we took it, or -errno. */
static int listener_try_lock(struct listener *l)
{
	_cleanup_fd_ int fd = open(l->lock_path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat ours, there;

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &ours) < 0)
		return -errno;
	/* Its last owner removes it before it lets go. */
	if (stat(l->lock_path, &there) < 0 || ours.st_ino != there.st_ino ||
	    ours.st_dev != there.st_dev)
		return 0;
	l->lock = TAKE_FD(fd);
	return 1;
}

static int listener_take_lock(struct listener *l, char why[LISTENER_WHY_BYTES])
{
	int r;

	snprintf(l->lock_path, sizeof(l->lock_path), "%s.lock", l->path);
	do
		r = listener_try_lock(l);
	while (r == 0);
	if (r == -EWOULDBLOCK)
		return listener_fail(r, why,
				     "another kvpoold serves %s (it holds %s): stop it, or give "
				     "another --socket",
				     l->path, l->lock_path);
	if (r < 0)
		return listener_fail(r, why, "cannot lock %s: %s", l->lock_path,
				     strerrordesc_np(-r));
	return 0;
}

static void listener_address(const char *path, struct sockaddr_un *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->sun_family = AF_UNIX;
	memcpy(ret->sun_path, path, strnlen(path, sizeof(ret->sun_path) - 1));
}

/* Whether a program answers at the socket; of another kind of socket, too. */
static int listener_is_served(const char *path)
{
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un sa;

	listener_address(path, &sa);
	return fd >= 0 &&
	       (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 || errno != ECONNREFUSED);
}

/* Under the lock: what is at the path is stale, or somebody else's. */
static int listener_clear_path(struct listener *l, char why[LISTENER_WHY_BYTES])
{
	struct stat st;

	if (lstat(l->path, &st) < 0)
		return errno == ENOENT ? 0
				       : listener_fail(-errno, why, "cannot look at %s: %s",
						       l->path, strerrordesc_np(errno));
	if (!S_ISSOCK(st.st_mode))
		return listener_fail(
			-EEXIST, why,
			"%s is there and is no socket: remove it, or give another --socket",
			l->path);
	if (listener_is_served(l->path))
		return listener_fail(
			-EADDRINUSE, why,
			"another program listens at %s: stop it, or give another --socket",
			l->path);
	if (unlink(l->path) < 0)
		return listener_fail(-errno, why, "cannot remove stale socket %s: %s", l->path,
				     strerrordesc_np(errno));
	log_line(LOG_NOTICE, "replaced a socket that another daemon left behind",
		 LOG_TEXT("path", l->path));
	return 0;
}

/* The mode is set before anybody can connect, since nothing listens until then. */
static int listener_bind(struct listener *l, const struct listener_config *cfg,
			 char why[LISTENER_WHY_BYTES])
{
	struct sockaddr_un sa;

	listener_address(l->path, &sa);
	l->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->sock < 0 || bind(l->sock, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		return listener_fail(-errno, why, "cannot make socket %s: %s", l->path,
				     strerrordesc_np(errno));
	l->made = 1;
	if ((cfg->group != (gid_t)-1 && chown(l->path, (uid_t)-1, cfg->group) < 0) ||
	    chmod(l->path, cfg->mode) < 0)
		return listener_fail(-errno, why, "cannot set group and mode of %s: %s", l->path,
				     strerrordesc_np(errno));
	if (listen(l->sock, LISTENER_BACKLOG) < 0)
		return listener_fail(-errno, why, "cannot listen at %s: %s", l->path,
				     strerrordesc_np(errno));
	return 0;
}

static struct listener *listener_alloc(void)
{
	struct listener *l = calloc(1, sizeof(*l));

	if (l)
		l->sock = l->lock = -1;
	return l;
}

int listener_open(const struct listener_config *cfg, struct listener **ret,
		  char why[LISTENER_WHY_BYTES])
{
	struct listener *l = listener_alloc();
	int r;

	if (!l)
		return listener_fail(-ENOMEM, why, "no memory");
	snprintf(l->path, sizeof(l->path), "%s", cfg->path);
	r = listener_make_folder(cfg, why);
	if (r == 0)
		r = listener_take_lock(l, why);
	if (r == 0)
		r = listener_clear_path(l, why);
	if (r == 0)
		r = listener_bind(l, cfg, why);
	if (r < 0) {
		listener_free(l);
		return r;
	}
	*ret = l;
	return 0;
}

int listener_adopt(int fd, struct listener **ret, char why[LISTENER_WHY_BYTES])
{
	struct listener *l;

	if (sd_is_socket(fd, AF_UNIX, SOCK_SEQPACKET, 1) <= 0)
		return listener_fail(
			-EINVAL, why,
			"descriptor %d, passed by the service manager, is no listening"
			" sequential-packet socket: set ListenSequentialPacket= in its unit",
			fd);
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
		return listener_fail(-errno, why, "descriptor %d: %s", fd, strerrordesc_np(errno));
	l = listener_alloc();
	if (!l)
		return listener_fail(-ENOMEM, why, "no memory");
	l->sock = fd;
	*ret = l;
	return 0;
}

static int listener_on_pause(sd_event_source *source, uint64_t usec, void *ctx)
{
	struct listener *l = ctx;

	(void)sd_event_source_set_enabled(l->io, SD_EVENT_ON);
	return 0;
}

static void listener_rest(struct listener *l, int r)
{
	log_line(LOG_WARNING,
		 "cannot accept a connection: those that wait are looked at again soon",
		 LOG_ERRNO(r));
	(void)sd_event_source_set_enabled(l->io, SD_EVENT_OFF);
	(void)sd_event_source_set_time_relative(l->pause, LISTENER_PAUSE_NS / NSEC_PER_USEC);
	(void)sd_event_source_set_enabled(l->pause, SD_EVENT_ONESHOT);
}

/* Returns 0 to go on. */
static int listener_accept(struct listener *l)
{
	struct peer peer;
	int r, sock = accept4(l->sock, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (sock < 0) {
		r = -errno;
		if (r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -ENOBUFS)
			listener_rest(l, r);
		return r == -ECONNABORTED || r == -EINTR ? 0 : 1;
	}
	r = peer_read(sock, &peer);
	if (r < 0) {
		/* Mostly one that connected and died. */
		log_line(LOG_DEBUG, "a connection without a process", LOG_ERRNO(r));
		close_fd(sock);
		return 0;
	}
	l->accepted(l->ctx, sock, &peer);
	return 0;
}

static int listener_on_io(sd_event_source *source, int fd, uint32_t revents, void *ctx)
{
	for (unsigned int i = 0; i < LISTENER_ROUND && listener_accept(ctx) == 0; i++)
		;
	return 0;
}

int listener_watch(struct listener *l, sd_event *event,
		   void (*accepted)(void *ctx, int sock, struct peer *peer), void *ctx)
{
	int r;

	l->accepted = accepted;
	l->ctx = ctx;
	r = sd_event_add_time(event, &l->pause, CLOCK_BOOTTIME, 0, 1000, listener_on_pause, l);
	if (r >= 0)
		r = sd_event_source_set_enabled(l->pause, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_io(event, &l->io, l->sock, EPOLLIN, listener_on_io, l);
	return r < 0 ? r : 0;
}

struct listener *listener_free(struct listener *l)
{
	if (!l)
		return NULL;
	sd_event_source_disable_unref(l->io);
	sd_event_source_disable_unref(l->pause);
	if (l->made)
		(void)unlink(l->path);
	close_fd(l->sock);
	/* Before the lock goes: see listener_try_lock. */
	if (l->lock >= 0)
		(void)unlink(l->lock_path);
	close_fd(l->lock);
	free(l);
	return NULL;
}
