/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/hex.h"
#include "base/parse.h"
#include "daemon/find_ns.h"
#include "proto/check.h"

int find_ns_matches(const struct pool *p, uint32_t ns, const char *name)
{
	char hex[2 * KEY_BYTES + 1];
	const char *model = pool_ns_model(p, ns), *why;
	size_t n = strlen(name);
	uint64_t number;

	if (!model)
		return 0;
	if (!n || !strcmp(name, model))
		return 1;
	if (parse_count(name, 0, UINT32_MAX, &number, &why) == 0 && number == ns)
		return 1;
	hex_encode(pool_ns_seed(p, ns), KEY_BYTES, hex);
	return n >= PROTO_DIGITS_MIN && !strncmp(hex, name, n);
}

int find_ns(struct request *rq, const char *name, uint32_t *ret)
{
	const struct pool *p = rq->domain->pool;
	uint32_t n = 0, found = NS_NONE;

	for (uint32_t ns = 0; ns < pool_control(p)->max_namespaces; ns++)
		if (find_ns_matches(p, ns, name)) {
			found = ns;
			n++;
		}
	if (!n)
		request_fail(rq, ERROR_NO_OBJECT, "namespace", FIND_NS_NONE);
	else if (n > 1)
		request_fail(rq, ERROR_AMBIGUOUS, "namespace",
			     "%u namespaces are called \"%s\": name one by its number or "
			     "fingerprint, see kvpoolctl namespaces",
			     n, name);
	else
		*ret = found;
	return n == 1;
}

int find_ns_any(struct request *rq, const char *name)
{
	const struct pool *p = rq->domain->pool;

	if (!*name)
		return 1;
	for (uint32_t ns = 0; ns < pool_control(p)->max_namespaces; ns++)
		if (find_ns_matches(p, ns, name))
			return 1;
	request_fail(rq, ERROR_NO_OBJECT, "namespace", FIND_NS_NONE);
	return 0;
}
