/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/gguf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/compiler.h"
#include "tools/kvpoolctl/say.h"

#define MAGIC      0x46554747u /* "GGUF" */
#define PAIRS_MAX  65536u      /* keys with values */
#define DEPTH_MAX  4u          /* arrays in arrays */
#define LAYERS_MAX 65536u
#define HEADS_MAX  65536u
#define DIM_MAX    1048576u

enum value_type {
	TYPE_U8,
	TYPE_I8,
	TYPE_U16,
	TYPE_I16,
	TYPE_U32,
	TYPE_I32,
	TYPE_F32,
	TYPE_BOOL,
	TYPE_STRING,
	TYPE_ARRAY,
	TYPE_U64,
	TYPE_I64,
	TYPE_F64,
	TYPE_MAX,
};

/* 0: its size is in the file. */
static const uint8_t type_bytes[TYPE_MAX] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };

/* What has not been read. A read behind the end fails, and so do all after it. */
struct cursor {
	const uint8_t *at;
	size_t left;
	int failed;
};

/* The next n bytes, NULL when they are not there. */
static const uint8_t *take(struct cursor *c, uint64_t n)
{
	const uint8_t *at = c->at;

	if (c->failed || n > c->left) {
		c->failed = 1;
		return NULL;
	}
	c->at += n;
	c->left -= n;
	return at;
}

/* Little endian, 0 when it is not there. */
static uint64_t take_number(struct cursor *c, unsigned int bytes)
{
	const uint8_t *at = take(c, bytes);
	uint64_t n = 0;

	for (unsigned int i = 0; at && i < bytes; i++)
		n |= (uint64_t)at[i] << 8 * i;
	return n;
}

struct text {
	const char *at;
	uint64_t n;
};

static struct text take_text(struct cursor *c)
{
	struct text t = { .n = take_number(c, 8) };

	t.at = (const char *)take(c, t.n);
	if (!t.at)
		t.n = 0;
	return t;
}

static int text_is(struct text t, const char *s)
{
	return t.at && t.n == strlen(s) && !memcmp(t.at, s, t.n);
}

static void skip_value(struct cursor *c, uint64_t type, unsigned int depth);

static void skip_array(struct cursor *c, unsigned int depth)
{
	uint64_t type = take_number(c, 4), n = take_number(c, 8), bytes;

	if (type < TYPE_MAX && type_bytes[type]) {
		if (__builtin_mul_overflow(n, type_bytes[type], &bytes))
			c->failed = 1;
		else
			(void)take(c, bytes);
		return;
	}
	/* Each takes bytes of its own, so that n ends with them. */
	while (n-- && !c->failed)
		skip_value(c, type, depth + 1);
}

static void skip_value(struct cursor *c, uint64_t type, unsigned int depth)
{
	if (type == TYPE_STRING)
		(void)take_text(c);
	else if (type == TYPE_ARRAY && depth < DEPTH_MAX)
		skip_array(c, depth);
	else if (type < TYPE_MAX && type_bytes[type])
		(void)take(c, type_bytes[type]);
	else
		c->failed = 1;
}

/* A number, or an array of numbers: one for each layer. */
struct number {
	uint64_t first, sum, n;
	int differ;
};

static int is_integer(uint64_t type)
{
	return type < TYPE_MAX && type != TYPE_F32 && type != TYPE_F64 && type != TYPE_BOOL &&
	       type_bytes[type];
}

static int is_signed(uint64_t type)
{
	return type == TYPE_I8 || type == TYPE_I16 || type == TYPE_I32 || type == TYPE_I64;
}

static void take_one(struct cursor *c, uint64_t type, struct number *ret)
{
	unsigned int bytes = type_bytes[type];
	uint64_t n = take_number(c, bytes);

	/* No number of a shape is negative, or near the end of what 64 bits hold. */
	if ((is_signed(type) && n >> (8 * bytes - 1)) || n > UINT32_MAX)
		c->failed = 1;
	if (c->failed)
		return;
	if (!ret->n++)
		ret->first = n;
	ret->differ |= n != ret->first;
	ret->sum += n;
}

static void take_value(struct cursor *c, uint64_t type, struct number *ret)
{
	struct number number = { 0 };
	uint64_t n;

	if (is_integer(type)) {
		take_one(c, type, &number);
	} else if (type == TYPE_ARRAY) {
		type = take_number(c, 4);
		n = take_number(c, 8);
		if (!is_integer(type) || n > LAYERS_MAX)
			c->failed = 1;
		while (n-- && !c->failed)
			take_one(c, type, &number);
	} else {
		c->failed = 1;
	}
	*ret = number;
}

struct wanted {
	struct number blocks, heads, kv_heads, key, value, width, lora, rope, window, state;
};

static const struct {
	const char *name; /* behind the architecture and a dot */
	size_t at;
} wanted_keys[] = {
	{ "block_count", offsetof(struct wanted, blocks) },
	{ "attention.head_count", offsetof(struct wanted, heads) },
	{ "attention.head_count_kv", offsetof(struct wanted, kv_heads) },
	{ "attention.key_length", offsetof(struct wanted, key) },
	{ "attention.value_length", offsetof(struct wanted, value) },
	{ "embedding_length", offsetof(struct wanted, width) },
	{ "attention.kv_lora_rank", offsetof(struct wanted, lora) },
	{ "rope.dimension_count", offsetof(struct wanted, rope) },
	{ "attention.sliding_window", offsetof(struct wanted, window) },
	{ "ssm.state_size", offsetof(struct wanted, state) },
};

/* Where the value of a key goes, NULL when nobody asks. */
static struct number *find_wanted(struct wanted *w, const char *architecture, struct text key)
{
	size_t n = strlen(architecture);

	if (!key.at || key.n <= n || memcmp(key.at, architecture, n) || key.at[n] != '.')
		return NULL;
	key.at += n + 1;
	key.n -= n + 1;
	for (size_t i = 0; i < ARRAY_SIZE(wanted_keys); i++)
		if (text_is(key, wanted_keys[i].name))
			return (struct number *)((char *)w + wanted_keys[i].at);
	return NULL;
}

/* The name of the architecture is part of the other keys: it is looked for first. */
static void find_architecture(struct cursor c, uint64_t pairs, char ret[GGUF_NAME_MAX])
{
	while (pairs-- && !c.failed) {
		struct text key = take_text(&c), value;
		uint64_t type = take_number(&c, 4);

		if (type != TYPE_STRING || !text_is(key, "general.architecture")) {
			skip_value(&c, type, 0);
			continue;
		}
		value = take_text(&c);
		if (value.at && value.n < GGUF_NAME_MAX) {
			memcpy(ret, value.at, value.n);
			ret[value.n] = '\0';
		}
		return;
	}
}

static void take_pairs(struct cursor *c, uint64_t pairs, const char *architecture,
		       struct wanted *ret)
{
	while (pairs-- && !c->failed) {
		struct text key = take_text(c);
		uint64_t type = take_number(c, 4);
		struct number *number = find_wanted(ret, architecture, key);

		if (number)
			take_value(c, type, number);
		else
			skip_value(c, type, 0);
	}
}

/* Heads of a layer, or their sum where they differ. */
static void set_heads(const struct wanted *w, struct shape *s)
{
	const struct number *h = w->kv_heads.n ? &w->kv_heads : &w->heads;

	s->layers = w->blocks.first;
	if (h->n > 1) {
		s->layer_heads = h->sum;
		s->kv_heads = h->differ ? 0 : h->first;
	} else {
		s->kv_heads = h->first;
		s->layer_heads = s->kv_heads * s->layers;
	}
}

static void set_dims(const struct wanted *w, struct shape *s)
{
	uint64_t dim = w->heads.first ? w->width.first / w->heads.first : 0;

	s->head_dim_k = w->key.n ? w->key.first : dim;
	s->head_dim_v = w->value.n ? w->value.first : dim;
	if (!w->lora.first)
		return;
	/* MLA: one latent vector for each token and layer, V is a part of it. */
	s->kv_heads = 1;
	s->layer_heads = s->layers;
	s->head_dim_k = w->lora.first + w->rope.first;
	s->head_dim_v = 0;
}

static const char *shape_why(const struct wanted *w, const struct shape *s)
{
	const struct number *h = w->kv_heads.n ? &w->kv_heads : &w->heads;

	if (!s->layers || s->layers > LAYERS_MAX)
		return "does not say how many layers it has";
	if (h->n > 1 && h->n != s->layers && !w->lora.first)
		return "names K/V heads for another number of layers than it has";
	if (!s->layer_heads || s->layer_heads > LAYERS_MAX * (uint64_t)HEADS_MAX)
		return "does not say how many K/V heads it has";
	if (!s->head_dim_k || s->head_dim_k > DIM_MAX || s->head_dim_v > DIM_MAX ||
	    (!s->head_dim_v && !w->lora.first))
		return "does not say how large its heads are";
	return NULL;
}

int gguf_parse(const uint8_t *data, size_t n, struct gguf *ret, const char **why)
{
	struct cursor c = { data, n };
	struct wanted w = { 0 };
	struct gguf g = { 0 };
	uint64_t version, pairs;

	*why = "is no GGUF file";
	if (take_number(&c, 4) != MAGIC)
		return -EINVAL;
	version = take_number(&c, 4);
	*why = "is a GGUF file of a version that is not known (2 and 3 are, little endian)";
	if (version != 2 && version != 3)
		return -EINVAL;
	(void)take_number(&c, 8); /* tensors */
	pairs = take_number(&c, 8);
	*why = "has a damaged header, or one that is too long";
	if (c.failed || pairs > PAIRS_MAX)
		return -EINVAL;
	find_architecture(c, pairs, g.architecture);
	take_pairs(&c, pairs, g.architecture, &w);
	if (c.failed)
		return -EINVAL;
	set_heads(&w, &g.shape);
	set_dims(&w, &g.shape);
	g.window = w.window.first;
	g.recurrent = w.state.first;
	*why = shape_why(&w, &g.shape);
	if (*why)
		return -EINVAL;
	*ret = g;
	return 0;
}

/* Up to n bytes from the start of the file. Returns how many, or -errno. */
static ssize_t read_start(int fd, uint8_t *data, size_t n)
{
	size_t have = 0;

	while (have < n) {
		ssize_t r = read(fd, data + have, n - have);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (!r)
			break;
		have += (size_t)r;
	}
	return (ssize_t)have;
}

enum ctl_exit gguf_open(const char *path, struct gguf *ret)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_free_ uint8_t *data = NULL;
	const char *why;
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st))
		return say_error(EXIT_FAILED, "cannot open %s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return say_error(EXIT_FAILED, "%s is no file (--gguf needs a model in GGUF form)",
				 path);
	data = malloc(GGUF_HEADER_MAX);
	if (!data)
		return say_error(EXIT_FAILED, "out of memory");
	n = read_start(fd, data, GGUF_HEADER_MAX);
	if (n < 0)
		return say_error(EXIT_FAILED, "cannot read %s: %s", path, strerror((int)-n));
	if (gguf_parse(data, (size_t)n, ret, &why))
		return say_error(EXIT_FAILED,
				 "%s %s (--layers, --kv-heads and --head-dim say the "
				 "shape without a file)",
				 path, why);
	return EXIT_OK;
}
