#!/usr/bin/env python3
"""Builds the manual as a site and reads it in a real browser, as files: no server, no network.

    site_test.py --build FOLDER --work FOLDER --screenshots FOLDER

The work folder gets the site, the last folder pictures of it in both modes.
"""

import argparse
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

from pages import ROOT

sys.path.insert(0, str(ROOT / "tests"))
from browser import BROWSER, MODES, brightness, browse, probe  # noqa: E402

REPOSITORY = "https://example.org/somebody/hpe"
SCREEN = (1280, 800)
LOADING = "--virtual-time-budget=10000"


def options():
    parser = argparse.ArgumentParser(usage=__doc__)
    for name in ("--build", "--work", "--screenshots"):
        parser.add_argument(name, type=Path, required=True)
    return parser.parse_args()


OPTIONS = options()
SITE = OPTIONS.work.resolve() / "site"


@unittest.skipUnless(BROWSER, "no Chromium, the browser of this test")
class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        subprocess.run([ROOT / "scripts" / "docs", "--build", OPTIONS.build, "--output", OPTIONS.work.resolve()], check=True,
                       env={**os.environ, "HPE_REPOSITORY": REPOSITORY})

    def found(self, words):
        """Returns the pages that the search finds, the best match first."""
        document, console = browse(f"{(SITE / 'index.html').as_uri()}?q={words}", LOADING)
        self.assertEqual([], [line for line in console if "Error" in line])
        return re.findall(r'<a href="file://[^"]*/site/([^"?#]*)[^"]*" class="md-search-result__link"', document)

    def test_the_search_works_from_files(self):
        self.assertIn("reference/api/hpe_8h.html", self.found("hpeMalloc")[0])
        self.assertIn("howto/cluster.html", self.found("modulefile"))
        self.assertEqual([], self.found("xyzzyplugh"))

    def test_the_first_screen_has_the_quick_start_and_the_repository(self):
        commands = "document.querySelector('#quick-start ~ .highlight pre')"  # the first block below the heading
        bottom = probe(SITE / "index.html", f"{commands}.getBoundingClientRect().bottom", size=SCREEN)
        self.assertLess(float(bottom), SCREEN[1])
        document, _ = browse(SITE / "index.html", LOADING)
        self.assertRegex(document, rf'<a href="{REPOSITORY}/?"[^>]*class="md-source"')
        self.assertIn("Quick start", re.search(r'<nav class="md-tabs.*?</nav>', document, re.DOTALL)[0])

    def test_pages_are_light_or_dark_as_the_reader_prefers(self):
        for name, page in (("site", SITE / "index.html"), ("reference", SITE / "reference" / "api" / "hpe_8h.html")):
            pictures = {mode: OPTIONS.screenshots / f"{name}-{mode}.png" for mode in MODES}
            for mode, picture in pictures.items():
                browse(page, LOADING, mode=mode, screenshot=picture, size=SCREEN)
            self.assertGreater(brightness(pictures["light"], SCREEN[1]) - brightness(pictures["dark"], SCREEN[1]), 100, name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
