/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/endpoint.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/kvpoolctl/say.h"

#define SYSTEM_SOCKET "/run/kvpool/admin.sock"
#define ADMIN_SUFFIX  ".admin"

/* What is known of an instance besides its path, for messages. */
struct kind {
	const char *hint, *rights;
};

static const struct kind kind_system = {
	"is it running? systemctl status kvpoold",
	"be root or in group kvpool-admin",
};
static const struct kind kind_user = {
	"is it running? systemctl --user status kvpoold",
	"be the user that it runs as, or root",
};
static const struct kind kind_path = {
	"is a kvpoold with this socket running?",
	"be the user that it runs as, or root",
};

static const char *get_env(const char *name)
{
	const char *v = getenv(name);

	return v && *v ? v : NULL;
}

/* from names who asked for the path, status is what a path that is none means then. */
static enum ctl_exit set_path(struct endpoint *ret, const struct kind *kind, const char *from,
			      enum ctl_exit status, const char *path, const char *suffix)
{
	struct endpoint e = { .addr.sun_family = AF_UNIX,
			      .hint = kind->hint,
			      .rights = kind->rights };

	if (strlen(path) + strlen(suffix) >= sizeof(e.addr.sun_path))
		return say_error(
			status,
			"the path in %s is too long for a socket: %s%s has more than %zu bytes",
			from, path, suffix, sizeof(e.addr.sun_path) - 1);
	stpcpy(stpcpy(e.addr.sun_path, path), suffix);
	*ret = e;
	return EXIT_OK;
}

static enum ctl_exit from_option(const char *path, struct endpoint *ret)
{
	static const size_t room = sizeof(ret->addr.sun_path) - sizeof(ADMIN_SUFFIX);

	if (!*path)
		return say_error(EXIT_USAGE, "--socket needs the path of a socket");
	if (strlen(path) <= room) {
		set_path(ret, &kind_path, "--socket", EXIT_USAGE, path, ADMIN_SUFFIX);
		if (!access(ret->addr.sun_path, F_OK))
			return EXIT_OK;
	}
	return set_path(ret, &kind_path, "--socket", EXIT_USAGE, path, "");
}

static enum ctl_exit from_user(const char *runtime, struct endpoint *ret)
{
	if (!runtime)
		return say_error(EXIT_BAD_CONFIG, "cannot find the user instance: XDG_RUNTIME_DIR "
						  "is not set (log in, or use --socket PATH)");
	return set_path(ret, &kind_user, "XDG_RUNTIME_DIR", EXIT_BAD_CONFIG, runtime,
			"/kvpool/admin.sock");
}

/* The user instance when its folder is there: it need not run. */
static int has_user_instance(const char *runtime)
{
	struct endpoint e;
	char *slash;

	if (!runtime || strlen(runtime) > 80 || from_user(runtime, &e))
		return 0;
	slash = strrchr(e.addr.sun_path, '/');
	*slash = '\0';
	return !access(e.addr.sun_path, F_OK);
}

enum ctl_exit endpoint_find(const struct options *o, struct endpoint *ret)
{
	const char *admin = get_env("KVPOOL_ADMIN_SOCKET"), *client = get_env("KVPOOL_SOCKET");
	const char *runtime = get_env("XDG_RUNTIME_DIR");

	if (o->socket)
		return from_option(o->socket, ret);
	if (o->instance == INSTANCE_USER)
		return from_user(runtime, ret);
	if (o->instance == INSTANCE_ANY && admin)
		return set_path(ret, &kind_path, "KVPOOL_ADMIN_SOCKET", EXIT_BAD_CONFIG, admin, "");
	if (o->instance == INSTANCE_ANY && client)
		return set_path(ret, &kind_path, "KVPOOL_SOCKET", EXIT_BAD_CONFIG, client,
				ADMIN_SUFFIX);
	if (o->instance == INSTANCE_ANY && has_user_instance(runtime))
		return from_user(runtime, ret);
	return set_path(ret, &kind_system, "--system", EXIT_USAGE, SYSTEM_SOCKET, "");
}
