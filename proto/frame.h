/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames: the header before every message, and packets with file descriptors on a SOCK_SEQPACKET
 * socket.
 *
 * A packet is at most FRAME_MAX bytes. Descriptors travel from daemon to client only, at most
 * FRAME_FDS_MAX a packet.
 */
#ifndef KVP_PROTO_FRAME_H
#define KVP_PROTO_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define FRAME_MAGIC   0x3150564bu /* "KVP1" */
#define FRAME_MAX     65536u
#define FRAME_FDS_MAX 4u

#define PROTOCOL_MIN 1u
#define PROTOCOL_MAX 1u

/* Keys in one request: with all that goes along they fit a packet, there and back. */
#define FRAME_KEYS_MAX 1024u

enum frame_flag {
	FRAME_REPLY = 1,
	FRAME_ERROR = 2, /* with FRAME_REPLY: the body is an Error */
};

/*
 * Little endian, no padding. id is chosen by the requester and comes back in the reply; 0 in what
 * nobody asked for.
 */
struct frame_header {
	uint32_t magic;
	uint16_t op; /* enum proto_op */
	uint16_t flags;
	uint64_t id;
	uint64_t epoch; /* of the daemon, in what it sends; 0 from clients */
};

#define FRAME_HEADER_BYTES 24u

/*
 * Writes a header. frame_parse returns NULL, or a text that says what is wrong with a packet of n
 * bytes.
 */
void frame_write(void *packet, const struct frame_header *h);
const char *frame_parse(const void *packet, size_t n, struct frame_header *ret);

/*
 * Sends a packet of n bytes with n_fds descriptors, without SIGPIPE and without blocking. Returns 0
 * or -errno: -EAGAIN when the socket is full, -EPIPE or -ECONNRESET when the peer is gone.
 */
int frame_send(int sock, const void *packet, size_t n, const int *fds, unsigned int n_fds);

/*
 * Receives a packet into buf of FRAME_MAX bytes, close-on-exec descriptors into fds (room for
 * max_fds <= FRAME_FDS_MAX). Never blocks: -EAGAIN. Returns its length, 0 when the peer has hung
 * up, or -errno: -EMSGSIZE for a packet that was cut, -EPROTO for descriptors that were cut or more
 * than max_fds. Nothing leaks: on every failure all that came is closed.
 */
long frame_recv(int sock, void *buf, int *fds, unsigned int max_fds, unsigned int *ret_fds);

#endif
