#!/usr/bin/env python3
"""Checks the common parts of all commands: JSON by the schemas in docs/schemas, exit statuses, --quiet, --help.

    json_test.py <hpe>
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import jsonschema

HPE = sys.argv.pop(1)
SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"

# Commands that print facts and compute nothing. They have neither --quiet nor --devices.
TELLING = {"info", "explain", "doctor"}
# The arguments of a small run of each command, and the schema of the command's JSON.
RUNS = {
    "info": ([], "info"),
    "doctor": (["/bin/sh"], "doctor"),
    "explain": ([str(Path(__file__).parents[1] / "ptx_launch" / "kernels.ptx")], "explain"),
    "fft": (["60x50", "--repeats", "1"], "report"),
    "rtm": (["40x1x30", "--shots", "1", "--time", "0.2"], "report"),
    "wave": (["24", "--steps", "3", "--check"], "report"),
    "scan": (["1000", "--repeats", "1"], "report"),
    "sort": (["1000", "--repeats", "1"], "report"),
    "gather": (["1000", "--method", "single-pass", "--repeats", "1"], "report"),
    "scatter": (["1000", "--method", "partitioned", "--devices", "1", "--repeats", "1"], "report"),
    "spmv": (["1000", "--repeats", "1"], "report"),
    "bfs": (["1000", "--repeats", "1"], "report"),
    "hash": (["1000", "--method", "single-pass", "--repeats", "1"], "report"),
    "predict": (["ray-tracing", "--machine", "dgx-h100", "--gpus", "1..4", "--what-if", "link=2x"], "predictions"),
}


class Commands(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def hpe(self, *words):
        return subprocess.run([HPE, *words], capture_output=True, text=True, check=False, cwd=self.folder.name,
                              env={**os.environ, "COLUMNS": "10000"})

    def check(self, text, schema):
        found = json.loads(text)
        schema = json.loads((SCHEMAS / f"{schema}.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.validate(found, schema)
        return found

    def test_json_has_its_schema(self):
        for command, (words, schema) in RUNS.items():
            with self.subTest(command):
                done = self.hpe(command, *words, "--json", "-")
                self.assertEqual(0, done.returncode, done.stderr)
                self.assertEqual(f"hpe {command}", self.check(done.stdout, schema)["program"])
                done = self.hpe(command, *words, "--json", "a.json")
                self.assertEqual(0, done.returncode, done.stderr)
                self.assertNotEqual("", done.stdout)
                self.check((Path(self.folder.name) / "a.json").read_text(), schema)

    def test_kept_parameters_of_gathers_have_their_schema(self):
        small = {**os.environ, "XDG_CACHE_HOME": self.folder.name, "HPE_DEVICES": "soft:1", "HPE_SOFT_MEMORY": "64M"}
        done = subprocess.run([HPE, "gather", "1000"], capture_output=True, text=True, check=False, env=small)
        self.assertEqual(0, done.returncode, done.stderr)
        kept = list((Path(self.folder.name) / "hpe").glob("gather-*.json"))
        self.assertEqual(1, len(kept))
        self.check(kept[0].read_text(), "gather")

    def test_machines_that_hpe_brings_along_have_their_schema(self):
        machines = sorted((Path(__file__).parents[2] / "apps" / "predict" / "machines").glob("*.json"))
        self.assertTrue(machines)
        for machine in machines:
            with self.subTest(machine.name):
                profile = self.check(machine.read_text(), "machine")
                self.assertIn(profile["origin"], ["published", "measured"])
                self.assertTrue(profile["sources"])

    def test_predictions_agree_in_all_forms(self):
        words = ["predict", "ray-tracing", "--machine", "dgx-h100", "--gpus", "1..4", "--topology", "shared"]
        done = self.hpe(*words, "--json", "a.json", "--charts", "c.json", "--csv", "-")
        self.assertEqual(0, done.returncode, done.stderr)
        found = json.loads((Path(self.folder.name) / "a.json").read_text())
        rows = list(csv.DictReader(done.stdout.splitlines()))
        self.assertEqual(8, len(rows))
        for row, point in zip(rows, found["predictions"]):
            self.assertEqual((point["devices"], point["model"]), (int(row["devices"]), row["model"]))
            self.assertAlmostEqual(point["seconds"], float(row["seconds"]))
            self.assertAlmostEqual(point["busy_seconds"]["kernels"], float(row["kernels"]))
        charts = self.check((Path(self.folder.name) / "c.json").read_text(), "charts")["charts"]
        modern = next(c for c in charts if c["line"] == "shared, modern" and c["y_label"] == "seconds")
        self.assertEqual([1, 2, 3, 4], modern["x"])
        self.assertEqual([p["seconds"] for p in found["predictions"] if p["model"] == "modern"], modern["y"])

    def test_the_schema_refuses_what_is_missing(self):
        found = json.loads(self.hpe("sort", "1000", "--repeats", "1", "--json", "-").stdout)
        for name in ("commit", "machine", "time"):
            with self.assertRaises(jsonschema.ValidationError):
                self.check(json.dumps({key: found[key] for key in found if key != name}), "report")

    def test_progress_is_one_line_of_a_terminal(self):
        lines, steps = [], 250
        while not lines and steps < 100000:  # until the run is so long that it prints a progress line before its end
            steps *= 2
            script = ["script", "--quiet", "--return", "--command", f"{HPE} wave 24 --steps {steps}", "/dev/null"]
            done = subprocess.run(script, capture_output=True, check=True, cwd=self.folder.name, stdin=subprocess.DEVNULL)
            lines = [line for line in done.stdout.decode().replace("\r\n", "\n").split("\n") if "\033[K" in line]
        self.assertEqual(1, len(lines), done.stdout)
        told = lines[0].split("\r\033[K")[1:]
        self.assertRegex(told[0], rf"^\d+ of {steps} steps, \d+ %, .* left$")
        self.assertRegex(told[-1], rf"^{steps} of {steps} steps in \d+ s$")

    def test_quiet_prints_nothing(self):
        for command, (words, _) in RUNS.items():
            if command not in TELLING:
                done = self.hpe(command, *words, "--quiet")
                self.assertEqual((0, "", ""), (done.returncode, done.stdout, done.stderr), command)

    def test_the_same_options_mean_the_same(self):
        common = ["--json FILE", "--quiet", "--devices N", "--help"]
        lines = {}
        for command in RUNS:
            text = self.hpe(command, "--help").stdout
            for option in common:
                if command in TELLING and option == "--quiet" or command in (*TELLING, "predict") and option == "--devices N":
                    continue
                line = next((line.split(option, 1)[1].strip() for line in text.splitlines() if f"  {option} " in line), None)
                self.assertIsNotNone(line, f"{command} {option}")
                self.assertEqual(lines.setdefault(option, line), line, command)

    def test_a_command_line_that_cannot_be_meant_is_status_2(self):
        for command, (words, _) in RUNS.items():
            for wrong in (["--no-such-option"], ["--json"], ["--json", "/nowhere/at/all"], [*words, "one", "more"]):
                done = self.hpe(command, *wrong)
                self.assertEqual(2, done.returncode, (command, wrong, done.stderr))
                self.assertRegex(done.stderr, "^hpe( [a-z]+)?: .", (command, wrong))
                self.assertEqual("", done.stdout, (command, wrong))

    def test_sizes_are_checked_before_memory_is_asked_for(self):
        for words in (["sort", "2^60"], ["scan", "2^60"], ["fft", "2^60"], ["wave", "100000"], ["rtm", "1000000x1000000x1000000"],
                      ["rtm", "--receivers", "0:3000:1e-6"]):
            done = self.hpe(*words)
            self.assertEqual(2, done.returncode, done.stderr)
            self.assertEqual(1, done.stderr.count("\n"), done.stderr)
            self.assertNotIn("bad_alloc", done.stderr)


if __name__ == "__main__":
    unittest.main()
