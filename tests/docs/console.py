"""Blocks of pages that show a terminal: commands that a test runs, and the output that it compares with the page.

A block of language console has commands, "$ command", each followed by what it prints. There, "..." stands for any text,
and a line with nothing else for any number of lines.
"""

import os
import pty
import re
import subprocess
import tty
from pathlib import Path
from typing import NamedTuple

from pages import ROOT, blocks_of

END_OF_COMMAND = "\x01"


class Command(NamedTuple):
    page: Path
    line: int
    text: str
    output: str


def commands_of(page):
    found = []
    for block in blocks_of(page):
        if block.language != "console":
            continue
        for number, line in enumerate(block.text.splitlines(), block.line):
            if line.startswith("$ "):
                found.append(Command(page, number, line[2:], ""))
            elif found:
                found[-1] = found[-1]._replace(output=found[-1].output + line + "\n")
    return found


def pattern_of(output):
    def pattern_of_line(line):
        if line.strip() == "...":
            return r"(?:.*\n)*"
        return ".*".join(re.escape(part) for part in line.rstrip().split("...")) + r"[ ]*\n"
    return "".join(pattern_of_line(line) for line in output.splitlines())


def output_on_terminal(command, folder, environment):
    """Runs a command in a terminal, so that the lines of both output streams keep their order, and returns its output."""
    ours, its = pty.openpty()
    tty.setraw(its)  # the terminal does not change line ends
    with subprocess.Popen(command, cwd=folder, env={**environment, "TERM": "dumb"}, stdin=subprocess.DEVNULL, stdout=its,
                          stderr=its):
        os.close(its)
        output = b""
        try:
            while part := os.read(ours, 65536):
                output += part
        except OSError:  # Linux reports in this way that no process has the terminal open any more
            pass
    os.close(ours)
    return output.decode(errors="replace")


def run(commands, shell, folder, environment, setting_up=()):
    """Runs commands in one shell, as a person types them; `shell` takes a script as its last argument. Returns a sentence for
    each command that failed."""
    script = "".join(f"{text}\n" for text in setting_up)
    script += "".join(f"{command.text}\nprintf '{END_OF_COMMAND}%s{END_OF_COMMAND}' $?\n" for command in commands)
    results = output_on_terminal([*shell, script], folder, environment).split(END_OF_COMMAND)
    wrong = []
    for number, command in enumerate(commands):
        output, status = results[2 * number:2 * number + 2] if 2 * number + 1 < len(results) else (results[-1], "none")
        print(f"$ {command.text}\n{output}", end="")
        if status != "0" or not re.fullmatch(pattern_of(command.output), output):
            wrong.append(f"{command.page.relative_to(ROOT)}:{command.line}: exit status {status}, and it printed\n{output}"
                         f"where the page says\n{command.output}")
            if status == "none":
                break
    return wrong
