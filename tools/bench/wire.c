/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proto/nsdesc.h"
#include "shm/layout.h"
#include "tools/bench/wire.h"

void wire_pin(pid_t pid, int cpu)
{
	cpu_set_t set;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(pid, sizeof(set), &set) < 0)
		fprintf(stderr, "kvpool-bench: cannot pin a process to a processor: %s\n",
			strerror(errno));
}

void wire_unpin(pid_t pid)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int i = 0; i < CPU_SETSIZE; i++)
		CPU_SET(i, &set);
	(void)sched_setaffinity(pid, sizeof(set), &set);
}

static int call(struct wire *w, enum proto_op op, const ProtobufCMessage *m, const void **ret)
{
	double t;
	int r = wire_pack(w, op, m);

	if (r < 0)
		return r;
	t = wire_trip(w);
	if (t < 0)
		return (int)t;
	*ret = wire_reply(w, op);
	return *ret ? 0 : -EPROTO;
}

/* The descriptors that come with the answer are not wanted: recv leaves them to the kernel. */
static int hello(struct wire *w, const char *name)
{
	Kvpool__Hello m = KVPOOL__HELLO__INIT;
	const void *reply;

	m.protocol_min = PROTOCOL_MIN;
	m.protocol_max = PROTOCOL_MAX;
	m.layout = LAYOUT_VERSION;
	m.name = (char *)name;
	m.library = (char *)BENCH_NAME;
	m.hazards = 16;
	return call(w, OP_HELLO, &m.base, &reply);
}

int wire_open(const struct private_daemon *d, const char *name, struct wire **ret)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t len = strlen(d->socket);
	struct wire *w;
	int r;

	if (len >= sizeof(to.sun_path))
		return -ENAMETOOLONG;
	memcpy(to.sun_path, d->socket, len);
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	codec_arena_init(&w->arena, w->memory, sizeof(w->memory));
	w->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (w->sock < 0 || connect(w->sock, (struct sockaddr *)&to, sizeof(to)) < 0)
		r = -errno;
	else
		r = hello(w, name);
	if (r < 0) {
		fprintf(stderr, "kvpool-bench: cannot open a session: %s\n", strerror(-r));
		wire_close(w);
		return r;
	}
	*ret = w;
	return 0;
}

struct wire *wire_close(struct wire *w)
{
	if (w)
		close_fd(w->sock);
	free(w);
	return NULL;
}

int wire_namespace(struct wire *w, const char *model, uint32_t block_tokens, uint64_t block_bytes,
		   uint32_t *ret_ns)
{
	static const uint8_t weights[32] = { 'b', 'e', 'n', 'c', 'h' };
	Kvpool__NsOpen m = KVPOOL__NS_OPEN__INIT;
	const Kvpool__NsOpenReply *reply;
	uint8_t desc[NSDESC_MAX_BYTES];
	struct nsdesc_builder b;
	const void *got = NULL;
	long n;
	int r;

	nsdesc_begin(&b);
	nsdesc_put_text(&b, NSDESC_MODEL, model);
	nsdesc_put(&b, NSDESC_WEIGHTS, weights, sizeof(weights));
	nsdesc_put_text(&b, NSDESC_TYPE_K, "f16");
	nsdesc_put_text(&b, NSDESC_TYPE_V, "f16");
	nsdesc_put_number(&b, NSDESC_LAYERS, 1);
	nsdesc_put_number(&b, NSDESC_KV_HEADS, 1);
	nsdesc_put_number(&b, NSDESC_HEAD_DIM_K, 64);
	nsdesc_put_number(&b, NSDESC_HEAD_DIM_V, 64);
	nsdesc_put_text(&b, NSDESC_LAYOUT, "opaque");
	nsdesc_put_number(&b, NSDESC_BLOCK_TOKENS, block_tokens);
	nsdesc_put_number(&b, NSDESC_BLOCK_BYTES, block_bytes);
	nsdesc_put_text(&b, NSDESC_ENGINE, "kvpool-bench/1");
	nsdesc_put_number(&b, NSDESC_GROUP_RULE, 0);
	n = nsdesc_finish(&b, desc);
	if (n < 0)
		return (int)n;
	m.descriptor = (ProtobufCBinaryData){ (size_t)n, desc };
	r = call(w, OP_NS_OPEN, &m.base, &got);
	if (r < 0)
		return r;
	reply = got;
	if (reply->created) {
		fprintf(stderr, "kvpool-bench: the library describes its namespace otherwise\n");
		return -EPROTO;
	}
	*ret_ns = reply->ns;
	return 0;
}

int wire_pack(struct wire *w, enum proto_op op, const ProtobufCMessage *m)
{
	const struct frame_header h = { .magic = FRAME_MAGIC, .op = (uint16_t)op, .id = ++w->id };
	long n = codec_pack(w->out, &h, m);

	if (n < 0)
		return (int)n;
	w->n_out = (size_t)n;
	return 0;
}

double wire_round(int sock, const void *out, size_t n_out, void *in, size_t size, size_t *ret_n)
{
	double t = bench_now();
	ssize_t n = send(sock, out, n_out, MSG_NOSIGNAL);

	if (n == (ssize_t)n_out)
		n = recv(sock, in, size, 0);
	t = bench_now() - t;
	if (n <= 0)
		return n < 0 ? -errno : -ECONNRESET;
	*ret_n = (size_t)n;
	return t;
}

double wire_trip(struct wire *w)
{
	return wire_round(w->sock, w->out, w->n_out, w->in, sizeof(w->in), &w->n_in);
}

const void *wire_reply(struct wire *w, enum proto_op op)
{
	struct frame_header h;

	if (frame_parse(w->in, w->n_in, &h) || h.op != op || h.flags != FRAME_REPLY ||
	    h.id != w->id)
		return NULL;
	return codec_unpack(&w->arena, proto_op_find(op)->reply, w->in + FRAME_HEADER_BYTES,
			    w->n_in - FRAME_HEADER_BYTES);
}

static double commit(struct wire *w, const Kvpool__ReserveReply *granted)
{
	static uint32_t crc[FRAME_KEYS_MAX];
	Kvpool__Commit m = KVPOOL__COMMIT__INIT;
	const Kvpool__CommitReply *reply;
	size_t n = granted->n_desc;
	double t;
	int r;

	m.n_desc = m.n_gen = m.n_crc = n;
	m.desc = granted->desc;
	m.gen = granted->gen;
	m.crc = crc;
	r = wire_pack(w, OP_COMMIT, &m.base);
	if (r < 0)
		return r;
	t = wire_trip(w);
	reply = t < 0 ? NULL : wire_reply(w, OP_COMMIT);
	if (t >= 0 &&
	    (!reply || reply->verdict.len != n || reply->verdict.data[n - 1] != VERDICT_COMMITTED))
		return -EPROTO;
	return t;
}

double wire_put(struct wire *w, uint32_t ns, const struct kvpool_key *keys, uint32_t n,
		size_t sizes[4])
{
	Kvpool__Reserve m = KVPOOL__RESERVE__INIT;
	const Kvpool__ReserveReply *reply;
	double t, u;
	int r;

	m.ns = ns;
	m.keys = (ProtobufCBinaryData){ n * sizeof(*keys), (uint8_t *)keys };
	r = wire_pack(w, OP_RESERVE, &m.base);
	if (r < 0)
		return r;
	t = wire_trip(w);
	if (t < 0)
		return t;
	sizes[0] = w->n_out;
	sizes[1] = w->n_in;
	reply = wire_reply(w, OP_RESERVE);
	if (!reply)
		return -EPROTO;
	if (reply->n_desc != n)
		return -ENOSPC;
	u = commit(w, reply);
	sizes[2] = w->n_out;
	sizes[3] = w->n_in;
	return u < 0 ? u : t + u;
}
