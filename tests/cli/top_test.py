#!/usr/bin/env python3
"""`hpe top` beside programs that use hpe: its output, and its screen in a real terminal (tmux).

    top_test.py HPE [--screenshots FOLDER]

FOLDER gets pictures of its screen in a light and in a dark terminal.
"""

import html
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from browser import BROWSER, MODES, brightness, browse  # noqa: E402

HPE = sys.argv[1]
SCREENSHOTS = sys.argv[3] if sys.argv[2:3] == ["--screenshots"] else None
TERMINAL = """<!doctype html><meta charset="utf-8"><style>:root { color-scheme: light dark; }
pre { font: 14px/1.25 monospace; margin: 12px; }</style><pre>{}</pre>"""


class Program:
    """A program that uses two soft devices until it is killed. Its command line is not valid UTF-8."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(
            [HPE, "wave", "--size", "64x64x64", "--steps", "100000000", "--json", os.fsencode(self.folder.name) + b"/caf\xe9"],
            stdout=subprocess.DEVNULL, env={**os.environ, "HPE_DEVICES": "soft:2", "OMPI_COMM_WORLD_RANK": "7"})
        deadline = time.monotonic() + 60
        while self.seen() is None or not self.seen()["devices"]:
            assert time.monotonic() < deadline and self.process.poll() is None, "it publishes nothing"
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()

    def seen(self):
        return next((p for p in top("--json")["processes"] if p["process"] == self.process.pid), None)


def top(*options):
    result = subprocess.run([HPE, "top", *options], capture_output=True, text=True, timeout=60, check=True)
    return json.loads(result.stdout) if "--json" in options else result.stdout


class Top(unittest.TestCase):
    def test_tells_devices_memory_and_rates_of_a_running_program(self):
        with Program() as program:
            seen = program.seen()
            self.assertEqual([d["name"] for d in seen["devices"]], ["soft device 0", "soft device 1"])
            for device in seen["devices"]:
                self.assertGreater(device["used_bytes"], 0)
                self.assertLess(device["used_bytes"], device["memory_bytes"])
            self.assertEqual(seen["rank"], "7")
            self.assertIn(f"--steps 100000000 --json {program.folder.name}/caf\ufffd", seen["command"])
            deadline = time.monotonic() + 60
            while seen["per_second"]["launches"] == 0 and time.monotonic() < deadline:
                seen = program.seen()
            self.assertGreater(seen["per_second"]["launches"], 0)
            self.assertGreater(seen["totals"]["launches"], 0)
            self.assertEqual(seen["totals"]["bytes_given_back"], 0)
            table = top("--once")
            self.assertIn(str(program.process.pid), table)
            self.assertIn("hpe wave", table)
            self.assertIn("/caf\ufffd", table)

    @unittest.skipUnless(os.getuid() == 0, "only the superuser can become another user")
    def test_other_users_see_nothing(self):
        with Program() as program:
            seen = subprocess.run([HPE, "top", "--json"], capture_output=True, text=True, timeout=60, user=65534, group=65534,
                                  extra_groups=[])
            self.assertEqual(seen.returncode, 0, seen.stderr)
            self.assertNotIn(program.process.pid, [p["process"] for p in json.loads(seen.stdout)["processes"]])

    def test_a_killed_process_is_not_shown_and_leaves_nothing(self):
        with Program() as program:
            os.kill(program.process.pid, signal.SIGKILL)
            program.process.wait()
            self.assertIsNone(program.seen())
            # Other programs on the machine may use hpe too, so only the rows of this process are checked.
            self.assertEqual([name for name in os.listdir("/dev/shm") if str(program.process.pid) in name], [])

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
                while not (str(program.process.pid) in screen and "q: quit" in screen) and time.monotonic() < deadline:
                    screen = tmux("capture-pane", "-p")
                self.assertRegex(screen, r"(?m)^hpe top: \d+ process")
                self.assertIn("launch/s", screen)
                self.assertIn(str(program.process.pid), screen)
                self.assertIn("q: quit", screen)
                self.take_pictures(Path(SCREENSHOTS or folder), screen)
                tmux("send-keys", "q")
                while "ended with" not in screen and time.monotonic() < deadline:
                    screen = tmux("capture-pane", "-p")
                self.assertIn("ended with 0", screen)
                self.assertNotIn("launch/s", screen, "the terminal does not show the screen from before hpe top")
            finally:
                tmux("kill-server")

    def take_pictures(self, folder, screen):
        """Takes pictures of hpe top's screen. hpe top must set no colours, so that the screen has the terminal's colours."""
        if not BROWSER:
            return
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as place:
            page = Path(place) / "screen.html"
            page.write_text(TERMINAL.replace("{}</pre>", html.escape(screen) + "</pre>"))
            for mode in MODES:
                browse(page, mode=mode, screenshot=folder / f"top-{mode}.png", size=(1130, 380))
        self.assertGreater(brightness(folder / "top-light.png"), 200)
        self.assertLess(brightness(folder / "top-dark.png"), 70)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
