#!/usr/bin/env python3
"""Makes Python wheels from the tree of hpe's archive.

    wheel.py TREE PACKAGE FOLDER

TREE is an installed tree after bundle.py, PACKAGE the folder of the Python package (apps/python/hpe). Writes two wheels to FOLDER:
hpe-VERSION with the command, the libraries and the Python package, and hpe_soft-VERSION with the compiler of CUDA kernels for
CPUs and LLVM, which is larger than everything else. The extra `soft` of hpe requires hpe_soft. Both wheels put files into
hpe/tree, so that the compiler lies where it lies in the archive. Each wheel contains all libraries that its files need, hpe_soft in
a folder of its own, because two packages must not install the same file. The wheels are not on PyPI, whose project hpe is another one.

The tag of a wheel names the C library that its files need (PEP 600). Needs Debian's patchelf, binutils and python3-wheel.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PRELOADED = {"libhpe-mpi.so"}  # hpe run preloads these names
COMPILER = "libexec/hpe/libhpe-ptx-compiler.so"
LIBRARIES_OF_SOFT = "lib/hpe/compiler"
SUMMARY = "One coherent memory for the CPU and all GPUs, for unchanged CUDA and MPI programs and for NumPy arrays"
SUMMARY_OF_SOFT = "The compiler of CUDA kernels for CPUs, for the soft devices of hpe"
LICENSE = "Apache-2.0; the other libraries in the wheel have the licences in the folder licenses"


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def is_elf(file):
    return file.is_file() and not file.is_symlink() and file.read_bytes()[:4] == b"\x7fELF"


def needed_by(file, tree):
    """Returns the bundled libraries that a file needs, and those that these need."""
    found, work = set(), [file]
    while work:
        for name in output_of("patchelf", "--print-needed", work.pop()).split():
            library = tree / "lib" / "hpe" / "bundled" / name
            if library.exists() and library not in found:
                found.add(library)
                work.append(library)
    return found


def tag_of(files):
    """Returns the tag for the newest version of the C library that the files need."""
    versions = {tuple(map(int, version)) for file in files
                for version in re.findall(r"\bGLIBC_(\d+)\.(\d+)", output_of("objdump", "--dynamic-syms", file))}
    return "manylinux_{}_{}_x86_64".format(*max(versions))


def has_loaded_name(file):
    """Whether programs load a library by the name of this file. The tree has several names for a library, as links; a wheel has no
    links, and a process must not load two copies."""
    names = {other.name for other in file.parent.iterdir() if other.resolve() == file.resolve()}
    if len(names) == 1:
        return True
    preloaded = names & PRELOADED
    return file.name in preloaded if preloaded else re.search(r"\.so\.\d+$", file.name) is not None


def pack(stage, name, version, tree, files, metadata, entry_points, folder):
    """Writes a wheel. files: pairs of a source and its path in the wheel."""
    tag = tag_of([source for source, _ in files if is_elf(source.resolve())])
    root = stage / name
    facts = root / f"{name}-{version}.dist-info"
    facts.mkdir(parents=True)
    licences = tree / "share" / "doc" / "hpe" / "licences"
    shutil.copytree(licences, facts / "licenses")
    shutil.copy(licences.parent / "LICENSE", facts / "licenses")
    for source, path in files:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, root / path)
    (facts / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: hpe\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n")
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n{metadata}")
    if entry_points:
        (facts / "entry_points.txt").write_text(entry_points)
    subprocess.run([sys.executable, "-m", "wheel", "pack", "--dest-dir", folder, root], check=True, stdout=subprocess.DEVNULL)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    tree, package, folder = map(Path, sys.argv[1:])
    version = re.fullmatch(r"libhpe\.so\.(.*)", max(path.name for path in tree.glob("lib/libhpe.so.*.*.*")))[1]
    of_tree = [file for top in ("bin", "lib", "libexec") for file in sorted((tree / top).rglob("*"))
               if file.is_file() and not {"cmake", "pkgconfig"} & set(file.relative_to(tree).parts) and file.suffix != ".a"]
    modules = [file for file in of_tree if file.parent.name == "python"]
    of_tree = [file for file in of_tree if file not in modules and has_loaded_name(file)]
    compiler = tree / COMPILER
    of_others = set().union(*(needed_by(file, tree) for file in of_tree
                              if is_elf(file.resolve()) and file != compiler and "bundled" not in file.parts))
    of_compiler = needed_by(compiler, tree)
    only_soft = {compiler} | (of_compiler - of_others)
    common = f"License: {LICENSE}\nRequires-Python: >=3.9\n"
    of_hpe = [(file, f"hpe/{file.name}") for file in [*sorted(package.glob("*.py")), package / "py.typed"]]
    of_hpe += [(file, file.name) for file in modules]
    of_hpe += [(file, f"hpe/tree/{file.relative_to(tree)}") for file in of_tree if file not in only_soft]
    of_soft = [(file, f"hpe/tree/{LIBRARIES_OF_SOFT}/{file.name}") for file in sorted(of_compiler)]
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        pack(Path(work), "hpe", version, tree, of_hpe,
             f"Summary: {SUMMARY}\n{common}"
             f"Requires-Dist: numpy>=1.22\nProvides-Extra: soft\nRequires-Dist: hpe-soft (=={version}) ; extra == 'soft'\n",
             "[console_scripts]\nhpe = hpe.__main__:main\n", folder)
        moved = shutil.copy(compiler, work)
        output_of("patchelf", "--set-rpath", "$ORIGIN/" + os.path.relpath(LIBRARIES_OF_SOFT, Path(COMPILER).parent), moved)
        pack(Path(work), "hpe_soft", version, tree, [(Path(moved), f"hpe/tree/{COMPILER}"), *of_soft],
             f"Summary: {SUMMARY_OF_SOFT}\n{common}Requires-Dist: hpe (=={version})\n", "", folder)


main()
