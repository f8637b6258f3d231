#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""man7.py PAGE NAME SUMMARY SEE-ALSO: a page of doc/ as scdoc, for the manual. Knows what our pages use of Markdown: headings,
paragraphs, lists, tables, code, links and emphasis.
"""
import re
import sys

SPECIAL = re.compile(r"([\\*_`~^])")
INLINE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\([^)]+\)")


def escape(text):
    return SPECIAL.sub(r"\\\1", text)


def inline(text):
    """A line with its code underlined, its strong words bold, its links as their text."""
    out, at = "", 0
    for m in INLINE.finditer(text):
        out += escape(text[at:m.start()])
        code, bold, link = m.groups()
        if code and re.fullmatch(r"[\w.*/-]+", code):
            out += "_" + escape(code) + "_"
        elif bold:
            out += "*" + escape(bold) + "*"
        else:
            out += escape(code or link)
        at = m.end()
    return out + escape(text[at:])


def cells(row):
    return [c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", row.strip()[1:-1])]


def table(rows):
    """scdoc: a line for each cell, '|' before the first of a row, ':' before the others."""
    head = cells(rows[0])
    body = [cells(row) for row in rows[2:]]
    if any(head):
        body.insert(0, [f"**{c}**" if c else "" for c in head])
    for number, row in enumerate(body):
        for place, cell in enumerate(row):
            # The first row says how columns are aligned, and that the last one is as wide as there is room.
            align = " " if number else "<" if place == len(row) - 1 and place else "["
            yield f"{':' if place else '|'}{align}" + (f" {inline(cell)}" if cell else "")


def convert(text):
    blocks = re.sub(r"<!--.*?-->\n?", "", text, flags=re.S).strip().split("\n")
    line, in_list = 0, False
    while line < len(blocks):
        here = blocks[line]
        if here.startswith("```"):
            end = next(i for i in range(line + 1, len(blocks)) if blocks[i].startswith("```"))
            yield from ["```", *blocks[line + 1:end], "```"]
            line = end + 1
        elif here.startswith("|"):
            end = line
            while end < len(blocks) and blocks[end].startswith("|"):
                end += 1
            yield from table(blocks[line:end])
            line = end
        elif here.startswith("#"):
            level, title = re.match(r"(#+) (.*)", here).groups()
            yield f"# {escape(title).upper()}" if len(level) <= 2 else f"## {escape(title)}"
            line += 1
        else:
            item = re.match(r"([*-]|\d+\.) (.*)", here)
            if item and (not blocks[line - 1].strip() or in_list):
                in_list = True
                yield ("- " if item.group(1) in "*-" else ". ") + inline(item.group(2))
            else:
                in_list &= bool(here.strip())
                yield ("  " if in_list else "") + inline(here.strip())
            line += 1


def main():
    path, name, summary, see = sys.argv[1:]
    with open(path, encoding="utf-8") as f:
        text = f.read()
    title, rest = re.match(r"(?:<!--.*?-->\n)?# ([^\n]*)\n(.*)", text, re.S).groups()
    print(f"{name}(7)\n\n; SPDX-License-Identifier: Apache-2.0\n\n# NAME\n\n{name} - {summary}\n\n# DESCRIPTION\n")
    print(f"{escape(title)}.\n")
    print("\n".join(convert(rest)))
    print("\n# SEE ALSO\n\n" + ", ".join(re.sub(r"(.*)(\(\d\))", r"*\1*\2", s) for s in see.split()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
