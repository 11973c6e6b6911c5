#!/usr/bin/env python3
"""Gathers the pages of the site in a folder: those of the repository, with links that lead to other pages of the site.

    stage.py FOLDER

README.md becomes the home page. A link to a header of hpe leads to its reference, a link to another file of the repository to
a page that shows the file, and a link to a folder to a page that lists it.
"""

import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
HOME = "---\nhide: [navigation, toc]\n---\n"  # the home page has the whole width, so that its first screen has the quick start
LANGUAGES = {".cpp": "cpp", ".h": "cpp", ".hpp": "cpp", ".cu": "cpp", ".def": "cpp", ".py": "python", ".txt": "text"}


def pages():
    """For each page of the repository, its place in the site."""
    place = {ROOT / "README.md": Path("index.md")}
    place |= {page: Path(page.name) for page in ROOT.glob("*.md") if page.name != "README.md"}
    place |= {page: page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")}
    return place


def header_page(file):
    """The page that Doxygen makes of a header."""
    return Path("reference/api") / (file.name.replace("_", "__").replace(".", "_8") + ".html")


class Site:
    def __init__(self, folder):
        self.folder = folder
        self.places = pages()

    def write(self, place, text):
        (self.folder / place).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / place).write_text(text)

    def place_of(self, target):
        """The place in the site of a file or folder of the repository; makes a page for it where there is none."""
        if target in self.places:
            return self.places[target]
        name = target.relative_to(ROOT)
        if target.parent == ROOT / "include" / "hpe":
            place = header_page(target)
        elif target.suffix in (".png", ".svg"):
            place = target.relative_to(ROOT / "docs")
            (self.folder / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(target, self.folder / place)
        elif target.is_dir():
            place = Path("source") / name / "index.md"
            entries = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in target.iterdir())
            self.write(place, f"# {name}\n\n" + "".join(f"- `{entry}`\n" for entry in entries))
        else:
            place = Path("source") / f"{name}.md"
            language = LANGUAGES.get(target.suffix, "text")
            self.write(place, f"# {name}\n\n````{language}\n{target.read_text()}````\n")
        self.places[target] = place
        return place

    def stage(self, page):
        place = self.places[page]

        def lead(match):
            name, hash_sign, anchor = match[2].partition("#")
            if not name or re.match(r"https?:|mailto:", match[2]):
                return match[0]
            file = (page.parent / name).resolve()
            if not file.exists():  # as in code that looks like a link
                return match[0]
            target = self.place_of(file)
            return match[1] + os.path.relpath(target, place.parent) + hash_sign + anchor + match[3]

        parts = FENCE.split(page.read_text())  # fenced blocks have the odd numbers
        head = HOME if place == Path("index.md") else ""
        self.write(place, head + "".join(part if number % 2 else LINK.sub(lead, part) for number, part in enumerate(parts)))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    site = Site(Path(sys.argv[1]))
    for page in list(site.places):
        site.stage(page)
    (site.folder / "site").mkdir(exist_ok=True)
    for file in ("site.css", "search.js"):
        shutil.copy(Path(__file__).parent / file, site.folder / "site")


if __name__ == "__main__":
    main()
