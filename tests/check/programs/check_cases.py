#!/usr/bin/env python3
"""Runs the programs of this folder by `hpe run --check` and compares what it finds with what their sources say.

    check_cases.py [--each] [--on-gpu] [--only CASE] [--list] SOURCE -- COMMAND...

COMMAND is what stands before `wrong` or `right` (for example `hpe run --check --devices soft:2 -- ./order`). It runs with
`right`, where nothing may be found, and with `wrong`, where each case of SOURCE (cases.h) must give exactly one finding,
of the kind, the kernel and the two source lines that the case states. --each runs each case in a process of its own.
A case with the words `(not found)` has a defect that the check does not find, one with the words `(not on GPUs)` one that
it finds only on soft devices, and one with the words `(only on GPUs)` one that it finds only there. A case that prints
`skipped: NAME` cannot run on the machine. --on-gpu says that COMMAND runs the program on a GPU.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# The places of a finding that the marks FIRST and SECOND name.
PLACES = {
    "stream-race": ("earlier.place", "now.place"),
    "graph-race": ("earlier.place", "now.place"),
    "host-touch": ("earlier.place", "now.place"),
    "source-changed": ("earlier.place", "now.place"),
    "mpi-race": ("earlier.place", "now.place"),
    "rank-race": ("earlier.place", "now.place"),
    "use-after-free": ("earlier.place", "now.place"),
    "never-written": ("allocation.place", "now.place"),
    "leak": ("allocation.place",),
    "never-waited": ("now.place",),
    "out-of-range": ("now.place", "now.source"),
    "undeclared-write": ("now.place", "now.source"),
    "undeclared-read": ("now.place", "now.source"),
    "beyond-range": ("now.place", "now.source"),
    "block-race": ("earlier.source", "now.source"),
    "shared-race": ("earlier.source", "now.source"),
}
# Kinds that need not say which of the two places was first.
SYMMETRIC = {"stream-race", "graph-race", "rank-race", "block-race", "shared-race"}
STATUS = 9  # of a program with findings that would have ended with 0


class Case:
    def __init__(self, name, alone, kind, kernel, is_found):
        self.name, self.alone, self.kinds, self.kernel, self.is_found = name, alone, kind.split("|"), kernel, is_found
        self.first, self.second, self.lines = set(), set(), (0, 0)


def cases_of(source, on_gpu):
    """A case's marks are in its function and in what stands between this function and the case before. A missing mark
    stands for a place that nothing can name."""
    is_python = source.suffix == ".py"
    begins = re.compile((r"@case  #" if is_python else r"CASE(?P<alone>_ALONE)?(?:_WITH)?\((?:\w+, )?(?P<name>\w+)\) \{  //") +
                        r" (?P<kind>\S+) (?P<kernel>\S+)(?P<unseen> \(not found\))?(?P<soft> \(not on GPUs\))?(?P<gpu> \(only on GPUs\))?")
    cases, case, first, second, begin = [], None, set(), set(), 1
    lines = source.read_text().splitlines()
    for number, line in enumerate(lines, 1):
        if found := begins.fullmatch(line):
            known = {"name": None, "alone": None, **found.groupdict()}
            is_found = not found["unseen"] and not found["soft" if on_gpu else "gpu"]
            case = Case(known["name"], bool(known["alone"]), found["kind"], found["kernel"], is_found)
        elif is_python and case and not case.name:
            case.name = re.match(r"def (\w+)", line)[1]
        if comment := re.search("(?://|#) .*", line):
            first |= {number} if re.search(r"\bFIRST\b", comment[0]) else set()
            second |= {number} if re.search(r"\bSECOND\b", comment[0]) else set()
        ends = lines[number:number + 1] == [""] and lines[number + 1:number + 2] == [""] if is_python else line == "}"
        if case and ends:
            case.first, case.second, case.lines = first, second, (begin, number)
            cases.append(case)
            case, first, second, begin = None, set(), set(), number + 1
    return cases


def line_of(finding, path, source):
    part, name = path.split(".")
    place = (finding.get(part) or {}).get(name) or ""
    file, _, line = place.rpartition(":")
    return int(line) if os.path.basename(file) == source.name and line.isdigit() else None


def text_of(finding):
    def side(name):
        it = finding.get(name) or {}
        return f"{name} {it.get('what', it.get('call', ''))} {it.get('place', '')} {it.get('source', '')}".rstrip()
    return f"{finding.get('kind')}: {side('now')}; {side('earlier')}; {side('allocation')}"


def matches(case, finding, source):
    if finding["kind"] not in case.kinds:
        return False
    lines = [line_of(finding, path, source) for path in PLACES[finding["kind"]]]
    wanted = [case.first, case.second][:len(lines)]
    orders = [lines, lines[::-1]] if finding["kind"] in SYMMETRIC else [lines]
    if not any(all(line in each or not each for line, each in zip(order, wanted)) for order in orders):
        return False
    whats = [(finding.get(side) or {}).get("what", "") for side in ("now", "earlier")]
    return case.kernel == "-" or any(case.kernel in what for what in whats)


def concerns(case, finding, source):
    """Whether a place of the finding is in the source of this case."""
    paths = [f"{part}.{name}" for part in ("now", "earlier", "allocation") for name in ("place", "source")]
    lines = [line_of(finding, path, source) for path in paths]
    return any(line is not None and case.lines[0] <= line <= case.lines[1] for line in lines)


def run(command, how, names):
    """Returns the findings and the text of a run."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, "%p.json")  # each process writes a file of its own
        got = subprocess.run([*command, how, *names], capture_output=True, text=True, timeout=120, check=False,
                             env={**os.environ, "HPE_CHECK_JSON": str(file), "HPE_STALL_AFTER": "0"})
        # The ranks of an MPI job may find the same defect.
        found = {text_of(each): each for one in sorted(Path(place).iterdir()) for each in json.loads(one.read_text())["findings"]}
        findings = list(found.values())
    text = got.stdout + got.stderr
    if got.returncode != (STATUS if findings else 0):
        text += f"\nthe exit status is {got.returncode}"
        findings = findings or [{"kind": f"exit status {got.returncode}: {got.stderr[-500:]}"}]
    return findings, text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", action="store_true", help="each case in a process of its own")
    parser.add_argument("--on-gpu", action="store_true", help="COMMAND runs the program on a GPU")
    parser.add_argument("--only", action="append", help="only this case")
    parser.add_argument("--list", action="store_true", help="list the cases, run nothing")
    parser.add_argument("source", type=Path)
    parser.add_argument("command", nargs="*")
    a = parser.parse_args()
    cases = [c for c in cases_of(a.source, a.on_gpu) if not a.only or c.name in a.only]
    if a.list:
        for c in cases:
            print(f"{c.name:48} {'|'.join(c.kinds):16} {c.kernel:20} {sorted(c.first)} {sorted(c.second)}")
        return 0
    each = a.each or a.only
    together = [] if each else [c for c in cases if not c.alone]
    groups = ([together] if together else []) + [[c] for c in cases if each or c.alone]
    found, unseen, skipped, missed, false = 0, 0, 0, [], []
    for group in groups:
        names = [] if group is together else [group[0].name]
        findings, _ = run(a.command, "right", names)
        for finding in findings:
            where = [c.name for c in group if concerns(c, finding, a.source)]
            false.append(f"false, with right, in {where[0] if where else 'no case'}: {text_of(finding)}")
        findings, text = run(a.command, "wrong", names)
        rest = list(findings)
        for case in group:
            if f"skipped: {case.name}\n" in text:
                skipped += 1
                continue
            its = [f for f in rest if matches(case, f, a.source)]
            if not case.is_found and not its:
                unseen += 1
            elif its:
                if not case.is_found:
                    missed.append(f"found: {case.name}; remove the words (not found)")
                found += 1
                rest = [f for f in rest if f not in its[:1]]
            else:
                near = [text_of(f) for f in findings if concerns(case, f, a.source)]
                missed.append(f"missed: {case.name}, {'|'.join(case.kinds)} of {case.kernel}, lines {sorted(case.first)} and "
                              f"{sorted(case.second)}" + "".join(f"\n    found instead: {each}" for each in near))
                rest = [f for f in rest if not concerns(case, f, a.source)]
        false += [f"false, with wrong: {text_of(f)}" for f in rest]
    for line in missed + false:
        print(line)
    print(f"{a.source.name}: {len(cases)} cases: {found} found, {len(missed)} missed, {unseen} not found as known, "
          f"{skipped} skipped, {len(false)} false findings")
    return 1 if missed or false else 0


if __name__ == "__main__":
    sys.exit(main())
