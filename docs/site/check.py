#!/usr/bin/env python3
"""Fails if a page of the site in FOLDER links to or shows a file that does not exist, or links to an anchor that the target page
does not have.

    check.py FOLDER
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page, and the names of its anchors."""

    def __init__(self, file):
        super().__init__()
        self.links, self.names = [], set()
        self.feed(file.read_text(errors="replace"))

    def handle_starttag(self, tag, attrs):
        for key, value in attrs:
            if key in ("id", "name"):
                self.names.add(value)
            elif value and ((tag, key) in (("a", "href"), ("img", "src"), ("link", "href"), ("script", "src"))):
                self.links.append(value)


def main():
    root = Path(sys.argv[1]).resolve()
    pages = {file: Page(file) for file in root.rglob("*.html") if file.name != "404.html"}  # its links work only on a web server
    broken = []
    for file, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                broken.append(f"{file.relative_to(root)}: {link} does not exist")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].names:
                broken.append(f"{file.relative_to(root)}: {link}: the page has no such anchor")
    print(*broken, f"{len(pages)} pages, {len(broken)} broken links", sep="\n")
    return 1 if broken or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
