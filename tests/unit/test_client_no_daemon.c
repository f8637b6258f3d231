/* SPDX-License-Identifier: Apache-2.0 */
/* What every function does without a daemon, and what it says. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "tests/client/fake.h"

#define BT 16u

static struct kvpool *pool;
static char dir[64], path[96];

static int setup(void **state)
{
	struct kvpool_options o = { .size = sizeof(o), .socket = path, .timeout_ms = 200 };

	strcpy(dir, "/tmp/kvpool-none-XXXXXX");
	assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/kvpool.sock", dir);
	assert_int_equal(kvpool_connect(&o, &pool), 0);
	return 0;
}

static int teardown(void **state)
{
	assert_null(kvpool_close(pool));
	unlink(path);
	rmdir(dir);
	return 0;
}

static void check_error(const char *format, ...)
{
	char text[512], expected[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(expected, sizeof(expected), format, ap);
	va_end(ap);
	assert_int_equal(kvpool_error(pool, text, sizeof(text)), strlen(expected));
	assert_string_equal(text, expected);
}

static void test_error_text(void **state)
{
	char text[8];

	check_error("cannot reach kvpoold at %s: no such file or directory (is kvpoold running?)",
		    path);
	assert_true(kvpool_error(pool, NULL, 0) > 8);
	assert_true(kvpool_error(pool, text, sizeof(text)) > 8);
	assert_string_equal(text, "cannot ");
	assert_int_equal(kvpool_state(pool), KVPOOL_DISCONNECTED);
	assert_int_equal(kvpool_reconnect(pool), -ENOENT);
	assert_int_equal(kvpool_features(pool), 0);
	assert_int_equal(kvpool_daemon_version(pool, text, sizeof(text)), 0);
	assert_string_equal(text, "");
}

static int bind_socket(int type)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	strcpy(a.sun_path, path);
	assert(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	return fd;
}

static void test_stale_socket(void **state)
{
	close(bind_socket(SOCK_SEQPACKET));
	assert_int_equal(kvpool_reconnect(pool), -ECONNREFUSED);
	check_error(
		"cannot reach kvpoold at %s: connection refused (kvpoold does not run any more; "
		"start it)",
		path);
}

static void test_wrong_socket(void **state)
{
	int fd = bind_socket(SOCK_STREAM);

	assert(listen(fd, 1) == 0);
	assert_int_equal(kvpool_reconnect(pool), -EPROTOTYPE);
	check_error(
		"cannot reach kvpoold at %s: protocol wrong type for socket (is this the socket of "
		"kvpoold?)",
		path);
	close(fd);
}

/* The root user gets in everywhere, so the child is somebody else. */
static void test_permission(void **state)
{
	int fd = bind_socket(SOCK_SEQPACKET);

	if (geteuid() != 0) {
		print_message("skipped: only root can become a user that is kept out\n");
		close(fd);
		skip();
	}
	assert(listen(fd, 1) == 0 && chmod(path, 0700) == 0);
	assert(seteuid(65534) == 0);
	assert_int_equal(kvpool_reconnect(pool), -EACCES);
	assert(seteuid(0) == 0);
	check_error("cannot reach kvpoold at %s: permission denied (may this user write to it? "
		    "the system's is for group kvpool)",
		    path);
	close(fd);
}

/* A daemon that is stopped: first one that accepts, then one whose backlog is full. */
static void test_silent_daemon(void **state)
{
	int fd = bind_socket(SOCK_SEQPACKET), full[8];
	uint64_t start;

	assert(listen(fd, 0) == 0);
	start = clock_ns();
	assert_int_equal(kvpool_reconnect(pool), -ETIMEDOUT);
	assert_true(clock_ns() - start >= 190 * NSEC_PER_MSEC);
	check_error(
		"cannot start a session with kvpoold at %s: it does not answer (is it stopped, or "
		"very busy?)",
		path);
	for (unsigned int i = 0; i < ARRAY_SIZE(full); i++) {
		struct sockaddr_un a = { .sun_family = AF_UNIX };

		strcpy(a.sun_path, path);
		full[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void)connect(full[i], (struct sockaddr *)&a, sizeof(a));
	}
	start = clock_ns();
	assert_int_equal(kvpool_reconnect(pool), -ETIMEDOUT);
	assert_true(clock_ns() - start >= 190 * NSEC_PER_MSEC);
	check_error(
		"cannot reach kvpoold at %s: connection timed out (is it stopped, or very busy?)",
		path);
	for (unsigned int i = 0; i < ARRAY_SIZE(full); i++)
		close(full[i]);
	close(fd);
}

/* In the back-off nobody is asked: the reason is the old one. */
static void test_back_off(void **state)
{
	int fd;

	for (unsigned int i = 0; i < 8; i++)
		assert_int_equal(kvpool_reconnect(pool), -ENOENT);
	fd = bind_socket(SOCK_SEQPACKET);
	assert(listen(fd, 4) == 0);
	assert_int_equal(kvpool_ping(pool), -ENOENT);
	close(fd);
}

static int never(void *arg, size_t i, void *block)
{
	fail_msg("nothing was granted");
	return 0;
}

static void test_calls(void **state)
{
	int32_t tokens[4 * BT + 1] = { 1, 2, 3 };
	static uint8_t block[FAKE_BLOCK_BYTES];
	struct iovec iov = { block, sizeof(block) };
	struct kvpool_write *w = (void *)0x1234;
	struct kvpool_stats s = { .size = sizeof(s) };
	struct kvpool_ns *ns = fake_ns(pool, "m");
	struct kvpool_key keys[4];
	struct kvpool_lease *l;
	char text[100];

	assert_int_equal(kvpool_lease_new(pool, 100, &l), 0);
	assert_int_equal(kvpool_hash(ns, NULL, tokens, 4 * BT, keys, 4), 4);
	assert_int_equal(kvpool_acquire(ns, l, tokens, 4 * BT + 1, 0), 0);
	assert_int_equal(kvpool_lease_reason(l), KVPOOL_NO_DAEMON);
	assert_int_equal(kvpool_acquire_keys(ns, l, keys, 4, 0), 0);
	assert_int_equal(kvpool_lease_reason(l), KVPOOL_NO_DAEMON);
	assert_int_equal(kvpool_extend(l, tokens, 4 * BT + 1), 0);
	assert_int_equal(kvpool_lease_reason(l), KVPOOL_NO_DAEMON);
	assert_int_equal(kvpool_ping(pool), -ENOENT);
	assert_int_equal(kvpool_reserve(ns, tokens, 4 * BT, 0, &w), -ENOTCONN);
	assert_int_equal(kvpool_reserve_keys(ns, NULL, keys, 4, &w), -ENOTCONN);
	assert_ptr_equal(w, (void *)0x1234);
	assert_int_equal(kvpool_publish(ns, tokens, 4 * BT, never, NULL), -ENOTCONN);
	assert_int_equal(kvpool_publish_iov(ns, tokens, 4 * BT, 1, &iov, 1), -ENOTCONN);
	assert_int_equal(kvpool_wait(ns, tokens, 4 * BT, 0, 10), -ENOTCONN);
	assert_int_equal(kvpool_ns_difference(ns, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_int_equal(kvpool_get_stats(pool, &s), 0);
	assert_int_equal(s.lookups, 3);
	assert_int_equal(s.asked_tokens, 2 * (4 * BT + 1) + 4 * BT);
	assert_int_equal(s.miss_tokens, s.asked_tokens);
	assert_int_equal(s.requests, 0);
	assert_int_equal(s.reconnects, 0);
	/* In any order. */
	kvpool_close(pool);
	assert_int_equal(kvpool_acquire(ns, l, tokens, 4 * BT + 1, 0), 0);
	assert_int_equal(kvpool_reserve(ns, tokens, 4 * BT, 0, &w), -ENOTCONN);
	kvpool_ns_close(ns);
	kvpool_lease_free(l);
	pool = NULL;
}

static void test_nothing_to_ask(void **state)
{
	int32_t tokens[2 * BT] = { 1, 2, 3 };
	struct kvpool_ns *ns = fake_ns(pool, "m");
	struct kvpool_write *w;

	assert_int_equal(kvpool_reserve(ns, tokens, 2 * BT, 2, &w), 0);
	assert_int_equal(kvpool_write_blocks(w), 0);
	assert_int_equal(kvpool_write_verdict(w, 0), KVPOOL_STALE);
	assert_null(kvpool_write_block(w, 0));
	assert_int_equal(kvpool_commit(w, 0), 0);
	assert_int_equal(kvpool_commit(w, 1), -EINVAL);
	assert_null(kvpool_write_free(w));
	assert_int_equal(kvpool_publish(ns, tokens, BT - 1, never, NULL), 0);
	assert_int_equal(kvpool_publish_iov(ns, tokens, 2 * BT, 2, NULL, 0), 0);
	assert_int_equal(kvpool_wait(ns, tokens, 2 * BT, 2, 0), 2 * BT);
	assert_int_equal(kvpool_reserve(ns, tokens, 2 * BT, 3, &w), -EINVAL);
	assert_int_equal(kvpool_wait(ns, tokens, 2 * BT, 3, 0), -EINVAL);
	kvpool_ns_close(ns);
}

static void test_null_is_ignored(void **state)
{
	assert_null(kvpool_close(NULL));
	assert_null(kvpool_ns_close(NULL));
	assert_null(kvpool_lease_free(NULL));
	assert_null(kvpool_write_free(NULL));
}

static void test_options(void **state)
{
	struct kvpool *p = (void *)0x1234;
	struct kvpool_options o = { .size = sizeof(o) - 1, .socket = path };
	char longer[200];

	assert_int_equal(kvpool_connect(&o, &p), -EINVAL);
	o.size = sizeof(o);
	o.max_leases = 16385;
	assert_int_equal(kvpool_connect(&o, &p), -EINVAL);
	o.max_leases = 0;
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	o.socket = longer;
	assert_int_equal(kvpool_connect(&o, &p), -EINVAL);
	assert_ptr_equal(p, (void *)0x1234);
	o.socket = path;
	o.name = longer;
	assert_int_equal(kvpool_connect(&o, &p), 0);
	kvpool_close(p);
}

static void test_environment(void **state)
{
	char text[300];

	setenv("KVPOOL_SOCKET", path, 1);
	kvpool_close(pool);
	assert_int_equal(kvpool_connect(NULL, &pool), 0);
	unsetenv("KVPOOL_SOCKET");
	kvpool_error(pool, text, sizeof(text));
	assert_non_null(strstr(text, path));
	/* It is looked at once: when the handle is opened. */
	assert_int_equal(kvpool_reconnect(pool), -ENOENT);
	kvpool_error(pool, text, sizeof(text));
	assert_non_null(strstr(text, path));
}

static void refuse(struct kvpool_ns_desc d, int err, const char *text)
{
	struct kvpool_ns *ns = (void *)0x1234;

	assert_int_equal(kvpool_ns_open(pool, &d, &ns), err);
	assert_ptr_equal(ns, (void *)0x1234);
	check_error("%s", text);
}

/* Each field in turn is wrong, and is named. */
static void test_descriptors(void **state)
{
	static const struct kvpool_field bad = { "a=b", "c" };
	static const char salt[65];
	struct kvpool_ns_desc d = fake_desc("m");
	char text[100];

	d.size--;
	snprintf(text, sizeof(text), "namespace: size of the descriptor is %zu, not %zu", d.size,
		 sizeof(d));
	refuse(d, -EINVAL, text);
	d = fake_desc(NULL);
	refuse(d, -EINVAL, "namespace \"\": model is missing; see struct kvpool_ns_desc");
	d = fake_desc("m");
	d.weights = NULL;
	refuse(d, -EINVAL, "namespace \"m\": weights is missing; see struct kvpool_ns_desc");
	d = fake_desc("m");
	d.layout = NULL;
	refuse(d, -EINVAL, "namespace \"m\": layout is missing; see struct kvpool_ns_desc");
	d = fake_desc("m");
	d.n_layers = 0;
	refuse(d, -EINVAL, "namespace \"m\": layers is out of range; see struct kvpool_ns_desc");
	d = fake_desc("m");
	d.block_bytes = 4095;
	refuse(d, -EINVAL,
	       "namespace \"m\": block_bytes is out of range; see struct kvpool_ns_desc");
	d = fake_desc("m");
	d.tp_rank = 1;
	refuse(d, -EINVAL, "namespace \"m\": tp_size is out of range; see struct kvpool_ns_desc");
	d = fake_desc("m");
	d.extra = &bad;
	d.n_extra = 1;
	refuse(d, -EINVAL,
	       "namespace \"m\": extra is not a name without '=' and a value; see struct "
	       "kvpool_ns_desc");
	d = fake_desc("m");
	d.salt = salt;
	d.salt_len = sizeof(salt);
	refuse(d, -EINVAL, "namespace \"m\": salt has a wrong length; see struct kvpool_ns_desc");
	d = fake_desc("m");
	d.group_rule = 3;
	refuse(d, -EINVAL,
	       "namespace \"m\": group_rule is out of range; see struct kvpool_ns_desc");
	d.group_rule = KVPOOL_GROUP_TRAILING;
	d.group_n = 4;
	refuse(d, -EOPNOTSUPP,
	       "namespace \"m\": group_rule 1 is not served by this version, only full "
	       "attention is");
}

/* All fields reach the fingerprint. */
static void test_fields_count(void **state)
{
	static const struct kvpool_adapter adapter = { { 7 }, 0.5 };
	static const struct kvpool_field extra = { "flash", "1" };
	struct kvpool_ns_desc d[20];
	struct kvpool_ns *ns[ARRAY_SIZE(d)];
	size_t n = ARRAY_SIZE(d);

	for (size_t i = 0; i < n; i++)
		d[i] = fake_desc("m");
	d[1].model = "n";
	d[2].weights = (const uint8_t *)"01234567890123456789012345678901";
	d[3].adapters = &adapter;
	d[3].n_adapters = 1;
	d[4].type_k = "q8_0";
	d[5].type_v = "q8_0";
	d[6].n_layers++;
	d[7].n_kv_heads++;
	d[8].head_dim_k++;
	d[9].head_dim_v++;
	d[10].block_tokens++;
	d[11].block_bytes++;
	d[12].layout = "other";
	d[13].engine = "test-2";
	d[14].rotation = "hadamard";
	d[15].rope_type = "neox";
	d[16].rope_freq_base = 1e4;
	d[17].rope_freq_scale = 0.5;
	d[18].salt = "x";
	d[18].salt_len = 1;
	d[19].extra = &extra;
	d[19].n_extra = 1;
	for (size_t i = 0; i < n; i++)
		assert_int_equal(kvpool_ns_open(pool, &d[i], &ns[i]), 0);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			assert_memory_not_equal(kvpool_ns_seed(ns[i]), kvpool_ns_seed(ns[k]), 32);
	for (size_t i = 0; i < n; i++)
		kvpool_ns_close(ns[i]);
}

static void test_names(void **state)
{
	assert_string_equal(kvpool_version(), KVPOOL_VERSION);
	assert_string_equal(kvpool_reason_name(KVPOOL_COMPLETE), "complete");
	assert_string_equal(kvpool_reason_name(KVPOOL_NAMESPACE), "namespace");
	assert_string_equal(kvpool_reason_name((enum kvpool_reason)10), "unknown");
	assert_string_equal(kvpool_reason_name((enum kvpool_reason)-1), "unknown");
	assert_string_equal(kvpool_verdict_name(KVPOOL_GRANTED), "granted");
	assert_string_equal(kvpool_verdict_name(KVPOOL_STALE), "stale");
	assert_string_equal(kvpool_verdict_name((enum kvpool_verdict)0), "unknown");
	assert_string_equal(kvpool_verdict_name((enum kvpool_verdict)8), "unknown");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_error_text),
		TEST(test_stale_socket),
		TEST(test_wrong_socket),
		TEST(test_permission),
		TEST(test_silent_daemon),
		TEST(test_back_off),
		TEST(test_calls),
		TEST(test_nothing_to_ask),
		TEST(test_null_is_ignored),
		TEST(test_options),
		TEST(test_environment),
		TEST(test_descriptors),
		TEST(test_fields_count),
		TEST(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
