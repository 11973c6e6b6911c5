#!/usr/bin/env python3
"""Runs the Python examples of docs/howto/python.md, which print the numbers that their comments state."""

import contextlib
import io
import re
import unittest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "python.md"


class Page(unittest.TestCase):
    def test_examples_print_what_their_comments_state(self):
        examples = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
        self.assertTrue(examples)
        for example in examples:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(example, str(PAGE), "exec"), {})
            self.assertEqual(printed.getvalue().split(), re.findall(r"print\(.*# .*: (\S+)$", example, re.MULTILINE))


if __name__ == "__main__":
    unittest.main()
