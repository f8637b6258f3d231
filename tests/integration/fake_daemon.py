# SPDX-License-Identifier: Apache-2.0
"""An admin socket that answers what a test wants it to: what a real daemon never does, and numbers of any size."""
import os
import socket
import threading

import wire


class FakeDaemon:
    """answer(op name, request) returns the fields of the reply, bytes to send as they are, or None to hang up.

    hold: never answers. refuse: the fields of an error that every connection gets instead of service.
    """

    def __init__(self, types, path, answer, hold=False, refuse=None):
        self.types, self.answer, self.hold, self.refuse, self.requests = types, answer, hold, refuse, []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind(path)
        self.socket.listen(8)
        self.path = path
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Wakes accept; close alone would not.
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.socket.close()
        os.unlink(self.path)

    def serve(self):
        while True:
            try:
                peer, _ = self.socket.accept()
            except OSError:
                return
            with peer:
                if self.refuse:
                    body = wire.encode(self.types, "Error", self.refuse)
                    peer.send(wire.frame(0, wire.REPLY | wire.ERROR, 0, body))
                    continue
                while self.reply(peer):
                    pass

    def reply(self, peer):
        packet = peer.recv(65536)
        if not packet:
            return False
        _, op, _, number, _ = wire.HEADER.unpack_from(packet)
        name = next(n for n, o in wire.OPS.items() if o == op)
        message = "".join(part.capitalize() for part in name.split("_"))
        request = wire.decode(self.types, message, packet[wire.HEADER.size:])
        self.requests.append((name, request))
        fields = self.answer(name, request)
        if self.hold:
            return bool(peer.recv(1))
        if fields is None:
            return False
        if isinstance(fields, bytes):
            peer.send(fields)
            return True
        if "code" in fields:
            body, flags = wire.encode(self.types, "Error", fields), wire.REPLY | wire.ERROR
        else:
            body, flags = wire.encode(self.types, message + "Reply", fields), wire.REPLY
        # Something that nobody asked for comes first: it must not be taken for the answer.
        peer.send(wire.frame(32, 0, 0, b""))
        peer.send(wire.frame(op, flags, number, body))
        return True
