"""reference.py - the API reference: what headers declare for their users, in Markdown.
SPDX-License-Identifier: MIT OR Unlicense

site.py imports it. A function is public where its name begins with that of its header and has no
_i_; it is documented by the comment that stands directly before it, or before the declaration
above it if nothing stands between the two. Sections are the banners of the header (>>name).
"""
import functools
import os
import re

HEADERS = "ugrid", "lbvh", "nlist", "nbody"
DECLARED = re.compile(
    r"^(?P<how>(?:[A-Z]+_API|[A-Z]+_FN\w*|static inline)) (?P<type>[^;{}()#]*?[ *])"
    r"(?P<name>(?:ugrid|lbvh|nlist|nbody)_\w+)\((?P<arguments>[^;{}]*?)\)\s*(?P<end>[;{])", re.M)
TYPED = re.compile(
    r"^typedef (?:(?:struct|enum) (?P<name>\w+) \{[^{}]*\} \w+;|"
    r"[\w *]+?\b(?P<fn>(?:ugrid|lbvh|nlist|nbody)_\w+)\([^;]*\);)", re.M)
PROGRAM = re.compile(r"^<!-- program: (\S+) -->\n```\w+\n(.*?)^```", re.M | re.S)
BANNER = re.compile(r"^/\* -{20,}\n   >>(?P<name>[\w-]+)(?P<text>.*?)\s*-* ?\*/", re.M | re.S)


def files(root):
    """Paths of the headers, each followed by its parts."""
    for name in HEADERS:
        yield name + ".h"
        for part in sorted(os.listdir(os.path.join(root, "more"))):
            if part.startswith(name + "_") and part.endswith(".h"):
                yield "more/" + part


def public(name):
    return "_i_" not in name


def comment_before(text, at, earlier):
    """The comment that ends directly before `at`; that of `earlier`, (start, comment), where no
    empty line is between the two; else none."""
    before = text[max(0, at - 20000):at]
    while re.match(r"#if|enum \{.*\};$", before[before.rfind("\n", 0, -1) + 1:]):
        before = before[:before.rfind("\n", 0, -1) + 1]
    if before.endswith("*/\n"):
        comment = before[before.rindex("/*") + 2:-3]
        return "" if "-----" in comment or ">>" in comment[:40] else comment
    if earlier and "\n\n" not in text[earlier[0]:at]:
        return earlier[1]
    return ""


class Item:
    """A function or a type: name, code, comment, line (from 1), place in the text."""

    def __init__(self, text, match, name, code, comment):
        self.name, self.code, self.comment, self.at = name, code, comment, match.start()
        self.line = text.count("\n", 0, match.start()) + 1
        self.function = match.re is DECLARED


@functools.lru_cache(None)
def items(text):
    """The public functions and types of a header, in order."""
    found, earlier, seen = [], None, {}
    matches = sorted(list(DECLARED.finditer(text)) + list(TYPED.finditer(text)),
                     key=lambda match: match.start())
    for match in matches:
        group = match.groupdict()
        name = group.get("name") or group.get("fn")
        comment = comment_before(text, match.start(), earlier)
        earlier = match.start(), comment
        if not public(name) or (name in seen and (seen[name] or not comment)):
            continue
        if name in seen:        # declared without a comment, and defined with one
            found = [item for item in found if item.name != name]
        seen[name] = comment != ""
        code = match.group(0)
        if match.re is DECLARED:
            code = re.sub(r"^(\w+_API|\w+_FN\w*|static inline) ", "", code).rstrip("{ \n;") + ";"
            indent = match.group(0).index("(") - code.index("(")
            code = re.sub(r"\n" + " " * indent, "\n", code)
        found.append(Item(text, match, name, code, comment))
    add_comments(found)
    return found


def add_comments(found):
    """Of functions that have none, as those of a walk: the comment of the type that they return or
    take, or of a function before them that returns the same type or has the same first words."""
    known = {}
    for item in found:
        first_words = "_".join(item.name.split("_")[:2])
        types = re.findall(r"\b(?:ugrid|lbvh|nlist|nbody)_\w+", re.sub(
            r"\b%s\b" % item.name, "", item.code.split(",")[0])) if item.function else [item.name]
        keys = [key for key in types + [first_words + "_"]
                if not key.endswith(("_result", "_real"))]
        for key in keys:
            item.comment = item.comment or known.get(key, "")
        for key in keys if item.comment else ():
            known.setdefault(key, item.comment)


def sections(text):
    """[(place, name, text)] of the banners."""
    return [(match.start(), match["name"], match["text"].strip(": \n")) for match in
            BANNER.finditer(text)]


# ---- comments to Markdown ------------------------------------------------------------------------

WORD = re.compile(r"`[^`\n]+`|\b[A-Za-z]\w*_\w*\b|\b(?:desc|grid|tree|list|sim|world|wide|rays)"
                  r"\.\w+(?:\.\w+)*|[\\*_<>\[\]#|&]")


def prose(text, links):
    """A paragraph. links: {name: address} of what has a page."""
    def one(match):
        word = match.group(0)
        if len(word) == 1:
            return {"<": "&lt;", ">": "&gt;", "&": "&amp;"}.get(word, "\\" + word)
        code = word.strip("`")
        return "[`%s`](%s)" % (code, links[code]) if code in links else "`%s`" % code
    return WORD.sub(one, " ".join(text.split()))


def markdown(comment, links):
    """Paragraphs; what is indented by four and more stays as it is."""
    lines = [line[3:] if line.startswith("   ") else line.strip() for line in comment.split("\n")]
    blocks, result = re.split(r"\n\s*\n", "\n".join(lines).strip("\n ")), []
    for block in filter(str.strip, blocks):
        if all(line.startswith("    ") for line in block.split("\n")):
            result.append("```text\n%s\n```" % block)
        elif block.startswith("- "):
            result.append("\n".join("- " + prose(point, links)
                                    for point in re.split(r"^- ", block, flags=re.M)[1:]))
        else:
            result.append(prose(block, links))
    return "\n\n".join(result)


def results(text, name):
    """The codes of ugrid_result and so on, with their texts: a table."""
    listed = re.search(r"#define %sS\(X\)((?:.*\\\n)*.*)" % name.upper(), text)
    if not listed:
        return ""
    rows = re.findall(r"X\((\w+),((?:[\s\\]*\"[^\"]*\")+)\)", listed.group(1))
    return "| code | text |\n|---|---|\n%s\n\n" % "".join(
        "| `%s` | %s |\n" % (code, prose("".join(re.findall(r'"([^"]*)"', words)), {}))
        for code, words in rows)


@functools.lru_cache(None)
def programs(root):
    """{name: [(program, page#heading)]}: the programs of the pages that use a name."""
    found = {}
    for page in ["README.md"] + sorted("docs/" + name for name in os.listdir(root + "/docs")):
        with open(os.path.join(root, page), encoding="utf-8") as file:
            text = file.read()
        for match in PROGRAM.finditer(text):
            heading = re.findall(r"^## (.*)", text[:match.start()], re.M)
            where = page + "#" + re.sub(r"[^\w -]", "", heading[-1].lower()).replace(" ", "-") \
                if heading else page
            for name in set(re.findall(r"\b(?:%s)_\w+" % "|".join(HEADERS), match[2])):
                found.setdefault(name, []).append((match[1], where))
    return found


def used_in(root, name, up):
    """A line of links to at most three programs that use it."""
    uses = programs(root).get(name, [])[:3]
    return "Used in %s.\n\n" % ", ".join("[%s](%s%s)" % (program, up, page)
                                         for program, page in uses) if uses else ""


def write_item(item, path, links, source, more=""):
    text = "### %s { #%s }\n\n" % (item.name.replace("_", "\\_"), item.name)
    text += "```c\n%s\n```\n\n" % item.code
    text += markdown(item.comment, links) + "\n\n" if item.comment else ""
    text += more
    return text + "[%s, line %d](%s#L%d){ .line }\n\n" % (path, item.line, source, item.line)


def page(root, path, links, up):
    """The page of a header or part. up: the way from the page to the top of the site."""
    with open(os.path.join(root, path), encoding="utf-8") as file:
        text = file.read()
    source, found, rest = up + "source/" + path + ".html", items(text), sections(text)
    lead = re.match(r"/\* \S+ - v[\d.]+ - (.*?)\.?\n", text)
    title = lead.group(1)[:1].upper() + lead.group(1)[1:] + ".\n\n" if lead else ""
    written = "# %s\n\n" % path + prose(title, links) + "\n\n"
    purpose = re.search(r"^/\*\n(.*?)\n\s*>>contents", text, re.M | re.S)
    written += markdown(purpose.group(1), links) + "\n\n" if purpose else ""
    header, _, part = stem(path).partition("_")
    macro = "%s_WITH_%s" % (header.upper(), part.upper())
    if part and macro not in written:
        written += "Added by `%s`, defined before %s.h is included ([parts](%sREADME.md#parts))." \
            "\n\n" % (macro, header, up)
    written += "[The header itself](%s). `>>word` in it is a banner: search for it.\n\n" % source
    current = None
    for item in found:
        before = [section for section in rest if section[0] < item.at]
        if before and before[-1] != current:
            current = before[-1]
            first, _, more = current[2].partition("\n\n")
            written += "## %s { #section-%s }\n\n%s\n\n" % (
                current[1], current[1], markdown(first[:1].upper() + first[1:], links))
            if more.strip():
                written += "<details markdown><summary>More</summary>\n\n```text\n%s\n```\n\n" \
                    "</details>\n\n" % "\n".join(line[3:] for line in more.split("\n"))
        written += write_item(item, path, links, source,
                              results(text, item.name) + used_in(root, item.name, up))
    return written


def stem(path):
    return os.path.basename(path)[:-2]


def all_items(root):
    """[(path, item)] of everything."""
    result = []
    for path in files(root):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            result += [(path, item) for item in items(file.read())]
    return result


def write(root, out):
    """The folder `reference` in `out`: a page for each header and part, and a list of functions."""
    everything = all_items(root)
    links = {item.name: "%s.md#%s" % (stem(path), item.name) for path, item in everything}
    os.makedirs(os.path.join(out, "reference"), exist_ok=True)
    for path in files(root):
        with open(os.path.join(out, "reference", stem(path) + ".md"), "w",
                  encoding="utf-8") as file:
            file.write(page(root, path, links, "../"))
    with open(os.path.join(out, "reference", "index.md"), "w", encoding="utf-8") as file:
        file.write("# All functions\n\nFrom the headers: prototype, comment, and the line where it "
                   "stands. Types: on the page of their header.\n\n| function | |\n"
                   "|---|---|\n")
        for path, item in sorted(everything, key=lambda entry: entry[1].name):
            if item.function:
                first = re.split(r"(?<=[.:])\s", " ".join(item.comment.split()))[0]
                file.write("| [`%s`](%s) | %s ([%s](%s.md)) |\n" % (
                    item.name, links[item.name], prose(first, {}), path, stem(path)))
    return everything
