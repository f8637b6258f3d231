/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/objects.h"

#include <inttypes.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "proto/check.h"
#include "proto/kvpool.pb-c.h"
#include "tools/kvpoolctl/cell.h"
#include "tools/kvpoolctl/pages.h"
#include "tools/kvpoolctl/say.h"

struct search {
	const char *name;
	uint64_t number; /* what name is as one, when has_number */
	int has_number;
	const struct listing_kind *kind; /* of the items at hand */
	struct object found;
	unsigned int n;
	char candidates[512];
	size_t used;
};

static int is_number(const struct search *s, uint64_t n)
{
	return s->has_number && s->number == n;
}

static int is_start(const struct search *s, const char *digits)
{
	size_t n = strlen(s->name);

	return n >= PROTO_DIGITS_MIN && !strncmp(digits, s->name, n);
}

/* Adds the object as a candidate: "client:7 (vllm-chat)". */
static void add(struct search *s, const void *item, const char *id, const char *title)
{
	size_t room = sizeof(s->candidates) - s->used;
	char *clean = cell_clean(title);
	int n;

	if (!s->n++)
		s->found = (struct object){ s->kind, s->kind->json(item) };
	n = snprintf(s->candidates + s->used, room, "%s%s:%s (%s)", s->used ? ", " : "",
		     s->kind->noun, id, clean && *clean ? clean : "-");
	/* What has no room is not begun. */
	if (n >= 0 && (size_t)n < room)
		s->used += (size_t)n;
	else
		s->candidates[s->used] = '\0';
	free(clean);
}

static void add_numbered(struct search *s, const void *item, uint64_t number, const char *title)
{
	char id[24];

	snprintf(id, sizeof(id), "%" PRIu64, number);
	add(s, item, id, title);
}

static void match_client(void *data, const void *item)
{
	const Kvpool__ClientItem *c = item;
	struct search *s = data;

	if (is_number(s, c->session) || is_number(s, c->pid) || !strcmp(s->name, c->name))
		add_numbered(s, item, c->session, c->name);
}

static void match_namespace(void *data, const void *item)
{
	const Kvpool__NamespaceItem *n = item;
	struct search *s = data;

	if (is_number(s, n->ns) || !strcmp(s->name, n->model) || is_start(s, n->fingerprint))
		add_numbered(s, item, n->ns, n->model);
}

static void match_pin(void *data, const void *item)
{
	const Kvpool__PinItem *p = item;
	struct search *s = data;

	if (is_number(s, p->pin) || !strcmp(s->name, p->label) || is_start(s, p->id))
		add_numbered(s, item, p->pin, *p->label ? p->label : p->id);
}

static void match_prefix(void *data, const void *item)
{
	const Kvpool__PrefixItem *p = item;

	add(data, item, p->id, p->namespace_);
}

static const struct {
	enum objects_kind kind;
	const struct listing_kind *listing;
	void (*match)(void *data, const void *item);
} kinds_table[] = {
	{ OBJECTS_CLIENT, &clients_listing, match_client },
	{ OBJECTS_NAMESPACE, &namespaces_listing, match_namespace },
	{ OBJECTS_PIN, &pins_listing, match_pin },
	{ OBJECTS_PREFIX, &prefixes_listing, match_prefix },
};

static enum ctl_exit search_kind(struct admin *a, size_t i, struct search *s)
{
	Kvpool__Prefixes prefixes = KVPOOL__PREFIXES__INIT;
	int by_id = kinds_table[i].kind == OBJECTS_PREFIX;
	enum ctl_exit rc;

	if (by_id && (strlen(s->name) < PROTO_DIGITS_MIN ||
		      strspn(s->name, "0123456789abcdef") != strlen(s->name)))
		return EXIT_OK;
	prefixes.id = (char *)s->name;
	s->kind = kinds_table[i].listing;
	a->expected = 1u << ERROR_NO_OBJECT | 1u << ERROR_UNKNOWN_OP;
	rc = pages_each(a, s->kind->op, by_id ? &prefixes.base : NULL, kinds_table[i].match, s);
	a->expected = 0;
	return a->code == ERROR_NO_OBJECT || a->code == ERROR_UNKNOWN_OP ? EXIT_OK : rc;
}

/* Takes "client:" off a name, and leaves only that kind. */
static const char *split_kind(const char *name, unsigned int *kinds)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds_table); i++) {
		const char *noun = kinds_table[i].listing->noun;
		size_t n = strlen(noun);

		if (*kinds & kinds_table[i].kind && !strncmp(name, noun, n) && name[n] == ':') {
			*kinds = kinds_table[i].kind;
			return name + n + 1;
		}
	}
	return name;
}

/* "client, namespace, pin or prefix" */
static const char *kinds_text(unsigned int kinds, char *buf, size_t size)
{
	size_t used = 0;

	*buf = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(kinds_table); i++)
		if (kinds & kinds_table[i].kind) {
			int last = !(kinds & ~(2u * kinds_table[i].kind - 1u));

			used += (size_t)snprintf(buf + used, size - used, "%s%s",
						 !used  ? ""
						 : last ? " or "
							: ", ",
						 kinds_table[i].listing->noun);
		}
	return buf;
}

static enum ctl_exit tell(const struct search *s, unsigned int kinds, const char *name)
{
	char what[64], list[64] = "status";

	if (s->n > 1)
		return say_error(EXIT_NO_OBJECT, "\"%s\" means %u objects: %s; name one of them",
				 name, s->n, s->candidates);
	for (size_t i = 0; i < ARRAY_SIZE(kinds_table); i++)
		if (kinds == kinds_table[i].kind)
			snprintf(list, sizeof(list), "%s", kinds_table[i].listing->nouns);
	return say_error(EXIT_NO_OBJECT, "there is no %s \"%s\" (see kvpoolctl %s)",
			 kinds_text(kinds, what, sizeof(what)), name,
			 kinds == OBJECTS_ALL ? "clients, namespaces, pins, prefixes" : list);
}

enum ctl_exit objects_find(struct admin *a, unsigned int kinds, const char *name,
			   struct object *ret)
{
	struct search s = { .name = split_kind(name, &kinds) };
	enum ctl_exit rc = EXIT_OK;
	const char *why;

	s.has_number = *s.name && !parse_count(s.name, 0, UINT64_MAX, &s.number, &why);
	for (size_t i = 0; i < ARRAY_SIZE(kinds_table) && !rc; i++)
		if (kinds & kinds_table[i].kind)
			rc = search_kind(a, i, &s);
	if (!rc && s.n != 1)
		rc = tell(&s, kinds, name);
	if (rc)
		object_free(&s.found);
	else
		*ret = s.found;
	return rc;
}

void object_free(struct object *o)
{
	json_decref(o->json);
	o->json = NULL;
}

uint64_t object_number(const struct object *o, const char *member)
{
	return (uint64_t)json_integer_value(json_object_get(o->json, member));
}

const char *object_text(const struct object *o, const char *member)
{
	const char *text = json_string_value(json_object_get(o->json, member));

	return text ? text : "";
}
