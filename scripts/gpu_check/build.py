"""Finds the build whose programs are run, prepares their environment, and packs the build for another machine."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from .check import SCRIPTS

ROOT = SCRIPTS.parent
# Files that are packed in addition to those that the parts name: what `hpe run`, MPI programs, `hpe predict` and soft devices
# need, and benchmarks to run by hand.
PACKED = ["bin/hpe", "bin/hpe-softd", "bin/hpe-bench-machine", "bin/hpe-bench-spread", "lib/hpe/cuda", "lib/hpe/mpi", "share/hpe/predict"]
PACKED_SCRIPTS = ["gpu-check", "gpu_check", "measurements"]
SOFT_ONLY = ["libhpe-fft-fftw.so", "libhpe-ptx-compiler.so"]
# Libraries that are not packed: those of the C and C++ compilers, of the driver and of MPI, which the other machine must have.
OF_A_MACHINE = re.compile(r"(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libcuda|libmpi[^/]*|libopen-[^/]*)\.so")


def find(given):
    """Returns the folder with bin/ and lib/: the given one; else the packed folder that contains this script; else build/release, which is
    built first."""
    if given:
        if not Path(given).is_dir():
            sys.exit(f"gpu-check: there is no folder {given}")
        if not (Path(given) / "bin/hpe").exists():
            sys.exit(f"gpu-check: there is no {given}/bin/hpe. --programs needs a folder with the bin/ and lib/ of a build, such as --pack makes")
        return Path(given).resolve()
    if (ROOT / "bin/hpe").exists():
        return ROOT
    for command in (["cmake", "--preset", "release"], ["cmake", "--build", "--preset", "release"]):
        try:
            subprocess.run(command, cwd=ROOT, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            sys.exit(f"gpu-check: {' '.join(command)} failed ({error}). --programs DIR runs the programs of another build")
    return ROOT / "build" / "release"


def prepare_environment(programs, rehearse):
    """Sets the variables by which programs find their files in a build that was moved."""
    libraries = programs / "lib"
    os.environ.update({
        "LD_LIBRARY_PATH": f"{libraries}:{os.environ.get('LD_LIBRARY_PATH', '')}:/usr/local/cuda/lib64",
        "HPE_SOFTD": str(programs / "bin" / "hpe-softd"),
        "GTEST_COLOR": "no",
        "HPE_KERNELS": str(libraries / "libhpe-kernels.so"),
        "HPE_TEST_KERNELS": str(libraries / "libhpe-test-kernels.so"),
        "DEVICE_TEST_KERNELS": str(libraries / "libdevice-test-kernels.so"),
        "HPE_STRESS_KERNELS": str(libraries / "libhpe-stress-kernels.so")})
    if rehearse:
        os.environ.setdefault("HPE_SOFT_MEMORY", "2G")
        os.environ["OMPI_MCA_mpi_yield_when_idle"] = "1"
    seen = [file for name in ("hpe", "device-test", "test-core") if (file := programs / "bin" / name).exists()]
    missing = sorted(name for name, path in needed_libraries(seen) if not path)
    if missing:
        sys.exit(f"gpu-check: this machine lacks libraries that the programs need (put them into {libraries}): {' '.join(missing)}")


def needed_libraries(files):
    """Returns the libraries that the dynamic linker loads for these files, as (name, path); the path of a missing library is empty."""
    told = subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True, check=False).stdout
    return set(re.findall(r"^\s+(\S+) => (/\S+|(?=not found))", told, re.MULTILINE))


def commit(programs):
    """Returns the commit of a build or of a packed build."""
    header, packed = programs / "apps/command_line/generated/apps/command_line/commit.h", programs / "commit"
    if header.exists():
        return re.search('HPE_COMMIT "(.*)"', header.read_text())[1]
    return packed.read_text().strip() if packed.exists() else "unknown"


def pack(programs, folder, used):
    """Copies the files of the build and of the sources that parts use, with libraries and scripts, to a folder that can be moved."""
    (folder / "lib").mkdir(parents=True, exist_ok=True)

    def copy(file, to):
        if file.is_dir():
            shutil.copytree(file, to, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        elif file.exists():
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, to)
        else:
            print(f"gpu-check: there is no {file}; the steps that need it will report this", file=sys.stderr)

    for name in sorted({*PACKED, *(str(file.relative_to(programs)) for file in used if file.is_relative_to(programs))}):
        copy(programs / name, folder / name)
    for library in programs.glob("lib/*.so*"):
        if library.name not in SOFT_ONLY:
            shutil.copy2(library, folder / "lib", follow_symlinks=False)
    packed = [file for file in folder.rglob("*") if file.is_file() and not file.is_symlink()]
    for name, path in needed_libraries(packed):
        own = Path(path).is_relative_to(programs) or Path(path).is_relative_to(folder.resolve())
        if path and not own and not OF_A_MACHINE.match(name):
            shutil.copy(path, folder / "lib")
    subprocess.run(["strip", "--strip-unneeded", *map(str, packed)], stderr=subprocess.DEVNULL, check=False)
    for file in [*(SCRIPTS / name for name in PACKED_SCRIPTS), *(file for file in used if not file.is_relative_to(programs))]:
        copy(file, folder / file.relative_to(ROOT))
    (folder / "commit").write_text(f"{commit(programs)}\n")  # for the tables of figures
    size = sum(file.stat().st_size for file in folder.rglob("*") if not file.is_symlink())
    print(f"{size >> 20} MiB in {folder}; there: scripts/gpu-check")
