/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kvpool.h - share the K/V of token prefixes between programs on one machine.
 *
 * kvpoold owns memory that holds blocks: the K and V of block_tokens consecutive tokens, all
 * layers, one opaque run of block_bytes bytes, found by the hash of the whole prefix that ends with
 * it. This library finds the longest cached prefix of a prompt and keeps it in place while it is
 * read, and stores what a program computed itself:
 *
 * 	kvpool_connect(NULL, &pool);
 * 	kvpool_ns_open(pool, &desc, &ns);
 * 	kvpool_lease_new(pool, 4096, &lease);
 * 	tokens = kvpool_acquire(ns, lease, prompt, n_prompt, 0);
 * 	for (i = 0; i < kvpool_lease_blocks(lease); i++)
 * 		use(kvpool_lease_block(lease, i));
 * 	kvpool_release(lease);
 * 	... compute the rest ...
 * 	kvpool_publish(ns, prompt, n_prompt, fill, state);
 *
 * Rules that hold for every function:
 *
 * - Fail-open. No daemon, a daemon that dies, a full pool, a refused connection: a miss with its
 *   reason, within the deadline. Nothing here raises a signal, aborts, starts a thread, installs a
 *   handler or prints (unless KVPOOL_DEBUG=1 is in the environment: then one line to stderr for
 *   each change of state and each error; struct kvpool_options has a callback for the same).
 * - Return values: 0 or a count on success, a negative errno on failure; out-parameters are written
 *   only on success. kvpool_error() has the last failure of a pool in words.
 * - Calls that ask the daemon (kvpool_connect, kvpool_reconnect, kvpool_ping, kvpool_ns_open,
 *   kvpool_reserve, kvpool_commit, kvpool_write_free, kvpool_publish, kvpool_wait, kvpool_locate,
 *   kvpool_hint, and those that kvpool-seq.h lists) come back within timeout_ms for each message
 *   that they need, and fail with
 * 	-ENOTCONN	there is no daemon, or the connection was lost meanwhile
 * 	-ETIMEDOUT	it did not answer in time
 * 	-ENOENT		it has not accepted the namespace (why: kvpool_error())
 * 	-EPROTO		its answer makes no sense; the connection is given up
 * 	-ESTALE		this is a child of the process that opened the pool
 * 	-ENOMEM		this process is out of memory
 *   or, where it refuses, with what comes closest: -EINVAL, -EACCES, -ENOSPC, -EIO, -EOPNOTSUPP.
 * - Threads. Every function may be called from any thread. A lease, a write, and a sequence belong
 *   to one thread at a time; different ones are independent. kvpool_acquire, kvpool_extend,
 *   kvpool_release (and their _keys forms), kvpool_hash and the accessors kvpool_lease_block,
 *   _blocks, _tokens and _reason take no lock, allocate nothing, make no system call and leave
 *   errno alone.
 * - Fork. A child must not use what its parent opened: every call says -ESTALE or KVPOOL_FORKED
 *   there, and only kvpool_close and the _close and _free functions have an effect, on the child's
 *   memory alone. Blocks are not mapped in a child.
 * - Strings and arrays passed in are copied; what is passed out belongs to the library unless it
 *   says otherwise.
 * - Tokens are int32_t ids. Lengths are in tokens, sizes in bytes, times in milliseconds.
 * - Structs that begin with size: set it to sizeof the struct, and zero what you do not use. A
 *   program that was compiled with a shorter one of an earlier version goes on working: what it
 *   does not have counts as zero, or is not written.
 */
#ifndef KVPOOL_H
#define KVPOOL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

#define KVPOOL_VERSION "0.1.0"

/*
 * -------------------------------------------------------------------------------------------------
 * Connection: between a program and the daemon
 */

/** The version of the library that runs; KVPOOL_VERSION is that of the header. */
const char *kvpool_version(void);

/** What not every version can do. A bit keeps its meaning for ever. */
enum kvpool_feature {
	KVPOOL_UNNAMED = 1, /**< slots without a key, named at commit */
	KVPOOL_HINTS = 2,   /**< what a program knows of the future of a prefix */
	KVPOOL_UNWAIT = 4,  /**< a wait that is cancelled makes room for another one at once */
};

struct kvpool;

/** Levels of a line of the log, with the numbers of syslog. */
enum kvpool_log_level {
	KVPOOL_LOG_ERROR = 3, /**< a call failed: the text of kvpool_error() */
	KVPOOL_LOG_INFO = 6,  /**< the connection was made, or a namespace differs from another */
};

/**
 * Gets a line of text, without a newline. Called from whatever thread calls the library, possibly
 * from several at once and with locks of the library held: it must not call the library, and should
 * not wait. Never called in kvpool_acquire, kvpool_extend, kvpool_release.
 */
typedef void (*kvpool_log)(void *arg, enum kvpool_log_level level, const char *text);

struct kvpool_options {
	size_t size; /**< sizeof(struct kvpool_options) */
	/** path; NULL: $KVPOOL_SOCKET, else the user's instance, else the system's */
	const char *socket;
	/** what the program calls itself, for operators, up to 64 bytes; NULL: its command name */
	const char *name;
	/** bound on every message to the daemon, unless the call has its own; 0: 2000 */
	unsigned timeout_ms;
	/** leases that may exist at once; 0: 256, at most 16384 */
	unsigned max_leases;
	kvpool_log log; /**< NULL: none */
	void *log_arg;
	unsigned flags; /**< bits of enum kvpool_connect_flag */
};

enum kvpool_connect_flag {
	/**
	 * Do not wait, also not in kvpool_ns_open(). The connection is made, and namespaces are
	 * registered, by kvpool_dispatch() (see "Not blocking"; kvpool_fd() becomes readable for
	 * it), or by the first call that asks the daemon. Until then kvpool_state() says
	 * KVPOOL_DISCONNECTED, lookups miss with KVPOOL_NO_DAEMON, and start forms fail with
	 * -ENOTCONN.
	 */
	KVPOOL_CONNECT_LATER = 1,
};

/**
 * Opens a pool handle and connects it. options may be NULL for the defaults.
 *
 * Returns 0 also when there is no daemon: the handle is then disconnected, every acquire misses
 * with KVPOOL_NO_DAEMON, and calls that ask the daemon try to connect again, at most once in a
 * back-off time that grows from 50 ms to 5 s. Never inside kvpool_acquire. kvpool_state() and
 * kvpool_error() say what came of it. With a daemon that does not answer it takes timeout_ms; with
 * KVPOOL_CONNECT_LATER it does not try.
 *
 * Namespaces and leases survive the loss of a connection. Until there is a new one, lookups go on
 * in the memory of the old one, unless the daemon gave it up (an orderly stop does). A lease that
 * is held over a reconnect stays readable until it is released; a write becomes KVPOOL_STALE.
 *
 * -EINVAL: size is none that a version had, or max_leases is above 16384. -ENOMEM. -ENOTSUP: the
 * kernel is too old (MADV_WIPEONFORK). There is no handle then, so no text of kvpool_error().
 */
int kvpool_connect(const struct kvpool_options *options, struct kvpool **ret);

/**
 * Closes the connection, says goodbye to the daemon, and frees the handle once every namespace,
 * lease and write of it is freed too (in any order; leases that are held stay readable). Does not
 * wait for anything. NULL is ignored. Returns NULL, so that pool = kvpool_close(pool) leaves
 * nothing dangling.
 */
struct kvpool *kvpool_close(struct kvpool *pool);

enum kvpool_state {
	KVPOOL_DISCONNECTED = 0,
	KVPOOL_CONNECTED = 1,
	KVPOOL_STALE_FORK = 2, /**< this is a child of the process that opened it */
};

/** What the last call that asked the daemon found, kvpool_dispatch() too; asks nobody. */
enum kvpool_state kvpool_state(const struct kvpool *pool);

/**
 * Connects now, whatever the back-off says, unless it is connected. Returns 0 when connected, else
 * the reason: -ENOENT (no socket), -ECONNREFUSED, -EACCES, -ETIMEDOUT, -EPROTONOSUPPORT (daemon and
 * library have no version in common), -ENOSPC (it has all the clients that it takes), -EMFILE (this
 * process has too many files open), -EBUSY (leases of eight lost connections are still held)...
 */
int kvpool_reconnect(struct kvpool *pool);

/**
 * What both the library and the daemon of the last connection can do: bits of enum kvpool_feature.
 * 0 before the first connection. Asks nobody.
 */
uint64_t kvpool_features(const struct kvpool *pool);

/** The version of the daemon of the last connection, "" before the first one. Like kvpool_error().
 */
size_t kvpool_daemon_version(const struct kvpool *pool, char *buf, size_t n);

/** Asks the daemon for a sign of life. Returns 0, or why there is none, as kvpool_reconnect(). */
int kvpool_ping(struct kvpool *pool);

/**
 * The last failure in words: object, cause and next step; "" when there was none. Copies at most n
 * bytes with the NUL to buf and returns the length that the whole text has. A call that succeeds
 * leaves the text of an earlier failure there: look at it when one has failed.
 */
size_t kvpool_error(const struct kvpool *pool, char *buf, size_t n);

/*
 * -------------------------------------------------------------------------------------------------
 * Namespaces: what must match for K/V to be interchangeable
 */

struct kvpool_ns;

/** An adapter (LoRA) that changes the K/V. */
struct kvpool_adapter {
	uint8_t digest[32]; /**< SHA-256 of its content */
	double scale;       /**< that it is applied with */
};

/** Anything else that an engine knows to matter. Both are UTF-8 without NUL; name has no '='. */
struct kvpool_field {
	const char *name;
	const char *value;
};

enum kvpool_group_rule {
	/** every block of the prefix (full attention): the one that this version serves */
	KVPOOL_GROUP_ALL = 0,
	/** the last group_n blocks (sliding window): refused with -EOPNOTSUPP */
	KVPOOL_GROUP_TRAILING = 1,
	/** the last block (recurrent state): refused with -EOPNOTSUPP */
	KVPOOL_GROUP_LAST = 2,
};

/**
 * The descriptor of a namespace. Two programs share blocks exactly when all of it is equal. Text is
 * UTF-8, 1 to 512 bytes, NULL where a field does not apply.
 */
struct kvpool_ns_desc {
	size_t size;            /**< sizeof(struct kvpool_ns_desc) */
	const char *model;      /**< required: name, for people too */
	const uint8_t *weights; /**< required: 32 bytes, SHA-256 of the whole weights file */
	const struct kvpool_adapter *adapters;
	size_t n_adapters;
	const char *type_k, *type_v; /**< required: element types, "f16" */
	uint32_t n_layers;           /**< required, as the numbers up to block_bytes */
	uint32_t n_kv_heads;
	uint32_t head_dim_k, head_dim_v; /**< v: 0 where V is a part of what K stores */
	uint32_t block_tokens;           /**< 1 to 65536 */
	uint64_t block_bytes;            /**< 4 KiB to 256 MiB */
	/** required: order and strides of the bytes of a block, as the engine names it */
	const char *layout;
	const char *engine;   /**< required: whose layout, and its version */
	const char *rotation; /**< rotation of quantised K/V */
	const char *rope_type;
	double rope_freq_base, rope_freq_scale; /**< 0: absent */
	const char *rope_scaling;               /**< every other parameter of RoPE */
	uint32_t tp_rank, tp_size;              /**< tensor parallelism; tp_size 0: absent */
	uint32_t group_rule, group_n;           /**< enum kvpool_group_rule */
	uint32_t group_index, group_count;      /**< group_count 0: absent */
	const void *salt; /**< up to 64 bytes that separate users of one domain; NULL: none */
	size_t salt_len;
	const struct kvpool_field *extra;
	size_t n_extra;
};

/**
 * Opens the namespace of a descriptor. Works without a daemon too: it is registered when one is
 * there. It also succeeds when the daemon refuses it: lookups then miss with KVPOOL_NAMESPACE, and
 * whoever writes or waits asks the daemon again, and fails with -ENOENT while it refuses. Where the
 * daemon does not answer in time, lookups miss with KVPOOL_TIMEOUT, and the next call that asks the
 * daemon, kvpool_ping() too, asks about the namespace as well.
 *
 * -EINVAL: a field is missing or out of bounds; kvpool_error() names it. -EOPNOTSUPP: a group rule
 * other than ALL. -ENOMEM, -ESTALE.
 */
int kvpool_ns_open(struct kvpool *pool, const struct kvpool_ns_desc *desc, struct kvpool_ns **ret);

/**
 * Frees the handle, not the blocks. NULL is ignored. Returns NULL. Leases and writes of it stay
 * valid; the daemon learns that it is closed once they are freed too, or acquired for another one,
 * and a call after that which is not part of a lookup is made.
 */
struct kvpool_ns *kvpool_ns_close(struct kvpool_ns *ns);

/** What its keys start from: 32 bytes, the same in every process (share/doc/kvpool/keys.md). */
const uint8_t *kvpool_ns_seed(const struct kvpool_ns *ns);

/**
 * When the daemon holds a namespace of the same model that differs: which field, and both values,
 * as "namespace \"x\" differs in rope_freq_base: 10000 here, 500000 there". "" otherwise. Like
 * kvpool_error().
 */
size_t kvpool_ns_difference(const struct kvpool_ns *ns, char *buf, size_t n);

/** What its descriptor says, as kvpool_ns_block_bytes(). */
uint32_t kvpool_ns_block_tokens(const struct kvpool_ns *ns);
uint64_t kvpool_ns_block_bytes(const struct kvpool_ns *ns);

/*
 * -------------------------------------------------------------------------------------------------
 * Keys: the hash of a prefix
 */

/** 32 bytes: SHA-256 chain value of a prefix. */
struct kvpool_key {
	uint64_t w[4];
};

/**
 * Hashes the full blocks of n_tokens tokens: keys[i] is the key of the prefix that ends with block
 * i. after is the key of the block before the first token, NULL for the start of a prompt. Writes
 * at most max keys and returns how many; a partial block at the end has no key.
 */
size_t kvpool_hash(const struct kvpool_ns *ns, const struct kvpool_key *after,
		   const int32_t *tokens, size_t n_tokens, struct kvpool_key *keys, size_t max);

/**
 * How many tokens of a prompt of n_tokens may come from a cache: whole blocks, and at least the
 * last token stays to be computed, since an engine needs its logits.
 */
size_t kvpool_usable_tokens(size_t n_tokens, uint32_t block_tokens);

/*
 * -------------------------------------------------------------------------------------------------
 * Chains: the keys of a conversation as it grows
 */

/**
 * The tokens of a conversation, and the keys of its full blocks: a turn hashes what is new and
 * nothing else, so its cost does not depend on the history.
 *
 * 	kvpool_chain_new(ns, &chain);
 * 	kvpool_chain_append(chain, turn, n_turn);
 * 	tokens = kvpool_acquire_chain(chain, lease, 0);
 * 	... compute the rest ...
 * 	kvpool_publish_chain(chain, fill, state);
 *
 * A checkpoint of it is its number of tokens, and kvpool_chain_truncate() goes back there. A fork
 * (beams, several answers to one prompt) costs nothing until both sides have grown: then the one
 * that grew second copies its tokens and keys, 6 bytes a token with blocks of 16.
 *
 * A chain belongs to one thread at a time; different ones are independent, forks of one chain too.
 * Nothing here asks the daemon. -ESTALE in a child, as everywhere.
 */
struct kvpool_chain;

/** Makes an empty one, which holds on to the namespace. -ENOMEM, -ESTALE. */
int kvpool_chain_new(struct kvpool_ns *ns, struct kvpool_chain **ret);

/** NULL is ignored. Returns NULL. */
struct kvpool_chain *kvpool_chain_free(struct kvpool_chain *chain);

/** A second chain with the same tokens. -ENOMEM, -ESTALE. */
int kvpool_chain_fork(const struct kvpool_chain *chain, struct kvpool_chain **ret);

/**
 * Adds n tokens at the end. -EINVAL: more than 1048576 blocks. -ENOMEM. When it fails the chain is
 * what it was.
 */
int kvpool_chain_append(struct kvpool_chain *chain, const int32_t *tokens, size_t n);

/** Forgets all tokens from number n_tokens on. -EINVAL: it has fewer. */
int kvpool_chain_truncate(struct kvpool_chain *chain, size_t n_tokens);

/**
 * Makes it the chain of these n tokens, for a program that gets the whole conversation each time:
 * keeps what is the same from the start on, and appends the rest. *ret_same, if it is not NULL, is
 * how many tokens were kept. As kvpool_chain_append().
 */
int kvpool_chain_update(struct kvpool_chain *chain, const int32_t *tokens, size_t n,
			size_t *ret_same);

/** How many tokens it has. */
size_t kvpool_chain_tokens(const struct kvpool_chain *chain);

/** Its full blocks: so many keys there are. */
size_t kvpool_chain_blocks(const struct kvpool_chain *chain);

/** Valid until the chain is changed or freed. NULL before the first token. */
const struct kvpool_key *kvpool_chain_keys(const struct kvpool_chain *chain);

/*
 * -------------------------------------------------------------------------------------------------
 * Reading: the longest cached prefix of a prompt, held in place
 */

/**
 * A hold on the longest cached prefix of a prompt. While it is held, none of its blocks changes or
 * goes.
 */
struct kvpool_lease;

/** Why a lease has no more tokens than it has. */
enum kvpool_reason {
	/** all of it but the last token, or all keys that were given */
	KVPOOL_COMPLETE = 0,
	KVPOOL_NOT_CACHED = 1, /**< the next block is not in memory */
	/** all full blocks that may be cached; 2 tokens to block_tokens of them are left */
	KVPOOL_PARTIAL_BLOCK = 2,
	KVPOOL_BELOW_MIN = 3, /**< the prompt has no more tokens than a block, or none */
	KVPOOL_PINS = 4,      /**< beyond max_blocks of the lease, or no room to pin more */
	/** not connected since the namespace was opened, or the memory was given up */
	KVPOOL_NO_DAEMON = 5,
	KVPOOL_TIMEOUT = 6,   /**< the daemon has not answered about the namespace yet */
	KVPOOL_FORKED = 7,    /**< this is a child of the process that opened the pool */
	KVPOOL_RACED = 8,     /**< eviction took the blocks while they were being pinned */
	KVPOOL_NAMESPACE = 9, /**< refused by the daemon, or of another pool */
};

/** "not_cached"; "unknown" for another number. */
const char *kvpool_reason_name(enum kvpool_reason reason);

/**
 * Makes a lease for prompts of up to max_blocks blocks (1 to 1048576), empty at first. It can be
 * used for any namespace of the pool, again and again. -ENOSPC: max_leases of the pool exist.
 * -ENOMEM, -EINVAL, -ESTALE (forked).
 */
int kvpool_lease_new(struct kvpool *pool, size_t max_blocks, struct kvpool_lease **ret);

/** Releases and frees. NULL is ignored. Returns NULL. */
struct kvpool_lease *kvpool_lease_free(struct kvpool_lease *lease);

enum kvpool_acquire_flag {
	/**
	 * kvpool_lease_block() will not be asked for: kvpool_acquire_keys then finds the depth in
	 * a logarithm of the blocks. kvpool_acquire ignores it.
	 */
	KVPOOL_DEPTH_ONLY = 1,
};

/**
 * Finds and pins the longest cached prefix of a prompt: at most kvpool_usable_tokens(n_tokens) of
 * it. What the lease held before is released first. Returns the number of tokens, 0 for a miss;
 * kvpool_lease_reason() says why not more. kvpool_usable_tokens() of them are all there can be.
 */
size_t kvpool_acquire(struct kvpool_ns *ns, struct kvpool_lease *lease, const int32_t *tokens,
		      size_t n_tokens, unsigned flags);

/**
 * The same for the keys of a chain from its first block on. All n_keys of them count as usable: for
 * a prompt that ends with a block, leave out the last one.
 */
size_t kvpool_acquire_keys(struct kvpool_ns *ns, struct kvpool_lease *lease,
			   const struct kvpool_key *keys, size_t n_keys, unsigned flags);

/**
 * Makes a lease longer in place, when more of its prompt got cached: tokens is the whole prompt
 * again, of which only what follows the lease is looked at. What it holds stays held throughout,
 * and its pointers stay valid. Returns the tokens that it has then.
 *
 * A lease that missed is acquired anew, for the namespace that it was acquired for. A lease from
 * before a reconnect is extended in the memory that it is from. KVPOOL_RACED also when its blocks
 * were flushed and stored anew meanwhile: release it and acquire again to get more.
 */
size_t kvpool_extend(struct kvpool_lease *lease, const int32_t *tokens, size_t n_tokens);

/** The same with the keys of the whole chain. */
size_t kvpool_extend_keys(struct kvpool_lease *lease, const struct kvpool_key *keys, size_t n_keys);

/** kvpool_acquire() for the tokens of a chain, without hashing. Takes KVPOOL_DEPTH_ONLY. */
size_t kvpool_acquire_chain(const struct kvpool_chain *chain, struct kvpool_lease *lease,
			    unsigned flags);

/** kvpool_extend() likewise. A chain of another namespace: KVPOOL_NAMESPACE. */
size_t kvpool_extend_chain(struct kvpool_lease *lease, const struct kvpool_chain *chain);

/**
 * Lets go. Pointers of kvpool_lease_block() are invalid from here. Releasing an empty lease is
 * fine.
 */
void kvpool_release(struct kvpool_lease *lease);

/** 0 after a release. kvpool_lease_blocks() says it in blocks. */
size_t kvpool_lease_tokens(const struct kvpool_lease *lease);
size_t kvpool_lease_blocks(const struct kvpool_lease *lease);

/** Of the last acquire or extend. A lease that was never acquired: KVPOOL_BELOW_MIN. */
enum kvpool_reason kvpool_lease_reason(const struct kvpool_lease *lease);

/**
 * The bytes of block i of the prefix, block_bytes of them, in place. NULL when i is out of range,
 * after KVPOOL_DEPTH_ONLY, or in a forked child. Valid until the lease is released. Never write to
 * it: the memory is shared, and everybody believes in what it holds.
 */
const void *kvpool_lease_block(const struct kvpool_lease *lease, size_t i);

enum kvpool_read_flag {
	/** compare checksums: in kvpool_lease_read of the blocks that are copied whole */
	KVPOOL_VERIFY = 1,
};

/**
 * Copies bytes out: the blocks of the lease count as one run, of which the bytes from offset on
 * fill the buffers of iov. Returns 0.
 *
 * -ERANGE: the lease has fewer bytes. -EBADMSG: KVPOOL_VERIFY found a wrong checksum; the daemon is
 * told, the buffers hold nothing to rely on. -ENODATA: no pointers (KVPOOL_DEPTH_ONLY). -EINVAL: a
 * negative iovcnt or an unknown flag. -ESTALE. After these nothing was copied, but for -EBADMSG.
 */
int kvpool_lease_read(struct kvpool_lease *lease, uint64_t offset, const struct iovec *iov,
		      int iovcnt, unsigned flags);

/**
 * Where the tokens of one sequence lie in paged memory of the engine's own, and in a block.
 *
 * A row is row_bytes bytes that lie side by side in both (the K of one token and one KV head, say).
 * There are n_rows of them a token in each plane (K or V of one layer, say). Row r of token t,
 * which is counted from the start of the sequence, lies in plane p
 *
 * 	of the engine at planes[p] + pages[t / page_tokens] * page_stride
 * 		+ t % page_tokens * page_token_stride + r * page_row_stride
 * 	of its block at block_offset + p * block_plane_stride
 * 		+ t % block_tokens * block_token_stride + r * block_row_stride
 *
 * Pages may be larger or smaller than blocks, planes any part of a block (one layer), and rows and
 * tokens in any order; what lies side by side in both is copied in one piece. Strides are bytes.
 *
 * libkvpool(3) has an example. A stride that was forgotten is 0, and is no error.
 */
struct kvpool_paged {
	size_t size;         /**< sizeof(struct kvpool_paged) */
	void *const *planes; /**< n_planes addresses */
	size_t n_planes;
	uint64_t plane_bytes; /**< of each plane: nothing beyond is touched */
	const int32_t *pages; /**< the block table of the sequence: n_pages numbers of pages */
	size_t n_pages;
	uint32_t page_tokens;
	uint32_t n_rows;
	uint64_t row_bytes;
	uint64_t page_stride, page_token_stride, page_row_stride;
	uint64_t block_offset, block_plane_stride, block_token_stride, block_row_stride;
};

/**
 * Copies tokens [first_token, first_token + n_tokens) of the lease into paged memory. Pages with a
 * negative number are left out. KVPOOL_VERIFY reads each block that has some of them twice: as a
 * whole for its checksum, and then what is copied. Returns 0.
 *
 * -ERANGE: the lease has fewer tokens, or the table has no page for them. -EINVAL: something lies
 * outside of its block or plane; kvpool_error() says what. -EBADMSG, -ENODATA, -ESTALE as
 * kvpool_lease_read(). But for -EBADMSG, nothing was copied.
 */
int kvpool_lease_scatter(struct kvpool_lease *lease, size_t first_token, size_t n_tokens,
			 const struct kvpool_paged *to, unsigned flags);

/*
 * -------------------------------------------------------------------------------------------------
 * Writing: room for blocks, and storing them
 */

/** Slots granted for blocks that are not cached. */
struct kvpool_write;

/** What the daemon said to each block of a write. */
enum kvpool_verdict {
	KVPOOL_GRANTED = 1,   /**< the slot is yours to fill */
	KVPOOL_PRESENT = 2,   /**< cached already */
	KVPOOL_BUSY = 3,      /**< another write, of whatever program, has it, or one before it */
	KVPOOL_FULL = 4,      /**< no room */
	KVPOOL_NO_PARENT = 5, /**< the block before it is not cached */
	KVPOOL_COMMITTED = 6, /**< stored */
	KVPOOL_STALE = 7,     /**< gone: too late, flushed, or the connection was lost */
};

/** "granted"; "unknown" for another number. */
const char *kvpool_verdict_name(enum kvpool_verdict verdict);

/**
 * Reserves slots for the full blocks of a prompt from block first_block on: first_block is usually
 * kvpool_lease_blocks() of what was acquired. Blocks before it must be cached. Returns the number
 * of granted blocks, which can be 0, and the write, which has one block for each full block from
 * first_block on and must be freed with kvpool_write_free().
 *
 * The first block that is not granted says what to do about those behind it too: KVPOOL_BUSY:
 * kvpool_wait(); KVPOOL_FULL: compute, and do without storing them; KVPOOL_NO_PARENT: acquire
 * again, what was before first_block has been evicted.
 *
 * A grant is held for a bounded time, 5 minutes where an operator has set nothing else
 * (cache.reservation_timeout of kvpool.conf(5)); a commit after that finds KVPOOL_STALE. -EINVAL:
 * first_block is greater than the number of full blocks, or there are more than 1048576. -EROFS:
 * this program may not write to the pool. Else as calls that ask the daemon.
 */
int kvpool_reserve(struct kvpool_ns *ns, const int32_t *tokens, size_t n_tokens, size_t first_block,
		   struct kvpool_write **ret);

/**
 * The same for keys; parent is the key of the block before keys[0], NULL for the start of a chain.
 */
int kvpool_reserve_keys(struct kvpool_ns *ns, const struct kvpool_key *parent,
			const struct kvpool_key *keys, size_t n_keys, struct kvpool_write **ret);

/** kvpool_reserve() for the full blocks of a chain, without hashing. */
int kvpool_reserve_chain(const struct kvpool_chain *chain, size_t first_block,
			 struct kvpool_write **ret);

/** How many blocks it has, granted or not. */
size_t kvpool_write_blocks(const struct kvpool_write *write);

/** Of block i of the write, from 0 on. KVPOOL_STALE when i is out of range. */
enum kvpool_verdict kvpool_write_verdict(const struct kvpool_write *write, size_t i);

/**
 * Why the first block that is KVPOOL_FULL is: "pool" (everything is in use), "index",
 * "descriptors" (host.max_blocks), "quota" (what one program may hold reserved); "none" when none
 * is.
 */
const char *kvpool_write_full(const struct kvpool_write *write);

/**
 * Where block i of the write goes, block_bytes of room. NULL unless it is granted and not committed
 * yet. The bytes there are undefined before; they must all be written, and no longer change once
 * kvpool_commit() is called.
 */
void *kvpool_write_block(const struct kvpool_write *write, size_t i);

/**
 * Copies block i in from buffers of together block_bytes, with its checksum in the same pass.
 * -EINVAL: another sum, or not granted. -ESTALE. Cheaper than writing through the pointer, since
 * kvpool_commit() need not read the block again; after it, do not write through the pointer too.
 */
int kvpool_write_copy(struct kvpool_write *write, size_t i, const struct iovec *iov, int iovcnt);

/**
 * Fills the granted ones of blocks [first, first + n) of the write out of paged memory (struct
 * kvpool_paged): a block's tokens are those of its place in the prompt, and pages counts from the
 * start of that. Bytes of a block that no row covers keep what they have, which is undefined unless
 * they were written; so blocks may be filled layer by layer. Returns how many blocks it filled.
 *
 * -EINVAL: the write has fewer blocks, a page has a negative number, or something lies outside of
 * its block or plane. -ERANGE: the table has no page for a token. -ESTALE. After these nothing was
 * copied.
 */
int kvpool_write_gather(struct kvpool_write *write, size_t first, size_t n,
			const struct kvpool_paged *from);

/**
 * Makes the first n blocks of the write visible (all: kvpool_write_blocks()): of those, the granted
 * ones. Their bytes must be there, and visible to the CPU where a device wrote them. Returns how
 * many blocks were stored by this call; verdicts tell of each. Blocks behind n stay reserved.
 *
 * -EINVAL: n is too large. When it fails as calls that ask the daemon do, nothing is known of the
 * blocks that it was about; they are KVPOOL_STALE from here.
 */
int kvpool_commit(struct kvpool_write *write, size_t n);

/**
 * Gives back what was granted and not committed, and frees. Whatever still writes to the blocks
 * (another thread, a device) must have stopped. NULL is ignored. Returns NULL.
 */
struct kvpool_write *kvpool_write_free(struct kvpool_write *write);

/**
 * Fills block i of a prompt (i counts from the start of the prompt) with block_bytes bytes. Returns
 * 0, or non-zero to stop: that block and those behind it are not stored.
 */
typedef int (*kvpool_fill)(void *arg, size_t i, void *block);

/**
 * Stores what is not cached yet of the full blocks of a prompt: finds them, reserves, calls fill
 * for each granted block in order, commits; long prompts in runs of a thousand blocks or so.
 * Returns how many blocks it stored, 0 when all were there or another program is writing them.
 *
 * -ENOSPC: not a single block had room; kvpool_error() says why. -EROFS. Else as calls that ask the
 * daemon; blocks that were stored before that stay stored.
 */
int kvpool_publish(struct kvpool_ns *ns, const int32_t *tokens, size_t n_tokens, kvpool_fill fill,
		   void *arg);

/** The same for a chain, without hashing. */
int kvpool_publish_chain(const struct kvpool_chain *chain, kvpool_fill fill, void *arg);

/**
 * The same from memory: iov[i] is block first_block + i of the prompt, each of block_bytes bytes.
 * Blocks before first_block must be cached; 0 when they are not. -EINVAL: another length, or more
 * blocks than the prompt has full ones.
 */
int kvpool_publish_iov(struct kvpool_ns *ns, const int32_t *tokens, size_t n_tokens,
		       size_t first_block, const struct iovec *iov, size_t n_blocks);

/**
 * Waits while another program writes full blocks of this prompt, from first_block on, until they
 * are cached, or it gave up or died, or timeout_ms is over (0: only asks). Returns how many tokens
 * of the prompt are cached then, given that those before first_block are: at least first_block
 * blocks of them.
 *
 * -ETIMEDOUT: it was still being written. -EINVAL: as kvpool_reserve(). Else as calls that ask the
 * daemon. Meant for single flight (libkvpool(3)): what would be computed twice is computed once.
 * Call kvpool_acquire() or kvpool_extend() afterwards; for a prompt that ends with a block they
 * return a block less (kvpool_usable_tokens()). Where nobody writes it does not wait.
 */
long kvpool_wait(struct kvpool_ns *ns, const int32_t *tokens, size_t n_tokens, size_t first_block,
		 unsigned timeout_ms);

/** The same for the full blocks of a chain, without hashing. */
long kvpool_wait_chain(const struct kvpool_chain *chain, size_t first_block, unsigned timeout_ms);

/*
 * -------------------------------------------------------------------------------------------------
 * Not blocking: start and finish forms, for programs that must never wait
 *
 * For programs that must never wait: a scheduler, an event loop. kvpool_reserve, _commit, _wait,
 * _locate, kvpool_seq_grow and _commit have a start form, that sends the request and comes back at
 * once, and a finish form, that says what came of it. Which calls have none: libkvpool(3). In
 * between kvpool_dispatch(), called when kvpool_fd() is readable, moves things on:
 *
 * 	kvpool_reserve_start(ns, prompt, n_prompt, first, 0, granted, state, &op);
 * 	...
 * 	if (kvpool_fd(pool) is readable)
 * 		kvpool_dispatch(pool);
 * 	...
 * 	void granted(void *state, struct kvpool_op *op)
 * 	{
 * 		n = kvpool_reserve_finish(op, &write);
 *
 * None of the functions of this section waits: not for the daemon, not for a connection, not for
 * room in a socket. (They take locks that other threads hold for moments.)
 *
 * - Without a connection a start form fails with -ENOTCONN at once, and kvpool_dispatch() makes a
 *   new one step by step, with the back-off that kvpool_connect() describes. Operations that are
 *   under way when the connection is lost end with -ENOTCONN. Namespaces need nothing: they are
 *   registered again on the way.
 * - Each operation has a deadline, timeout_ms from its start (0: that of the handle), for all the
 *   messages that it takes. It ends with -ETIMEDOUT then.
 * - Requests go out in the order in which they were started; when the socket is full, those that
 *   follow wait in the library for their turn. An operation that takes several messages (more than
 *   a thousand blocks or so) lines up again behind the others for each. Answers come in any order,
 *   and callbacks are called in the order in which the answers came: first come, first served.
 * - 4096 operations of a handle may be under way; one more fails with -EAGAIN. The daemon takes 64
 *   waits of one client, for 8192 keys together; one more ends with -ENOSPC.
 * - Blocking calls, and other threads, may be used at the same time. What the answer to an
 *   operation is read by does not matter: operations end, callbacks are called, and late grants are
 *   given back by kvpool_dispatch() alone.
 */

/** An operation that was started. Belongs to the program until it is finished or freed. */
struct kvpool_op;

/**
 * Called once, by kvpool_dispatch() in its thread, when the operation is done, and without any
 * lock: it may finish, free, cancel and start operations, this one and others. What is finished or
 * freed before has no callback any more.
 */
typedef void (*kvpool_done)(void *arg, struct kvpool_op *op);

/**
 * A descriptor for the program's loop: readable when there is something for kvpool_dispatch() to
 * do, deadlines and connecting again included. The same one for the life of the handle; it belongs
 * to the handle: only watch it, and no longer than until kvpool_close(). -EMFILE, -ENOMEM,
 * -ESTALE...
 */
int kvpool_fd(struct kvpool *pool);

/**
 * Deals with what arrived, expires deadlines, sends what waited, connects when there is no
 * connection, calls callbacks. Returns how many operations it handed out: those whose callbacks it
 * called, and those without one, for kvpool_next_done(). At most 256 at a time; when there are
 * more, kvpool_fd() is still readable. May be called at any time, and by several threads. -ESTALE.
 */
int kvpool_dispatch(struct kvpool *pool);

/**
 * The operation without a callback that was handed out first, each once; NULL: there is none. It is
 * still to be finished, or freed.
 */
struct kvpool_op *kvpool_next_done(struct kvpool *pool);

/** 1 when its finish form has something to say, else 0. */
int kvpool_op_done(const struct kvpool_op *op);

/** The arg that it was started with. */
void *kvpool_op_arg(const struct kvpool_op *op);

/**
 * Ends the operation with -ECANCELED, unless it is done. It is handed out by the next
 * kvpool_dispatch(), like every other. What the daemon grants nevertheless is given back. A wait
 * ends at the daemon, too, and so makes room for another one (without KVPOOL_UNWAIT only when its
 * time is over). Of a commit nothing is known then: its blocks are KVPOOL_STALE if the request had
 * gone out.
 */
void kvpool_op_cancel(struct kvpool_op *op);

/**
 * Cancels it, and frees it: there will be no callback. (When another thread is calling it at this
 * moment, see to that first.) What it was granted and nobody took is given back. NULL is ignored.
 * Returns NULL.
 */
struct kvpool_op *kvpool_op_free(struct kvpool_op *op);

/**
 * Start forms. done may be NULL. Return 0 and the operation, or -errno, and there is none:
 * -ENOTCONN, -EAGAIN (too many), -EINVAL, -EROFS, -ENOMEM, -ESTALE. Arrays are copied.
 *
 * Finish forms return what the call does that waits, or -ECANCELED, and free the operation;
 * -EINPROGRESS: it is not done, and goes on; -EINVAL: it was started as another kind, and is not
 * freed either.
 */
int kvpool_reserve_start(struct kvpool_ns *ns, const int32_t *tokens, size_t n_tokens,
			 size_t first_block, unsigned timeout_ms, kvpool_done done, void *arg,
			 struct kvpool_op **ret);
int kvpool_reserve_keys_start(struct kvpool_ns *ns, const struct kvpool_key *parent,
			      const struct kvpool_key *keys, size_t n_keys, unsigned timeout_ms,
			      kvpool_done done, void *arg, struct kvpool_op **ret);
int kvpool_reserve_chain_start(const struct kvpool_chain *chain, size_t first_block,
			       unsigned timeout_ms, kvpool_done done, void *arg,
			       struct kvpool_op **ret);
/** Returns what kvpool_reserve() does; see kvpool_reserve_start() on finish forms. */
int kvpool_reserve_finish(struct kvpool_op *op, struct kvpool_write **ret);

/**
 * The checksums of blocks that kvpool_write_copy() did not fill are computed in this call: where
 * that takes too long, use kvpool_write_copy() in another thread. Until it is done, the write is
 * not to be used: kvpool_commit() says -EBUSY, and kvpool_write_free() cancels it. The write stays
 * the program's to free, whether this fails or not. -ENOTCONN also when its connection is gone.
 */
int kvpool_commit_start(struct kvpool_write *write, size_t n, unsigned timeout_ms, kvpool_done done,
			void *arg, struct kvpool_op **ret);
/** Returns what kvpool_commit() does. */
int kvpool_commit_finish(struct kvpool_op *op);

/**
 * kvpool_write_free() without waiting: kvpool_dispatch() gives back what it holds. NULL is ignored.
 */
struct kvpool_write *kvpool_write_free_start(struct kvpool_write *write);

/** timeout_ms as in kvpool_wait(): 0 only asks. */
int kvpool_wait_start(struct kvpool_ns *ns, const int32_t *tokens, size_t n_tokens,
		      size_t first_block, unsigned timeout_ms, kvpool_done done, void *arg,
		      struct kvpool_op **ret);
int kvpool_wait_chain_start(const struct kvpool_chain *chain, size_t first_block,
			    unsigned timeout_ms, kvpool_done done, void *arg,
			    struct kvpool_op **ret);
/** Returns what kvpool_wait() does. */
long kvpool_wait_finish(struct kvpool_op *op);

/**
 * How many tokens of the full blocks of a prompt, from first_block on, can be had from tiers that
 * are not memory (a disk); this version has none, so 0. Blocks before first_block do not matter.
 * Fails as calls that ask the daemon do, -EINVAL as kvpool_reserve().
 */
long kvpool_locate(struct kvpool_ns *ns, const int32_t *tokens, size_t n_tokens,
		   size_t first_block);
int kvpool_locate_start(struct kvpool_ns *ns, const int32_t *tokens, size_t n_tokens,
			size_t first_block, unsigned timeout_ms, kvpool_done done, void *arg,
			struct kvpool_op **ret);
int kvpool_locate_chain_start(const struct kvpool_chain *chain, size_t first_block,
			      unsigned timeout_ms, kvpool_done done, void *arg,
			      struct kvpool_op **ret);
/** Returns what kvpool_locate() does. */
long kvpool_locate_finish(struct kvpool_op *op);

/*
 * -------------------------------------------------------------------------------------------------
 * Numbers: what a program did with the pool
 */

/** Since the handle was opened. asked_tokens = hit_tokens + miss_tokens. */
struct kvpool_stats {
	size_t size;      /**< set to sizeof(struct kvpool_stats) by the caller */
	uint64_t lookups; /**< acquires and extends that asked for at least one token */
	uint64_t asked_tokens, hit_tokens, miss_tokens;
	uint64_t shared_tokens; /**< hit tokens whose deepest block another program wrote */
	uint64_t raced;         /**< lookups that ended with KVPOOL_RACED */
	/** calls: kvpool_lease_read, kvpool_lease_scatter */
	uint64_t copies_out, copied_out_bytes;
	/** blocks: kvpool_write_copy, kvpool_publish_iov, kvpool_write_gather in each call */
	uint64_t copies_in, copied_in_bytes;
	uint64_t checksum_errors;  /**< blocks that KVPOOL_VERIFY found wrong */
	uint64_t requests;         /**< messages to the daemon */
	uint64_t reconnects;       /**< connections after the first */
	uint64_t waits, waited_ns; /**< waits for what another program wrote, and their time */
	uint64_t stored_blocks, stored_bytes; /**< committed */
};

/** Returns 0; -EINVAL when size is none that a version had; -ESTALE. */
int kvpool_get_stats(const struct kvpool *pool, struct kvpool_stats *ret);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
