#!/usr/bin/env python3
"""`hpe top` beside programs that use hpe: what it prints, and in a real terminal (tmux) what it shows.

    top_test.py HPE
"""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HPE = sys.argv[1]


def pages():
    return set(Path("/dev/shm").glob(f"hpe-status.{os.getuid()}.*"))


class Program:
    """A program that uses two soft devices until it is killed."""

    def __enter__(self):
        self.process = subprocess.Popen(
            [HPE, "wave", "--size", "64x64x64", "--steps", "100000000"], stdout=subprocess.DEVNULL,
            env={**os.environ, "HPE_DEVICES": "soft:2", "OMPI_COMM_WORLD_RANK": "7"})
        self.page = Path(f"/dev/shm/hpe-status.{os.getuid()}.{self.process.pid}")
        deadline = time.monotonic() + 60
        while self.seen() is None or not self.seen()["devices"]:
            assert time.monotonic() < deadline and self.process.poll() is None, "it publishes nothing"
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        top("--json")  # removes its page

    def seen(self):
        return next((p for p in top("--json")["processes"] if p["process"] == self.process.pid), None)


def top(*options):
    result = subprocess.run([HPE, "top", *options], capture_output=True, text=True, timeout=60, check=True)
    return json.loads(result.stdout) if "--json" in options else result.stdout


@unittest.skipUnless(os.access("/dev/shm", os.W_OK), "no /dev/shm that can be written")
class Top(unittest.TestCase):
    def test_tells_devices_memory_and_rates_of_a_running_program(self):
        with Program() as program:
            seen = program.seen()
            self.assertEqual([d["name"] for d in seen["devices"]], ["soft device 0", "soft device 1"])
            for device in seen["devices"]:
                self.assertGreater(device["used_bytes"], 0)
                self.assertLess(device["used_bytes"], device["memory_bytes"])
            self.assertEqual(seen["rank"], "7")
            self.assertIn("--steps 100000000", seen["command"])
            deadline = time.monotonic() + 60
            while seen["per_second"]["launches"] == 0 and time.monotonic() < deadline:
                seen = program.seen()
            self.assertGreater(seen["per_second"]["launches"], 0)
            self.assertGreater(seen["totals"]["launches"], 0)
            table = top("--once")
            self.assertIn(str(program.process.pid), table)
            self.assertIn("hpe wave", table)

    def test_only_its_user_can_read_what_a_process_publishes(self):
        with Program() as program:
            self.assertEqual(stat.S_IMODE(program.page.stat().st_mode), 0o600)

    def test_pages_of_dead_processes_are_removed_and_not_shown(self):
        with Program() as program:
            os.kill(program.process.pid, signal.SIGKILL)
            program.process.wait()
            self.assertTrue(program.page.exists())
            self.assertIsNone(program.seen())
            self.assertFalse(program.page.exists())

    def test_a_process_that_exits_leaves_no_page(self):
        before = pages()
        subprocess.run([HPE, "info"], stdout=subprocess.DEVNULL, check=True, timeout=60, env={**os.environ, "HPE_DEVICES": "soft:1"})
        self.assertEqual(pages() - before, set())

    @unittest.skipUnless(shutil.which("tmux"), "no tmux, the terminal of this test")
    def test_shows_a_screen_in_a_terminal_until_q(self):
        with tempfile.TemporaryDirectory() as folder, Program() as program:
            def tmux(*words):
                return subprocess.run(["tmux", "-S", f"{folder}/socket", *words], capture_output=True, text=True, timeout=60,
                                      check=True).stdout

            tmux("-f", "/dev/null", "new-session", "-d", "-x", "130", "-y", "20", f"'{HPE}' top; echo ended with $?; sleep 60")
            try:
                deadline = time.monotonic() + 60
                screen = ""
                while str(program.process.pid) not in screen and time.monotonic() < deadline:
                    screen = tmux("capture-pane", "-p")
                self.assertRegex(screen, r"(?m)^hpe top: \d+ process")
                self.assertIn("launch/s", screen)
                self.assertIn(str(program.process.pid), screen)
                self.assertIn("q: quit", screen)
                tmux("send-keys", "q")
                while "ended with" not in screen and time.monotonic() < deadline:
                    screen = tmux("capture-pane", "-p")
                self.assertIn("ended with 0", screen)
                self.assertNotIn("launch/s", screen, "the screen before is back")
            finally:
                tmux("kill-server")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
