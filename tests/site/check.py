"""check.py - is the API reference whole? Called by run.sh.
SPDX-License-Identifier: MIT OR Unlicense

    python3 check.py ROOT PAGES AUX       PAGES: what site.py wrote; AUX: what gcc -aux-info says of
                                          a program that includes all headers and parts

Prints "ok" or "FAILED" for each check.
"""
import functools
import os
import re
import sys

ROOT, PAGES, AUX = sys.argv[1:]
LINK = re.compile(r"\]\((?!\w+:|#)([^)\s]+?)(?:#([^)\s]*))?\)")
ID = re.compile(r"\{ #([\w-]+) \}")


@functools.lru_cache(None)
def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def report(wrong, name):
    print("FAILED   site: %s: %s" % (name, " ".join(sorted(wrong)[:12])) if wrong
          else "ok       site: %s" % name)


@functools.lru_cache(None)
def anchors(path):
    return set(ID.findall(read(path)))


def entries():
    """{name: (prototype, comment, path, line)} of the functions of the reference."""
    found = {}
    for file in sorted(os.listdir(os.path.join(PAGES, "reference"))):
        for entry in read(PAGES, "reference", file).split("\n### ")[1:]:
            name = ID.search(entry)
            code = re.search(r"```c\n(.*?)\n```\n+(.*?)\[(\S+), line (\d+)\]\(\S+#L(\d+)\)", entry,
                             re.S)
            if name and code:
                found[name[1]] = code.groups()
    return found


def functions():
    """What the compiler sees: the names of all functions that our headers declare or define."""
    named = re.findall(r"^/\* \S*?((?:more/)?\w+\.h):\d+:\S+ \*/ .*?\b(\w+) \(", read(AUX), re.M)
    return {name for _, name in named if re.match(r"(ugrid|lbvh|nlist|nbody)_(?!.*_i_|i_)", name)
            and not name.endswith("_fn")}


def lines_are_right(found):
    wrong = []
    for name, (_, _, path, line, anchor) in found.items():
        lines = read(ROOT, path).split("\n")[int(line) - 1:int(line) + 3]
        if name not in "\n".join(lines) or line != anchor:
            wrong.append(name)
    return wrong


def dead_links():
    """Links of all pages to a page or an anchor of the reference that is not there."""
    wrong = []
    for where, _, names in os.walk(PAGES):
        for name in filter(lambda name: name.endswith(".md"), names):
            text = re.sub(r"^```.*?^```|`[^`\n]+`(?!\])", "", read(where, name), flags=re.M | re.S)
            for link, anchor in LINK.findall(text):
                target = os.path.normpath(os.path.join(where, link))
                live = os.path.relpath(target, PAGES).split(os.sep)[0] == "live"
                if not live and not os.path.exists(target):
                    wrong.append(name + ":" + link)
                elif anchor and "reference/" in target and \
                        anchor not in anchors(target):
                    wrong.append(name + ":" + link + "#" + anchor)
    return wrong


def main():
    found, expected = entries(), functions()
    report(["%d functions" % len(expected)] if len(expected) < 250 else [], "the compiler's list")
    report(expected - set(found), "every function has an entry")
    report([name for name in expected & set(found) if not found[name][1].strip()],
           "every function has a comment")
    report([name for name in expected & set(found) if name + "(" not in found[name][0]],
           "every function has its prototype")
    report(lines_are_right(found), "every entry leads to its line")
    report([part for part in os.listdir(os.path.join(ROOT, "more")) if part.endswith(".h") and
            "_WITH_" + part[:-2].split("_", 1)[1].upper() not in
            read(PAGES, "reference", part[:-2] + ".md").split("\n## ")[0]],
           "every part's page says how it is added")
    report(dead_links(), "links")
    tasks = read(PAGES, "docs", "tasks.md")
    report([word for word in ("graph", "save", "filter", "several GPUs", "k nearest, periodic")
            if word not in tasks], "tasks")


main()
