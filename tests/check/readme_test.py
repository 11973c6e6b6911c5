#!/usr/bin/env python3
"""The README's program under the check: nothing is found; if its launch declares the array by hpe::in instead of hpe::inout,
the write of the kernel is found. On soft devices, and with --driver on a GPU, for which the file stands in as the driver.

    readme_test.py --hpe COMMAND --libraries FOLDER --compiler COMMAND [--driver FILE]
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
STATUS = 9  # of a program with findings
ONLY_ON_GPUS = "on GPUs, of launches of hpe's own interface only changes of read-only memory are found"


def findings_of(work, command, on_gpu, **variables):
    (work / "found.json").unlink(missing_ok=True)
    got = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=120, check=False,
                         env={**os.environ, "HPE_CHECK_JSON": "found.json", **variables})
    print(got.stdout, got.stderr)
    found = json.loads((work / "found.json").read_text())["findings"]
    assert got.returncode == (STATUS if found else 0), got.returncode
    assert (ONLY_ON_GPUS in got.stderr.splitlines()[-1]) == on_gpu, got.stderr
    return found


def check(work, line, found):
    assert found["inout"] == [], found["inout"]
    (one,) = found["in"]
    assert one["kind"] == "undeclared-write" and one["now"]["what"] == "kernel scale", one
    assert one["now"]["place"] == f"{work}/scale.cpp:{line}", (one, line)
    assert (one["offset"], one["bytes"]) == (0, 4 << 20), one
    assert one["allocation"]["place"].startswith(f"{work}/scale.cpp:"), one
    assert "hpe::inout" in one["missing"], one


def main():
    parser = argparse.ArgumentParser()
    for name in ("hpe", "libraries", "compiler"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--driver")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        subprocess.run([ROOT / "tests/install/readme_program", work], check=True)
        common = ["-g", "-O1", f"-I{ROOT}/include"]
        kernels = work / "libscale_kernels.so"
        subprocess.run([a.compiler, *common, "-shared", "-fPIC", "scale_kernels.cpp", "-o", kernels], cwd=work, check=True)
        source = (work / "scale.cpp").read_text()
        (line,) = [n for n, text in enumerate(source.splitlines(), 1) if "hpe::launch(" in text]
        for access in ("inout", "in"):
            (work / "scale.cpp").write_text(source.replace("hpe::inout(", f"hpe::{access}("))
            subprocess.run([a.compiler, "-std=c++20", *common, "scale.cpp", f"-L{a.libraries}", "-lhpe",
                            f"-Wl,-rpath,{a.libraries}", "-o", access], cwd=work, check=True)
        run = [a.hpe, "run", "--check", "--devices", "soft:2", "--"]
        check(work, line, {access: findings_of(work, [*run, f"./{access}"], False) for access in ("inout", "in")})
        if a.driver:
            shutil.copy(HERE / "scale.ptx", kernels)
            gpu = {"HPE_CHECK": "on", "HPE_DEVICES": "cuda:1", "LD_LIBRARY_PATH": os.path.dirname(a.driver)}
            check(work, line, {access: findings_of(work, [f"./{access}"], True, **gpu) for access in ("inout", "in")})
    return 0


if __name__ == "__main__":
    sys.exit(main())
