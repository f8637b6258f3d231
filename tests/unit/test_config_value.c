/* SPDX-License-Identifier: Apache-2.0 */
/* The table of keys: its rows are sound, and each type takes what it says and nothing else. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "daemon/settings.h"
#include "daemon/pool.h"
#include "shm/control.h"

#define MEMORY GIB(10)

static union config_scratch scratch;
static char why[CONFIG_WHY_BYTES];

static const struct config_key *key(const char *section, const char *name)
{
	const struct config_key *k = config_key_find(section, name);

	assert_non_null(k);
	return k;
}

static const struct config *good(const struct config_key *k, const char *text)
{
	memset(&scratch, 0, sizeof(scratch));
	if (config_key_parse(k, text, MEMORY, &scratch, why) < 0)
		fail_msg("%s.%s = %s: %s", k->section, k->name, text, why);
	return &scratch.config;
}

/* Refused, with a reason, with what is accepted, and with nothing written. */
static void bad(const struct config_key *k, const char *text, const char *says)
{
	static const union config_scratch none;
	char accepts[CONFIG_ACCEPTS_BYTES];

	memset(&scratch, 0, sizeof(scratch));
	if (config_key_parse(k, text, MEMORY, &scratch, why) != -EINVAL)
		fail_msg("%s.%s = %s: is taken", k->section, k->name, text);
	config_key_accepts(k, accepts);
	if (!strstr(why, says) || !strstr(why, accepts))
		fail_msg("%s.%s = %s: says \"%s\"", k->section, k->name, text, why);
	assert_memory_equal(&scratch, &none, sizeof(scratch));
}

/* What the rows promise to whoever reads them. */
static void rows(void **state)
{
	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *k = &config_keys[i];
		char accepts[CONFIG_ACCEPTS_BYTES], name[SETTING_NAME_BYTES],
			glob[SETTING_GLOB_BYTES];
		const struct config_key *found;

		assert_ptr_equal(key(k->section, k->name), k);
		setting_name(k, config_key_is_rule(k) ? "a.b" : NULL, name);
		assert_int_equal(setting_parse_name(name, &found, glob, why), 0);
		assert_ptr_equal(found, k);
		assert_string_equal(glob, config_key_is_rule(k) ? "a.b" : "");
		config_key_accepts(k, accepts);
		assert_true(strlen(accepts) + 1 < sizeof(accepts));
		assert_true(strlen(config_type_name(k->type)) > 0);
		assert_true(k->help && k->help[0] >= 'a' && k->help[0] <= 'z');
		assert_true(k->more && strlen(k->more) > 0);
		if (k->value)
			good(k, k->value);
		else
			assert_true(config_key_is_rule(k));
		if (k->none)
			good(k, k->none);
		if (k->min)
			good(k, k->min);
		if (k->max)
			good(k, k->max);
		bad(k, "", "is ");
		bad(k, "no such thing", "is ");
		bad(k, "-1", "is ");
	}
}

static void sizes(void **state)
{
	const struct config_key *k = key("host", "pool_size");

	assert_int_equal(good(k, "16G")->host.pool_bytes, GIB(16));
	assert_int_equal(good(k, "16GiB")->host.pool_bytes, GIB(16));
	assert_int_equal(good(k, "80%")->host.pool_bytes, GIB(8));
	assert_int_equal(good(k, "65536")->host.pool_bytes, 65536);
	assert_int_equal(good(k, "64K")->host.pool_bytes, 65536);
	assert_int_equal(good(k, "8T")->host.pool_bytes, GIB(8192));
	assert_int_equal(good(k, "auto")->host.pool_bytes, GIB(10) / 4);
	bad(k, "65535", "is too small");
	bad(k, "8193G", "is too large");
	bad(k, "0", "at least one byte");
	bad(k, "12GB", "has no known unit");
	bad(k, "0%", "no percentage");
	bad(k, "101%", "no percentage");
	bad(k, "1.5G", "no whole number");
	bad(k, "16 G", "has no known unit");
	bad(k, "99999999999999999999G", "is too large");
	/* Without a word for it, the size of a pool that control regions can have. */
	assert_true(GIB(8192) < (uint64_t)SLOT_NONE << SLOT_SHIFT);
}

static void no_memory_known(void **state)
{
	const struct config_key *k = key("host", "pool_size");

	assert_int_equal(config_key_parse(k, "auto", 0, &scratch, why), -EINVAL);
	assert_non_null(strstr(why, "how much memory"));
	assert_int_equal(config_key_parse(k, "50%", 0, &scratch, why), -EINVAL);
	assert_int_equal(config_key_parse(k, "1G", 0, &scratch, why), 0);
}

static uint64_t share(const char *text, uint64_t pool)
{
	return config_share_bytes(&good(key("cache", "pin_budget"), text)->cache.pin_budget, pool);
}

static void shares(void **state)
{
	const struct config_key *k = key("cache", "pin_budget");

	assert_int_equal(share("20%", GIB(10)), GIB(2));
	assert_int_equal(share("1%", 199), 1);
	assert_int_equal(share("100%", UINT64_MAX), UINT64_MAX);
	assert_int_equal(share("1G", GIB(10)), GIB(1));
	/* Never more than there is. */
	assert_int_equal(share("11G", GIB(10)), GIB(10));
	assert_int_equal(share("none", GIB(10)), 0);
	bad(k, "0%", "no percentage");
	bad(k, "101%", "no percentage");
	bad(k, "0", "at least one byte");
	bad(k, "%", "no number");
	bad(key("limits", "client_reserved_max"), "none", "no number");
}

static void durations(void **state)
{
	const struct config_key *k = key("daemon", "status_interval");

	assert_int_equal(good(k, "90s")->daemon.status_interval_ns, 90 * NSEC_PER_SEC);
	assert_int_equal(good(k, "1min30s")->daemon.status_interval_ns, 90 * NSEC_PER_SEC);
	assert_int_equal(good(k, "1m30s")->daemon.status_interval_ns, 90 * NSEC_PER_SEC);
	assert_int_equal(good(k, "1s")->daemon.status_interval_ns, NSEC_PER_SEC);
	assert_int_equal(good(k, "1h")->daemon.status_interval_ns, 3600 * NSEC_PER_SEC);
	bad(k, "999ms", "is too small");
	bad(k, "3601s", "is too large");
	bad(k, "5", "no unit of time");
	bad(k, "never", "no number");
	k = key("cache", "default_ttl");
	assert_int_equal(good(k, "never")->cache.default_ttl_ns, 0);
	assert_int_equal(good(k, "3650d")->cache.default_ttl_ns, 3650 * 86400 * NSEC_PER_SEC);
	bad(k, "0s", "is too small");
	k = key("cache", "quarantine_grace");
	assert_int_equal(good(k, "10ms")->cache.quarantine_ns, 10 * NSEC_PER_MSEC);
	bad(k, "9ms", "is too small");
}

static void counts(void **state)
{
	const struct config_key *k = key("limits", "max_namespaces");

	assert_int_equal(good(k, "1")->limits.max_namespaces, 1);
	assert_int_equal(good(k, "4096")->limits.max_namespaces, 4096);
	assert_true(CONTROL_NAMESPACES_MAX >= 4096);
	bad(k, "0", "is too small");
	bad(k, "4097", "is too large");
	bad(k, "1K", "no number");
	bad(k, "auto", "no number");
	k = key("host", "max_blocks");
	assert_int_equal(good(k, "auto")->host.max_blocks, 0);
	assert_int_equal(good(k, k->max)->host.max_blocks, POOL_BLOCKS_MAX);
	bad(k, "1073741825", "is too large");
}

static void choices(void **state)
{
	const struct config_key *k = key("host", "huge_pages");

	assert_int_equal(good(k, "auto")->host.huge_pages, CONFIG_HUGE_AUTO);
	assert_int_equal(good(k, "always")->host.huge_pages, CONFIG_HUGE_ALWAYS);
	assert_int_equal(good(k, "never")->host.huge_pages, CONFIG_HUGE_NEVER);
	bad(k, "Auto", "none of the choices");
	bad(k, "alway", "auto, always or never");
	k = key("daemon", "log_target");
	assert_int_equal(good(k, "auto")->daemon.log_target, LOG_TO_AUTO);
	assert_int_equal(good(k, "journal")->daemon.log_target, LOG_TO_JOURNAL);
	assert_int_equal(good(k, "stderr")->daemon.log_target, LOG_TO_STDERR);
	k = key("daemon", "log_level");
	for (int i = 0; i < LOG_LEVELS; i++)
		assert_int_equal(good(k, log_level_name(i))->daemon.log_level, i);
	assert_int_equal(good(k, "error")->daemon.log_level, LOG_ERR);
	bad(k, "loud", "is no level");
}

static void numa(void **state)
{
	const struct config_key *k = key("host", "numa");

	assert_int_equal(good(k, "interleave")->host.numa.policy, CONFIG_NUMA_INTERLEAVE);
	assert_int_equal(good(k, "local")->host.numa.policy, CONFIG_NUMA_LOCAL);
	assert_int_equal(good(k, "off")->host.numa.policy, CONFIG_NUMA_OFF);
	assert_int_equal(good(k, "node:0")->host.numa.policy, CONFIG_NUMA_NODE);
	assert_int_equal(good(k, "node:1023")->host.numa.node, 1023);
	bad(k, "node:1024", "is too large");
	bad(k, "node:", "is empty");
	bad(k, "node:-1", "no number");
	bad(k, "node", "none of the choices");
}

static void same(void **state)
{
	const struct config_key *ttl = key("namespace", "ttl"), *pool = key("host", "pool_size");

	assert_true(config_key_same(ttl, "1h", "60m", MEMORY));
	assert_false(config_key_same(ttl, "1h", "61m", MEMORY));
	assert_false(config_key_same(ttl, "1h", "never", MEMORY));
	assert_true(config_key_same(pool, "50%", "5G", MEMORY));
	assert_true(config_key_same(pool, "auto", "2560M", MEMORY));
	assert_false(config_key_same(key("cache", "pin_budget"), "1%", "1", MEMORY));
	assert_true(config_key_same(key("host", "numa"), "node:1", "node:01", MEMORY));
	assert_false(config_key_same(key("host", "numa"), "node:1", "node:2", MEMORY));
}

static void names(void **state)
{
	static const struct {
		const char *name, *says;
	} wrong[] = {
		{ "", "is no key: write SECTION.KEY" },
		{ "pool_size", "is no key: write SECTION.KEY" },
		{ "hots.pool_size", "there is no section hots: did you mean \"host\"?" },
		{ "gpu.pool_size", "there is no section gpu" },
		{ "host.pool_sizes", "did you mean \"pool_size\"?" },
		{ "host.colour", "is no key of section host (kvpool.conf(5) lists them)" },
		{ "host.", "is no key of section host" },
		{ ".", "there is no section" },
		{ "namespace.ttl", "is no key: write namespace.MODEL.ttl" },
		{ "namespace..ttl", "is no key: write namespace.MODEL.ttl" },
		{ "namespace.a\nb.ttl", "is no key: write namespace.MODEL.ttl" },
		{ "namespace.a.tlt", "did you mean \"ttl\"?" },
	};
	const struct config_key *k;
	char glob[SETTING_GLOB_BYTES], name[700];

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		int r = setting_parse_name(wrong[i].name, &k, glob, why);

		if (r != -ENOENT || !strstr(why, wrong[i].says))
			fail_msg("\"%s\": %d, says \"%s\"", wrong[i].name, r, why);
	}
	assert_int_equal(setting_parse_name("namespace.Qwen2.5 7B.ttl", &k, glob, why), 0);
	assert_string_equal(glob, "Qwen2.5 7B");
	/* As long as the name of a model may be, and one byte more. */
	memset(name, 'a', sizeof(name));
	memcpy(name, "namespace.", 10);
	memcpy(name + 10 + NSDESC_TEXT_MAX, ".ttl", 5);
	assert_int_equal(setting_parse_name(name, &k, glob, why), 0);
	assert_int_equal(strlen(glob), NSDESC_TEXT_MAX);
	memset(name + 10, 'a', NSDESC_TEXT_MAX + 1);
	memcpy(name + 11 + NSDESC_TEXT_MAX, ".ttl", 5);
	assert_int_equal(setting_parse_name(name, &k, glob, why), -ENOENT);
}

/* The last rule that fits and says something counts, for each of the two apart. */
static void rules(void **state)
{
	struct settings s = SETTINGS_INIT;
	const struct config_key *ttl = key("namespace", "ttl"), *pri = key("namespace", "priority");
	struct config *c;

	assert_int_equal(settings_add(&s, key("cache", "default_ttl"), NULL, "2h", "x"), 0);
	assert_int_equal(settings_add(&s, ttl, "Qwen*", "1h", "x"), 0);
	assert_int_equal(settings_add(&s, pri, "*", "10", "x"), 0);
	assert_int_equal(settings_add(&s, ttl, "*-7B", "never", "x"), 0);
	assert_int_equal(settings_add(&s, pri, "Qwen[23]*", "99", "x"), 0);
	c = settings_config(&s, MEMORY);
	assert_non_null(c);
	assert_int_equal(config_namespace(c, "other").ttl_ns, 7200 * NSEC_PER_SEC);
	assert_int_equal(config_namespace(c, "other").priority, 10);
	assert_int_equal(config_namespace(c, "Qwen2").ttl_ns, 3600 * NSEC_PER_SEC);
	assert_int_equal(config_namespace(c, "Qwen2").priority, 99);
	assert_int_equal(config_namespace(c, "Qwen2-7B").ttl_ns, 0);
	assert_int_equal(config_namespace(c, "Qwen4-7B").priority, 10);
	config_free(c);
	settings_clear(&s);
	c = settings_config(&s, MEMORY);
	assert_int_equal(config_namespace(c, "any").ttl_ns, 0);
	assert_int_equal(config_namespace(c, "any").priority, 50);
	config_free(c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows),
		cmocka_unit_test(sizes),
		cmocka_unit_test(no_memory_known),
		cmocka_unit_test(shares),
		cmocka_unit_test(durations),
		cmocka_unit_test(counts),
		cmocka_unit_test(choices),
		cmocka_unit_test(numa),
		cmocka_unit_test(same),
		cmocka_unit_test(names),
		cmocka_unit_test(rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
