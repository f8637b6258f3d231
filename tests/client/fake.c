/* SPDX-License-Identifier: Apache-2.0 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "kernels/crc32c.h"
#include "shm/desc.h"
#include "shm/word.h"
#include "tests/client/fake.h"

static void memory_make(struct fake_memory *m)
{
	static uint64_t domain = 1;
	struct control_config cfg = {
		.pool_bytes = FAKE_POOL_BYTES,
		.max_blocks = FAKE_BLOCKS,
		.max_namespaces = 16,
		.granule_shift = 16,
		.domain_id = domain++,
		.index_salt = { 77, 99 },
	};
	void *pool;

	memset(m, 0, sizeof(*m));
	m->control_bytes = control_size(&cfg);
	m->control_fd = fd_memory("fake-control", m->control_bytes, 1);
	m->pool_fd = fd_memory("fake-pool", FAKE_POOL_BYTES, 1);
	assert(m->control_fd >= 0 && m->pool_fd >= 0);
	m->control_ro = fd_reopen_readonly(m->control_fd);
	assert(m->control_ro >= 0);
	assert(fd_map(m->control_fd, m->control_bytes, 1, &m->control_base) == 0);
	assert(fd_map(m->pool_fd, FAKE_POOL_BYTES, 1, &pool) == 0);
	m->pool = pool;
	control_format(m->control_base, &cfg);
	assert(!control_attach(m->control_base, m->control_bytes, &m->control));
	m->index.c = &m->control;
	m->index.claimed = calloc(m->control.bucket_mask + 1, 1);
	assert(m->index.claimed);
}

static void memory_drop(struct fake_memory *m)
{
	fd_unmap(m->control_base, m->control_bytes);
	fd_unmap(m->pool, FAKE_POOL_BYTES);
	close_fd(m->control_fd);
	close_fd(m->control_ro);
	close_fd(m->pool_fd);
	free(m->index.claimed);
}

/* A block that is reserved, in the next descriptor and slot. Returns the descriptor. */
static uint32_t memory_reserve(struct fake_memory *m, const struct block_key *key, uint32_t parent,
			       uint64_t writer)
{
	struct desc_identity id = {
		.key = *key, .parent = parent, .ns = FAKE_NS, .writer = writer
	};

	assert(m->next < FAKE_BLOCKS);
	if (parent != DESC_NONE)
		id.depth = m->control.desc[parent].depth + 1;
	desc_reserve(&m->control, m->next, &id, TIER_HOST, m->next);
	return m->next++;
}

static void memory_commit(struct fake_memory *m, uint32_t d, uint32_t crc)
{
	struct block_key key = desc_key(&m->control, d);
	uint64_t bucket;

	assert(index_claim(&m->index, &key, &bucket));
	desc_commit(&m->control, d, TIER_HOST, crc);
	index_publish(&m->index, bucket, &key, d, word_gen(m->control.desc[d].word));
}

/* The descriptor of a key in any state in which it has one, or DESC_NONE. */
static uint32_t memory_find(const struct fake_memory *m, const struct block_key *key)
{
	for (uint32_t d = m->next; d-- > 0;) {
		struct block_key k = desc_key(&m->control, d);
		enum desc_state state = word_state(m->control.desc[d].word);

		if (state != DESC_FREE && state != DESC_DOOMED && !memcmp(&k, key, sizeof(k)))
			return d;
	}
	return DESC_NONE;
}

static enum desc_state state_of(const struct fake_memory *m, uint32_t d)
{
	return d == DESC_NONE ? DESC_FREE : word_state(m->control.desc[d].word);
}

uint32_t fake_find(struct fake *f, const struct kvpool_key *key)
{
	return memory_find(&f->m, (const struct block_key *)key);
}

void fake_publish(struct fake *f, const struct kvpool_key *keys, uint32_t first, uint32_t n)
{
	uint32_t parent = first ? fake_find(f, &keys[first - 1]) : DESC_NONE;

	for (uint32_t i = first; i < n; i++) {
		uint32_t d =
			memory_reserve(&f->m, (const struct block_key *)&keys[i], parent, 1000);
		uint8_t *block = f->m.pool + (uint64_t)d * FAKE_BLOCK_BYTES;

		memset(block, fake_byte(&keys[i]), FAKE_BLOCK_BYTES);
		memory_commit(&f->m, d, crc32c(0, block, FAKE_BLOCK_BYTES));
		parent = d;
	}
}

void fake_evict(struct fake *f, const struct kvpool_key *key)
{
	uint32_t d = fake_find(f, key);

	assert(state_of(&f->m, d) == DESC_COMMITTED);
	desc_set_state(&f->m.control, d, DESC_EVICTING);
	index_remove(&f->m.index, (const struct block_key *)key, d);
	desc_free(&f->m.control, d);
}

void fake_retire(struct fake *f)
{
	store_release(&f->m.control.head->state, CONTROL_RETIRED);
}

/* Until the client reads what it was sent; 0 when the daemon is stopped meanwhile. */
static int wait_for_room(struct fake_request *rq)
{
	struct pollfd p[2] = {
		{ .fd = rq->fake->wake[0], .events = POLLIN },
		{ .fd = rq->sock, .events = POLLOUT },
	};

	(void)poll(p, 2, -1);
	return !p[0].revents;
}

void fake_send(struct fake_request *rq, const struct frame_header *h, const ProtobufCMessage *m,
	       const int *fds, unsigned int n_fds)
{
	long n = codec_pack(rq->fake->out, h, m);

	assert(n > 0);
	/* The client may be gone, or slow. */
	while (frame_send(rq->sock, rq->fake->out, (size_t)n, fds, n_fds) == -EAGAIN &&
	       wait_for_room(rq))
		;
}

static struct frame_header reply_header(const struct fake_request *rq, uint16_t flags)
{
	return (struct frame_header){
		.magic = FRAME_MAGIC,
		.op = rq->head.op,
		.flags = flags,
		.id = rq->head.id,
		.epoch = 1,
	};
}

void fake_reply(struct fake_request *rq, const ProtobufCMessage *m)
{
	struct frame_header h = reply_header(rq, FRAME_REPLY);

	fake_send(rq, &h, m, NULL, 0);
}

void fake_error(struct fake_request *rq, enum proto_error code, const char *text)
{
	struct frame_header h = reply_header(rq, FRAME_REPLY | FRAME_ERROR);
	Kvpool__Error e = KVPOOL__ERROR__INIT;

	e.code = code;
	e.text = (char *)text;
	fake_send(rq, &h, &e.base, NULL, 0);
}

static void drop_region(struct fake *f)
{
	if (!f->region_base)
		return;
	fd_unmap(f->region_base, f->region_bytes);
	close_fd(f->region_fd);
	f->region_base = NULL;
}

static void answer_hello(struct fake_request *rq)
{
	const Kvpool__Hello *m = (const Kvpool__Hello *)rq->message;
	struct frame_header h = reply_header(rq, FRAME_REPLY);
	Kvpool__HelloReply r = KVPOOL__HELLO_REPLY__INIT;
	struct fake *f = rq->fake;
	uint32_t hazards = MIN(m->hazards, f->hazards_max);

	drop_region(f);
	f->region_bytes = session_size(hazards, 64);
	f->region_fd = fd_memory("fake-session", f->region_bytes, 0);
	assert(f->region_fd >= 0 && fd_map(f->region_fd, f->region_bytes, 1, &f->region_base) == 0);
	session_format(f->region_base, ++f->sessions, hazards, 64);
	session_map_trusted(f->region_base, hazards, 64, &f->session);
	r.protocol = PROTOCOL_MAX;
	r.daemon = (char *)"fake";
	r.domain = (char *)"test";
	r.session = f->sessions;
	r.control_bytes = f->m.control_bytes;
	r.pool_bytes = FAKE_POOL_BYTES;
	r.region_bytes = f->region_bytes;
	r.pool_writable = !f->read_only;
	r.max_keys = f->max_keys;
	r.features = f->no_features ? 0 : UINT64_MAX; /* and some that nobody knows */
	fake_send(rq, &h, &r.base, (int[]){ f->m.control_ro, f->m.pool_fd, f->region_fd }, 3);
}

static void answer_ns_open(struct fake_request *rq)
{
	Kvpool__NsOpenReply r = KVPOOL__NS_OPEN_REPLY__INIT;

	r.ns = FAKE_NS;
	fake_reply(rq, &r.base);
}

/* All requests of one kind at a time, so one set of arrays will do. */
static uint8_t verdicts[FRAME_KEYS_MAX];
static uint32_t descs[FRAME_KEYS_MAX], slots[FRAME_KEYS_MAX];
static uint64_t gens[FRAME_KEYS_MAX];

static uint8_t reserve_one(struct fake_request *rq, const struct block_key *key, uint32_t *parent,
			   Kvpool__ReserveReply *r)
{
	struct fake_memory *m = &rq->fake->m;
	uint32_t d = memory_find(m, key);

	if (state_of(m, d) == DESC_COMMITTED) {
		*parent = d;
		return VERDICT_PRESENT;
	}
	if (d != DESC_NONE)
		return VERDICT_BUSY;
	if (m->next == FAKE_BLOCKS) {
		r->full = FULL_POOL;
		return VERDICT_FULL;
	}
	d = memory_reserve(m, key, *parent, rq->fake->sessions);
	descs[r->n_desc] = d;
	slots[r->n_slot++] = d;
	gens[r->n_gen++] = word_gen(m->control.desc[d].word);
	r->n_desc++;
	*parent = d;
	return VERDICT_GRANTED;
}

/* Unnamed slots: as many as unnamed_max allows, reserved under no key. */
static void answer_unnamed(struct fake_request *rq, uint32_t n)
{
	static const struct block_key none;
	Kvpool__ReserveReply r = KVPOOL__RESERVE_REPLY__INIT;
	struct fake_memory *m = &rq->fake->m;

	r.desc = descs;
	r.slot = slots;
	r.gen = gens;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t d;

		if (rq->fake->unnamed == rq->fake->unnamed_max || m->next == FAKE_BLOCKS) {
			verdicts[i] = VERDICT_FULL;
			r.full = FULL_QUOTA;
			continue;
		}
		d = memory_reserve(m, &none, DESC_NONE, rq->fake->sessions);
		verdicts[i] = VERDICT_GRANTED;
		descs[i] = slots[i] = d;
		gens[i] = word_gen(m->control.desc[d].word);
		r.n_desc = r.n_slot = r.n_gen = i + 1;
		rq->fake->unnamed++;
	}
	r.verdict = (ProtobufCBinaryData){ n, verdicts };
	fake_reply(rq, &r.base);
}

static void answer_reserve(struct fake_request *rq)
{
	const Kvpool__Reserve *m = (const Kvpool__Reserve *)rq->message;
	Kvpool__ReserveReply r = KVPOOL__RESERVE_REPLY__INIT;
	const struct block_key *keys = (const struct block_key *)m->keys.data;
	size_t n = m->keys.len / sizeof(*keys);
	uint32_t parent = DESC_NONE;
	uint8_t rest = VERDICT_NONE;

	if (m->unnamed) {
		answer_unnamed(rq, m->unnamed);
		return;
	}
	r.desc = descs;
	r.slot = slots;
	r.gen = gens;
	if (m->parent.len) {
		parent = memory_find(&rq->fake->m, (const struct block_key *)m->parent.data);
		if (parent == DESC_NONE)
			rest = VERDICT_NO_PARENT;
	}
	for (size_t i = 0; i < n; i++) {
		verdicts[i] = rest ? rest : reserve_one(rq, &keys[i], &parent, &r);
		if (verdicts[i] != VERDICT_GRANTED && verdicts[i] != VERDICT_PRESENT)
			rest = verdicts[i];
	}
	r.verdict = (ProtobufCBinaryData){ n, verdicts };
	fake_reply(rq, &r.base);
}

static uint8_t commit_one(struct fake_memory *m, uint32_t d, uint64_t gen, uint32_t crc)
{
	uint32_t parent;

	if (d >= m->next || word_gen(m->control.desc[d].word) != gen)
		return VERDICT_STALE;
	if (state_of(m, d) != DESC_RESERVED)
		return VERDICT_NOT_OWNER;
	parent = m->control.desc[d].parent;
	if (parent != DESC_NONE && state_of(m, parent) != DESC_COMMITTED)
		return VERDICT_NO_PARENT;
	memory_commit(m, d, crc);
	return VERDICT_COMMITTED;
}

/* Names d, below *tip, and commits it. */
static uint8_t name_one(struct fake *f, uint32_t d, uint64_t gen, uint32_t crc,
			const struct block_key *key, uint32_t *tip)
{
	struct fake_memory *m = &f->m;
	struct desc_identity id = { .key = *key, .parent = *tip };
	uint32_t there = memory_find(m, key);

	if (there != DESC_NONE)
		*tip = there;
	if (d >= m->next || word_gen(m->control.desc[d].word) != gen ||
	    state_of(m, d) != DESC_RESERVED)
		return VERDICT_STALE;
	if (there != DESC_NONE)
		return state_of(m, there) == DESC_COMMITTED ? VERDICT_PRESENT : VERDICT_BUSY;
	if (*tip != DESC_NONE && state_of(m, *tip) != DESC_COMMITTED)
		return VERDICT_NO_PARENT;
	if (*tip != DESC_NONE)
		id.depth = m->control.desc[*tip].depth + 1;
	desc_name(&m->control, d, &id);
	memory_commit(m, d, crc);
	f->unnamed--;
	*tip = d;
	return VERDICT_COMMITTED;
}

static void name_all(struct fake *f, const Kvpool__Commit *m)
{
	const struct block_key *keys = (const struct block_key *)m->keys.data;
	uint32_t tip = DESC_NONE;
	uint8_t rest = VERDICT_NONE;

	assert(m->keys.len == m->n_desc * sizeof(*keys));
	if (m->parent.len) {
		tip = memory_find(&f->m, (const struct block_key *)m->parent.data);
		rest = tip == DESC_NONE ? VERDICT_NO_PARENT : VERDICT_NONE;
	}
	for (size_t i = 0; i < m->n_desc; i++) {
		verdicts[i] = rest ?: name_one(f, m->desc[i], m->gen[i], m->crc[i], &keys[i], &tip);
		if (verdicts[i] != VERDICT_COMMITTED && verdicts[i] != VERDICT_PRESENT)
			rest = verdicts[i] == VERDICT_STALE ? VERDICT_NONE : verdicts[i];
	}
}

static void answer_commit(struct fake_request *rq)
{
	const Kvpool__Commit *m = (const Kvpool__Commit *)rq->message;
	Kvpool__CommitReply r = KVPOOL__COMMIT_REPLY__INIT;

	assert(m->n_desc == m->n_gen && m->n_desc == m->n_crc);
	if (m->keys.len)
		name_all(rq->fake, m);
	for (size_t i = 0; !m->keys.len && i < m->n_desc; i++)
		verdicts[i] = commit_one(&rq->fake->m, m->desc[i], m->gen[i], m->crc[i]);
	r.verdict = (ProtobufCBinaryData){ m->n_desc, verdicts };
	fake_reply(rq, &r.base);
}

static int is_unnamed(const struct fake_memory *m, uint32_t d)
{
	const struct block_key none = { { 0 } };
	struct block_key key = desc_key(&m->control, d);

	return !memcmp(&key, &none, sizeof(key));
}

static void answer_abort(struct fake_request *rq)
{
	const Kvpool__Abort *m = (const Kvpool__Abort *)rq->message;
	Kvpool__AbortReply r = KVPOOL__ABORT_REPLY__INIT;
	struct fake_memory *mem = &rq->fake->m;

	assert(m->n_desc == m->n_gen);
	for (size_t i = 0; i < m->n_desc; i++) {
		int mine = m->desc[i] < mem->next && state_of(mem, m->desc[i]) == DESC_RESERVED;

		verdicts[i] = mine ? VERDICT_FREED : VERDICT_NOT_OWNER;
		if (mine && is_unnamed(mem, m->desc[i]))
			rq->fake->unnamed--;
		if (mine)
			desc_free(&mem->control, m->desc[i]);
	}
	r.verdict = (ProtobufCBinaryData){ m->n_desc, verdicts };
	fake_reply(rq, &r.base);
}

/* It never waits: what is reserved is what it is. */
static void answer_wait(struct fake_request *rq)
{
	const Kvpool__Wait *m = (const Kvpool__Wait *)rq->message;
	Kvpool__WaitReply r = KVPOOL__WAIT_REPLY__INIT;
	const struct block_key *keys = (const struct block_key *)m->keys.data;
	size_t n = m->keys.len / sizeof(*keys);

	while (r.present < n &&
	       state_of(&rq->fake->m, memory_find(&rq->fake->m, &keys[r.present])) ==
		       DESC_COMMITTED)
		r.present++;
	for (size_t i = r.present; i < n; i++)
		if (state_of(&rq->fake->m, memory_find(&rq->fake->m, &keys[i])) == DESC_RESERVED)
			r.timed_out = 1;
	fake_reply(rq, &r.base);
}

static void answer_unwait(struct fake_request *rq)
{
	Kvpool__UnwaitReply r = KVPOOL__UNWAIT_REPLY__INIT;

	fake_reply(rq, &r.base);
}

static void answer_locate(struct fake_request *rq)
{
	Kvpool__LocateReply r = KVPOOL__LOCATE_REPLY__INIT;

	fake_reply(rq, &r.base);
}

static void answer_ping(struct fake_request *rq)
{
	Kvpool__PingReply r = KVPOOL__PING_REPLY__INIT;

	fake_reply(rq, &r.base);
}

static void answer_ns_close(struct fake_request *rq)
{
	Kvpool__NsCloseReply r = KVPOOL__NS_CLOSE_REPLY__INIT;

	fake_reply(rq, &r.base);
}

static void answer_report(struct fake_request *rq)
{
	Kvpool__ReportReply r = KVPOOL__REPORT_REPLY__INIT;

	fake_reply(rq, &r.base);
}

void fake_usual(struct fake_request *rq)
{
	static void (*const answers[])(struct fake_request *) = {
		[OP_HELLO] = answer_hello,     [OP_NS_OPEN] = answer_ns_open,
		[OP_RESERVE] = answer_reserve, [OP_COMMIT] = answer_commit,
		[OP_ABORT] = answer_abort,     [OP_WAIT] = answer_wait,
		[OP_LOCATE] = answer_locate,   [OP_REPORT] = answer_report,
		[OP_PING] = answer_ping,       [OP_NS_CLOSE] = answer_ns_close,
		[OP_UNWAIT] = answer_unwait,
	};

	assert(rq->message && rq->head.op != OP_TOUCH);
	if (rq->head.op < ARRAY_SIZE(answers) && answers[rq->head.op])
		answers[rq->head.op](rq);
}

/* One packet. Returns 0 when the connection is to end. */
static int serve(struct fake *f, int sock)
{
	struct fake_request rq = { .fake = f, .sock = sock };
	const struct proto_op_info *op;
	enum fake_answer answer = FAKE_USUAL;
	unsigned int n_fds;
	long n = frame_recv(sock, f->packet, NULL, 0, &n_fds);
	fake_script script;
	void *arg;

	if (n <= 0 || frame_parse(f->packet, (size_t)n, &rq.head))
		return 0;
	op = proto_op_find(rq.head.op);
	assert(op && rq.head.flags == 0);
	rq.message = codec_unpack(&f->arena, op->request, f->packet + FRAME_HEADER_BYTES,
				  (size_t)n - FRAME_HEADER_BYTES);
	pthread_mutex_lock(&f->lock);
	f->seen[rq.head.op]++;
	script = f->script;
	arg = f->arg;
	pthread_mutex_unlock(&f->lock);
	if (script)
		answer = script(&rq, arg);
	if (answer == FAKE_USUAL)
		fake_usual(&rq);
	return answer != FAKE_HANG_UP && rq.head.op != OP_BYE;
}

static void accept_one(struct fake *f)
{
	int sock = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (sock < 0)
		return;
	assert(f->n_conns < FAKE_CONNS);
	f->conns[f->n_conns++] = sock;
}

static void *run(void *arg)
{
	struct fake *f = arg;

	for (;;) {
		struct pollfd p[2 + FAKE_CONNS] = {
			{ .fd = f->wake[0], .events = POLLIN },
			{ .fd = f->listener, .events = POLLIN },
		};

		for (unsigned int i = 0; i < f->n_conns; i++)
			p[2 + i] = (struct pollfd){ .fd = f->conns[i], .events = POLLIN };
		if (poll(p, 2 + f->n_conns, -1) < 0 && errno != EINTR)
			abort();
		if (p[0].revents)
			return NULL;
		for (unsigned int i = f->n_conns; i-- > 0;)
			if (p[2 + i].revents && !serve(f, f->conns[i])) {
				close(f->conns[i]);
				f->conns[i] = f->conns[--f->n_conns];
			}
		if (p[1].revents)
			accept_one(f);
	}
}

static void listen_on(struct fake *f)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", f->socket);
	unlink(f->socket);
	f->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert(f->listener >= 0);
	assert(bind(f->listener, (struct sockaddr *)&a, sizeof(a)) == 0);
	assert(listen(f->listener, 16) == 0);
}

void fake_again(struct fake *f)
{
	memory_make(&f->m);
	f->unnamed = 0;
	listen_on(f);
	assert(pipe(f->wake) == 0);
	assert(pthread_create(&f->thread, NULL, run, f) == 0);
}

void fake_start(struct fake *f)
{
	memset(f, 0, sizeof(*f));
	strcpy(f->dir, "/tmp/kvpool-fake-XXXXXX");
	assert(mkdtemp(f->dir));
	snprintf(f->socket, sizeof(f->socket), "%s/kvpool.sock", f->dir);
	pthread_mutex_init(&f->lock, NULL);
	f->arena_memory = malloc(CODEC_ARENA_BYTES);
	codec_arena_init(&f->arena, f->arena_memory, CODEC_ARENA_BYTES);
	f->hazards_max = SESSION_HAZARDS_MAX;
	f->max_keys = FRAME_KEYS_MAX;
	f->unnamed_max = FAKE_BLOCKS;
	fake_again(f);
}

void fake_stop(struct fake *f)
{
	assert(write(f->wake[1], "", 1) == 1);
	pthread_join(f->thread, NULL);
	close(f->wake[0]);
	close(f->wake[1]);
	close(f->listener);
	f->listener = -1;
	while (f->n_conns)
		close(f->conns[--f->n_conns]);
	drop_region(f);
	memory_drop(&f->m);
}

void fake_end(struct fake *f)
{
	if (f->listener >= 0)
		fake_stop(f);
	unlink(f->socket);
	rmdir(f->dir);
	free(f->arena_memory);
	pthread_mutex_destroy(&f->lock);
}

void fake_set_script(struct fake *f, fake_script script, void *arg)
{
	pthread_mutex_lock(&f->lock);
	f->script = script;
	f->arg = arg;
	pthread_mutex_unlock(&f->lock);
}

unsigned int fake_seen(struct fake *f, enum proto_op op)
{
	unsigned int n;

	pthread_mutex_lock(&f->lock);
	n = f->seen[op];
	pthread_mutex_unlock(&f->lock);
	return n;
}

struct kvpool *fake_connect(const struct fake *f, unsigned int timeout_ms)
{
	struct kvpool_options o = {
		.size = sizeof(o),
		.socket = f->socket,
		.name = "test",
		.timeout_ms = timeout_ms ? timeout_ms : 5000,
		.max_leases = 16,
	};
	struct kvpool *p;

	assert(kvpool_connect(&o, &p) == 0);
	return p;
}

struct kvpool_ns_desc fake_desc(const char *model)
{
	static const uint8_t weights[32] = { 1, 2, 3 };

	return (struct kvpool_ns_desc){
		.size = sizeof(struct kvpool_ns_desc),
		.model = model,
		.weights = weights,
		.type_k = "f16",
		.type_v = "f16",
		.n_layers = 2,
		.n_kv_heads = 1,
		.head_dim_k = 64,
		.head_dim_v = 64,
		.block_tokens = FAKE_BLOCK_TOKENS,
		.block_bytes = FAKE_BLOCK_BYTES,
		.layout = "plain",
		.engine = "test-1",
	};
}

struct kvpool_ns *fake_ns(struct kvpool *pool, const char *model)
{
	struct kvpool_ns_desc d = fake_desc(model);
	struct kvpool_ns *ns;

	assert(kvpool_ns_open(pool, &d, &ns) == 0);
	return ns;
}

void fake_tokens(int32_t *tokens, size_t n, int32_t seed)
{
	for (size_t i = 0; i < n; i++)
		tokens[i] = seed + (int32_t)(i * 7919 % 32000);
}
