#!/usr/bin/env python3
"""`hpe run --report`: the contents of the page, and the page in a real browser (headless Chromium).

    report_test.py HPE PROGRAM [--screenshots FOLDER]

PROGRAM is scattered_reads of this folder. FOLDER gets pictures of its page in both modes; report-light.png is the one in the manual.
"""

import json
import os
import re
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

HPE, SCATTERED_READS = sys.argv[1:3]
SCREENSHOTS = sys.argv[4] if sys.argv[3:4] == ["--screenshots"] else None
SOURCE = Path(__file__).with_name("scattered_reads.cpp")
PROGRAM = [HPE, "wave", "--size", "96x96x96", "--steps", "60"]


def run(page, *command, check=True, **environment):
    return subprocess.run([HPE, "run", "--report", str(page), "--", *command], capture_output=True, text=True, timeout=120,
                          check=check, env={**os.environ, "HPE_DEVICES": "soft:2", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                                            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **environment})


def data_of(page):
    text = Path(page).read_text()
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])


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
        self.assertGreater(sum(k["calls"] for k in self.process["kernels"]), 60)
        self.assertTrue(all(k["seconds"] > 0 for k in self.process["kernels"]))

    def test_advice_names_the_line_that_waits(self):
        page = self.page.with_name("advice.html")
        run(page, SCATTERED_READS)
        process = data_of(page)["processes"][0]
        lines = SOURCE.read_text().splitlines()
        line = next(i for i, text in enumerate(lines, 1) if "// reads" in text)
        allocated = next(i for i, text in enumerate(lines, 1) if "data(count)" in text)
        advice = next(a for a in process["advice"] if a["rule"] in ("element-wise touches", "touches block by block"))
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

    def test_a_page_that_exists_stays_if_there_is_nothing_to_show(self):
        page = self.page.with_name("kept.html")
        page.write_text("an earlier page")
        result = run(page, "true")
        self.assertIn("kept.html stays as it was", result.stderr)
        self.assertEqual(page.read_text(), "an earlier page")

    def test_only_parts_are_removed_from_the_folder_of_parts(self):
        page = self.page.with_name("shared.html")
        parts = Path(f"{page}.parts")
        parts.mkdir()
        (parts / "notes.txt").write_text("mine")
        (parts / "-.1.json").write_text("{}")  # a process's part of the report of an earlier run
        run(page, HPE, "info")
        self.assertEqual([p.name for p in parts.iterdir()], ["notes.txt"])
        self.assertEqual(len(data_of(page)["processes"]), 1)

    def test_a_second_run_with_the_same_page_is_refused(self):
        page, started, ran = (self.page.with_name(name) for name in ("busy.html", "started", "second"))
        first = subprocess.Popen([HPE, "run", "--report", str(page), "--", "sh", "-c", f"touch {started}; read line; {HPE} info"],
                                 stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env={**os.environ, "HPE_DEVICES": "soft:1"})
        while not started.exists():
            self.assertIsNone(first.poll())
            time.sleep(0.01)
        refused = run(page, "touch", str(ran), check=False)
        self.assertEqual((refused.returncode, ran.exists()), (2, False))
        self.assertIn("another run writes this page now", refused.stderr)
        first.communicate(b"go on\n")
        self.assertEqual((first.returncode, len(data_of(page)["processes"])), (0, 1))
        self.assertFalse(Path(f"{page}.parts").exists())
        run(page, HPE, "info")  # afterwards, the page is free

    def test_a_page_that_is_no_regular_file_is_refused_before_the_program_starts(self):
        pipe, folder, ran = (self.page.with_name(name) for name in ("pipe", "folder", "ran"))
        os.mkfifo(pipe)
        folder.mkdir()
        for page in (pipe, folder, Path("/dev/null")):
            refused = run(page, "touch", str(ran), check=False)
            self.assertEqual(refused.returncode, 2, page)
            self.assertIn("it is not a regular file", refused.stderr)
        self.assertFalse(ran.exists())
        self.assertTrue(pipe.is_fifo())
        self.assertFalse(Path("/dev/null.parts").exists())

    def test_a_link_is_followed(self):
        target, link = self.page.with_name("target.html"), self.page.with_name("link.html")
        target.write_text("old")
        link.symlink_to(target.name)
        run(link, HPE, "info")
        self.assertTrue(link.is_symlink())
        self.assertEqual(len(data_of(target)["processes"]), 1)

    def test_arguments_that_are_not_utf_8(self):
        page = self.page.with_name("latin.html")
        command = [HPE, "wave", "--size", "32x32x32", "--steps", "1", "--json", self.page.with_name("latin").as_posix().encode() + b"\xe9"]
        result = subprocess.run([HPE, "run", "--report", page, "--", *command], capture_output=True, timeout=120, check=True,
                                env={**os.environ, "HPE_DEVICES": "soft:1"})
        self.assertEqual(result.stderr, b"")
        self.assertTrue(data_of(page)["processes"][0]["command"].endswith("latin\ufffd"))

    def test_a_page_that_cannot_be_written_leaves_its_parts(self):
        page = self.page.with_name("small") / "page.html"
        page.parent.mkdir()
        page.write_text("an earlier page")
        # The program's files have no size limit. The hpe command, which writes the page, may write files of at most
        # 1000 bytes.
        program = f"prlimit --fsize=unlimited --pid $$; prlimit --fsize=1000 --pid $PPID; '{HPE}' info"
        result = run(page, "sh", "-c", program, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("page.html: File too large; `hpe report", result.stderr)
        self.assertEqual(page.read_text(), "an earlier page")
        self.assertEqual(sorted(p.name for p in page.parent.iterdir()), ["page.html", "page.html.parts"])
        subprocess.run([HPE, "report", str(page)], timeout=60, check=True)
        self.assertEqual(len(data_of(page)["processes"]), 1)

    def test_what_cannot_be_run_is_told_as_without_a_report(self):
        page = self.page.with_name("missing.html")
        self.assertEqual(run(page, "/no/such/program", check=False).returncode, 127)
        self.assertEqual(run("/no/such/folder/page.html", "true", check=False).returncode, 2)

    def test_a_signal_to_hpe_alone_ends_the_run(self):
        for number in (signal.SIGINT, signal.SIGQUIT):
            page = self.page.with_name(f"interrupted.{int(number)}.html")
            running = subprocess.Popen([HPE, "run", "--report", str(page), "--", "sh", "-c", "echo begun; exec sleep 100"],
                                       stdout=subprocess.PIPE, text=True, start_new_session=True)
            self.assertEqual(running.stdout.readline(), "begun\n")
            running.send_signal(number)
            self.assertEqual(running.wait(timeout=30), -number)
            running.stdout.close()
            self.assertIn(f"signal {int(number)}", data_of(page)["ending"])

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
        # Compares the pixels of the time line before and after a turn of the mouse wheel over it.
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
          at("probe").textContent = JSON.stringify({seen: before[0], zoomed: before[1] !== after[1], large: size(1010 * 2 ** 20)});
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
        self.assertIn("calls", shown("kernels"))
        self.assertRegex(shown("kernels"), r"\d ms|\d µs|\d s")
        self.assertRegex(shown("rates"), r"\d (KiB|MiB|GiB)/s")
        hidden = re.findall(r"<section hidden[^>]*>\s*<h2>(.*?)</h2>", document)
        self.assertIn("MPI", hidden)
        self.assertNotIn("Time line", hidden)
        self.assertNotIn("Rates", hidden)
        self.assertIn("exited", shown("processes"))
        probe = json.loads(shown("probe"))
        self.assertGreater(probe["seen"], 5000)
        self.assertTrue(probe["zoomed"])
        self.assertEqual(probe["large"], "1010 MiB")

    @unittest.skipUnless(BROWSER, "no Chromium, the browser of this test")
    def test_it_is_light_or_dark_as_the_reader_prefers(self):
        page = self.page.with_name("modes.html")
        run(page, SCATTERED_READS)
        pictures = {mode: Path(SCREENSHOTS or self.folder.name) / f"report-{mode}.png" for mode in MODES}
        for mode, picture in pictures.items():
            browse(page, mode=mode, screenshot=picture)
        self.assertGreater(brightness(pictures["light"]), 200)
        self.assertLess(brightness(pictures["dark"]), 70)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
