/* SPDX-License-Identifier: Apache-2.0 */
#undef NDEBUG
#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "proto/codec.h"
#include "proto/frame.h"
#include "proto/ops.h"
#include "tests/integration/admin.h"

static uint8_t packet[FRAME_MAX], memory[CODEC_ARENA_BYTES];

/* One request on a connection of its own. */
static const void *ask(const struct daemon *d, enum proto_op op, const ProtobufCMessage *request)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct frame_header h = { .magic = FRAME_MAGIC, .op = (uint16_t)op, .id = 1 };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	static struct codec_arena arena;
	struct pollfd p = { .fd = sock, .events = POLLIN };
	const void *reply;
	unsigned int fds;
	long n;

	memcpy(to.sun_path, d->admin, strlen(d->admin) + 1);
	assert(sock >= 0 && connect(sock, (struct sockaddr *)&to, sizeof(to)) == 0);
	n = codec_pack(packet, &h, request);
	assert(n > 0 && frame_send(sock, packet, (size_t)n, NULL, 0) == 0);
	assert(poll(&p, 1, 10000) == 1);
	n = frame_recv(sock, packet, NULL, 0, &fds);
	close(sock);
	assert(n > 0 && !frame_parse(packet, (size_t)n, &h) && h.flags == FRAME_REPLY);
	codec_arena_init(&arena, memory, sizeof(memory));
	reply = codec_unpack(&arena, proto_op_find(op)->reply, packet + FRAME_HEADER_BYTES,
			     (size_t)n - FRAME_HEADER_BYTES);
	assert(reply);
	return reply;
}

const Kvpool__StatusReply *admin_status(const struct daemon *d)
{
	Kvpool__Status m = KVPOOL__STATUS__INIT;

	return ask(d, OP_STATUS, &m.base);
}

const Kvpool__FlushReply *admin_flush(const struct daemon *d)
{
	Kvpool__Flush m = KVPOOL__FLUSH__INIT;

	return ask(d, OP_FLUSH, &m.base);
}

const Kvpool__ResizeReply *admin_resize(const struct daemon *d, uint64_t bytes, int dry_run)
{
	Kvpool__Resize m = KVPOOL__RESIZE__INIT;

	m.bytes = bytes;
	m.dry_run = dry_run;
	return ask(d, OP_RESIZE, &m.base);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double admin_wait_quiet(const struct daemon *d, unsigned int n)
{
	double start = now();

	for (;;) {
		const Kvpool__StatusReply *s = admin_status(d);

		admin_check_sums(s);
		if (!s->writing_bytes && !s->quarantined_bytes && !s->leased_bytes &&
		    !s->doomed_bytes && !s->draining && s->clients == n)
			return now() - start;
		if (now() - start > 20) {
			fprintf(stderr,
				"still held after 20 s: writing %llu quarantined %llu leased %llu "
				"doomed %llu "
				"draining %llu clients %u (expected %u)\n",
				(unsigned long long)s->writing_bytes,
				(unsigned long long)s->quarantined_bytes,
				(unsigned long long)s->leased_bytes,
				(unsigned long long)s->doomed_bytes,
				(unsigned long long)s->draining, s->clients, n);
			assert(!"an ended client still holds something");
		}
		usleep(5000);
	}
}

void admin_wait_excess(const struct daemon *d, uint64_t most)
{
	double start = now();

	for (;;) {
		const Kvpool__StatusReply *s = admin_status(d);

		admin_check_sums(s);
		if (s->pool_excess_bytes <= most)
			return;
		if (now() - start > 20) {
			fprintf(stderr, "still %llu bytes above the limit after 20 s, not %llu\n",
				(unsigned long long)s->pool_excess_bytes, (unsigned long long)most);
			assert(!"a smaller pool does not come about");
		}
		usleep(5000);
	}
}

void admin_wait_unused(const struct daemon *d)
{
	double start = now();

	for (;;) {
		const Kvpool__StatusReply *s = admin_status(d);

		admin_check_sums(s);
		if (!s->pool_handed_bytes)
			return;
		if (now() - start > 20) {
			fprintf(stderr,
				"namespaces still have %llu bytes after 20 s: %llu blocks\n",
				(unsigned long long)s->pool_handed_bytes,
				(unsigned long long)s->blocks);
			assert(!"memory of a namespace that nobody uses does not come back");
		}
		usleep(5000);
	}
}

void admin_check_sums(const Kvpool__StatusReply *s)
{
	uint64_t missed = 0;

	assert(s->asked_tokens == s->hit_tokens + s->miss_tokens);
	for (size_t i = 0; i < s->n_miss_reasons; i++)
		missed += s->miss_reasons[i];
	assert(s->miss_tokens == missed);
	assert(s->pool_handed_bytes == s->cached_bytes + s->writing_bytes + s->quarantined_bytes +
					       s->doomed_bytes + s->free_bytes);
	assert(s->leased_bytes <= s->cached_bytes + s->doomed_bytes);
	assert(s->pool_handed_bytes <= s->pool_bytes + s->pool_excess_bytes);
	assert(s->shared_tokens <= s->hit_tokens);
	assert(s->connects == s->clients + s->ended_clean + s->ended_crash + s->ended_kicked +
				      s->ended_protocol + s->ended_slow + s->refused);
}
