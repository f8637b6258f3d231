/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/chain.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "base/compiler.h"
#include "base/hex.h"
#include "tools/kvpoolctl/say.h"

static enum ctl_exit make_keys(const struct options *o, struct chain *c)
{
	_cleanup_(tokens_free) struct tokens t = { 0 };
	uint8_t seed[TOKENS_KEY_BYTES];
	const char *fingerprint = object_text(&c->ns, "fingerprint");
	enum ctl_exit rc;

	c->block_tokens = (uint32_t)object_number(&c->ns, "block_tokens");
	if (!c->block_tokens || hex_decode(fingerprint, seed, sizeof(seed)))
		return say_error(EXIT_FAILED,
				 "kvpoold does not say how namespace %s makes its keys (is it of "
				 "this version?)",
				 o->namespace);
	rc = tokens_open(o->tokens, &t);
	if (rc)
		return rc;
	c->tokens = t.n;
	c->n = tokens_blocks(&t, c->block_tokens);
	c->keys = malloc(c->n * TOKENS_KEY_BYTES + 1);
	if (!c->keys)
		return say_error(EXIT_FAILED, "out of memory");
	tokens_keys(&t, c->block_tokens, seed, c->n, c->keys);
	return EXIT_OK;
}

enum ctl_exit chain_open(struct admin *a, const struct options *o, struct chain *ret)
{
	struct chain c = { 0 };
	enum ctl_exit rc;

	if (!o->namespace)
		return say_error(EXIT_USAGE, "--tokens needs --namespace: the same tokens have "
					     "another key in each (see kvpoolctl namespaces)");
	rc = objects_find(a, OBJECTS_NAMESPACE, o->namespace, &c.ns);
	if (!rc)
		rc = make_keys(o, &c);
	if (rc)
		chain_free(&c);
	else
		*ret = c;
	return rc;
}

void chain_free(struct chain *c)
{
	object_free(&c->ns);
	free(c->keys);
	c->keys = NULL;
}

enum ctl_exit chain_explain(struct admin *a, const struct chain *c, size_t *ret_present,
			    const Kvpool__ExplainReply **ret)
{
	Kvpool__Explain request = KVPOOL__EXPLAIN__INIT;
	const Kvpool__ExplainReply *r = NULL;
	struct chain_ns ns = chain_ns(c);
	size_t at = 0, n = 0;
	enum ctl_exit rc;

	request.namespace_ = ns.text;
	/* The next part of the chain counts only while the one before is there as a whole. */
	while (at < c->n && (!r || r->present == n)) {
		const void *reply;

		n = MIN(c->n - at, (size_t)FRAME_KEYS_MAX);
		request.keys.data = c->keys + at * TOKENS_KEY_BYTES;
		request.keys.len = n * TOKENS_KEY_BYTES;
		rc = admin_call(a, OP_EXPLAIN, &request.base, &reply);
		if (rc)
			return rc;
		r = reply;
		if (r->present > n)
			return say_error(EXIT_FAILED,
					 "kvpoold at %s says that more blocks are cached than were "
					 "asked for",
					 admin_path(a));
		at += r->present;
	}
	*ret_present = at;
	*ret = r;
	return EXIT_OK;
}

struct chain_ns chain_ns(const struct chain *c)
{
	struct chain_ns s;

	snprintf(s.text, sizeof(s.text), "%" PRIu64, object_number(&c->ns, "namespace"));
	return s;
}
