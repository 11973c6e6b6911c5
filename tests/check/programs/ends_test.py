#!/usr/bin/env python3
"""Each way in which a checked program ends gives one report: ends_test.py COMMAND..., where COMMAND runs the program ends."""

import subprocess
import sys
import unittest

COMMAND = []
FOUND = 9  # the status of a program with findings that would have ended with 0


class Ends(unittest.TestCase):
    def end(self, how, status, expected_status, *, reports=1):
        told = subprocess.run([*COMMAND, how, str(status)], capture_output=True, text=True, timeout=120)
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

    def test_a_signal_handler_ends_the_process_without_report(self):
        self.end("handler", 0, 0, reports=0)


if __name__ == "__main__":
    COMMAND = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
