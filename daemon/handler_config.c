/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator asks of the configuration while the daemon runs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "daemon/configurator.h"
#include "daemon/log.h"
#include "daemon/loudness.h"
#include "daemon/request.h"

/* Items of one answer: what is sent stays well below FRAME_MAX, which one item can't fill. */
#define CONFIG_PAGE       64u
#define CONFIG_PAGE_BYTES (FRAME_MAX / 2)

/* An item, and the texts that are made for it. */
struct config_row {
	Kvpool__ConfigItem item;
	char key[SETTING_NAME_BYTES];
	char choices[CONFIG_ACCEPTS_BYTES];
};

static void config_row(struct config_row *row, const struct configurator_item *it)
{
	const struct config_key *k = it->key;

	kvpool__config_item__init(&row->item);
	setting_name(k, it->glob, row->key);
	config_key_accepts(k, row->choices);
	row->item.key = row->key;
	if (it->value)
		row->item.value = (char *)it->value;
	if (k->value)
		row->item.default_ = (char *)k->value;
	row->item.origin = (char *)it->origin;
	if (it->file_value)
		row->item.file_value = (char *)it->file_value;
	row->item.restart = !k->reload;
	row->item.type = (char *)config_type_name(k->type);
	row->item.choices = row->choices;
	row->item.help = (char *)k->help;
}

/* Whether an item is the one that was asked for; without a name, all are. */
static int config_is_asked(const struct config_row *row, const char *key)
{
	return !*key || !strcmp(row->key, key);
}

/* The cursor is the number after the last one that was listed. */
static void config_page(struct request *rq, const struct configurator_view *v,
			struct config_row *rows)
{
	const Kvpool__Config *m = rq->msg;
	Kvpool__ConfigReply reply = KVPOOL__CONFIG_REPLY__INIT;
	Kvpool__ConfigItem *items[CONFIG_PAGE];
	size_t i, n = configurator_view_count(v), bytes = 0;

	for (i = m->after; i < n && reply.n_items < CONFIG_PAGE && bytes < CONFIG_PAGE_BYTES; i++) {
		const struct configurator_item it = configurator_view_item(v, i);
		struct config_row *row = &rows[reply.n_items];

		config_row(row, &it);
		if (!config_is_asked(row, m->key))
			continue;
		bytes += protobuf_c_message_get_packed_size(&row->item.base);
		items[reply.n_items++] = &row->item;
	}
	if (*m->key && !reply.n_items && i == n) {
		request_fail(rq, ERROR_NO_OBJECT, "key", "%s is not set, and has no default",
			     m->key);
		return;
	}
	reply.items = items;
	reply.wrong = (char *)configurator_view_wrong(v);
	reply.next = i < n ? (uint32_t)i : 0;
	request_reply(rq, &reply.base);
}

/* The key of a request. Returns 1; otherwise answers with an error and returns 0. */
static int config_find(struct request *rq, const char *name, const struct config_key **ret,
		       char glob[SETTING_GLOB_BYTES])
{
	char why[CONFIG_WHY_BYTES];

	if (setting_parse_name(name, ret, glob, why) == 0)
		return 1;
	request_fail(rq, ERROR_NO_OBJECT, "key", "%s: %s", name, why);
	return 0;
}

void handler_config(struct request *rq)
{
	const Kvpool__Config *m = rq->msg;
	struct configurator_view *v;
	struct config_row *rows;
	const struct config_key *k;
	char glob[SETTING_GLOB_BYTES];

	if (*m->key && !config_find(rq, m->key, &k, glob))
		return;
	v = configurator_view(rq->domain->cfg.configurator);
	rows = calloc(CONFIG_PAGE, sizeof(*rows));
	if (v && rows)
		config_page(rq, v, rows);
	else
		request_fail(rq, ERROR_INTERNAL, NULL, "there is no memory for the answer");
	free(rows);
	configurator_view_free(v);
}

static char *config_value(const struct configurator *c, const struct config_key *k,
			  const char *glob)
{
	const struct setting *e = configurator_find(c, k, glob);

	return strdup(e ? e->value : k->value ?: "");
}

static void config_apply(struct request *rq, const struct config_key *k, const char *glob)
{
	const Kvpool__ConfigSet *m = rq->msg;
	struct configurator *c = rq->domain->cfg.configurator;
	Kvpool__ConfigSetReply reply = KVPOOL__CONFIG_SET_REPLY__INIT;
	char why[CONFIGURATOR_WHY_BYTES];
	char *was = config_value(c, k, glob), *now = NULL;
	int r = was ? configurator_set(c, k, glob, m->unset ? NULL : m->value, why) : -ENOMEM;

	if (r == 0)
		now = config_value(c, k, glob);
	if (now) {
		reply.was = was;
		reply.now = now;
		log_line(LOG_NOTICE, m->unset ? "configuration unset" : "configuration set",
			 LOG_TEXT("key", m->key), LOG_TEXT("was", was), LOG_TEXT("now", now),
			 LOG_NUMBER("client_pid", rq->session->peer.pid),
			 LOG_NUMBER("client_uid", rq->session->peer.uid));
		request_reply(rq, &reply.base);
	} else if (r == -EINVAL) {
		request_fail(rq, ERROR_CONFIG, "value", "%s", why);
	} else {
		request_fail(rq, ERROR_INTERNAL, NULL, "%s: there is no memory for it", m->key);
	}
	free(was);
	free(now);
}

void handler_config_set(struct request *rq)
{
	const Kvpool__ConfigSet *m = rq->msg;
	char why[CONFIG_WHY_BYTES], glob[SETTING_GLOB_BYTES];
	const struct config_key *k;

	if (!config_find(rq, m->key, &k, glob))
		return;
	if (!k->reload) {
		request_fail(rq, ERROR_CONFIG, "key",
			     "%s: changes with a restart only: write \"%s = %s\" below [%s] in a "
			     "file of kvpool.conf(5), and restart kvpoold",
			     m->key, k->name, m->unset ? k->value : m->value, k->section);
		return;
	}
	if (!m->unset &&
	    setting_check(k, m->value, configurator_memory(rq->domain->cfg.configurator), why) <
		    0) {
		request_fail(rq, ERROR_CONFIG, "value", "%s = %s: %s", m->key, m->value, why);
		return;
	}
	config_apply(rq, k, config_key_is_rule(k) ? glob : NULL);
}

void handler_reload(struct request *rq)
{
	Kvpool__ReloadReply reply = KVPOOL__RELOAD_REPLY__INIT;
	struct configurator_changes changes = { 0 };
	struct complaints wrong = COMPLAINTS_INIT;
	char text[512];
	int r = configurator_reload(rq->domain->cfg.configurator, &changes, &wrong);

	if (r == 0) {
		reply.changed = changes.changed.v;
		reply.n_changed = changes.changed.n;
		reply.restart = changes.restart.v;
		reply.n_restart = changes.restart.n;
		request_reply(rq, &reply.base);
	} else {
		complaint_summary(&wrong, text, sizeof(text));
		request_fail(rq, r == -ENOMEM ? ERROR_INTERNAL : ERROR_CONFIG, NULL, "%s", text);
	}
	configurator_changes_clear(&changes);
	complaint_clear(&wrong);
}

/* A level that stays is a setting like any other; one for a while is not. */
static int log_level_set(struct request *rq, int level, uint32_t seconds)
{
	const struct config_key *k = config_key_find("daemon", "log_level");
	char why[CONFIGURATOR_WHY_BYTES];
	int r;

	if (seconds)
		return loudness_lend(rq->domain->cfg.loudness, level, seconds);
	r = configurator_set(rq->domain->cfg.configurator, k, NULL, log_level_name(level), why);
	if (r == 0)
		loudness_set(rq->domain->cfg.loudness, level);
	return r;
}

void handler_log_level(struct request *rq)
{
	const Kvpool__LogLevel *m = rq->msg;
	Kvpool__LogLevelReply reply = KVPOOL__LOG_LEVEL_REPLY__INIT;
	const struct config_key *k = config_key_find("daemon", "log_level");
	char accepts[CONFIG_ACCEPTS_BYTES];
	int was = log_level(), level = *m->level ? log_level_parse(m->level) : was;

	if (level < 0) {
		config_key_accepts(k, accepts);
		request_fail(rq, ERROR_CONFIG, "level", "%s: is no level: give %s", m->level,
			     accepts);
		return;
	}
	if (*m->level && log_level_set(rq, level, m->for_s) < 0) {
		request_fail(rq, ERROR_INTERNAL, NULL,
			     "there is no memory to change the log level");
		return;
	}
	if (level != was)
		log_line(LOG_NOTICE, "log level changed", LOG_TEXT("was", log_level_name(was)),
			 LOG_TEXT("now", log_level_name(level)), LOG_NUMBER("for_s", m->for_s),
			 LOG_NUMBER("client_pid", rq->session->peer.pid));
	reply.was = (char *)log_level_name(was);
	reply.now = (char *)log_level_name(log_level());
	reply.for_s = loudness_left(rq->domain->cfg.loudness);
	request_reply(rq, &reply.base);
}
