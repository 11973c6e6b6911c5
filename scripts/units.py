"""Groups source files into units that clang reads at once, because reading their headers takes most of the time.

A unit is a generated file that includes all source files of one folder with the same compiler options. Two files of a unit may
conflict (both define the same name, or the second uses an include of the first). Therefore, a finding in a unit proves nothing:
clang then reads the unit's files one by one, and only the findings of single files count. Missing includes are found only then.
"""

import concurrent.futures
import hashlib
import json
import os
import re
import shlex
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)
# Options that clang does not understand: a header that g++ has precompiled, and a warning of g++.
ONLY_GCC = re.compile(r" -Winvalid-pch -include \S+/cmake_pch\.hxx| -Wno-subobject-linkage")


class Unit:
    """Source files with the same options. flags: the arguments of the compiler, without its name, the output and the source file."""

    def __init__(self, files, flags, directory):
        self.files, self.flags, self.directory = files, flags, directory

    def alone(self):
        return [Unit([file], self.flags, self.directory) for file in self.files]

    def written(self, folder):
        """Returns the file that clang reads: the unit's only file, or a file below `folder` that includes all files of the unit."""
        if len(self.files) == 1:
            return self.files[0]
        text = "".join(f'#include "{file}"\n' for file in self.files)
        path = folder / f"unit-{hashlib.sha256(text.encode()).hexdigest()[:16]}.cpp"
        path.write_text(text)
        return path


class Sources:
    """The C++ sources of a tree that a build compiles, and the headers of the tree that they include, directly or not."""

    def __init__(self, root, build):
        self.root, self.included = root, {}
        self.entries = {}
        for entry in json.loads((build / "compile_commands.json").read_text()):
            file = Path(entry["file"])
            # With HPE_UNITY, the build compiles files that CMake has generated and that include the sources.
            for source in re.findall('#include "(.*)"', file.read_text()) if file.parent.name == "Unity" else [entry["file"]]:
                # Other generated code is left out, because the checks cover its generators.
                if source.endswith(".cpp") and not Path(source).is_relative_to(build):
                    self.entries[source] = entry

    def headers(self, file):
        """Returns the file and all files of the tree that it includes, directly or not."""
        found, waiting = {file}, [file]
        while waiting:
            new = set(self._included(waiting.pop())) - found
            found |= new
            waiting += new
        return found

    def _included(self, file):
        if file not in self.included:
            named = [folder / name for name in INCLUDE.findall(file.read_text())
                     for folder in (self.root, self.root / "include", file.parent)]
            self.included[file] = [path for path in named if path.is_file()]
        return self.included[file]

    def units(self, wanted, chosen=lambda headers: True):
        """Returns units of the files at or below the wanted paths for whose headers `chosen` is true, grouped by folder and options."""
        grouped = {}
        for name, entry in sorted(self.entries.items()):
            file = Path(name)
            if any(file.is_relative_to(path) for path in wanted) and chosen(self.headers(file)):
                words = shlex.split(ONLY_GCC.sub("", entry["command"]))
                compiler = next(i for i, word in enumerate(words) if re.search(r"(\+\+|cc)(-\d+)?$", word) and "ccache" not in word)
                key = (file.parent, tuple(words[compiler + 1:words.index("-o")]), entry["directory"])
                grouped.setdefault(key, []).append(file)
        return [Unit(files, list(flags), directory) for (_, flags, directory), files in grouped.items()]

    def digest(self, unit, *more):
        """Returns a hash of a unit's contents, its options and `more`."""
        found = hashlib.sha256(repr((unit.flags, more)).encode())
        for file in sorted(set().union(*(self.headers(file) for file in unit.files))):
            found.update(str(file).encode() + file.read_bytes())
        return found.hexdigest()


def check(sources, units, records, run, *more):
    """Calls run(unit), which returns the findings as text, for all units except those without findings in an earlier run, in one thread
    for each core. Prints the findings; returns the number of files with findings."""
    records.mkdir(parents=True, exist_ok=True)

    def findings(unit):
        record = records / sources.digest(unit, *more)
        if record.exists():
            return []
        text = run(unit)
        if text and len(unit.files) > 1:
            return [finding for single in unit.alone() for finding in findings(single)]
        if not text:
            record.touch()
        return [text] if text else []

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [text for texts in pool.map(findings, units) for text in texts]
    for text in found:
        print(text, flush=True)
    return len(found)
