#!/usr/bin/env python3
"""Checks scripts/measurements: pages agree with the data, and figures that contradict themselves are refused."""

import importlib.machinery
import importlib.util
import json
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path

from pages import ROOT

sys.dont_write_bytecode = True  # no compiled file beside the script
LOADER = importlib.machinery.SourceFileLoader("measurements", str(ROOT / "scripts" / "measurements"))
measurements = importlib.util.module_from_spec(importlib.util.spec_from_loader("measurements", LOADER))
LOADER.exec_module(measurements)

QUESTIONS = tomllib.loads(measurements.QUESTIONS.read_text())["page"]


def figure(value, spread, unit="x"):
    return {"what": "a copy, of the link", "value": value, "unit": unit, "spread": spread, "bar": "", "reached": True}


class Pages(unittest.TestCase):
    def test_pages_are_those_of_the_data(self):
        measurements.check_pages()

    def test_a_page_fits_on_a_screen_and_has_its_picture(self):
        self.assertGreater(len(QUESTIONS), 5)
        for page in QUESTIONS:
            text = (measurements.PAGES / f"{page['name']}.md").read_text()
            self.assertLess(len(text.splitlines()), 25)
            self.assertLessEqual(len(page["row"]), 6)
            self.assertTrue((ROOT / "docs" / "images" / "measurements" / f"{page['name']}.svg").exists())

    def test_a_figure_that_is_not_there_is_named(self):
        with self.assertRaisesRegex(SystemExit, "there is no figure soft-pairs#0: no such pair"):
            measurements.Kept().figure("soft-pairs#0: no such pair")

    def test_a_table_that_its_page_lacks_is_named(self):
        table = {"file": "docs/check.md", "heading": "| a | b | c |", "row": []}
        with self.assertRaisesRegex(SystemExit, r"docs/check.md has no table with the heading \| a \| b \| c \|"):
            measurements.with_table("text\n\n| a | b |\n|---|---|\n\n", table, None)

    def test_a_table_of_a_page_is_replaced_and_nothing_else(self):
        class OneFigure:
            def figure(self, name):
                return figure(2.25, "1.04 to 3.06")

        table = {"file": "docs/x.md", "heading": "| a | b | c |", "row": [{"name": "n|m", "figure": "x"}]}
        text = "before\n\n| a | b | c |\n|---|---|---|\n| old | 9 | 9 |\n\nafter\n\nend\n"
        self.assertEqual("before\n\n| a | b | c |\n|---|---|---|\n| n\\|m | 2.2 | 1.0 to 3.1 |\n\nafter\n\nend\n",
                         measurements.with_table(text, table, OneFigure()))

    def test_less_is_better_of_times_and_more_of_rates(self):
        kept = measurements.Kept()
        of_times = measurements.Row({"work": "w", "machine": "m", "hpe": "2 us", "baseline": "3 us"}, kept)
        of_rates = measurements.Row({"work": "w", "machine": "m", "hpe": "2 GB/s", "baseline": "4 GB/s"}, kept)
        self.assertEqual((1.5, 0.5), (of_times.ratio, of_rates.ratio))


class Ranges(unittest.TestCase):
    def test_kept_figures_lie_in_their_ranges(self):
        for file in measurements.KEPT.glob("*.json"):
            for table in json.loads(file.read_text())["tables"]:
                for r in measurements.named(table["results"]):
                    self.assertFalse("value" in r and measurements.is_outside(r), f"{file.name}: {r}")

    def test_a_range_in_another_unit_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            measurements.KEPT, kept = Path(folder) / "kept", measurements.KEPT
            try:
                table = {"program": "p", "title": "t", "commit": "c", "machine": "m", "time": "2026-11-26T00:00:00Z"}
                for spread, is_right in (("(0.95..1.01)", True), ("(7.375..7.626)", False), ("", True)):
                    file = Path(folder) / "run.json"
                    file.write_text(json.dumps({**table, "results": [figure(0.99, spread)]}))
                    if is_right:
                        measurements.add("run", folder, "a machine")
                    else:
                        with self.assertRaisesRegex(SystemExit, "lies outside its range"):
                            measurements.add("run", folder, "a machine")
            finally:
                measurements.KEPT = kept


if __name__ == "__main__":
    unittest.main()
