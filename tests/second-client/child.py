#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""child.py SOCKET MODEL: the second client in a process of its own, that can be killed. Commands of peer.c: acquire,
publish, reserve.
"""
import sys

import daemon
import kvpool2


def main():
    ns = kvpool2.Client(sys.argv[1], name="child").open(**daemon.SHAPE | {"model": sys.argv[2]})
    lease = kvpool2.Lease(ns)
    for line in sys.stdin:
        command, *numbers = line.split()
        numbers = [int(n) for n in numbers]
        if command == "acquire":
            lease.release()
            print(lease.extend(numbers), lease.reason, flush=True)
        elif command == "publish":
            def fill(i, block, seed=numbers[0]):
                block[:] = daemon.content(seed, i)
            print(ns.publish(numbers[1:], fill), flush=True)
        else:
            keys = ns.keys(numbers[1:])
            writer = ns.reserve(keys[numbers[0]:], keys[numbers[0] - 1] if numbers[0] else b"")
            for grant in writer.grants.values():
                writer.block(grant)[:100] = bytes(100)
            print(*writer.verdicts, flush=True)


if __name__ == "__main__":
    main()
