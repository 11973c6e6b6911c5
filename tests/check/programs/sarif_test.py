#!/usr/bin/env python3
"""Compares what `hpe run --check --check-sarif` writes with its JSON, and with the rules of SARIF 2.1.0.

    sarif_test.py SOURCE -- COMMAND...

COMMAND is what stands before `wrong` (check_cases.py); SOURCE is the source of the program.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from urllib.parse import unquote

# Of each object of the schema that hpe writes: the members that must be there, and those that may be there.
SCHEMA = {
    "log": ({"version", "runs"}, {"$schema"}),
    "run": ({"tool", "results"}, {"originalUriBaseIds", "columnKind"}),
    "driver": ({"name"}, {"rules"}),
    "rule": ({"id"}, {"shortDescription", "help", "defaultConfiguration"}),
    "result": ({"message"}, {"ruleId", "ruleIndex", "level", "locations", "relatedLocations", "partialFingerprints",
                             "occurrenceCount", "properties"}),
    "location": (set(), {"id", "physicalLocation", "logicalLocations", "message"}),
    "physicalLocation": ({"artifactLocation"}, {"region"}),
    "artifactLocation": ({"uri"}, {"uriBaseId"}),
}
LEVELS = {"none", "note", "warning", "error"}


class Sarif(unittest.TestCase):
    def has_members(self, name, value):
        needed, allowed = SCHEMA[name]
        self.assertLessEqual(needed, set(value), name)
        self.assertLessEqual(set(value), needed | allowed, name)

    def file_and_line(self, location, bases):
        self.has_members("location", location)
        self.assertTrue(location["message"]["text"])
        if "physicalLocation" not in location:
            self.assertTrue(location["logicalLocations"][0]["fullyQualifiedName"])
            return None
        at = location["physicalLocation"]
        self.has_members("physicalLocation", at)
        artifact = at["artifactLocation"]
        self.has_members("artifactLocation", artifact)
        uri = artifact["uri"]
        if "uriBaseId" in artifact:
            self.assertFalse(uri.startswith("/") or ":" in uri, "relative")
            uri = bases[artifact["uriBaseId"]]["uri"] + uri
        self.assertTrue(uri.startswith("file:///"), uri)
        line = at["region"]["startLine"]
        self.assertIsInstance(line, int)
        self.assertGreater(line, 0)
        return f"{unquote(uri.removeprefix('file://'))}:{line}"

    def test_file(self):
        with tempfile.TemporaryDirectory() as place:
            files = {name: Path(place, name) for name in ("json", "sarif")}
            run = subprocess.run([*COMMAND, "wrong"], capture_output=True, text=True, timeout=120, check=False,
                                 cwd=SOURCE.parent,
                                 env={**os.environ, "HPE_CHECK_JSON": str(files["json"]),
                                      "HPE_CHECK_SARIF": str(files["sarif"])})
            self.assertEqual(run.returncode, 9, run.stderr)
            findings = json.loads(files["json"].read_text())["findings"]
            log = json.loads(files["sarif"].read_text())
        self.has_members("log", log)
        self.assertEqual(log["version"], "2.1.0")
        self.assertEqual(len(log["runs"]), 1)
        made = log["runs"][0]
        self.has_members("run", made)
        self.assertEqual(made["columnKind"], "utf16CodeUnits")
        bases = made["originalUriBaseIds"]
        for base in bases.values():
            self.assertRegex(base["uri"], "^file:///.*/$")
        driver = made["tool"]["driver"]
        self.has_members("driver", driver)
        rules = driver["rules"]
        for rule in rules:
            self.has_members("rule", rule)
            self.assertTrue(rule["shortDescription"]["text"] and rule["help"]["text"])
            self.assertIn(rule["defaultConfiguration"]["level"], LEVELS)
        self.assertEqual(len({rule["id"] for rule in rules}), len(rules))

        self.assertGreater(len(findings), 10)
        self.assertEqual([r["properties"]["finding"] for r in made["results"]], findings)
        prints = set()
        relative = 0
        for result, finding in zip(made["results"], findings):
            self.has_members("result", result)
            self.assertEqual(result["ruleId"], finding["kind"])
            self.assertEqual(rules[result["ruleIndex"]]["id"], finding["kind"])
            self.assertIn(result["level"], LEVELS)
            self.assertIn(finding["sentence"], result["message"]["text"])
            self.assertEqual(result["occurrenceCount"], finding["count"])
            self.assertEqual(len(result["locations"]), 1)
            related = result.get("relatedLocations", [])
            self.assertEqual([r["id"] for r in related], list(range(1, len(related) + 1)))
            sides = [finding[name] for name in ("now", "earlier", "allocation") if name in finding]
            wanted = [side[name] for side in sides for name in ("source", "place") if side.get(name)]
            got = [self.file_and_line(each, bases) for each in result["locations"] + related]
            for place, line in zip(wanted, got, strict=True):
                self.assertIn(line, (place, None))
            relative += "uriBaseId" in result["locations"][0].get("physicalLocation", {}).get("artifactLocation", {})
            prints.add(json.dumps(result["partialFingerprints"]))
        self.assertEqual(len(prints), len(findings), "fingerprints differ")
        self.assertGreater(relative, 10, "places in the current folder")


if __name__ == "__main__":
    split = sys.argv.index("--")
    SOURCE, COMMAND = Path(sys.argv[1]), sys.argv[split + 1:]
    unittest.main(argv=sys.argv[:1])
