#!/usr/bin/env python3
"""Checks the man pages and the completion of shells of a build against the output of its hpe command.

    manual_test.py <hpe> <build folder>
"""

import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

HPE, BUILD = sys.argv.pop(1), Path(sys.argv.pop(1))
COMPLETION = BUILD / "completions"
COMMANDS = ["info", "run", "doctor", "fft", "rtm", "wave", "scan", "sort"]


def printed(*arguments):
    return subprocess.run([HPE, *arguments], capture_output=True, text=True, check=True,
                          env={**os.environ, "COLUMNS": "10000"}).stdout


def man_page(name):
    """Returns the text of a man page without requests and escapes."""
    text = (BUILD / "man" / name).read_text()
    return re.sub(r"\\f[BIR]|\\&", "", text).replace("\\-", "-").replace("\\e", "\\")


def options_of(command):
    return re.findall(r"^ +(--[\w-]+)", printed(command, "--help"), re.MULTILINE)


def completed(*words):
    """Returns the completions that bash offers for the last of these words."""
    script = f'source "{COMPLETION}/bash/hpe"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hpe; printf "%s\\n" "${{COMPREPLY[@]}}"'
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
            headings = {word for line in re.findall(r"^[A-Z][\w,' ]{,60}:$", printed(command, "--help"), re.MULTILINE) for word in line.split()}
            self.assertEqual([], [word for word in missing if word not in headings], command)

    def test_each_variable_has_a_paragraph_with_its_default(self):
        variables = re.findall(r"^  (HPE_\w+) \(((?:.*; )?default: .*)\)\n    (.*)$", printed("help", "options"), re.MULTILINE)
        self.assertGreater(len(variables), 20)
        page = man_page("man7/hpe-options.7")
        for name, value, text in variables:
            self.assertIn(f".TP\n{name} ({value})\n{text}\n", page)
        self.assertIn(("HPE_SCOPE", "auto, all or args; default: auto"), [variable[:2] for variable in variables])

    def test_the_first_page_names_the_others(self):
        page = man_page("man1/hpe.1")
        for command in COMMANDS:
            self.assertIn(f"hpe-{command}(1)", page)
        self.assertIn("hpe-options(7)", page)


class HelpTexts(unittest.TestCase):
    def test_lines_are_broken_by_the_width_of_the_terminal_or_between_sentences(self):
        commands = re.findall(r"^  ([a-z-]+) {2,}", printed("help"), re.MULTILINE)
        self.assertLess(set(COMMANDS), set(commands))
        for command in commands:
            lines = printed(command, "--help").splitlines()
            name_alone = re.compile(r" +--\S+ \S+")  # the option is too long for a description on the same line
            broken = [line for line, after in zip(lines, lines[1:])
                      if line.strip() and re.match(r" {8,}\S", after) and line[-1] not in ";:." and not name_alone.fullmatch(line)]
            self.assertEqual([], broken, command)


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
        self.assertIn("env", completed("hpe", "doctor", "--run", "--", "en"))

    def test_the_values_of_an_option(self):
        self.assertEqual(["auto", "driver", "soft"], completed("hpe", "run", "--cuda", ""))
        self.assertEqual(["f32", "f32_u32", "f64"], sorted(completed("hpe", "sort", "--type", "f")))
        self.assertEqual(["HPE_LOG"], completed("hpe", "help", "HPE_LO"))

    def test_values_are_those_that_the_command_takes(self):
        text = (COMPLETION / "bash" / "hpe").read_text()
        self.assertGreater(len(re.findall(r'^    \[[\w-]+--[\w-]+\]="', text, re.MULTILINE)), 10)
        for key, words in re.findall(r'^    \[([\w-]+--[\w-]+)\]="(.*)"$', text, re.MULTILINE):
            command, option = key.split("--", 1)
            for word in words.split():
                printed(command, f"--{option}", word, "--help")  # fails if the command refuses the word


class OtherShells(unittest.TestCase):
    """Tests the completion files for zsh and fish, in these shells if they are installed, otherwise by their text."""
    ZSH, FISH = COMPLETION / "zsh" / "_hpe", COMPLETION / "fish" / "hpe.fish"

    def test_each_option_of_each_command_is_in_both(self):
        zsh, fish = self.ZSH.read_text(), self.FISH.read_text()
        for command in COMMANDS:
            rows = zsh[zsh.index(f"\n    {command})\n"):].split(";;")[0]
            for option in options_of(command):
                self.assertRegex(rows, rf"{option}\b", command)
                self.assertRegex(fish, rf"from {command}' -l {option[2:]} -d '", command)
        self.assertIn("(auto driver soft)", zsh)
        self.assertIn("-l cuda -d", fish)
        self.assertRegex(fish, r"-l cuda .* -x -a 'auto driver soft'")

    @unittest.skipUnless(shutil.which("fish"), "no fish")
    def test_fish_completes(self):
        def completed_by_fish(line):
            done = subprocess.run(["fish", "--no-config", "-c", f'source "{self.FISH}"; complete -C "{line}"'], capture_output=True,
                                  text=True, check=True)
            return [row.split("\t")[0] for row in done.stdout.splitlines()]
        self.assertIn("doctor", completed_by_fish("hpe do"))
        self.assertIn("--trace", completed_by_fish("hpe run --tr"))
        self.assertEqual(["auto", "driver", "soft"], sorted(completed_by_fish("hpe run --cuda ")))
        self.assertEqual(["HPE_LOG"], completed_by_fish("hpe help HPE_LO"))

    @unittest.skipUnless(shutil.which("zsh"), "no zsh")
    def test_zsh_completes(self):
        subprocess.run(["zsh", "-n", self.ZSH], check=True)
        # The functions of zsh's completion need a terminal, so here they only print their arguments.
        script = f"""
          _arguments() {{ if [[ $1 == -C ]]; then state=$STATE; words=("${{(@)words[2,-1]}}"); else print -rl -- "$@"; fi }}
          _describe() {{ print -rl -- "${{(@P)2}}"; }}
          compadd() {{ print -rl -- "$@"; }}
          words=("$@"); source "{self.ZSH}" """

        def printed_by_zsh(state, *words):
            return subprocess.run(["zsh", "-f", "-c", script, "zsh", *words], capture_output=True, text=True, check=True,
                                  env={**os.environ, "STATE": state}).stdout.splitlines()
        self.assertTrue(any(line.startswith("doctor:") for line in printed_by_zsh("command", "hpe", "")))
        self.assertTrue(any(line.startswith("--cuda[") and line.endswith("(auto driver soft)")
                            for line in printed_by_zsh("arguments", "hpe", "run", "")))
        self.assertIn("HPE_LOG", printed_by_zsh("arguments", "hpe", "help", ""))


if __name__ == "__main__":
    unittest.main()
