/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/candidates.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "proto/kvpool.pb-c.h"
#include "tools/kvpoolctl/cell.h"
#include "tools/kvpoolctl/pages.h"

#define PATIENCE_NS NSEC_PER_SEC

static void print_name(const char *name)
{
	_cleanup_free_ char *clean = cell_clean(name);

	if (clean && *clean)
		puts(clean);
}

static void print_client(void *data, const void *item)
{
	print_name(((const Kvpool__ClientItem *)item)->name);
}

static void print_namespace(void *data, const void *item)
{
	print_name(((const Kvpool__NamespaceItem *)item)->model);
}

static void print_pin(void *data, const void *item)
{
	printf("%llu\n", (unsigned long long)((const Kvpool__PinItem *)item)->pin);
}

static void print_label(void *data, const void *item)
{
	print_name(((const Kvpool__PinItem *)item)->label);
}

static void print_prefix(void *data, const void *item)
{
	print_name(((const Kvpool__PrefixItem *)item)->id);
}

static void print_key(void *data, const void *item)
{
	print_name(((const Kvpool__ConfigItem *)item)->key);
}

static const struct {
	enum flag_value value;
	const char *kind;
	enum proto_op op;
	void (*print)(void *data, const void *item);
} kinds[] = {
	{ VALUE_CLIENT, "clients", OP_CLIENTS, print_client },
	{ VALUE_NAMESPACE, "namespaces", OP_NAMESPACES, print_namespace },
	{ VALUE_PIN, "pins", OP_PINS, print_pin },
	{ VALUE_LABEL, "labels", OP_PINS, print_label },
	{ VALUE_PREFIX, "prefixes", OP_PREFIXES, print_prefix },
	{ VALUE_KEY, "keys", OP_CONFIG, print_key },
	{ VALUE_OBJECT, "objects", OP_CLIENTS, print_client },
	{ VALUE_OBJECT, "objects", OP_NAMESPACES, print_namespace },
	{ VALUE_OBJECT, "objects", OP_PINS, print_label },
	{ VALUE_OBJECT, "objects", OP_PREFIXES, print_prefix },
};

const char *candidates_kind(enum flag_value v)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].value == v)
			return kinds[i].kind;
	return NULL;
}

enum ctl_exit candidates_print(const struct ctl *ctl, const char *kind)
{
	_cleanup_(admin_close) struct admin a = { 0 };
	struct endpoint e;

	if (endpoint_find(&ctl->opt, &e) || admin_connect(&e, PATIENCE_NS, &a))
		return EXIT_OK;
	a.mute = 1;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(kinds[i].kind, kind))
			(void)pages_each(&a, kinds[i].op, NULL, kinds[i].print, NULL);
	return EXIT_OK;
}
