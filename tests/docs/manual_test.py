#!/usr/bin/env python3
"""Checks the man pages and the bash completion of a build against the output of its hpe command.

    manual_test.py <hpe> <build folder>
"""

import re
import subprocess
import sys
import unittest
from pathlib import Path

HPE, BUILD = sys.argv.pop(1), Path(sys.argv.pop(1))
COMPLETION = BUILD / "bash-completion" / "completions" / "hpe"
COMMANDS = ["info", "run", "fft", "rtm", "wave", "scan", "sort"]


def printed(*arguments):
    return subprocess.run([HPE, *arguments], capture_output=True, text=True, check=True).stdout


def man_page(name):
    """The text of a man page without requests and escapes."""
    text = (BUILD / "man" / name).read_text()
    return re.sub(r"\\f[BIR]|\\&", "", text).replace("\\-", "-").replace("\\e", "\\")


def options_of(command):
    return re.findall(r"^ +(--[\w-]+)", printed(command, "--help"), re.MULTILINE)


def completed(*words):
    """The completions that bash offers for the last of these words."""
    script = f'source "{COMPLETION}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hpe; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, check=True)
    return done.stdout.split()


class ManPages(unittest.TestCase):
    def test_each_option_of_a_command_has_a_paragraph(self):
        for command in COMMANDS:
            page = man_page(f"man1/hpe-{command}.1")
            for option in options_of(command):
                self.assertRegex(page, rf"(?m)^\.TP\n{option}\b.*\n\S", command)

    def test_each_word_of_a_help_text_is_in_the_page(self):
        for command in COMMANDS:
            words = set(man_page(f"man1/hpe-{command}.1").split())
            missing = [word for word in printed(command, "--help").split()
                       if word.replace("`", "") not in words and word not in ("Usage:", "usage:", "Examples:")]
            self.assertEqual([], missing, command)

    def test_each_variable_has_a_paragraph_with_its_default(self):
        variables = re.findall(r"^  (HPE_\w+) \(default: (.*)\)\n    (.*)$", printed("help", "options"), re.MULTILINE)
        self.assertGreater(len(variables), 20)
        page = man_page("man7/hpe-options.7")
        for name, initial, text in variables:
            self.assertIn(f".TP\n{name} (default: {initial})\n{text}\n", page)

    def test_the_first_page_names_the_others(self):
        page = man_page("man1/hpe.1")
        for command in COMMANDS:
            self.assertIn(f"hpe-{command}(1)", page)
        self.assertIn("hpe-options(7)", page)


class Completion(unittest.TestCase):
    def test_commands(self):
        self.assertEqual(["rays", "report", "rtm", "run"], sorted(completed("hpe", "r")))
        self.assertIn("--version", completed("hpe", "--"))
        self.assertEqual(["options"], completed("hpe", "help", "op"))

    def test_options_of_each_command(self):
        for command in COMMANDS:
            offered = {*completed("hpe", command, "--")}
            self.assertLessEqual({*options_of(command)}, offered, command)
            self.assertLessEqual(offered, {*options_of(command), "--", "--help"}, command)

    def test_an_option_of_another_command_is_not_offered(self):
        self.assertEqual([], completed("hpe", "sort", "--shot"))
        self.assertEqual(["--shots", "--shot-depth"], completed("hpe", "rtm", "--shot"))

    def test_a_value_is_left_to_bash(self):
        self.assertEqual([], completed("hpe", "rtm", "--output", ""))
        self.assertNotEqual([], completed("hpe", "rtm", "--quiet", ""))

    def test_the_program_of_run(self):
        self.assertIn("env", completed("hpe", "run", "--profile", "--", "en"))
        self.assertEqual([], completed("hpe", "run", "--", "env", "--"))


if __name__ == "__main__":
    unittest.main()
