#!/usr/bin/env python3
"""The README's program under `hpe run --check`: nothing is found; if its launch declares the array by hpe::in instead of
hpe::inout, the write of the kernel is found.

    readme_test.py --hpe COMMAND --libraries FOLDER --compiler COMMAND
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
STATUS = 9  # of a program with findings


def main():
    parser = argparse.ArgumentParser()
    for name in ("hpe", "libraries", "compiler"):
        parser.add_argument(f"--{name}", required=True)
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        subprocess.run([ROOT / "tests/install/readme_program", work], check=True)
        common = ["-g", "-O1", f"-I{ROOT}/include"]
        subprocess.run([a.compiler, *common, "-shared", "-fPIC", "scale_kernels.cpp", "-o", "libscale_kernels.so"], cwd=work,
                       check=True)
        source = (work / "scale.cpp").read_text()
        (line,) = [n for n, text in enumerate(source.splitlines(), 1) if "hpe::launch(" in text]
        found = {}
        for access in ("inout", "in"):
            (work / "scale.cpp").write_text(source.replace("hpe::inout(", f"hpe::{access}("))
            subprocess.run([a.compiler, "-std=c++20", *common, "scale.cpp", f"-L{a.libraries}", "-lhpe",
                            f"-Wl,-rpath,{a.libraries}", "-o", "scale"], cwd=work, check=True)
            got = subprocess.run([a.hpe, "run", "--check", "--check-json", "found.json", "--devices", "soft:2", "--", "./scale"],
                                 cwd=work, capture_output=True, text=True, timeout=120, check=False)
            print(got.stdout, got.stderr)
            found[access] = json.loads((work / "found.json").read_text())["findings"]
            assert got.returncode == (STATUS if found[access] else 0), got.returncode
    assert found["inout"] == [], found["inout"]
    (one,) = found["in"]
    assert one["kind"] == "undeclared-write" and one["now"]["what"] == "kernel scale", one
    assert one["now"]["place"] == f"{work}/scale.cpp:{line}", (one, line)
    assert one["allocation"]["place"].startswith(f"{work}/scale.cpp:"), one
    assert "hpe::inout" in one["missing"], one
    return 0


if __name__ == "__main__":
    sys.exit(main())
