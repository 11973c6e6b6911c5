#!/usr/bin/env python3
"""Follows the tutorial word for word: runs the commands of its pages and compares their output with the pages.

    tutorial_test.py --build FOLDER --work FOLDER PAGE   one page, with hpe from a build tree; 00-start comes first
    tutorial_test.py --bare --work FOLDER                all pages, in a bare clone of this repository, which takes as long
                                                         as building hpe does; without the CUDA toolkit, not those for it

A block of language console has commands, "$ command", each followed by what it prints. There, "..." stands for any text,
and a line with nothing else for any number of lines. The home folder is one of the work folder's.
"""

import argparse
import os
import pty
import re
import shutil
import subprocess
import sys
import tty
from pathlib import Path
from typing import NamedTuple

from pages import ROOT, TUTORIAL, blocks_of

START = TUTORIAL / "00-start.md"
END_OF_COMMAND = "\x01"
OF_EVERY_PAGE = re.compile(r"(cd|export) ")  # the commands of 00-start that later pages go on from
FOR_CUDA = {"07-libraries", "08-cuda-program"}  # pages whose programs are compiled with the CUDA toolkit
BUILD_COMMAND = "scripts/setup install"  # left out where there is a build


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
    """The output of a command, which runs in a terminal so that lines of both streams keep their order."""
    ours, its = pty.openpty()
    tty.setraw(its)  # lines end as the command ends them
    with subprocess.Popen(command, cwd=folder, env={**environment, "TERM": "dumb"}, stdin=subprocess.DEVNULL, stdout=its,
                          stderr=its):
        os.close(its)
        output = b""
        try:
            while part := os.read(ours, 65536):
                output += part
        except OSError:  # how Linux tells that nobody has the terminal open any more
            pass
    os.close(ours)
    return output.decode(errors="replace")


def run(commands, work, setting_up=()):
    """Runs commands in one shell, as a person types them. Returns a sentence for each command that failed."""
    script = "".join(f"{text}\n" for text in setting_up)
    script += "".join(f"{command.text}\nprintf '{END_OF_COMMAND}%s{END_OF_COMMAND}' $?\n" for command in commands)
    (work / "home").mkdir(exist_ok=True)
    own = {name: value for name, value in os.environ.items() if not name.startswith("HPE_")}
    environment = {**own, "HOME": str(work / "home"),
                   # mpirun refuses to run as root, or with more ranks than cores, unless these variables are set.
                   "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_mpi_yield_when_idle": "1"}
    results = output_on_terminal(["bash", "-c", script], work / "hpe", environment).split(END_OF_COMMAND)
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


def prepare(work):
    """An empty work folder with the sources that a clone would have."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--build", type=Path)
    parser.add_argument("--bare", action="store_true")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("page", nargs="?")
    options = parser.parse_args()
    work = options.work.resolve()
    start = commands_of(START)
    if options.bare:
        prepare(work)
        subprocess.run(["git", "clone", "--quiet", ROOT, work / "hpe"], check=True)
        pages = [page for page in sorted(TUTORIAL.glob("*.md")) if page.stem not in FOR_CUDA or shutil.which("nvcc")]
        wrong = run([command for page in pages for command in commands_of(page)], work)
    elif options.page == START.stem:
        prepare(work)
        shutil.copytree(ROOT / "docs" / "examples", work / "hpe" / "docs" / "examples")
        (work / "hpe" / "build").mkdir()
        (work / "hpe" / "build" / "install").symlink_to(options.build.resolve())
        wrong = run([command for command in start if command.text != BUILD_COMMAND], work)
    else:
        before = [command.text for command in start if OF_EVERY_PAGE.match(command.text)]
        wrong = run(commands_of(TUTORIAL / f"{options.page}.md"), work, before)
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
