#!/usr/bin/env python3
"""The trace and the profile of a real program: `hpe wave` on two soft devices.

    trace_test.py hpe
"""

import json
import os
import re
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
        refused = wave({"HPE_PROFILE": "yes"})
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn('HPE_PROFILE="yes" is neither 0 nor 1', refused.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
