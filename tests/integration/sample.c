/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "proto/frame.h"
#include "tests/integration/raw.h"
#include "tests/integration/sample.h"

const struct sample_op sample_ops[] = {
	{ OP_HELLO },         { OP_NS_OPEN },       { OP_RESERVE },    { OP_COMMIT },
	{ OP_ABORT },         { OP_WAIT },          { OP_TOUCH },      { OP_LOCATE },
	{ OP_REPORT },        { OP_PING },          { OP_BYE },        { OP_HINT },
	{ OP_UNWAIT },        { OP_NS_CLOSE },      { OP_VERSION, 1 }, { OP_STATUS, 1 },
	{ OP_NAMESPACES, 1 }, { OP_CLIENTS, 1 },    { OP_FLUSH, 1 },   { OP_STATS_RESET, 1 },
	{ OP_KICK, 1, 1 },    { OP_PIN, 1, 1 },     { OP_UNPIN, 1 },   { OP_PINS, 1 },
	{ OP_RESIZE, 1 },     { OP_PREFIXES, 1 },   { OP_EXPLAIN, 1 }, { OP_REQUESTS, 1 },
	{ OP_CONFIG, 1 },     { OP_CONFIG_SET, 1 }, { OP_RELOAD, 1 },  { OP_LOG_LEVEL, 1 },
};

void sample_make(struct sample *s, uint32_t ns)
{
	ProtobufCBinaryData keys = { sizeof(s->keys), s->keys };

	memset(s, 0, sizeof(*s));
	raw_keys(4711, s->keys, 2);
	kvpool__hello__init(&s->hello);
	s->hello.protocol_min = s->hello.protocol_max = PROTOCOL_MAX;
	s->hello.layout = LAYOUT_VERSION;
	s->hello.name = s->hello.library = (char *)"sample";
	kvpool__ns_open__init(&s->ns_open);
	s->ns_open.descriptor.len = raw_descriptor("protocol", s->desc_bytes);
	s->ns_open.descriptor.data = s->desc_bytes;
	kvpool__reserve__init(&s->reserve);
	s->reserve.keys = keys;
	kvpool__commit__init(&s->commit);
	s->commit.desc = s->desc;
	s->commit.gen = s->gen;
	s->commit.crc = s->crc;
	s->commit.n_desc = s->commit.n_gen = s->commit.n_crc = 2;
	kvpool__abort__init(&s->abort);
	s->abort.desc = s->desc;
	s->abort.gen = s->gen;
	s->abort.n_desc = s->abort.n_gen = 2;
	kvpool__wait__init(&s->wait);
	s->wait.keys = keys;
	kvpool__touch__init(&s->touch);
	s->touch.keys = keys;
	kvpool__locate__init(&s->locate);
	s->locate.keys = keys;
	kvpool__ns_close__init(&s->ns_close);
	s->reserve.ns = s->wait.ns = s->touch.ns = s->locate.ns = s->ns_close.ns = ns;
	kvpool__report__init(&s->report);
	kvpool__ping__init(&s->ping);
	kvpool__bye__init(&s->bye);
	kvpool__version__init(&s->version);
	kvpool__status__init(&s->status);
	kvpool__namespaces__init(&s->namespaces);
	kvpool__clients__init(&s->clients);
	kvpool__flush__init(&s->flush);
	kvpool__hint__init(&s->hint);
	s->hint.ns = ns;
	s->hint.key = (ProtobufCBinaryData){ KEY_BYTES, s->keys };
	s->hint.reuse_s = 60;
	kvpool__unwait__init(&s->unwait);
	s->unwait.id = 1;
	kvpool__stats_reset__init(&s->stats_reset);
	kvpool__kick__init(&s->kick);
	kvpool__pin__init(&s->pin);
	s->pin.id = (char *)"0";
	kvpool__unpin__init(&s->unpin);
	s->unpin.all = 1;
	kvpool__pins__init(&s->pins);
	kvpool__resize__init(&s->resize);
	s->resize.bytes = MIB(64); /* what the daemons of the tests have */
	kvpool__prefixes__init(&s->prefixes);
	kvpool__explain__init(&s->explain);
	s->explain.namespace_ = (char *)"protocol";
	s->explain.keys = keys;
	kvpool__requests__init(&s->requests);
	kvpool__config__init(&s->config);
	kvpool__config_set__init(&s->config_set);
	s->config_set.key = (char *)"cache.pin_budget";
	s->config_set.value = (char *)"10%";
	kvpool__reload__init(&s->reload);
	kvpool__log_level__init(&s->log_level);
}

ProtobufCMessage *sample_of(struct sample *s, enum proto_op op)
{
	switch (op) {
	case OP_HELLO:
		return &s->hello.base;
	case OP_NS_OPEN:
		return &s->ns_open.base;
	case OP_RESERVE:
		return &s->reserve.base;
	case OP_COMMIT:
		return &s->commit.base;
	case OP_ABORT:
		return &s->abort.base;
	case OP_WAIT:
		return &s->wait.base;
	case OP_TOUCH:
		return &s->touch.base;
	case OP_LOCATE:
		return &s->locate.base;
	case OP_REPORT:
		return &s->report.base;
	case OP_PING:
		return &s->ping.base;
	case OP_BYE:
		return &s->bye.base;
	case OP_NS_CLOSE:
		return &s->ns_close.base;
	case OP_VERSION:
		return &s->version.base;
	case OP_STATUS:
		return &s->status.base;
	case OP_NAMESPACES:
		return &s->namespaces.base;
	case OP_CLIENTS:
		return &s->clients.base;
	case OP_FLUSH:
		return &s->flush.base;
	case OP_HINT:
		return &s->hint.base;
	case OP_UNWAIT:
		return &s->unwait.base;
	case OP_STATS_RESET:
		return &s->stats_reset.base;
	case OP_KICK:
		return &s->kick.base;
	case OP_PIN:
		return &s->pin.base;
	case OP_UNPIN:
		return &s->unpin.base;
	case OP_PINS:
		return &s->pins.base;
	case OP_RESIZE:
		return &s->resize.base;
	case OP_PREFIXES:
		return &s->prefixes.base;
	case OP_EXPLAIN:
		return &s->explain.base;
	case OP_REQUESTS:
		return &s->requests.base;
	case OP_CONFIG:
		return &s->config.base;
	case OP_CONFIG_SET:
		return &s->config_set.base;
	case OP_RELOAD:
		return &s->reload.base;
	case OP_LOG_LEVEL:
		return &s->log_level.base;
	default:
		abort();
	}
}
