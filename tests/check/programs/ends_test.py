#!/usr/bin/env python3
"""Each way in which a checked program ends gives one report: ends_test.py COMMAND..., where COMMAND runs the program ends."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

COMMAND = []
FOUND = 9  # the status of a program with findings that would have ended with 0


class Ends(unittest.TestCase):
    def end(self, how, status, expected_status, *, reports=1, variables=None):
        told = subprocess.run([*COMMAND, how, str(status)], capture_output=True, text=True, timeout=120,
                              env={**os.environ, **(variables or {})})
        self.assertEqual(told.returncode, expected_status, (how, told.stderr))
        self.assertEqual(told.stderr.count("hpe check: 1 findings\n"), reports, (how, told.stderr))
        return told.stdout

    def test_ends_without_exit_handlers(self):
        for how in ("main", "_exit", "_Exit", "quick_exit"):
            self.end(how, 0, FOUND)
            self.end(how, 3, 3)

    def test_exec(self):
        for how in ("execl", "execle", "execlp", "execv", "execve", "execvp", "execvpe"):
            self.assertIn("the next program\n", self.end(how, 0, 0))

    def test_exec_that_fails_ends_no_process(self):
        self.end("failed_exec", 0, FOUND)

    def test_children_have_no_report(self):
        self.end("fork", 0, FOUND)
        self.assertIn("the next program\n", self.end("vfork", 0, FOUND))

    def test_all_processes_of_a_run_add_their_findings(self):
        with tempfile.TemporaryDirectory() as place:
            files = {"HPE_CHECK_JSON": str(Path(place, "found.json")), "HPE_CHECK_SARIF": str(Path(place, "found.sarif"))}
            # One process that executes a program, and two processes. The second run replaces the files.
            for how in ("again", "child"):
                self.end(how, 0, FOUND, reports=2, variables=files)
                self.assertEqual(len(json.loads(Path(place, "found.json").read_text())["findings"]), 2, how)
                runs = json.loads(Path(place, "found.sarif").read_text())["runs"]
                self.assertEqual([len(run["results"]) for run in runs], [2], how)
            own = {"HPE_CHECK_JSON": str(Path(place, "%p.json"))}
            self.end("child", 0, FOUND, reports=2, variables=own)
            self.assertEqual(len([file for file in Path(place).iterdir() if file.name.removesuffix(".json").isdigit()]), 2)

    def test_a_signal_handler_ends_the_process_without_report(self):
        self.end("handler", 0, 0, reports=0)


if __name__ == "__main__":
    COMMAND = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
