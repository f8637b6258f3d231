/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hex.h"
#include "tools/kvpoolctl/cell.h"
#include "tools/kvpoolctl/chain.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/say.h"
#include "tools/kvpoolctl/units.h"
#include "tools/kvpoolctl/verb.h"

/* What was done, with what was asked for. */
struct pinned {
	const Kvpool__PinReply *r;
	uint64_t asked_tokens;
};

static void fill(const struct options *o, Kvpool__Pin *request)
{
	request->ttl_s = (uint32_t)(o->ttl_ns / NSEC_PER_SEC);
	request->priority = (uint32_t)o->priority;
	if (o->label)
		request->label = (char *)o->label;
}

static enum ctl_exit call(struct admin *a, const Kvpool__Pin *request, struct pinned *ret)
{
	const void *reply;
	enum ctl_exit rc = admin_call(a, OP_PIN, &request->base, &reply);

	if (rc)
		return rc;
	ret->r = reply;
	if (!ret->asked_tokens)
		ret->asked_tokens = ret->r->asked_tokens;
	return EXIT_OK;
}

/* A chain that does not fit a request: its deepest cached block has a name of its own. */
static enum ctl_exit name_deepest(struct admin *a, const struct chain *c, char *id)
{
	const Kvpool__ExplainReply *r;
	enum ctl_exit rc;
	size_t present;

	rc = chain_explain(a, c, &present, &r);
	if (rc)
		return rc;
	if (!present)
		return say_error(EXIT_NO_OBJECT, "nothing of these tokens is cached in %s",
				 object_text(&c->ns, "model"));
	hex_encode(c->keys + (present - 1) * TOKENS_KEY_BYTES, TOKENS_KEY_BYTES, id);
	return EXIT_OK;
}

static enum ctl_exit pin_tokens(struct admin *a, const struct options *o, struct pinned *ret)
{
	_cleanup_(chain_free) struct chain c = { 0 };
	Kvpool__Pin request = KVPOOL__PIN__INIT;
	char id[2 * TOKENS_KEY_BYTES + 1];
	enum ctl_exit rc = chain_open(a, o, &c);
	struct chain_ns ns;

	if (rc)
		return rc;
	if (!c.n)
		return say_error(EXIT_FAILED,
				 "%s has %zu tokens: nothing shorter than a block of %" PRIu32
				 " and one more can be cached",
				 o->tokens, c.tokens, c.block_tokens);
	fill(o, &request);
	ns = chain_ns(&c);
	request.namespace_ = ns.text;
	ret->asked_tokens = c.n * c.block_tokens;
	if (c.n > FRAME_KEYS_MAX) {
		rc = name_deepest(a, &c, id);
		request.id = id;
	} else {
		request.keys.data = c.keys;
		request.keys.len = c.n * TOKENS_KEY_BYTES;
	}
	return rc ? rc : call(a, &request, ret);
}

static enum ctl_exit pin_id(struct admin *a, const struct options *o, const char *id,
			    struct pinned *ret)
{
	Kvpool__Pin request = KVPOOL__PIN__INIT;

	fill(o, &request);
	request.id = (char *)id;
	if (o->namespace)
		request.namespace_ = (char *)o->namespace;
	a->about = id;
	return call(a, &request, ret);
}

static json_t *pin_json(const struct pinned *p)
{
	json_t *o = report_new("kvpool.pin/1");

	report_known(o, "pin", p->r->pin);
	report_text(o, "id", p->r->id);
	report_u64(o, "tokens", p->r->tokens);
	report_u64(o, "asked_tokens", p->asked_tokens);
	report_u64(o, "bytes", p->r->bytes);
	report_u64(o, "used_bytes", p->r->used_bytes);
	report_u64(o, "budget_bytes", p->r->budget_bytes);
	report_text(o, "why", p->r->why);
	return o;
}

static void print(const struct ctl *ctl, const struct pinned *p)
{
	_cleanup_free_ char *why = cell_clean(p->r->why);
	int exact = ctl->opt.bytes;

	printf("pinned %s tokens as pin %" PRIu64 ", %s more; pins hold %s of a budget of %s\n",
	       units_count(p->r->tokens).text, p->r->pin, units_bytes(p->r->bytes, exact).text,
	       units_bytes_of(p->r->used_bytes, p->r->budget_bytes, exact).text,
	       units_bytes(p->r->budget_bytes, exact).text);
	if (p->r->tokens < p->asked_tokens)
		printf("%s of %s tokens were not: %s%s\n",
		       units_count(p->asked_tokens - p->r->tokens).text,
		       units_count(p->asked_tokens).text, why && *why ? why : "not cached",
		       why && !strcmp(why, "budget") ? " (unpin something, or config set "
						       "cache.pin_budget SIZE)"
						     : "");
}

static enum ctl_exit tell(const struct ctl *ctl, const struct pinned *p)
{
	enum ctl_exit rc = EXIT_OK;

	if (report_wanted(ctl))
		rc = report_print(ctl, pin_json(p));
	else if (!p->r->pin)
		return say_error(EXIT_NO_OBJECT, "nothing was pinned: %s (see kvpoolctl prefixes)",
				 *p->r->why ? p->r->why : "not cached");
	else if (!ctl->opt.quiet)
		print(ctl, p);
	return rc                               ? rc
	       : !p->r->pin                     ? EXIT_NO_OBJECT
	       : p->r->tokens < p->asked_tokens ? EXIT_PARTLY
						: EXIT_OK;
}

static int is_id(const char *text)
{
	return *text && !text[strspn(text, "0123456789abcdefABCDEF")];
}

enum ctl_exit verb_pin(const struct ctl *ctl)
{
	_cleanup_(admin_close) struct admin a = { 0 };
	const char *id = verb_arg(ctl, 1);
	struct pinned p = { 0 };
	enum ctl_exit rc;

	if (!id == !ctl->opt.tokens)
		return say_error(EXIT_USAGE, "\"pin\" needs an ID or --tokens FILE (see kvpoolctl "
					     "pin --help)");
	if (id && !is_id(id))
		return say_error(EXIT_USAGE,
				 "\"%s\" is no id: give the first of its hex digits, as kvpoolctl "
				 "prefixes shows them",
				 id);
	rc = admin_open(&ctl->opt, &a);
	if (!rc)
		rc = id ? pin_id(&a, &ctl->opt, id, &p) : pin_tokens(&a, &ctl->opt, &p);
	return rc ? rc : tell(ctl, &p);
}
