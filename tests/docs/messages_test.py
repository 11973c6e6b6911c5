#!/usr/bin/env python3
"""Checks that docs/troubleshooting.md has a row for each message of the runtime, and no row for a message that does not exist.

A message is the text passed to HPE_THROW, HPE_REQUIRE or log (warn, error). A row names parts of messages as code in its first
column; "..." in it stands for any text.
"""

import re
import sys
import unittest
from pathlib import Path

from pages import ROOT

PAGE = ROOT / "docs" / "troubleshooting.md"
FOLDERS = ["runtime", "interpose"]
CALL = re.compile(r"\b(?:HPE_THROW|HPE_REQUIRE|log)\s*\(")
STRING = r'"(?:[^"\\\n]|\\.)*"'
STRINGS = re.compile(rf"{STRING}(?:\s*{STRING})*")
QUIET = re.compile(r"[\s\w:]*log_level::(?:info|debug)")


def sources(folders):
    return sorted(file for folder in folders for ending in ("h", "cpp") for file in (ROOT / folder).rglob(f"*.{ending}"))


def texts_in(code):
    """Returns the string literals in a piece of code; adjacent literals are joined."""
    return ["".join(part[1:-1] for part in re.findall(STRING, match[0])).replace('\\"', '"') for match in STRINGS.finditer(code)]


def arguments_of(code, start):
    """Returns the code from start, which is after an opening parenthesis, to the closing parenthesis."""
    depth = 1
    for match in re.compile(rf"{STRING}|'(?:[^'\\]|\\.)'|[()]").finditer(code, start):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth == 0:
            return code[start:match.start()]
    return ""


def messages_in(code):
    """Yields (line, text) of each message. Omits texts without words, such as "{}: {}", which only forward another message."""
    for match in CALL.finditer(code):
        arguments = arguments_of(code, match.end())
        text = max(texts_in(arguments), key=len, default="")
        if not QUIET.match(arguments) and re.search(r"[a-z]{2,}", re.sub(r"\{[^}]*\}", "", text)):
            yield code.count("\n", 0, match.start()) + 1, text


def phrases():
    return [phrase for line in PAGE.read_text().splitlines() if line.startswith("|")
            for phrase in re.findall(r"`([^`]+)`", line.split("|")[1])]


def pattern_of(phrase):
    return re.compile(".*".join(re.escape(part) for part in phrase.split("...")))


class Messages(unittest.TestCase):
    maxDiff = None

    def test_each_has_a_row(self):
        patterns = [pattern_of(phrase) for phrase in phrases()]
        found = [(file, line, text) for file in sources(FOLDERS) for line, text in messages_in(file.read_text())]
        self.assertGreater(len(found), 200)
        self.assertEqual([], [f"{file.relative_to(ROOT)}:{line}: docs/troubleshooting.md has no row for: {text}"
                              for file, line, text in found if not any(pattern.search(text) for pattern in patterns)])

    def test_each_row_is_for_a_message(self):
        texts = [text for file in sources([*FOLDERS, "apps"]) for text in texts_in(file.read_text())]
        self.assertEqual([], [phrase for phrase in phrases() if not any(map(pattern_of(phrase).search, texts))])

    def test_messages_are_found(self):
        code = 'HPE_REQUIRE(f(")") && a, E, "one {}"\n  " two", b);\nlog(log_level::info, "no");\nHPE_THROW(E, "{}: {}", c);'
        self.assertEqual([(1, "one {} two")], list(messages_in(code)))


if __name__ == "__main__":
    sys.exit(unittest.main())
