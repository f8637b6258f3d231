/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One lock, w->lock: it guards todo, finished and stop, and nothing is called under it. Signals
 * stay with the loop's thread: the worker blocks them all.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "base/cleanup.h"
#include "daemon/worker.h"

struct worker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct list todo, finished;
	int stop;
	int started;
	int event_fd; /* the thread raises it, the loop reads it */
	sd_event_source *source;
};

/* The next job, or NULL when the thread shall end. */
static struct job *worker_next(struct worker *w)
{
	struct job *j = NULL;

	pthread_mutex_lock(&w->lock);
	while (!w->stop && list_empty(&w->todo))
		pthread_cond_wait(&w->wake, &w->lock);
	if (!w->stop) {
		j = list_first(&w->todo, struct job, link);
		list_del(&j->link);
	}
	pthread_mutex_unlock(&w->lock);
	return j;
}

static void worker_finish(struct worker *w, struct job *j)
{
	pthread_mutex_lock(&w->lock);
	list_add_tail(&w->finished, &j->link);
	pthread_mutex_unlock(&w->lock);
	/* Cannot fail but for a counter that is full, and then the loop is woken anyway. */
	(void)eventfd_write(w->event_fd, 1);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct job *j;

	pthread_setname_np(pthread_self(), "kvpoold-worker");
	while ((j = worker_next(w))) {
		j->run(j);
		worker_finish(w, j);
	}
	return NULL;
}

/* Moves what is finished by now to out, so that one round of the loop has an end. */
static void worker_take_finished(struct worker *w, struct list *out)
{
	pthread_mutex_lock(&w->lock);
	while (!list_empty(&w->finished)) {
		struct job *j = list_first(&w->finished, struct job, link);

		list_del(&j->link);
		list_add_tail(out, &j->link);
	}
	pthread_mutex_unlock(&w->lock);
}

static int worker_on_finished(sd_event_source *s, int fd, uint32_t revents, void *ctx)
{
	struct worker *w = ctx;
	struct list finished;
	eventfd_t n;

	list_init(&finished);
	(void)eventfd_read(fd, &n);
	worker_take_finished(w, &finished);
	while (!list_empty(&finished)) {
		struct job *j = list_first(&finished, struct job, link);

		list_del(&j->link);
		j->done(j);
	}
	return 0;
}

static int worker_start(struct worker *w)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&w->thread, NULL, worker_main, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	w->started = r == 0;
	return -r;
}

int worker_new(sd_event *event, struct worker **ret)
{
	struct worker *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	list_init(&w->todo);
	list_init(&w->finished);
	w->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = w->event_fd < 0 ? -errno : 0;
	if (r == 0)
		r = sd_event_add_io(event, &w->source, w->event_fd, EPOLLIN, worker_on_finished, w);
	if (r >= 0)
		r = worker_start(w);
	if (r < 0) {
		worker_free(w);
		return r;
	}
	*ret = w;
	return 0;
}

static void worker_stop(struct worker *w)
{
	pthread_mutex_lock(&w->lock);
	w->stop = 1;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
}

struct worker *worker_free(struct worker *w)
{
	if (!w)
		return NULL;
	if (w->started)
		worker_stop(w);
	sd_event_source_disable_unref(w->source);
	close_fd(w->event_fd);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return NULL;
}

void worker_submit(struct worker *w, struct job *j)
{
	pthread_mutex_lock(&w->lock);
	list_add_tail(&w->todo, &j->link);
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
}
