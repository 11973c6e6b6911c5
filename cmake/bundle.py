#!/usr/bin/env python3
"""Makes an installed tree run on systems that lack the libraries it was linked with.

    bundle.py FOLDER

Copies the shared libraries that the programs and libraries below FOLDER need, except those of SYSTEM, to lib/hpe/bundled, each
under its own name: hpe-libfmt.so.9 for libfmt.so.9. hpe is loaded into the processes of other programs, where a library
under its common name would replace the version of the program or of its system. Every file finds the copies by a path
relative to itself, so that the tree can be moved. The script writes the licences of the copies, and of the libraries that are
linked statically or consist of headers, to share/doc/hpe/licences.

Needs Debian's patchelf, dpkg and ldd.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

# Libraries that are not copied: every system that runs C++ programs has them, and a process can load only one C library
# and one C++ library.
SYSTEM = re.compile(r"(ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libresolv|libgcc_s|libstdc\+\+)\.so\.\d+")
# Packages whose code is compiled into hpe's files.
INSIDE = ["libzstd-dev", "liblz4-dev", "libboost1.74-dev", "libcli11-dev", "nlohmann-json3-dev", "libtomlplusplus-dev"]


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def is_elf(file):
    if file.is_symlink() or not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(4) == b"\x7fELF"


def needed_by(file):
    return output_of("patchelf", "--print-needed", file).split()


def places_of(file):
    """Returns the paths at which the dynamic linker finds the libraries of a file on this machine, by name."""
    return dict(re.findall(r"^\s*(\S+) => (/\S+)", output_of("ldd", file), re.MULTILINE))


def package_of(library):
    """Returns the Debian package of a library. dpkg may know the path with or without /usr, because /lib is a link to /usr/lib."""
    real = str(library.resolve())
    for path in (real, real.removeprefix("/usr"), "/usr" + real):
        found = subprocess.run(["dpkg-query", "--search", path], capture_output=True, text=True, check=False)
        if found.returncode == 0:
            return found.stdout.split(":")[0]
    sys.exit(f"bundle.py: {library} belongs to no Debian package, so its licence is not known")


class Tree:
    def __init__(self, root):
        self.root = root
        self.bundled = root / "lib" / "hpe" / "bundled"
        self.files = [file for file in sorted(root.rglob("*")) if is_elf(file)]
        self.own = {file.name for file in root.rglob("*.so*")}
        self.copies = {}  # for each copy, the library from which it was copied

    def bundle(self):
        self.bundled.mkdir(parents=True)
        work = list(self.files)
        while work:
            file = work.pop()
            places = places_of(file)
            for name in needed_by(file):
                if name in self.own or name in self.copies or SYSTEM.fullmatch(name):
                    continue
                if name not in places:
                    sys.exit(f"bundle.py: {file} needs {name}, which is not installed on this machine")
                copy = self.bundled / f"hpe-{name}"
                shutil.copy(Path(places[name]).resolve(), copy)
                copy.chmod(0o644)
                self.copies[name] = Path(places[name])
                self.files.append(copy)
                work.append(copy)
        for file in self.files:
            self.lead(file)

    def lead(self, file):
        """Makes a file load the copies. Each call of patchelf makes one change, because patchelf 0.14 corrupts strings if it makes several."""
        def change(*what):
            subprocess.run(["patchelf", *what, file], check=True)

        needed = [name for name in needed_by(file) if name in self.copies]
        if file.parent == self.bundled:
            change("--set-soname", file.name)
            change("--set-rpath", "$ORIGIN")
        elif needed:
            here = output_of("patchelf", "--print-rpath", file).strip()
            change("--set-rpath", ":".join(filter(None, [here, "$ORIGIN/" + os.path.relpath(self.bundled, file.parent)])))
        for name in needed:
            change("--replace-needed", name, f"hpe-{name}")

    def add_licences(self):
        licences = self.root / "share" / "doc" / "hpe" / "licences"
        licences.mkdir(parents=True)
        packages = {}
        for name, origin in sorted(self.copies.items()):
            packages.setdefault(package_of(origin), []).append(f"hpe-{name}")
        for package in INSIDE:
            packages[package] = ["inside hpe's files"]
        lines = []
        for package, names in sorted(packages.items()):
            version = output_of("dpkg-query", "--show", "--showformat", "${Version}", package)
            shutil.copy(f"/usr/share/doc/{package}/copyright", licences / package)
            lines.append(f"{package} {version}: {', '.join(names)}\n")
        (licences / "README").write_text("The libraries in lib/hpe/bundled (in the wheel hpe_soft: lib/hpe/compiler) and in hpe's own files\n"
                                         "come from these Debian packages. The file with a package's name contains its licence.\n\n" + "".join(lines))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    tree = Tree(Path(sys.argv[1]).resolve())
    tree.bundle()
    tree.add_licences()
    print(f"{len(tree.copies)} libraries bundled")


if __name__ == "__main__":
    main()
