#!/usr/bin/env python3
"""Follows the tutorial word for word: runs the commands of its pages and compares their output with the pages.

    tutorial_test.py --build FOLDER --work FOLDER PAGE   one page, with hpe from a build tree; 00-start comes first
    tutorial_test.py --bare --work FOLDER                all pages, in a bare clone of this repository, which takes as long
                                                         as building hpe does; without the CUDA toolkit, not those for it

console.py says how a page shows commands and their output. The home folder is one of the work folder's.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from console import commands_of, run
from pages import ROOT, TUTORIAL

START = TUTORIAL / "00-start.md"
OF_EVERY_PAGE = re.compile(r"(cd|export) ")  # the commands of 00-start on which later pages depend
FOR_CUDA = {"07-libraries", "08-cuda-program"}  # pages whose programs are compiled with the CUDA toolkit
BUILD_COMMAND = "scripts/setup install"  # not run if there is a build


def follow(commands, work, setting_up=()):
    """Runs commands in the work folder's clone, with its home folder."""
    (work / "home").mkdir(exist_ok=True)
    own = {name: value for name, value in os.environ.items() if not name.startswith("HPE_")}
    environment = {**own, "HOME": str(work / "home"),
                   # mpirun refuses to run as root, or with more ranks than cores, unless these variables are set.
                   "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_mpi_yield_when_idle": "1"}
    return run(commands, ["bash", "-c"], work / "hpe", environment, setting_up)


def prepare(work):
    """Creates an empty work folder with the sources that a clone would have."""
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
        wrong = follow([command for page in pages for command in commands_of(page)], work)
    elif options.page == START.stem:
        prepare(work)
        shutil.copytree(ROOT / "docs" / "examples", work / "hpe" / "docs" / "examples")
        (work / "hpe" / "build").mkdir()
        (work / "hpe" / "build" / "install").symlink_to(options.build.resolve())
        wrong = follow([command for command in start if command.text != BUILD_COMMAND], work)
    else:
        before = [command.text for command in start if OF_EVERY_PAGE.match(command.text)]
        wrong = follow(commands_of(TUTORIAL / f"{options.page}.md"), work, before)
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
