/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include "base/clock.h"
#include "daemon/configurator.h"
#include "daemon/log.h"

struct configurator {
	struct config_places places;
	uint64_t memory;
	struct settings files, line, set; /* layers, as they were read last */
	/* Each key once, in the order of the table, or its default; then rules. */
	struct settings in_force;
	struct config *config; /* the same, as values */
	unsigned int n_files;
	const struct configurator_ops *ops;
	void *ctx;
};

/* What counts of the rules of all layers: the last one of each name. */
static int merge_rules(const struct settings *all, struct settings *out)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < all->n; i++) {
		const struct setting *e = &all->v[i];

		if (e->glob && settings_find(all, 0, e->key, e->glob) == e)
			r = settings_add(out, e->key, e->glob, e->value, e->origin);
	}
	return r;
}

static int merge_keys(const struct settings *all, const struct settings *kept, struct settings *out)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < config_n_keys; i++) {
		const struct config_key *k = &config_keys[i];
		const struct setting *e =
			settings_find(k->reload || !kept ? all : kept, 0, k, NULL);

		if (!config_key_is_rule(k))
			r = settings_add(out, k, NULL, e ? e->value : k->value,
					 e ? e->origin : "default");
	}
	return r;
}

/*
 * What would be in force with these layers. kept: where keys that take a restart have theirs from;
 * NULL: from the layers too.
 */
static int configurator_merge(const struct configurator *c, const struct settings *files,
			      const struct settings *set, const struct settings *kept,
			      struct settings *out)
{
	struct settings all = SETTINGS_INIT;
	int r = settings_add_all(&all, files);

	if (r == 0)
		r = settings_add_all(&all, &c->line);
	if (r == 0)
		r = settings_add_all(&all, set);
	if (r == 0)
		r = merge_keys(&all, kept, out);
	if (r == 0)
		r = merge_rules(&all, out);
	settings_clear(&all);
	return r;
}

static int configurator_read(struct configurator *c, struct complaints *wrong)
{
	int r = config_places_read(&c->places, c->memory, &c->files, wrong);

	if (r < 0)
		return r;
	c->n_files = (unsigned int)r;
	r = configurator_merge(c, &c->files, &c->set, NULL, &c->in_force);
	if (r < 0)
		return r;
	c->config = settings_config(&c->in_force, c->memory);
	if (!c->config)
		return -ENOMEM;
	if (!c->config->host.pool_bytes)
		complaint_add(wrong,
			      "host.pool_size: cannot read how much memory there is: give it "
			      "(--pool-size SIZE)");
	return wrong->n ? -EINVAL : 0;
}

int configurator_new(const struct config_places *places, struct settings *line, uint64_t memory,
		     struct complaints *wrong, struct configurator **ret)
{
	struct configurator *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->places = *places;
	c->memory = memory;
	c->line = *line;
	*line = (struct settings)SETTINGS_INIT;
	r = configurator_read(c, wrong);
	if (r < 0) {
		configurator_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

struct configurator *configurator_free(struct configurator *c)
{
	if (!c)
		return NULL;
	settings_clear(&c->files);
	settings_clear(&c->line);
	settings_clear(&c->set);
	settings_clear(&c->in_force);
	config_free(c->config);
	free(c);
	return NULL;
}

const struct config *configurator_config(const struct configurator *c)
{
	return c->config;
}

unsigned int configurator_files(const struct configurator *c)
{
	return c->n_files;
}

uint64_t configurator_memory(const struct configurator *c)
{
	return c->memory;
}

void configurator_listen(struct configurator *c, const struct configurator_ops *ops, void *ctx)
{
	c->ops = ops;
	c->ctx = ctx;
}

const struct setting *configurator_find(const struct configurator *c, const struct config_key *key,
					const char *glob)
{
	return settings_find(&c->in_force, 0, key, glob);
}

static void names_add(struct configurator_names *names, const struct setting *e)
{
	char name[SETTING_NAME_BYTES];

	if (names->n == CONFIGURATOR_NAMES_MAX)
		return;
	setting_name(e->key, e->glob, name);
	names->v[names->n] = strdup(name);
	names->n += names->v[names->n] != NULL;
}

static void names_clear(struct configurator_names *names)
{
	while (names->n)
		free(names->v[--names->n]);
}

/* "a, b" */
static const char *names_text(const struct configurator_names *names, char *out, size_t n)
{
	size_t used = 0;

	*out = '\0';
	for (size_t i = 0; i < names->n && used < n; i++)
		used += (size_t)snprintf(out + used, n - used, "%s%s", i ? ", " : "", names->v[i]);
	return names->n ? out : NULL;
}

void configurator_changes_clear(struct configurator_changes *c)
{
	names_clear(&c->changed);
	names_clear(&c->restart);
}

/* What differs, of keys that are the same in this respect. */
static void configurator_diff(const struct configurator *c, const struct settings *now, int reload,
			      struct configurator_names *names)
{
	for (size_t i = 0; i < now->n; i++) {
		const struct setting *e = &now->v[i];
		const struct setting *was = settings_find(&c->in_force, 0, e->key, e->glob);

		if (e->key->reload == reload &&
		    (!was || !config_key_same(e->key, e->value, was->value, c->memory)))
			names_add(names, e);
	}
	for (size_t i = 0; i < c->in_force.n; i++) {
		const struct setting *was = &c->in_force.v[i];

		if (was->key->reload == reload && !settings_find(now, 0, was->key, was->glob))
			names_add(names, was);
	}
}

/* Puts what was made in force, and takes it over; if it fails, nothing changed. */
static int configurator_switch(struct configurator *c, struct settings *in_force,
			       char why[CONFIGURATOR_WHY_BYTES])
{
	struct config *now = settings_config(in_force, c->memory), *was = c->config;
	int r = now ? 0 : -ENOMEM;

	if (r == 0 && c->ops)
		r = c->ops->check(c->ctx, now, why);
	if (r < 0) {
		config_free(now);
		return r;
	}
	settings_clear(&c->in_force);
	c->in_force = *in_force;
	*in_force = (struct settings)SETTINGS_INIT;
	c->config = now;
	if (c->ops)
		c->ops->apply(c->ctx, was, now);
	config_free(was);
	return 0;
}

/* In what a reload reads and makes: given back when it is over, whatever became of it. */
struct reload {
	struct settings files, now, next;
	struct configurator_changes changes;
};

static int reload_try(struct configurator *c, struct reload *l, struct complaints *wrong)
{
	char why[CONFIGURATOR_WHY_BYTES];
	int r = config_places_read(&c->places, c->memory, &l->files, wrong), n = r;

	if (r >= 0 && wrong->n)
		return -EINVAL;
	if (r >= 0)
		r = configurator_merge(c, &l->files, &c->set, &c->in_force, &l->now);
	if (r == 0)
		r = configurator_merge(c, &l->files, &c->set, NULL, &l->next);
	if (r < 0)
		return r;
	configurator_diff(c, &l->now, 1, &l->changes.changed);
	configurator_diff(c, &l->next, 0, &l->changes.restart);
	r = configurator_switch(c, &l->now, why);
	if (r == -EINVAL)
		complaint_add(wrong, "%s", why);
	if (r < 0)
		return r;
	settings_clear(&c->files);
	c->files = l->files;
	l->files = (struct settings)SETTINGS_INIT;
	c->n_files = (unsigned int)n;
	return 0;
}

static void reload_log(const struct configurator_changes *changes, const struct complaints *wrong,
		       int r)
{
	char text[256];

	if (r == 0) {
		log_line(LOG_NOTICE, "configuration read again",
			 LOG_TEXT("changed", names_text(&changes->changed, text, sizeof(text))));
		if (changes->restart.n)
			log_line(LOG_WARNING, "these changes of the configuration need a restart",
				 LOG_NUMBER("count", changes->restart.n),
				 LOG_TEXT("keys",
					  names_text(&changes->restart, text, sizeof(text))));
		return;
	}
	for (size_t i = 0; i < complaint_kept(wrong); i++)
		log_line(LOG_ERR, wrong->lines[i]);
	if (r == -EINVAL)
		log_line(LOG_ERR, "the configuration stays as it was");
	else
		log_line(LOG_ERR, "the configuration stays as it was", LOG_ERRNO(r));
}

int configurator_reload(struct configurator *c, struct configurator_changes *ret,
			struct complaints *wrong)
{
	struct reload l = { 0 };
	struct timespec t;
	int r;

	clock_gettime(CLOCK_MONOTONIC, &t);
	(void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu",
			 (unsigned long long)t.tv_sec * 1000000 +
				 (unsigned long long)t.tv_nsec / NSEC_PER_USEC);
	r = reload_try(c, &l, wrong);
	reload_log(&l.changes, wrong, r);
	(void)sd_notify(0, "READY=1");
	if (r == 0)
		*ret = l.changes;
	else
		configurator_changes_clear(&l.changes);
	settings_clear(&l.files);
	settings_clear(&l.now);
	settings_clear(&l.next);
	return r;
}

static int refuse_rule(char why[CONFIGURATOR_WHY_BYTES])
{
	snprintf(why, CONFIGURATOR_WHY_BYTES,
		 "%u keys of [namespace] sections are set, which is all that there may be: unset "
		 "one, "
		 "or use a pattern for several models",
		 SETTINGS_RULES_MAX);
	return -EINVAL;
}

int configurator_set(struct configurator *c, const struct config_key *key, const char *glob,
		     const char *value, char why[CONFIGURATOR_WHY_BYTES])
{
	struct settings set = SETTINGS_INIT, now = SETTINGS_INIT;
	int r = settings_add_all(&set, &c->set);

	if (r == 0) {
		settings_remove(&set, key, glob);
		if (value && glob && settings_rules(&set) == SETTINGS_RULES_MAX)
			r = refuse_rule(why);
	}
	if (r == 0) {
		r = value ? settings_add(&set, key, glob, value, "config set") : 0;
	}
	if (r == 0)
		r = configurator_merge(c, &c->files, &set, &c->in_force, &now);
	if (r == 0)
		r = configurator_switch(c, &now, why);
	if (r == 0) {
		settings_clear(&c->set);
		c->set = set;
		set = (struct settings)SETTINGS_INIT;
	}
	settings_clear(&set);
	settings_clear(&now);
	return r;
}

struct configurator_view {
	const struct configurator *c;
	struct settings files; /* what they say now */
	char wrong[CONFIGURATOR_WHY_BYTES];
	/* rules that only the files have, by number */
	size_t *only;
	size_t n_only;
};

static int view_read(struct configurator_view *v)
{
	struct complaints wrong = COMPLAINTS_INIT;
	int r = config_places_read(&v->c->places, v->c->memory, &v->files, &wrong);

	if (r >= 0 && wrong.n) {
		complaint_summary(&wrong, v->wrong, sizeof(v->wrong));
		settings_clear(&v->files);
		r = settings_add_all(&v->files, &v->c->files);
	}
	complaint_clear(&wrong);
	return r;
}

static int view_find_only(struct configurator_view *v)
{
	v->only = calloc(v->files.n + 1, sizeof(*v->only));
	if (!v->only)
		return -ENOMEM;
	for (size_t i = 0; i < v->files.n; i++) {
		const struct setting *e = &v->files.v[i];

		if (settings_find(&v->files, 0, e->key, e->glob) == e &&
		    !configurator_find(v->c, e->key, e->glob))
			v->only[v->n_only++] = i;
	}
	return 0;
}

struct configurator_view *configurator_view(const struct configurator *c)
{
	struct configurator_view *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->c = c;
	if (view_read(v) < 0 || view_find_only(v) < 0)
		return configurator_view_free(v);
	return v;
}

struct configurator_view *configurator_view_free(struct configurator_view *v)
{
	if (!v)
		return NULL;
	settings_clear(&v->files);
	free(v->only);
	free(v);
	return NULL;
}

const char *configurator_view_wrong(const struct configurator_view *v)
{
	return v->wrong;
}

size_t configurator_view_count(const struct configurator_view *v)
{
	return v->c->in_force.n + v->n_only;
}

struct configurator_item configurator_view_item(const struct configurator_view *v, size_t i)
{
	const struct settings *in_force = &v->c->in_force;
	const struct setting *e =
		i < in_force->n ? &in_force->v[i] : &v->files.v[v->only[i - in_force->n]];
	const struct setting *file = settings_find(&v->files, 0, e->key, e->glob);
	struct configurator_item item = { e->key, e->glob, e->value, e->origin, NULL };
	const char *says = file ? file->value : e->key->value;

	if (i >= in_force->n)
		item.value = NULL;
	/* That of a rule which no file has, and no key's default, is nothing that a file says. */
	if (!item.value || (says && !config_key_same(e->key, says, e->value, v->c->memory)))
		item.file_value = says;
	return item;
}

void configurator_dump(const struct configurator *c, FILE *out)
{
	const struct setting *before = NULL;

	for (size_t i = 0; i < c->in_force.n; i++) {
		const struct setting *e = &c->in_force.v[i];

		if (!before || strcmp(before->key->section, e->key->section) ||
		    (e->glob && strcmp(before->glob, e->glob)))
			fprintf(out, "%s[%s%s%s]\n", before ? "\n" : "", e->key->section,
				e->glob ? " " : "", e->glob ?: "");
		fprintf(out, "%s = %s # %s\n", e->key->name, e->value, e->origin);
		before = e;
	}
}
