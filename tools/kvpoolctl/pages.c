/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/pages.h"

#include "base/cleanup.h"
#include "tools/kvpoolctl/say.h"

/* NULL for a message that has no such field: its list is one page. */
static void *field_at(const ProtobufCMessage *m, const char *name, int *ret_wide)
{
	const ProtobufCFieldDescriptor *f =
		protobuf_c_message_descriptor_get_field_by_name(m->descriptor, name);

	if (!f)
		return NULL;
	*ret_wide = f->type == PROTOBUF_C_TYPE_UINT64;
	return (char *)m + f->offset;
}

static uint64_t get_number(const ProtobufCMessage *m, const char *name)
{
	int wide = 0;
	const void *at = field_at(m, name, &wide);

	return !at ? 0 : wide ? *(const uint64_t *)at : *(const uint32_t *)at;
}

static void set_number(ProtobufCMessage *m, const char *name, uint64_t n)
{
	int wide = 0;
	void *at = field_at(m, name, &wide);

	if (at && wide)
		*(uint64_t *)at = n;
	else if (at)
		*(uint32_t *)at = (uint32_t)n;
}

static void each_item(const ProtobufCMessage *reply, void (*each)(void *data, const void *item),
		      void *data)
{
	const ProtobufCFieldDescriptor *f =
		protobuf_c_message_descriptor_get_field_by_name(reply->descriptor, "items");
	size_t n = *(const size_t *)((const char *)reply + f->quantifier_offset);
	void *const *items = *(void *const *const *)((const char *)reply + f->offset);

	for (size_t i = 0; i < n; i++)
		each(data, items[i]);
}

/* The field that says where a list goes on: behind an item, or, newest first, before one. */
static const char *cursor_of(const ProtobufCMessage *request)
{
	int wide;

	if (field_at(request, "after", &wide))
		return "after";
	return field_at(request, "before", &wide) ? "before" : "";
}

static int goes_on(const char *cursor, uint64_t at, uint64_t next)
{
	return !strcmp(cursor, "after") ? next > at : !at || next < at;
}

static enum ctl_exit each_page(struct admin *a, enum proto_op op, ProtobufCMessage *request,
			       void (*each)(void *data, const void *item), void *data)
{
	const char *cursor = cursor_of(request);
	uint64_t at = 0, next;
	const void *reply;
	enum ctl_exit rc;

	for (;;) {
		set_number(request, cursor, at);
		rc = admin_call(a, op, request, &reply);
		if (rc)
			return rc;
		each_item(reply, each, data);
		next = get_number(reply, "next");
		if (!next || !*cursor)
			return EXIT_OK;
		if (!goes_on(cursor, at, next))
			return say_error(EXIT_FAILED,
					 "kvpoold at %s sends its list of %s in circles",
					 admin_path(a), proto_op_find(op)->name);
		at = next;
	}
}

enum ctl_exit pages_each(struct admin *a, enum proto_op op, ProtobufCMessage *request,
			 void (*each)(void *data, const void *item), void *data)
{
	_cleanup_free_ ProtobufCMessage *empty = NULL;
	const ProtobufCMessageDescriptor *type = proto_op_find(op)->request;

	if (request)
		return each_page(a, op, request, each, data);
	empty = malloc(type->sizeof_message);
	if (!empty)
		return say_error(EXIT_FAILED, "out of memory");
	protobuf_c_message_init(type, empty);
	return each_page(a, op, empty, each, data);
}
