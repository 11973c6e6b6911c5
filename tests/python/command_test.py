#!/usr/bin/env python3
"""The command of the Python package, and programs that start further processes.

Without an installed wheel, HPE_TEST_COMMAND names the hpe command of the build."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import hpe
from hpe.__main__ import TREE

TELL = "import os; print('libhpe.so' in os.environ['LD_PRELOAD'], os.environ['HPE_DEVICES'])"


class Command(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.environment = {**os.environ, "JUPYTER_DATA_DIR": str(self.folder / "jupyter")}
        if not TREE.exists():  # a package with the command, as in the wheel
            package = self.folder / "hpe"
            (package / "tree" / "bin").mkdir(parents=True)
            (package / "tree" / "bin" / "hpe").symlink_to(os.environ["HPE_TEST_COMMAND"])
            for file in Path(hpe.__file__).parent.glob("*.py"):
                (package / file.name).symlink_to(file)
            self.environment["PYTHONPATH"] = str(self.folder)

    def run_hpe(self, *words, status=0):
        got = subprocess.run([sys.executable, "-m", "hpe", *words], env=self.environment, capture_output=True, text=True, timeout=100)
        self.assertEqual(got.returncode, status, got.stdout + got.stderr)
        return got.stdout + got.stderr

    def run_python(self, program, status=0):
        (self.folder / "program.py").write_text(program)
        return self.run_hpe("run", "--cuda", "soft", "--devices", "soft:2", "--", sys.executable, str(self.folder / "program.py"),
                            status=status)

    def test_python_m_hpe_is_the_command(self):
        self.assertEqual(self.run_hpe("--version").split(), ["hpe", hpe.__version__])
        self.assertEqual(self.run_hpe("run", "--devices", "soft:1", "--", sys.executable, "-c", TELL), "True soft:1\n")
        self.assertIn("no-such-command", self.run_hpe("no-such-command", status=2))

    def test_jupyter_starts_kernels_under_hpe(self):
        self.environment["PATH"] = os.environ["PATH"]
        site = self.folder / "site"
        site.mkdir()
        self.environment["PYTHONPATH"] = f"{site}:{self.environment.get('PYTHONPATH', '')}"
        (site / "ipykernel_launcher.py").write_text(f"import sys\n{TELL}\nprint(sys.argv[1:])\n")
        told = self.run_hpe("jupyter", "install", "--name", "gpu", "--cuda", "soft", "--devices", "soft:1")
        folder = self.folder / "jupyter" / "kernels" / "gpu"
        self.assertEqual(told, f"installed the kernel gpu in {folder}\n")
        specification = json.loads((folder / "kernel.json").read_text())
        self.assertEqual((specification["language"], specification["display_name"]),
                         ("python", "Python (gpu --cuda soft --devices soft:1)"))
        command = [word.replace("{connection_file}", "/tmp/c.json") for word in specification["argv"]]
        got = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=100)
        self.assertEqual(got.stdout, "True soft:1\n['-f', '/tmp/c.json']\n", got.stderr)

        self.assertIn("the possible values are", self.run_hpe("jupyter", "install", "--cuda", "hard", status=2))
        self.assertIn("not '../x'", self.run_hpe("jupyter", "install", "--name", "../x", status=2))
        self.assertIn("command", self.run_hpe("jupyter", status=2))
        self.assertEqual([each.name for each in folder.parent.iterdir()], ["gpu"])
        (site / "ipykernel_launcher.py").unlink()
        if subprocess.run([sys.executable, "-c", "import ipykernel_launcher"], capture_output=True).returncode != 0:
            self.assertIn("pip install ipykernel", self.run_hpe("jupyter", "install", status=1))

    def test_workers_that_are_spawned(self):
        self.assertEqual(self.run_python("""
import multiprocessing, numpy, hpe
def work(a):
    ours = hpe.array(a) + 1
    return hpe.sort(ours)[:2].tolist(), hpe.is_hpe(a)
if __name__ == "__main__":
    a = hpe.array([5.0, 3.0, 4.0])
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.map(work, [a, 2 * a]))
"""), "[([4.0, 5.0], False), ([7.0, 9.0], False)]\n")

    def test_workers_that_are_forked_use_copies(self):
        self.assertEqual(self.run_python("""
import multiprocessing, numpy, hpe
a = hpe.array([5.0, 3.0, 4.0])
copied = a.copy()
def work(factor):
    return float((factor * copied).sum())
def send(a):
    return float(a.sum())
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(work, [1, 2]), pool.map(send, [a, 2 * a]))
"""), "[12.0, 24.0] [12.0, 24.0]\n")

    def test_forked_children_cannot_use_arrays(self):
        told = self.run_python("""
import os, hpe
a = hpe.array([5.0, 3.0, 4.0])
child = os.fork()
if child == 0:
    a[0]
    os._exit(0)
print(os.WTERMSIG(os.waitpid(child, 0)[1]))
print(a[0])
""")
        self.assertIn("fork", told)
        self.assertRegex(told, r"\b11\n5.0\n")


if __name__ == "__main__":
    unittest.main()
