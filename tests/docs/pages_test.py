#!/usr/bin/env python3
"""Checks the pages of the documentation: links have targets, and the tutorial shows the code of its programs."""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from console import pattern_of
from pages import ROOT, TUTORIAL, blocks_of, prose_of

LINK = re.compile(r"\]\(([^)\s]+)\)|^\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
HEADING = re.compile(r"^#+ +(.*?) *#*$", re.MULTILINE)
EXAMPLE = re.compile(r"\]\(((?:\.\./)?examples/[^)]+)\)")

TOOLS = ROOT / "docs" / "site"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def anchor_of(heading):
    """Returns the anchor of a heading in MkDocs and on GitHub."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")


def anchors_of(page):
    text = page.read_text()
    for block in blocks_of(page):
        text = text.replace(block.text, "")
    return {anchor_of(heading) for heading in HEADING.findall(text)}


def relative_links(page):
    """Returns the links of a page to other files, without anchors."""
    links = [first or second for first, second in LINK.findall(prose_of(page))]
    return [link.partition("#")[0] for link in links if not re.match(r"https?:|mailto:|#", link)]


def broken_links(page, root=ROOT):
    text = prose_of(page)
    for match in LINK.finditer(text):
        link = match[1] or match[2]
        if re.match(r"https?:|mailto:", link):
            continue
        place = f"{page.relative_to(root)}:{text.count(chr(10), 0, match.start()) + 1}"
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists():
            yield f"{place}: {link} does not exist"
        elif not target.is_relative_to(root):
            yield f"{place}: {link} is outside of the repository"
        elif anchor and anchor not in anchors_of(target):
            yield f"{place}: {name or 'the page'} has no heading #{anchor}"


def has_lines(text, excerpt):
    """Returns whether the lines of the excerpt follow each other in the text. Indentation does not count."""
    lines, wanted = ([line.strip() for line in part.strip().splitlines()] for part in (text, excerpt))
    return any(lines[start:start + len(wanted)] == wanted for start in range(len(lines)))


class Pages(unittest.TestCase):
    def test_links_lead_somewhere(self):
        self.assertGreater(len(PAGES), 10)
        self.assertEqual([], [sentence for page in PAGES for sentence in broken_links(page)])

    def test_each_page_is_in_the_site(self):
        places = (ROOT / "docs" / "site" / "mkdocs.yml").read_text()
        for page in PAGES:
            if page.name != "README.md" or page.parent != ROOT:
                self.assertIn(f": {page.relative_to(ROOT).as_posix().removeprefix('docs/')}\n", places)

    def test_pages_are_short(self):
        for page in PAGES:
            if page.parent.name != "history":  # generated pages and old figures
                most = 300 if page.parent.name == "architecture" else 400
                self.assertLessEqual(len(page.read_text().splitlines()), most, page)

    def test_code_of_the_pages_is_that_of_the_examples(self):
        excerpts = 0
        docs = TUTORIAL.parent
        for page in sorted([*TUTORIAL.glob("*.md"), docs / "howto" / "kernels.md", docs / "quick-start.md"]):
            sources = [(page.parent / name).resolve() for name in EXAMPLE.findall(page.read_text())]
            texts = [source.read_text() for source in sources if source.is_file()]
            texts += [header.read_text() for source in sources for header in source.parent.glob("*.h")]
            for block in blocks_of(page):
                if block.language not in ("cpp", "cmake", "python"):
                    continue
                excerpts += 1
                self.assertTrue(any(has_lines(text, block.text) for text in texts),
                                f"{page.name}:{block.line}: no linked source has these lines:\n{block.text}")
        self.assertGreater(excerpts, 10)

    def test_each_example_has_a_page(self):
        linked = "".join(page.read_text() for page in TUTORIAL.glob("*.md"))
        for source in [*(ROOT / "docs" / "examples").glob("*.cpp"), *(ROOT / "docs" / "examples").glob("*.cu")]:
            self.assertIn(f"../examples/{source.name}", linked)


class Site(unittest.TestCase):
    """Tests the steps that scripts/docs makes before it runs MkDocs and Doxygen."""

    def test_links_of_the_gathered_pages_lead_to_pages_of_the_site(self):
        with tempfile.TemporaryDirectory() as folder:
            site = Path(folder).resolve()
            subprocess.run([sys.executable, TOOLS / "stage.py", site], check=True)
            pages = sorted(site.rglob("*.md"))
            self.assertLessEqual({site / "index.md", site / "tutorial" / "00-start.md"}, {*pages})
            missing = [f"{page.relative_to(site)}: {link}" for page in pages for link in relative_links(page)
                       if not (page.parent / link).exists() and "/reference/api/" not in str((page.parent / link).resolve())]
            self.assertEqual([], missing)

    def test_headers_keep_their_code(self):
        def code_of(text):
            return re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL))
        for header in (ROOT / "include" / "hpe").iterdir():
            filtered = subprocess.run([sys.executable, TOOLS / "header_filter.py", header], check=True, capture_output=True,
                                      text=True).stdout
            self.assertEqual(code_of(header.read_text()), code_of(filtered), header.name)
            self.assertIn("@file", filtered, header.name)
            self.assertEqual(filtered.count("@{"), filtered.count("@}"), header.name)


class Checks(unittest.TestCase):
    """Shows that the functions of the checks can fail."""

    def test_broken_links_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            page, other = root / "page.md", root / "other.md"
            other.write_text("# Another page\n")
            page.write_text("# A page\n[a](nowhere.md) [b](#a-page) [c](other.md#none) [d](other.md#another-page) [e](/etc/passwd)"
                            " `[f](code)`\n```\n[g](block)\n```\n")
            self.assertEqual(["page.md:2: nowhere.md does not exist", "page.md:2: other.md has no heading #none",
                              "page.md:2: /etc/passwd is outside of the repository"], list(broken_links(page, root)))

    def test_anchors_are_those_of_the_generators(self):
        self.assertEqual("1-one-pointer", anchor_of("1. One pointer"))
        self.assertEqual("what-is-refused-and-what-stays", anchor_of("What is refused, and what stays"))
        self.assertEqual("hpe_profile1", anchor_of("`HPE_PROFILE=1`"))

    def test_output_has_to_be_what_the_page_says(self):
        pattern = pattern_of("a ... c\n...\nd\n")
        self.assertRegex("a b c\nx\ny\nd\n", f"^{pattern}$")
        self.assertRegex("a b c\nd\n", f"^{pattern}$")
        self.assertNotRegex("a b\nx\nd\n", f"^{pattern}$")
        self.assertNotRegex("a b c\nx\nd\ne\n", f"^{pattern}$")

    def test_excerpts_follow_each_other(self):
        self.assertTrue(has_lines("a\n  b\nc\n", "b\n  c\n"))
        self.assertFalse(has_lines("a\nb\nc\n", "a\nc\n"))


if __name__ == "__main__":
    sys.exit(unittest.main())
