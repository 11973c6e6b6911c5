"""Common parts of the tests of benchmarks that write charts."""

import subprocess
import xml.etree.ElementTree
from pathlib import Path

MEASUREMENTS = Path(__file__).resolve().parent.parent.parent / "scripts" / "measurements"


def curves(charts):
    """Draws a file of charts and returns, for each picture, the number of curves with more than one point."""
    # Matplotlib is a Debian package, so it needs Debian's Python.
    place = charts.parent / "drawn"
    done = subprocess.run(["/usr/bin/python3", MEASUREMENTS, "draw", charts, "--output", place], capture_output=True, text=True, check=True)
    counts = {}
    for file in map(Path, done.stdout.split("\n")[:-1]):
        root = xml.etree.ElementTree.parse(file).getroot()
        drawn = [e for e in root.iter() if e.get("id", "").startswith("curve ")]
        counts[file.stem.removeprefix("drawn-")] = sum("L" in path.get("d") for e in drawn for path in list(e)[:1])
    return counts
