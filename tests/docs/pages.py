"""Common parts of the tests of the documentation: the pages, their fenced blocks and their text."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
TUTORIAL = ROOT / "docs" / "tutorial"

FENCE = re.compile(r"^(`{3,})(\w*)[^\n]*\n(.*?)^\1$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    language: str
    text: str
    line: int  # the number of its first line of text, counted from 1


def blocks_of(page):
    """Returns the fenced blocks of a page."""
    text = page.read_text()
    return [Block(match[2], match[3], text.count("\n", 0, match.start(3)) + 1) for match in FENCE.finditer(text)]


def prose_of(page):
    """Returns the text of a page with blanks in place of fenced blocks and code; lines keep their numbers."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])
    return re.sub(r"`[^`\n]+`", blank, FENCE.sub(blank, page.read_text()))
