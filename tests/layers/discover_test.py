#!/usr/bin/env python3
"""Tests cmake/HpeDiscoverTests.cmake: every variable and property of a discovered test reaches the test."""

import subprocess
import tempfile
import unittest
from pathlib import Path

CMAKE = Path(__file__).parents[2] / "cmake"

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(small NONE)
enable_testing()
include({cmake}/HpeDiscoverTests.cmake)
add_executable(program IMPORTED)
set_target_properties(program PROPERTIES IMPORTED_LOCATION ${{CMAKE_SOURCE_DIR}}/program)
hpe_discover_tests(program DISCOVERY_MODE PRE_TEST TEST_PREFIX none. PROPERTIES TIMEOUT 60)
hpe_discover_tests(program DISCOVERY_MODE PRE_TEST TEST_PREFIX one. PROPERTIES ENVIRONMENT FIRST=1 TIMEOUT 60)
hpe_discover_tests(program DISCOVERY_MODE PRE_TEST TEST_PREFIX two. PROPERTIES LABELS named ENVIRONMENT "FIRST=1;SECOND=a b" TIMEOUT 60)
"""

# Lists its tests like a GoogleTest program, and prints the variables as a test.
PROGRAM = """#!/bin/sh
case "$1" in
  --gtest_list_tests) echo "Suite."; echo "  Case"; echo "  Other" ;;
  *) echo "first <$FIRST> second <$SECOND>" ;;
esac
"""


class Discover(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.source = Path(self.folder.name)
        (self.source / "CMakeLists.txt").write_text(PROJECT.format(cmake=CMAKE))
        (self.source / "program").write_text(PROGRAM)
        (self.source / "program").chmod(0o755)
        self.run_tool("cmake", "-S", ".", "-B", "build")

    def run_tool(self, *command):
        return subprocess.run(command, cwd=self.source, check=True, capture_output=True, text=True).stdout

    def test_variables_and_labels_reach_every_test(self):
        for prefix, expected in (("none", "first <> second <>"), ("one", "first <1> second <>"), ("two", "first <1> second <a b>")):
            output = self.run_tool("ctest", "--test-dir", "build", "--verbose", "-R", rf"^{prefix}\.")
            self.assertIn("100% tests passed, 0 tests failed out of 2", output)
            self.assertEqual(output.count(expected), 2, output)
        self.assertIn("Total Tests: 2", self.run_tool("ctest", "--test-dir", "build", "-N", "-L", "named"))


if __name__ == "__main__":
    unittest.main()
