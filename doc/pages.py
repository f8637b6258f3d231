#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pages.py [--update] ROOT COMPILER...: what doc/shared-memory.md and doc/protocol.md take from the sources.

Offsets, sizes and vectors of shared-memory.md are those of shm/layout.h and of a computation of its own; the messages of
protocol.md are proto/kvpool.proto. Without --update: tells what differs, and of structs and fields that a page lacks.
"""
import os
import re
import subprocess
import sys
import tempfile

STRUCT = re.compile(r"^### struct (\w+), (\d+) bytes$", re.M)
ROW = re.compile(r"^\| (\d+) \| (\d+) \| (\w+) \|", re.M)
PADDING = re.compile(r"^zero\d*$")
VECTORS = re.compile(r"(?<=```\n)key 0 buckets.*?(?=```)", re.S)
MESSAGES = re.compile(r"(?<=<!-- messages: made by doc/pages.py -->\n).*?(?=<!-- messages: end -->)", re.S)
MASK = (1 << 64) - 1


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        return f.read()


# Shared memory

def tables(page):
    """[(struct, [field])] of the page."""
    heads = list(STRUCT.finditer(page))
    for head, after in zip(heads, heads[1:] + [None]):
        part = page[head.end():after.start() if after else len(page)]
        yield head.group(1), [f for _, _, f in ROW.findall(part)]


def members(header, struct):
    """Names of the members of a struct in the header."""
    body = re.search(rf"^struct {struct} {{(.*?)^}};", header, re.M | re.S).group(1)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    return [re.match(r"(\w+)", name.strip()).group(1) for line in body.split(";") if line.strip()
            for name in re.sub(r"^\s*(struct\s+)?\w+\s+", "", line).split(",")]


def missing(header, page):
    """Structs and fields that the page does not have."""
    told = dict(tables(page))
    for struct in re.findall(r"^struct (\w+) {$", header, re.M):
        if struct == "block_key":
            continue  # four words, told as one field
        if struct not in told:
            yield f"doc/shared-memory.md has no section on struct {struct}"
            continue
        for field in members(header, struct):
            if field not in told[struct] and not PADDING.match(field):
                yield f"doc/shared-memory.md has no row for struct {struct}, field {field}"


def measure(root, compiler, wanted):
    """Runs a program that prints sizes and offsets: {(struct, field or ""): (offset, size)}."""
    code = ['#include <stdio.h>', '#include "shm/layout.h"', "int main(void)", "{"]
    for struct, fields in wanted:
        code.append(f'printf("{struct} - 0 %zu\\n", sizeof(struct {struct}));')
        code += [f'printf("{struct} {f} %zu %zu\\n", offsetof(struct {struct}, {f}), '
                 f'sizeof(((struct {struct} *)0)->{f}));' for f in fields]
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "layout")
        subprocess.run(compiler + ["-std=gnu17", f"-I{root}", "-x", "c", "-", "-o", program],
                       input="\n".join(code + ["}"]) + "\n", text=True, check=True)
        said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return {(s, "" if f == "-" else f): (o, n) for s, f, o, n in (line.split() for line in said.splitlines())}


def mix(x):
    y = x * 0x9e3779b97f4a7c15 & MASK
    return y ^ y >> 32


def vectors(keys_page):
    """Where the keys of the vectors stand in an index."""
    salt, buckets = (0x0123456789abcdef, 0xfedcba9876543210), 4096
    for number, key in re.findall(r"^minimal key (\d) (\w{64})$", keys_page, re.M):
        words = [int.from_bytes(bytes.fromhex(key)[i:i + 8], "little") for i in (0, 8)]
        first, second = mix(words[0] ^ salt[0]), mix(words[1] ^ salt[1])
        places = first % buckets, second % buckets
        if places[0] == places[1]:
            places = places[0], (places[1] + 1) % buckets
        yield f"key {number} buckets {places[0]} {places[1]} tag {first >> 48}\n"


def shared_memory(root, compiler):
    """The page as it should be."""
    page = read(root, "doc/shared-memory.md")
    sizes = measure(root, compiler, list(tables(page)))
    struct = None
    lines = []
    for line in page.split("\n"):
        head, row = STRUCT.match(line), ROW.match(line)
        if head:
            struct = head.group(1)
            line = f"### struct {struct}, {sizes[struct, ''][1]} bytes"
        elif row and struct:
            offset, size = sizes[struct, row.group(3)]
            line = f"| {offset} | {size} | {row.group(3)} |" + line[row.end():]
        elif line.startswith("## "):
            struct = None
        lines.append(line)
    return VECTORS.sub("".join(vectors(read(root, "doc/keys.md"))), "\n".join(lines))


# Messages

class Message:
    def __init__(self, name, comment):
        self.name, self.comment, self.fields = name, comment, []


def parse_proto(text):
    """The messages of a file, by name, with what the comments say."""
    messages, above, current = {}, [], None
    for line in text.split("\n"):
        comment = re.match(r"^\s*//\s?(.*)", line)
        field = re.match(r"^\t((?:repeated )?\w+) (\w+) = (\d+);\s*(?://\s*(.*))?$", line)
        if comment:
            trailing = current and current.fields and not above and re.match(r"^\t{3,}| {8,}//", line)
            if trailing:
                current.fields[-1][3] += " " + comment.group(1)
            else:
                above.append(comment.group(1))
        elif re.match(r"^message (\w+) {", line):
            current = Message(line.split()[1], " ".join(above))
            messages[current.name] = current
            above = []
        elif field:
            said = " ".join(above + ([field.group(4)] if field.group(4) else []))
            current.fields.append([int(field.group(3)), field.group(2), field.group(1), said])
            above = []
        elif not line.strip():
            above = []
        elif line.startswith("}"):
            current, above = None, []
    return messages


def message_table(message):
    if not message.fields:
        yield f"`{message.name}` has no fields."
        yield ""
        return
    yield f"`{message.name}`" + (f": {message.comment}" if message.comment else "")
    yield ""
    yield "| number | field | type | |"
    yield "|--:|---|---|---|"
    for number, name, kind, said in message.fields:
        yield f"| {number} | {name} | {kind} | {said.replace('|', chr(92) + '|')} |"
    yield ""


def camel(name):
    return "".join(word.capitalize() for word in name.split("_"))


def message_section(root):
    """What every operation asks and answers."""
    messages = parse_proto(read(root, "proto/kvpool.proto"))
    operations = [(int(n), name.lower()) for name, n in
                  re.findall(r"^\tOP_(\w+) = (\d+),", read(root, "proto/ops.h"), re.M)]
    out = [""] + list(message_table(messages["Error"]))
    told = {"Error"}
    for number, name in operations:
        out += [f"### {number} {name}", ""]
        for kind in (camel(name), camel(name) + "Reply"):
            if kind not in messages:
                continue
            out += message_table(messages[kind])
            told.add(kind)
            for item in re.findall(r"repeated ([A-Z]\w+)", " ".join(f[2] for f in messages[kind].fields)):
                out += message_table(messages[item])
                told.add(item)
    lost = sorted(set(messages) - told)
    if lost:
        raise SystemExit(f"proto/kvpool.proto: {', '.join(lost)} belong to no operation")
    return "\n".join(out) + "\n"


def protocol(root):
    return MESSAGES.sub(lambda m: message_section(root), read(root, "doc/protocol.md"))


def differences(name, is_now, should_be):
    for number, (a, b) in enumerate(zip(is_now.split("\n"), should_be.split("\n")), 1):
        if a != b:
            yield f"{name}:{number}: \"{a}\" should be \"{b}\""
            return
    if is_now != should_be:
        yield f"{name}: its end differs"


def main():
    update = sys.argv[1] == "--update"
    root, compiler = sys.argv[1 + update], sys.argv[2 + update:]
    made = {"doc/shared-memory.md": shared_memory(root, compiler), "doc/protocol.md": protocol(root)}
    bad = list(missing(read(root, "shm/layout.h"), made["doc/shared-memory.md"]))
    for name, text in made.items():
        if update:
            with open(os.path.join(root, name), "w", encoding="utf-8") as f:
                f.write(text)
        else:
            bad += differences(name, read(root, name), text)
    print("\n".join(bad + [f"{len(made)} pages, {len(bad)} things to mend"
                           + (" (doc/pages.py --update . cc)" if bad and not update else "")]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
