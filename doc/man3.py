#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""man3.py HEADER pages: the names of the manual pages of a public header.
man3.py HEADER page NAME: one of them, for scdoc.
man3.py HEADER install FOLDER: for each other function a page that leads to the one where it is told, below $DESTDIR.

A page is a group of the header (the comments with a rule above them, "Name: what it is about"), named after the function
of it that PAGES says; a header without groups is one page. What it says is what the header says, so the two cannot differ.
"""
import os
import re
import sys

# Which function the page of a group is named after, where that is not the first one.
PAGES = {"Connection": "kvpool_connect", "Chains": "kvpool_chain_append", "Reading": "kvpool_acquire",
         "Writing": "kvpool_reserve", "Not blocking": "kvpool_dispatch"}

GROUP = re.compile(r"^/\*\n \* -{20,}\n \* ([^\n]+)\n((?: \*[^\n]*\n)*?) \*/\n", re.M)
# Inline functions that are told of count as declarations; the others are not for users.
INLINE = re.compile(r"(\*/\n)?^static inline ([^{]*?)\n\{.*?^\}\n", re.M | re.S)
GUARD = re.compile(r"^#.*?(?<!\\)$\n?", re.M)
FUNCTION = re.compile(r"\b(kvpool_\w+)\s*\(")
SPECIAL = re.compile(r"([\\*_`~^])")
NAMES = re.compile(r"\b(kvpool_\w+)(\(\))?|\b(KVPOOL_[A-Z_]+)\b|(?<![\w.])(-E[A-Z]+)\b|\b(struct|enum) (kvpool_\w+)")


def strip(comment):
    """The text of a comment, or of lines of one, without its frame."""
    body = re.sub(r"^/\*\*?\s?|\s*\*/$", "", comment.strip(), flags=re.S)
    return "\n".join(re.sub(r"^\s*\* ?", "", line) for line in body.split("\n")).strip("\n")


class Item:
    """A declaration with the comment before it."""

    def __init__(self, comment, code):
        self.comment, self.code = comment, code.strip()
        head = self.code.split("{")[0]
        function = FUNCTION.search(head)
        self.is_function = bool(function) and "typedef" not in head
        self.is_body = "{" in self.code
        if self.is_function:
            self.name = function.group(1)
        elif "typedef" in head:
            self.name = re.search(r"\(\*(\w+)\)|(\w+);", head).group(0).strip("(*);")
        else:
            self.name = head.strip(" ;\n")


def items(text):
    """The declarations of a group, each with its comment."""
    found, comment, code = [], "", ""
    position = 0
    token = re.compile(r"/\*\*.*?\*/|/\*.*?\*/|[^/]+|/", re.S)
    while position < len(text):
        part = token.match(text, position).group(0)
        position += len(part)
        if part.startswith("/*"):
            if not code.strip():
                comment, code = strip(part), ""
            else:
                code += part
            continue
        for piece in re.findall(r"[^;]*;|[^;]+$", part, re.S):
            code += piece
            if piece.endswith(";") and code.count("{") == code.count("}"):
                # A comment behind the last one, on the same line, belongs to it.
                found.append(Item(comment, code))
                comment, code = "", ""
    return found


def groups(path):
    """[(title, introduction, items)] of a header."""
    with open(path, encoding="utf-8") as f:
        text = re.sub(r"#ifdef __cplusplus.*?#endif\n", "", f.read(), flags=re.S)
    text = INLINE.sub(lambda m: f"{m.group(1)}{m.group(2)};\n" if m.group(1) else "", text)
    heads = list(GROUP.finditer(text))
    out = []
    for head, after in zip(heads, heads[1:] + [None]):
        body = GUARD.sub("", text[head.end():after.start() if after else len(text)])
        out.append((head.group(1), strip(head.group(2)) if head.group(2) else "", items(body)))
    if not heads:
        top = re.search(r"/\*\*\n(.*?)\*/", text, re.S)
        title, intro = strip(top.group(0)).split("\n", 1)
        out.append((title, intro.strip("\n"), items(GUARD.sub("", text[top.end():]))))
    return out


def functions(group):
    """Its functions, the one that names the page first."""
    names = [i.name for i in group[2] if i.is_function]
    first = PAGES.get(group[0].split(":")[0], names[0] if names else None)
    return sorted(names, key=lambda name: name != first)


def escape(text):
    """Text for scdoc, with names of the interface marked."""
    out, at = "", 0
    for m in NAMES.finditer(text):
        out += SPECIAL.sub(r"\\\1", text[at:m.start()])
        out += "*" + SPECIAL.sub(r"\\\1", m.group(0).replace("()", "")) + "*" + ("()" if m.group(2) else "")
        at = m.end()
    return out + SPECIAL.sub(r"\\\1", text[at:])


def prose(comment):
    """A comment as scdoc: paragraphs, lists, and what is set off by a tab as it stands."""
    out, literal = [], False
    for line in comment.split("\n"):
        line = line.rstrip()
        is_code = bool(re.match(r"\s*\t", line))
        if is_code != literal and (line or not literal):
            out.append("```" if literal else "\n```")
            literal = is_code
        if literal:
            out.append(re.sub(r"^ ?\t", "", line))
        elif re.match(r"\s+\S", line) and out and re.match(r"- ", next((o for o in reversed(out) if o[:1] not in ("\t", " ")), "")):
            out[-1] += " " + escape(line.strip())
        else:
            out.append(escape(line))
    if literal:
        out.append("```")
    return "\n".join(out)


def synopsis(code):
    return "*" + SPECIAL.sub(r"\\\1", re.sub(r"\s+", " ", code)) + "*"


def heading(item):
    return f"## {SPECIAL.sub(lambda m: chr(92) + m.group(1), item.name)}"


def page(path, name, group):
    title, intro, members = group
    names = functions(group)
    about = re.split(r": | - ", title, 1)[-1].rstrip(".")
    out = [f"{name}(3)", "", "; SPDX-License-Identifier: Apache-2.0", "", "# NAME", "",
           ", ".join(names if name in names else [name]).replace("_", "\\_") + " - " + escape(about), "", "# SYNOPSIS", "",
           f"*#include <{path.rsplit('/', 1)[-1]}>*", ""]
    for item in members:
        if item.is_function:
            out += [synopsis(item.code), ""]
    out += ["# DESCRIPTION", ""]
    if intro:
        out += [prose(intro), ""]
    for item in members:
        shows_code = not item.is_function and (item.is_body or "typedef" in item.code)
        if not item.comment and not shows_code:
            continue
        out += [heading(item), ""]
        if item.comment:
            out += [prose(item.comment), ""]
        if shows_code:
            out += ["```", re.sub(r"/\*\*<?", "/*", item.code), "```", ""]
    out += ["# SEE ALSO", "", "*libkvpool*(3), *kvpool*(7)"]
    return "\n".join(out) + "\n"


def pages(path):
    """Page -> group, and function -> page, of a header."""
    found, where = {}, {}
    for group in groups(path):
        names = functions(group)
        if not names:
            continue
        name = path.rsplit("/", 1)[-1].removesuffix(".h") if " - " in group[0] else names[0]
        found[name] = group
        where.update({n: name for n in names})
    return found, where


def install(found, where, folder):
    """Functions, structs, enums and types of functions lead to the page that tells of them."""
    target = os.environ.get("DESTDIR", "") + folder
    os.makedirs(target, exist_ok=True)
    told = {item.name.split()[-1]: name for name, group in found.items() for item in group[2]
            if item.comment or item.is_body}
    for name, page_name in sorted({**told, **where}.items()):
        if name not in found:
            with open(os.path.join(target, name + ".3"), "w", encoding="utf-8") as f:
                f.write(f".so man3/{page_name}.3\n")


def main():
    path, command = sys.argv[1:3]
    found, where = pages(path)
    if command == "pages":
        print("\n".join(sorted(found)))
    elif command == "page":
        print(page(path, sys.argv[3], found[sys.argv[3]]), end="")
    else:
        install(found, where, sys.argv[3])
    return 0


if __name__ == "__main__":
    sys.exit(main())
