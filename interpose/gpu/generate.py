#!/usr/bin/env python3
"""Generates the lists that are derived from the toolkit's headers of the driver.

    generate.py hooks.def driver_entries.def hook_twins.def cuda.h [cudaProfiler.h]

driver_entries.def: HPE_DRIVER_ENTRY(name) for each name that the headers declare, in the order of the C locale.
hook_twins.def: the rows of the twins of the entries in hooks.def. A twin is the entry with the suffix _ptds or _ptsz, for
programs with per-thread default streams. The row of a twin is the row of its entry with `per_thread` in place of `legacy`.
"""

import re
import sys
from pathlib import Path

DECLARATION = re.compile(r"\bCUresult\s+CUDAAPI\s+(cu[A-Z]\w*)\s*\(")
# Macros whose values end with _ptsz are skipped, because they name inline functions of the header and not functions
# that the driver exports.
VERSION = re.compile(r"^\s*#define\s+cu[A-Z]\w*\s+(cu[A-Z]\w*)(?<!_ptsz)\s*$", re.MULTILINE)
RENAMED = re.compile(r"\b__CUDA_API_PT(DS|SZ)\((cu[A-Z]\w*)\)")
HOOK = re.compile(r"^HPE_HOOK\((\w+), .*\)$", re.MULTILINE)


def entries(headers):
    found = {*DECLARATION.findall(headers), *VERSION.findall(headers)}
    for kind, name in RENAMED.findall(headers):
        found |= {name, f"{name}_pt{kind.lower()}"}
    return found


def twin_of(row, name, twin):
    row = row.replace(f"HPE_HOOK({name},", f"HPE_HOOK({twin},").replace(f"HPE_ENTRY({name})", f"HPE_ENTRY({twin})")
    return re.sub(r"\blegacy\b", "per_thread", row)


def main():
    hooks, entries_path, twins_path, *headers = (Path(each) for each in sys.argv[1:])
    names = entries("".join(header.read_text() for header in headers))
    made = "// Made by generate.py.\n"
    entries_path.write_text(made + "".join(f"HPE_DRIVER_ENTRY({name})\n" for name in sorted(names)))
    twins = [twin_of(hook[0], hook[1], hook[1] + suffix) for hook in HOOK.finditer(hooks.read_text())
             for suffix in ("_ptds", "_ptsz") if hook[1] + suffix in names]
    twins_path.write_text(made + "".join(f"{row}\n" for row in twins))


if __name__ == "__main__":
    main()
