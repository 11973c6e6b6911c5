#!/usr/bin/env python3
"""Tests the trace and the profile of a real program: `hpe wave` on two soft devices.

    trace_test.py hpe
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections import defaultdict
from pathlib import Path

HPE = sys.argv[1]


def wave(environment, steps=6):
    return subprocess.run([HPE, "wave", "--size", "64x64x64", "--steps", str(steps)], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "HPE_DEVICES": "soft:2", **environment})


class Trace(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "wave.json"
            result = wave({"HPE_TRACE": str(file)})
            assert result.returncode == 0, result.stderr
            cls.text = file.read_text()
        cls.events = [e for e in json.loads(cls.text)["traceEvents"] if e["ph"] == "X"]
        cls.names = {e["pid"]: e["args"]["name"] for e in json.loads(cls.text)["traceEvents"] if e["name"] == "process_name"}

    def of(self, category):
        return [e for e in self.events if e["cat"] == category]

    def test_each_device_is_a_group_with_its_kernels(self):
        kernels = defaultdict(int)
        for e in self.of("kernel"):
            kernels[self.names[e["pid"]]] += "step" in e["name"]
        self.assertEqual(sorted(kernels), ["device 0: soft device 0", "device 1: soft device 1"])
        self.assertGreaterEqual(min(kernels.values()), 6)

    def test_work_of_one_stream_comes_one_after_the_other(self):
        rows = defaultdict(list)
        for e in self.of("kernel") + self.of("copy"):
            if self.names[e["pid"]].startswith("device"):
                rows[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
        self.assertTrue(rows)
        for row in rows.values():
            row.sort()
            for (_, end), (begin, _) in zip(row, row[1:]):
                self.assertLessEqual(end, begin + 0.002)

    def test_time_line_draws_it(self):
        script = Path(__file__).resolve().parents[2] / "scripts" / "time-line"
        python = "/usr/bin/python3"  # Debian's, which has Debian's Matplotlib
        if subprocess.run([python, "-c", "import matplotlib"], capture_output=True, check=False).returncode != 0:
            self.skipTest("there is no Matplotlib")
        with tempfile.TemporaryDirectory() as folder:
            trace, picture = Path(folder) / "wave.json", Path(folder) / "wave.png"
            trace.write_text(self.text)

            def draw(*words):
                return subprocess.run([python, script, *map(str, words)], capture_output=True, text=True, timeout=60, check=False)

            result = draw(trace, trace, picture)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertTrue(picture.read_bytes().startswith(b"\x89PNG"))
            late = draw("--from", 1e6, "--to", 2e6, trace, picture)
            self.assertIn("no event from 1000000.0 to 2000000.0 ms", late.stderr)
            trace.write_text('{"traceEvents": []}')
            self.assertIn("no kernels", draw(trace, picture).stderr)

    def test_calls_and_touches_are_on_the_program_s_threads(self):
        for category in ("call", "fault"):
            self.assertTrue(self.of(category), category)
            self.assertEqual({self.names[e["pid"]] for e in self.of(category)}, {"threads of the program"})
        launches = sum(e["name"] == "hpeLaunch" for e in self.of("call"))
        self.assertEqual(launches, len(self.of("kernel")))

    def test_the_host_s_data_went_to_the_devices(self):
        self.assertGreater(sum(e["args"]["bytes"] for e in self.of("copy") if e["name"] == "copy to device"), 64**3 * 4)

    def test_a_file_that_cannot_be_written_is_told_and_changes_nothing_else(self):
        result = wave({"HPE_TRACE": "/nowhere/at/all.json"})
        self.assertEqual(result.returncode, 0)
        self.assertIn("/nowhere/at/all.json", result.stderr)

    def test_the_profile_tells_allocations_and_touches(self):
        plain = wave({})
        result = wave({"HPE_PROFILE": "1"})
        self.assertEqual(result.returncode, 0)
        self.assertEqual(plain.stderr, "")
        self.assertRegex(result.stderr, r"hpe profile\n")
        self.assertRegex(result.stderr, r"touches of device memory +[1-9]")
        self.assertTrue(re.search(r"0x[0-9a-f]+ of +\d+ bytes: +[\d.]+ MiB to the host, +[\d.]+ MiB to the device", result.stderr))
        self.assertRegex(result.stderr, r"the run: \d+\.\d+ s, of which threads waited \d+\.\d+ s for data; [1-9]\d* launches on \d devices?; "
                         r"[1-9]\d* bytes to devices, [1-9]\d* bytes to the host\n$")
        refused = wave({"HPE_PROFILE": "yes"})
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn('HPE_PROFILE="yes" is none of on, off, 1 and 0', refused.stderr)


PYTHON_PROGRAM = """
import ctypes
import helper

hpe = ctypes.CDLL("libhpe.so.0")
libc = ctypes.CDLL(None)
place = ctypes.c_void_p()
assert hpe.hpeMalloc(ctypes.byref(place), ctypes.c_size_t(1 << 22)) == 0


def on_devices():
    assert hpe.hpeMemset(place, 1, ctypes.c_size_t(1 << 22)) == 0
    assert hpe.hpeSynchronize() == 0


on_devices()
ctypes.c_ubyte.from_address(place.value).value
on_devices()
libc.memset(
    place, 2, ctypes.c_size_t(1 << 20))  # a foreign call: ctypes has released the interpreter's lock
on_devices()
helper.touch(place)
"""
# An installed module does not count as part of the program, so the profile names the line that calls the module.
PYTHON_HELPER = """
import ctypes


def touch(place):
    return ctypes.c_ubyte.from_address(place.value).value
"""


@unittest.skipIf("sanitized" in sys.argv, "an interpreter without sanitizers cannot load sanitized libraries")
class PythonLines(unittest.TestCase):
    def places(self, python):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "prögram.py"
            program.write_text(PYTHON_PROGRAM)
            modules = Path(folder) / "site-packages"
            modules.mkdir()
            (modules / "helper.py").write_text(PYTHON_HELPER)
            environment = {**os.environ, "HPE_DEVICES": "soft:1", "HPE_PROFILE": "1", "PYTHONPATH": str(modules),
                           "LD_LIBRARY_PATH": str(Path(HPE).parent.parent / "lib")}
            result = subprocess.run([python, str(program)], capture_output=True, text=True, timeout=60, env=environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return re.findall(r"touches of device memory: (.*)", result.stderr)

    def test_touches_have_lines_of_the_program(self):
        lines = PYTHON_PROGRAM.splitlines()
        touches = [i for i, line in enumerate(lines, 1) if re.match(r"ctypes.c_ubyte|helper.touch|libc.memset", line)]
        named = [p for minor in (11, 12, 13) if (p := shutil.which(f"python3.{minor}"))]
        pythons = [p for p in named if subprocess.run([p, "--version"], capture_output=True).returncode == 0]
        self.assertTrue(pythons, "no python3.11, 3.12 or 3.13")
        for python in pythons:
            with self.subTest(python):
                told = self.places(python)
                self.assertTrue(told)
                self.assertEqual({Path(place.rpartition(":")[0]).name for place in told}, {"prögram.py"}, told)
                self.assertEqual(sorted(int(place.rpartition(":")[2]) for place in told), touches)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
