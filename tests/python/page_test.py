#!/usr/bin/env python3
"""Runs the Python examples of docs/howto/python.md, which print the numbers that their comments state, and the cells of the notebook
docs/examples/arrays.ipynb, which print the outputs that the notebook contains."""

import contextlib
import io
import json
import re
import unittest
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
PAGE, NOTEBOOK = DOCS / "howto" / "python.md", DOCS / "examples" / "arrays.ipynb"


def printed_by(code, file, names):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(file), "exec"), names)
    return printed.getvalue()


class Page(unittest.TestCase):
    def test_examples_print_what_their_comments_state(self):
        examples = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
        self.assertTrue(examples)
        for example in examples:
            self.assertEqual(printed_by(example, PAGE, {}).split(), re.findall(r"print\(.*# .*: (\S+)$", example, re.MULTILINE))

    def test_cells_of_the_notebook_print_their_outputs(self):
        names = {}
        for cell in json.loads(NOTEBOOK.read_text())["cells"]:
            if cell["cell_type"] == "code":
                expected = "".join(line for output in cell["outputs"] for line in output["text"])
                self.assertEqual(printed_by("".join(cell["source"]), NOTEBOOK, names).rstrip("\n"), expected)


if __name__ == "__main__":
    unittest.main()
