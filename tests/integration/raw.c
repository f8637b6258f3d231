/* SPDX-License-Identifier: Apache-2.0 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/nsdesc.h"
#include "shm/layout.h"
#include "tests/integration/raw.h"

#define RAW_WAIT_MS 20000

struct raw *raw_open(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct raw *r = calloc(1, sizeof(*r));

	assert(r && strlen(path) < sizeof(to.sun_path));
	memcpy(to.sun_path, path, strlen(path) + 1);
	r->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert(r->sock >= 0 && connect(r->sock, (struct sockaddr *)&to, sizeof(to)) == 0);
	codec_arena_init(&r->arena, r->memory, sizeof(r->memory));
	return r;
}

static void raw_drop_fds(struct raw *r)
{
	while (r->n_fds)
		close(r->fds[--r->n_fds]);
}

void raw_close(struct raw *r)
{
	if (!r)
		return;
	raw_drop_fds(r);
	if (r->sock >= 0)
		close(r->sock);
	free(r);
}

struct raw *raw_hello(const char *path, const char *name)
{
	struct raw *r = raw_open(path);
	Kvpool__Hello m = KVPOOL__HELLO__INIT;

	m.protocol_min = PROTOCOL_MIN;
	m.protocol_max = PROTOCOL_MAX;
	m.layout = LAYOUT_VERSION;
	m.name = (char *)name;
	m.library = (char *)"raw";
	m.hazards = 16;
	raw_call(r, OP_HELLO, &m.base);
	assert(r->n_fds == 3);
	return r;
}

/* More descriptors than frame_send takes, so that it is done by hand. */
int raw_send_packet(struct raw *r, const void *packet, size_t n, const int *fds, unsigned int n_fds)
{
	union {
		char bytes[CMSG_SPACE(253 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { (void *)packet, n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	assert(n_fds <= 253);
	if (n_fds) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	return sendmsg(r->sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

void raw_send_body(struct raw *r, unsigned int op, const void *body, size_t n)
{
	static unsigned char packet[FRAME_MAX + 1];
	const struct frame_header h = { .magic = FRAME_MAGIC, .op = (uint16_t)op, .id = ++r->id };

	assert(n <= sizeof(packet) - FRAME_HEADER_BYTES);
	frame_write(packet, &h);
	if (n)
		memcpy(packet + FRAME_HEADER_BYTES, body, n);
	assert(raw_send_packet(r, packet, FRAME_HEADER_BYTES + n, NULL, 0) == 0);
}

void raw_send(struct raw *r, unsigned int op, const ProtobufCMessage *m)
{
	static unsigned char body[FRAME_MAX];

	assert(protobuf_c_message_get_packed_size(m) <= sizeof(body));
	raw_send_body(r, op, body, protobuf_c_message_pack(m, body));
}

int raw_receive(struct raw *r)
{
	struct pollfd p = { .fd = r->sock, .events = POLLIN };
	long n;

	raw_drop_fds(r);
	assert(poll(&p, 1, RAW_WAIT_MS) == 1);
	n = frame_recv(r->sock, r->in, r->fds, FRAME_FDS_MAX, &r->n_fds);
	if (n == 0)
		return 0;
	assert(n > 0 && !frame_parse(r->in, (size_t)n, &r->head));
	r->n = (size_t)n;
	return 1;
}

const void *raw_message(struct raw *r, const ProtobufCMessageDescriptor *type)
{
	const void *m = codec_unpack(&r->arena, type, r->in + FRAME_HEADER_BYTES,
				     r->n - FRAME_HEADER_BYTES);

	assert(m);
	return m;
}

const void *raw_call(struct raw *r, enum proto_op op, const ProtobufCMessage *m)
{
	raw_send(r, op, m);
	assert(raw_receive(r));
	if (r->head.flags & FRAME_ERROR)
		fprintf(stderr, "raw: %s\n", raw_expect_error(r, ERROR_NONE, NULL)->text);
	assert(r->head.op == op && r->head.flags == FRAME_REPLY && r->head.id == r->id);
	assert(r->head.epoch);
	return raw_message(r, proto_op_find(op)->reply);
}

/* ERROR_NONE: whatever it is. The packet is read only when the last one is no error. */
static const Kvpool__Error *raw_error(struct raw *r)
{
	assert(r->head.flags == (FRAME_REPLY | FRAME_ERROR));
	return raw_message(r, &kvpool__error__descriptor);
}

const Kvpool__Error *raw_expect_error(struct raw *r, enum proto_error code, const char *field)
{
	const Kvpool__Error *e;

	if (code != ERROR_NONE)
		assert(raw_receive(r));
	e = raw_error(r);
	if ((code != ERROR_NONE && e->code != code) || (field && strcmp(field, e->field))) {
		fprintf(stderr, "raw: expected error %s about \"%s\", got %s about \"%s\": %s\n",
			proto_error_name(code), field ? field : "", proto_error_name(e->code),
			e->field, e->text);
		abort();
	}
	assert(*e->text);
	return e;
}

void raw_expect_end(struct raw *r)
{
	struct pollfd p = { .fd = r->sock, .events = POLLIN };
	ssize_t n;

	do {
		assert(poll(&p, 1, RAW_WAIT_MS) == 1);
		n = recv(r->sock, r->in, sizeof(r->in), 0);
	} while (n > 0);
	assert(n == 0 || errno == ECONNRESET);
}

void raw_ping(struct raw *r)
{
	Kvpool__Ping m = KVPOOL__PING__INIT;

	raw_call(r, OP_PING, &m.base);
}

size_t raw_descriptor(const char *model, uint8_t *out)
{
	struct nsdesc_builder b;
	const uint8_t weights[32] = { 1 };
	long n;

	nsdesc_begin(&b);
	nsdesc_put_text(&b, NSDESC_MODEL, model);
	nsdesc_put(&b, NSDESC_WEIGHTS, weights, sizeof(weights));
	nsdesc_put_text(&b, NSDESC_TYPE_K, "f16");
	nsdesc_put_text(&b, NSDESC_TYPE_V, "f16");
	nsdesc_put_number(&b, NSDESC_LAYERS, 2);
	nsdesc_put_number(&b, NSDESC_KV_HEADS, 2);
	nsdesc_put_number(&b, NSDESC_HEAD_DIM_K, 64);
	nsdesc_put_number(&b, NSDESC_HEAD_DIM_V, 64);
	nsdesc_put_text(&b, NSDESC_LAYOUT, "test");
	nsdesc_put_number(&b, NSDESC_BLOCK_TOKENS, 16);
	nsdesc_put_number(&b, NSDESC_BLOCK_BYTES, 16384);
	nsdesc_put_text(&b, NSDESC_ENGINE, "test 1");
	n = nsdesc_finish(&b, out);
	assert(n > 0);
	return (size_t)n;
}

uint32_t raw_ns(struct raw *r, const char *model)
{
	uint8_t desc[NSDESC_MAX_BYTES];
	Kvpool__NsOpen m = KVPOOL__NS_OPEN__INIT;
	const Kvpool__NsOpenReply *reply;

	m.descriptor = (ProtobufCBinaryData){ raw_descriptor(model, desc), desc };
	reply = raw_call(r, OP_NS_OPEN, &m.base);
	return reply->ns;
}

void raw_keys(unsigned int seed, uint8_t *keys, size_t n)
{
	memset(keys, 0, n * KEY_BYTES);
	for (size_t i = 0; i < n; i++) {
		uint32_t word[2] = { seed, (uint32_t)i + 1 };

		for (size_t at = 0; at < KEY_BYTES; at += sizeof(word)) {
			memcpy(keys + i * KEY_BYTES + at, word, sizeof(word));
			word[1] = word[1] * 2654435761u + seed;
		}
	}
}

const Kvpool__ReserveReply *raw_reserve(struct raw *r, uint32_t ns, uint8_t *keys, size_t n)
{
	Kvpool__Reserve m = KVPOOL__RESERVE__INIT;

	m.ns = ns;
	m.keys = (ProtobufCBinaryData){ n * KEY_BYTES, keys };
	return raw_call(r, OP_RESERVE, &m.base);
}
