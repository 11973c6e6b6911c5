#!/usr/bin/env python3
"""Copies the Markdown pages of the repository to FOLDER, and changes their links so that they lead to pages of the web site.

    stage.py FOLDER

README.md becomes the home page. A link to a header of hpe leads to the reference of this header, a link to any other file of the
repository leads to a page that shows the file, and a link to a folder leads to a page that lists the folder's contents.
"""

import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
HOME = "---\nhide: [navigation, toc]\n---\n"  # without side bars, the first screen of the home page includes the quick start
LANGUAGES = {".cpp": "cpp", ".h": "cpp", ".hpp": "cpp", ".cu": "cpp", ".def": "cpp", ".py": "python", ".txt": "text"}


def pages():
    """Returns a dictionary from each Markdown page of the repository to its path in the site."""
    place = {ROOT / "README.md": Path("index.md")}
    place |= {page: Path(page.name) for page in ROOT.glob("*.md") if page.name != "README.md"}
    place |= {page: page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")}
    return place


def header_page(file):
    """Returns the path of the page that Doxygen generates from a header."""
    return Path("reference/api") / (file.name.replace("_", "__").replace(".", "_8") + ".html")


class Site:
    def __init__(self, folder):
        self.folder = folder
        self.places = pages()

    def write(self, place, text):
        (self.folder / place).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / place).write_text(text)

    def place_of(self, target):
        """Returns the path in the site of a file or folder of the repository. Creates its page if there is none."""
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
            if not file.exists():  # not a link, but code that looks like one
                return match[0]
            target = self.place_of(file)
            return match[1] + os.path.relpath(target, place.parent) + hash_sign + anchor + match[3]

        parts = FENCE.split(page.read_text())  # parts with odd numbers are fenced blocks
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
