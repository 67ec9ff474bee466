"""site.py - the pages of the site: our Markdown as it is, an API reference, the sources.
SPDX-License-Identifier: MIT OR Unlicense

    python3 packaging/site/site.py ROOT OUT [WEB]   writes OUT/pages and OUT/mkdocs.yml; WEB: the
                                                    folder of the two pages for a browser
    python3 packaging/site/site.py --check FOLDER   do all links of the pages in FOLDER, made by
                                                    MkDocs, lead to something that is there?

Pages are README.md, docs/, examples/ and what they link to, at the same places, so that their links
among each other hold. A link to another file of the repository goes to a page of that file's lines.
`make site` does all of it; nothing of it needs a network but the installation of MkDocs Material.
"""
import html
import os
import posixpath
import re
import shutil
import sys
from html.parser import HTMLParser
from urllib.parse import unquote

import reference

LINK = re.compile(r"(\]\(|<img src=\"|href=\")(?!\w+:|#|//)([^)\"#\s]+)(#[^)\"\s]*)?")
PICTURES = ".png", ".jpg", ".svg", ".gif"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


# ---- pages of the repository ---------------------------------------------------------------------

def found(path):
    """What the search makes of a page: tasks come first, notes of measurements do not come."""
    if path == "docs/tasks.md":
        return "---\nsearch:\n  boost: 5\n---\n\n"
    hidden = path.startswith("tests/") or path == "CHANGELOG.md"
    return "---\nsearch:\n  exclude: true\n---\n\n" if hidden else ""


class Pages:
    def __init__(self, root, out):
        self.root, self.out = root, out
        self.sources = set(reference.files(root))   # files that get a page of their lines
        self.done, self.titles = set(), {}
        self.calls = {item.name: (reference.stem(path), item.name)
                      for path, item in reference.all_items(root)}
        for path in reference.files(root):      # LBVH_WITH_NEAREST: the page of that part
            header, _, part = reference.stem(path).upper().partition("_")
            if part:
                self.calls[header + "_WITH_" + part] = (reference.stem(path), "")

    def target(self, page, link):
        """Where a link of a page leads on the site, from that page."""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
        here, full = posixpath.dirname(page), os.path.join(self.root, path)
        if os.path.isdir(full) and os.path.isfile(os.path.join(full, "README.md")):
            path += "/README.md"
        elif os.path.isdir(full):
            self.sources.update(path + "/" + name for name in sorted(os.listdir(full))
                                if os.path.isfile(os.path.join(full, name)))
            self.sources.add(path + "/")
            return posixpath.relpath("source/" + path + "/index.html", here)
        elif not os.path.isfile(full):
            return link
        if path.endswith(".md"):
            self.add(path)
        elif path.endswith(PICTURES):
            os.makedirs(os.path.join(self.out, posixpath.dirname(path)), exist_ok=True)
            shutil.copy(full, os.path.join(self.out, path))
        else:
            self.sources.add(path)
            return posixpath.relpath("source/" + path + ".html", here)
        return posixpath.relpath(path, here)

    def add(self, path):
        if path in self.done:
            return
        self.done.add(path)
        text = re.sub(r"<!--.*?-->\n", "", read(os.path.join(self.root, path)), flags=re.S)
        title = re.search(r"^# (.*)", text, re.M)
        self.titles[path] = title.group(1) if title else path
        parts = re.split(r"(^```.*?^```)", text, flags=re.M | re.S)     # code stays as it is
        for k in range(0, len(parts), 2):
            parts[k] = LINK.sub(lambda m: m[1] + self.target(path, m[2]) + (m[3] or ""), parts[k])
            if path.startswith("docs/"):
                parts[k] = re.sub(r"(?<![\[`])`(\w+)`(?![`\]])",
                                  lambda m: self.call(path, m[1]), parts[k])
                parts[k] = parts[k].replace("the API reference (`make site`)",
                                            "the [API reference](../reference/index.md)")
        write(os.path.join(self.out, path), found(path) + "".join(parts))

    def call(self, where, name):
        """A name in a text, with a link to what the reference says of it."""
        if name not in self.calls:
            return "`%s`" % name
        up = "../" * where.count("/")
        page, anchor = self.calls[name]
        return "[`%s`](%sreference/%s.md%s)" % (name, up, page, "#" + anchor if anchor else "")

    def source(self, path):
        """A page of a file's lines, or of a folder's files."""
        up = "../" * path.count("/")
        if path.endswith("/"):
            names = sorted(name for name in self.sources
                           if name.startswith(path) and name != path and
                           "/" not in name[len(path):])
            body = "<ul>%s</ul>" % "".join(
                '<li><a href="%s.html">%s</a></li>' % (name[len(path):], name[len(path):])
                for name in names)
            return SOURCE % (path, up, path, body)
        try:
            lines = read(os.path.join(self.root, path)).split("\n")
        except UnicodeDecodeError:
            lines = ["(not a text)"]
        body = "".join('<span id="L%d">%s\n</span>' % (number, html.escape(line)) for number, line
                       in enumerate(lines, 1))
        return SOURCE % (path, up, path, "<pre>%s</pre>" % body)


SOURCE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>%s</title>
<style>
body { margin: 0; padding: 12px; font: 15px/1.4 system-ui, sans-serif; color-scheme: light dark; }
pre { counter-reset: line; font: 13px/1.45 ui-monospace, monospace; overflow-x: auto; }
pre span { display: block; } pre span::before { counter-increment: line; content: counter(line);
display: inline-block; width: 5ch; margin-right: 2ch; text-align: right; opacity: 0.45; }
pre span:target { background: #ffd44760; }
</style></head><body><p><a href="%s../index.html">nearfield</a> / <b>%s</b></p>
%s
</body></html>
"""


# ---- what the site has besides -------------------------------------------------------------------

def gallery(root):
    """The pictures of examples/README.md, each with its title and words."""
    rows = re.findall(r'^\| <img src="([^"]+)"[^>]*alt="([^"]*)"> \| '
                      r'\[([^]]+)\]\(([^)]+)\) \| (.*?) \|$',
                      read(os.path.join(root, "examples", "README.md")), re.M)
    cards = "".join('-   [![%s](examples/%s)](examples/%s)\n\n    **[%s](examples/%s)**: %s\n\n' % (
        alt, picture, page, title, page, words) for picture, alt, title, page, words in rows)
    return "# Gallery\n\nEach picture is made by the example that it leads to.\n\n" \
        '<div class="grid cards" markdown>\n\n%s</div>\n' % cards


LIVE = """# In the browser

The serial headers as WebAssembly: nothing is installed, nothing is sent anywhere.

[Scenes](live/nearfield.html){ .md-button .md-button--primary }
[How it works, step by step](live/how.html){ .md-button }

Boids, a dam break, a galaxy, a tree, a fluid, tablets in a drum, boxes to throw
([things](live/nearfield.html#things)) and a knot to pick at
([picking](live/nearfield.html#picking)).

<iframe src="live/nearfield.html" title="scenes" loading="lazy"></iframe>

[What to read](examples/web/README.md)
"""
NO_LIVE = """# In the browser

This site was made without emscripten: `make web` makes the two pages.
[What they show](examples/web/README.md)
"""
STYLE = """.md-typeset iframe { width: 100%; height: 560px; border: 0; border-radius: 8px; }
.md-typeset .line { font-size: 0.7rem; opacity: 0.75; }
@media (min-width: 701px) {
    .md-typeset table:not([class]) td:first-child code { white-space: nowrap; }
}
.md-typeset .md-button { margin: 0 8px 8px 0; }
.md-typeset .grid.cards img { width: 100%; height: 180px; object-fit: contain; }
@media (max-width: 700px) {
    .md-typeset iframe { display: none; }
    .md-typeset table:not([class]) :is(th, td) { padding: 0.6em; min-width: 0; }
}
/* 100 columns of code, beside both lists of links */
@media (min-width: 76.25em) {
    .md-sidebar { width: 10.4rem; }
    .md-typeset pre > code { font-size: 0.6rem; }
}
"""
# The search runs in a Worker, which browsers refuse to pages that are opened as files. There a
# hidden frame takes its place. (The plugin `offline` looks for the file's name.)
WORKER = """'use strict';
if (location.protocol === 'file:') {
    window.Worker = class extends EventTarget {
        constructor(url) {
            super();
            const frame = document.createElement('iframe');
            frame.hidden = true;
            const inside = new Promise(resolve => frame.addEventListener('load', () => {
                const { contentWindow, contentDocument } = frame;
                contentWindow.postMessage = data => setTimeout(
                    () => this.dispatchEvent(new MessageEvent('message', { data })));
                const script = contentDocument.createElement('script');
                script.addEventListener('load', () => resolve(contentWindow));
                script.src = url;
                contentDocument.body.append(script);
            }, { once: true }));
            this.postMessage = data => inside.then(
                frame => frame.dispatchEvent(new frame.MessageEvent('message', { data })));
            document.body.append(frame);
        }
    };
}
"""
# In the narrow columns of a phone a name is broken behind an underscore, not within a word.
NAMES = """'use strict';
for (const code of document.querySelectorAll('td code, th code'))
    if (!code.children.length) code.innerHTML = code.innerHTML.replaceAll('_', '_<wbr>');
"""
CONFIG = """site_name: nearfield
site_description: C99 headers for neighbour search and N-body forces of particles
docs_dir: pages
site_dir: html
use_directory_urls: false
theme:
  name: material
  font: false
  features: [navigation.tabs, navigation.top, navigation.indexes, toc.follow, search.suggest,
             search.highlight, content.code.copy]
  palette:
    - media: "(prefers-color-scheme: light)"
      scheme: default
      primary: indigo
      toggle: {icon: material/weather-night, name: dark}
    - media: "(prefers-color-scheme: dark)"
      scheme: slate
      primary: indigo
      toggle: {icon: material/weather-sunny, name: light}
plugins:
  - search: {separator: '[\\s\\-,:;!?=()\\[\\]"/]+|\\.(?!\\w)'}
  - offline
extra_css: [site.css]
extra_javascript: [names.js]
extra:
  polyfills: [iframe-worker.js]
markdown_extensions:
  - tables
  - attr_list
  - md_in_html
  - sane_lists
  - pymdownx.highlight
  - pymdownx.superfences
  - toc:
      permalink: true
      toc_depth: 3
      slugify: !!python/object/apply:pymdownx.slugs.slugify {kwds: {case: lower}}
nav:
"""


# The order of a reader: the headers, Python, then what fewer programs need.
START = "ugrid", "lbvh", "nlist", "nbody", "python", "sets", "game", "rays", "boxes"


def navigation(pages, root):
    """The lines of `nav`."""
    docs = sorted(path for path in pages.done if path.startswith("docs/"))
    start = ["docs/start-%s.md" % name for name in START]
    start += [path for path in docs if "/start-" in path and path not in start]
    learn = ["docs/" + name + ".md" for name in ("learn", "choosing", "glossary", "then-and-now")]
    rest = [path for path in docs if path not in start + learn + ["docs/tasks.md"]]
    examples = sorted(path for path in pages.done
                      if path.startswith("examples/") and path != "examples/README.md")
    groups = [("Start", ["README.md", "docs/install.md"] + start), ("Learn", learn),
              ("More", [path for path in rest if path != "docs/install.md"] +
               [path for path in ("CHANGELOG.md", "CONTRIBUTING.md") if path in pages.done]),
              ("Examples", ["examples/README.md"] + examples)]
    lines = ['  - "What do you want to do?": docs/tasks.md']
    for title, paths in groups:
        lines.append("  - %s:" % title)
        lines += ['      - "%s": %s' % (pages.titles[path].replace('"', "'"), path)
                  for path in paths if path in pages.done]
    lines += ["  - Reference:", "      - reference/index.md"]
    lines += ['      - "%s": reference/%s.md' % (path, reference.stem(path))
              for path in reference.files(root)]
    return "\n".join(lines + ["  - Gallery: gallery.md", "  - In the browser: live.md"]) + "\n"


def make(root, out, web=None):
    shutil.rmtree(os.path.join(out, "pages"), ignore_errors=True)
    pages = Pages(root, os.path.join(out, "pages"))
    for folder in "docs", "examples":
        for where, _, names in os.walk(os.path.join(root, folder)):
            for name in filter(lambda name: name.endswith(".md"), names):
                pages.add(os.path.relpath(os.path.join(where, name), root).replace(os.sep, "/"))
    for name in "README.md", "CHANGELOG.md", "CONTRIBUTING.md":
        pages.add(name)
    reference.write(root, pages.out)
    write(os.path.join(pages.out, "gallery.md"), gallery(root))
    live = web and all(os.path.isfile(os.path.join(web, name + ".html"))
                       for name in ("nearfield", "how"))
    write(os.path.join(pages.out, "live.md"), LIVE if live else NO_LIVE)
    for name in ("nearfield", "how") if live else ():
        os.makedirs(os.path.join(pages.out, "live"), exist_ok=True)
        shutil.copy(os.path.join(web, name + ".html"), os.path.join(pages.out, "live"))
    write(os.path.join(pages.out, "site.css"), STYLE)
    write(os.path.join(pages.out, "iframe-worker.js"), WORKER)
    write(os.path.join(pages.out, "names.js"), NAMES)
    for path in sorted(pages.sources):
        write(os.path.join(pages.out, "source", path + ("index.html" if path.endswith("/")
                                                        else ".html")), pages.source(path))
    write(os.path.join(out, "mkdocs.yml"), CONFIG + navigation(pages, root))


# ---- links ---------------------------------------------------------------------------------------

class Links(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            if tag == "script" and name == "src" and re.match(r"https?:|//", value or ""):
                self.links.append("./" + value)     # from elsewhere: not there
            elif name in ("href", "src") and value and tag != "base":
                self.links.append(value)


def check(folder):
    """How many links of the pages lead to nothing; each is told. So is a script from elsewhere:
    pages must work without a network."""
    known, wrong, count = {}, 0, 0
    for where, _, names in os.walk(folder):
        for name in filter(lambda name: name.endswith(".html"), names):
            path = os.path.join(where, name)
            if "/live/" not in path.replace(os.sep, "/"):
                known[os.path.realpath(path)] = Links(read(path))
    for path, page in sorted(known.items()):
        for link in page.links:
            if re.match(r"[a-z]+:|//", link) or path.endswith("404.html"):
                continue
            count += 1
            name, _, anchor = unquote(link).partition("#")
            target = os.path.realpath(os.path.join(os.path.dirname(path), name)) if name else path
            if os.path.isdir(target):
                target = os.path.join(target, "index.html")
            there = os.path.exists(target)
            if there and anchor and target in known and not anchor.startswith("__"):
                there = anchor in known[target].anchors
            if not there:
                wrong += 1
                print("FAILED   site: %s: %s leads to nothing" % (
                    os.path.relpath(path, folder), link))
    print("%d links of %d pages, %d of them wrong" % (count, len(known), wrong))
    return wrong


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        sys.exit(1 if check(sys.argv[2]) else 0)
    make(*sys.argv[1:])
