#!/usr/bin/env python3
"""`hpe run --report`: the contents of the page, and the page in a real browser (headless Chromium).

    report_test.py HPE PROGRAM [--screenshot FILE]

PROGRAM is scattered_reads of this folder. With --screenshot the script only writes a picture of its page, for the manual.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HPE, SCATTERED_READS = sys.argv[1:3]
SOURCE = Path(__file__).with_name("scattered_reads.cpp")
BROWSER = shutil.which("chromium-headless-shell") or shutil.which("chromium") or shutil.which("google-chrome")
PROGRAM = [HPE, "wave", "--size", "96x96x96", "--steps", "60"]


def run(page, *command, check=True, **environment):
    return subprocess.run([HPE, "run", "--report", str(page), "--", *command], capture_output=True, text=True, timeout=120,
                          check=check, env={**os.environ, "HPE_DEVICES": "soft:2", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                                            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **environment})


def data_of(page):
    text = Path(page).read_text()
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])


def browse(page, *options):
    """The browser's document after the page's script has run, and what it wrote to the console."""
    with tempfile.TemporaryDirectory() as profile:
        result = subprocess.run(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={profile}",
             "--enable-logging=stderr", "--proxy-server=127.0.0.1:9", "--window-size=1200,2100", "--dump-dom", *options,
             Path(page).absolute().as_uri()],
            capture_output=True, text=True, timeout=120, check=True)
    return result.stdout, [line for line in result.stderr.splitlines() if "CONSOLE" in line]


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.page = Path(cls.folder.name) / "out.html"
        cls.result = run(cls.page, *PROGRAM)
        cls.data = data_of(cls.page)
        cls.process = cls.data["processes"][0]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_a_program_prints_what_it_prints_without(self):
        alone = subprocess.run([HPE, "run", "--", *PROGRAM], capture_output=True, text=True, timeout=120, check=True,
                               env={**os.environ, "HPE_DEVICES": "soft:2"})

        def without_times(text):
            return re.sub(r"[\d.]+", "#", text)
        self.assertEqual(without_times(self.result.stdout), without_times(alone.stdout))
        self.assertEqual(self.result.stderr, alone.stderr)
        self.assertFalse(Path(f"{self.page}.parts").exists())

    def test_it_tells_traffic_devices_and_events(self):
        self.assertEqual(len(self.data["processes"]), 1)
        self.assertTrue(self.process["complete"])
        self.assertEqual([d["name"] for d in self.process["devices"]], ["soft device 0", "soft device 1"])
        self.assertGreater(self.process["totals"]["launches"], 0)
        self.assertTrue(self.process["places"])
        self.assertTrue(any(a["bytes"] for a in self.process["allocations"]))
        self.assertGreater(len(self.process["samples"]), 0)
        kernels = self.process["timeline"]["categories"].index("kernel")
        self.assertGreater(sum(e[2] == kernels for e in self.process["timeline"]["events"]), 60)

    def test_advice_names_the_line_that_waits(self):
        page = self.page.with_name("advice.html")
        run(page, SCATTERED_READS)
        process = data_of(page)["processes"][0]
        lines = SOURCE.read_text().splitlines()
        line = next(i for i, text in enumerate(lines, 1) if "// reads" in text)
        allocated = next(i for i, text in enumerate(lines, 1) if "data(count)" in text)
        advice = next(a for a in process["advice"] if a["rule"] == "element-wise touches")
        if not re.search(r"\.cpp:\d+$", advice["where"]):
            self.skipTest("no source lines in this build")
        self.assertTrue(advice["where"].endswith(f"{SOURCE.name}:{line}"), advice)
        self.assertRegex(advice["text"], rf"touches of the allocation of 64 MiB made at \S*{SOURCE.name}:{allocated}, ")
        place = next(p for p in process["places"] if p["where"] == advice["where"] and p["way"].startswith("touches"))
        self.assertTrue(place["estimated"])
        self.assertGreater(place["bytes"], 1 << 20)

    def test_a_program_that_fails_or_is_killed_leaves_a_page_and_its_status(self):
        page = self.page.with_name("failed.html")
        failed = run(page, "sh", "-c", f"'{HPE}' info >/dev/null; exit 3", check=False)
        self.assertEqual(failed.returncode, 3)
        self.assertEqual(data_of(page)["ending"], "exit status 3")
        killed = run(page, "sh", "-c", f"'{HPE}' wave --size 64x64x64 --steps 100000000 >/dev/null & sleep 4; kill -9 $!; kill -TERM $$",
                     check=False)
        self.assertEqual(killed.returncode, -signal.SIGTERM)
        data = data_of(page)
        self.assertIn("signal 15", data["ending"])
        self.assertFalse(data["processes"][0]["complete"])
        self.assertGreater(data["processes"][0]["totals"]["launches"], 0)

    def test_a_program_without_hpe_has_an_empty_page(self):
        page = self.page.with_name("empty.html")
        result = run(page, "true")
        self.assertIn("no process of the program used hpe", result.stderr)
        self.assertEqual(data_of(page)["processes"], [])

    def test_what_cannot_be_run_is_told_as_without_a_report(self):
        page = self.page.with_name("missing.html")
        self.assertEqual(run(page, "/no/such/program", check=False).returncode, 127)
        self.assertEqual(run("/no/such/folder/page.html", "true", check=False).returncode, 2)

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun")
    def test_ranks_are_one_page_by_rank(self):
        for page, words in ((self.page.with_name("mpi.html"), None), (self.page.with_name("inside.html"), "inside")):
            mpirun = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2"]
            if words is None:
                run(page, *mpirun, *PROGRAM)
            else:
                subprocess.run([*mpirun, HPE, "run", "--report", str(page), "--", *PROGRAM], capture_output=True, timeout=120, check=True,
                               env={**os.environ, "HPE_DEVICES": "soft:2", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                                    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
            self.assertEqual([p["name"] for p in data_of(page)["processes"]], ["rank 0", "rank 1"], words)

    def test_parts_alone_become_a_page_later(self):
        page = self.page.with_name("later.html")
        subprocess.run(PROGRAM, capture_output=True, timeout=120, check=True,
                       env={**os.environ, "HPE_DEVICES": "soft:1", "HPE_REPORT": str(page)})
        broken = Path(f"{page}.parts/9.9.json")
        broken.write_text("{")
        result = subprocess.run([HPE, "report", str(page)], capture_output=True, text=True, timeout=60, check=True)
        self.assertIn("9.9.json is left out", result.stderr)
        self.assertEqual(len(data_of(page)["processes"]), 1)
        nothing = subprocess.run([HPE, "report", "/no/page.html"], capture_output=True, text=True, timeout=60)
        self.assertEqual(nothing.returncode, 1)

    @unittest.skipUnless(BROWSER, "no Chromium, the browser of this test")
    def test_the_page_opens_in_a_browser_without_errors_and_without_a_network(self):
        self.assertNotRegex(self.page.read_text(), r'(?:src|href)\s*=\s*["\']?(?:https?:)?//')
        probed = self.page.with_name("probed.html")
        # Looks at the pixels of the time line before and after the wheel turned over it.
        probed.write_text(self.page.read_text().replace("</body>", """<pre id="probe"></pre><script>
          const pixels = () => {
            const c = at("timeline"), copy = new OffscreenCanvas(c.width, c.height).getContext("2d", {willReadFrequently: true});
            copy.drawImage(c, 0, 0);
            const d = copy.getImageData(0, 0, c.width, c.height).data;
            let sum = 0, seen = 0;
            for (let i = 0; i < d.length; i += 4) { if (d[i + 3] > 0) ++seen; sum = (sum * 31 + d[i] + d[i + 1] * 3 + d[i + 2] * 7) % 1000003; }
            return [seen, sum];
          };
          const before = pixels();
          at("timeline").dispatchEvent(new WheelEvent("wheel", {deltaY: -300, clientX: 700, clientY: 5, bubbles: true}));
          const after = pixels();
          at("probe").textContent = JSON.stringify({seen: before[0], zoomed: before[1] !== after[1]});
          </script></body>"""))
        document, console = browse(probed)
        self.assertEqual(console, [])

        def shown(name):
            found = re.search(rf'<(\w+)[^>]* id="{name}"[^>]*>(.*?)</\1>', document, re.DOTALL)
            self.assertIsNotNone(found, name)
            return re.sub(r"<[^>]+>", " ", found[2])

        self.assertIn("wave", shown("command"))
        self.assertIn("1 process", shown("facts"))
        self.assertGreater(len(shown("advice").strip()), 20)
        self.assertIn("calls", shown("ways"))
        self.assertIn("MiB", shown("allocations"))
        self.assertIn("<svg", document)
        self.assertIn("soft device 1", shown("residency"))
        self.assertIn("No call of MPI", shown("mpi"))
        self.assertIn("exited", shown("processes"))
        probe = json.loads(shown("probe"))
        self.assertGreater(probe["seen"], 5000)
        self.assertTrue(probe["zoomed"])


def take_screenshot(file):
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        run(page, SCATTERED_READS)
        browse(page, f"--screenshot={Path(file).absolute()}", "--hide-scrollbars")


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[3] == "--screenshot":
        take_screenshot(sys.argv[4])
    else:
        unittest.main(argv=sys.argv[:1], verbosity=2)
