#!/usr/bin/env python3
"""Runs Numba and PyCUDA, installed from PyPI, by `hpe run` on soft devices.

    wheels_test.py hpe toolkit [Wheels.test_numba | Wheels.test_pycuda]

pip installs them into a temporary folder. If it cannot, the tests are skipped and print the reason; the status is 77 if all are.
PyPI has only the source of PyCUDA, whose compilation takes minutes; therefore ctest does not run this test.
"""

import os
import subprocess
import sys
import tempfile
import unittest
import venv
from pathlib import Path

HPE, TOOLKIT = (str(Path(each).resolve()) for each in sys.argv[1:3])
HERE = Path(__file__).resolve().parent
CHECKED = HERE.parents[2] / "check" / "programs"
SKIPPED = 77


class Wheels(unittest.TestCase):
    def run_example(self, name, packages, settings=None, then=None):
        environment = {**os.environ, "PATH": f"{TOOLKIT}/bin:{os.environ['PATH']}", "CUDA_HOME": TOOLKIT,
                       "PYTHONPATH": str(HERE.parents[3] / "apps" / "python"), **(settings or {})}
        with tempfile.TemporaryDirectory() as place:
            try:
                venv.create(place, with_pip=True)
            except subprocess.CalledProcessError as e:
                self.skipTest(f"python3-venv, which makes environments with pip, is missing: {e}")
            python = f"{place}/bin/python"
            got = subprocess.run([python, "-m", "pip", "-q", "--disable-pip-version-check", "install", *packages],
                                 capture_output=True, text=True, timeout=900, env=environment)
            if got.returncode != 0:
                self.skipTest(f"pip cannot install {packages}: {got.stderr}")
            result = subprocess.run([HPE, "run", "--cuda", "soft", "--devices", "soft:1", "--", python, "-W", "ignore", HERE / name],
                                    capture_output=True, text=True, timeout=200, env=environment)
            if then:
                then(python, environment)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def check_cases(self, python, environment):
        cases = CHECKED / "numba_cases.py"
        got = subprocess.run([sys.executable, CHECKED / "check_cases.py", cases, "--", HPE, "run", "--check", "--devices", "soft:2", "--",
                              python, "-W", "ignore", cases], capture_output=True, text=True, timeout=200, env=environment)
        self.assertEqual(got.returncode, 0, got.stdout + got.stderr)

    def test_numba(self):
        told = self.run_example("numba_examples.py", ["numba-cuda==0.30.*"], then=self.check_cases)
        self.assertEqual(told, "vector addition: right\nmatrix product: right\nreduction: right\natomic operations: right\n"
                         "exchange with hpe: right\n")

    def test_pycuda(self):
        settings = {"CC": "ccache gcc", "CXX": "ccache g++", "CFLAGS": "-O0 -g0 -w", "CUDA_ROOT": TOOLKIT,
                    "LDFLAGS": f"-L{TOOLKIT}/lib64/stubs", "PYCUDA_DISABLE_CACHE": "1"}
        told = self.run_example("pycuda_example.py", ["numpy", "pycuda==2026.1"], settings)
        self.assertEqual(told, "multiplication: right\nconstant and stream: right\n")


if __name__ == "__main__":
    done = unittest.main(argv=[sys.argv[0], *sys.argv[3:]], exit=False).result
    sys.exit(SKIPPED if len(done.skipped) == done.testsRun else not done.wasSuccessful())
