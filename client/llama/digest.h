/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 of whole files, remembered between runs.
 *
 * Hashing gigabytes of weights takes seconds, so the result is kept in a small file of the user's
 * cache folder ($XDG_CACHE_HOME/kvpool/digests, else ~/.cache/kvpool/digests), named by device and
 * inode and valid only while size, modification and change time are the same to the nanosecond. A
 * cache that is missing, damaged, or writable by others is not used; it never makes a digest fail.
 */
#ifndef KVP_CLIENT_LLAMA_DIGEST_H
#define KVP_CLIENT_LLAMA_DIGEST_H

#include <stdint.h>

#define DIGEST_BYTES 32

/*
 * The digest of one file. Returns 0 or -errno: -EBUSY when the file was changed while it was read,
 * -EISDIR or another when it is no regular file that can be read.
 */
int digest_file(const char *path, uint8_t ret[DIGEST_BYTES]);

/*
 * The digest of a model: of the file, or, when its name ends in -00001-of-0000N.gguf, the SHA-256
 * of the digests of all N files in order. Returns 0 or -errno as digest_file.
 */
int digest_model(const char *path, uint8_t ret[DIGEST_BYTES]);

#endif
