"""`hpe jupyter install`: a Jupyter kernel that runs under `hpe run`. A cell cannot do this, because hpe must be loaded first."""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path


def _folder(in_environment):
    """Returns the folder in which Jupyter looks for kernels."""
    if in_environment:
        return Path(sys.prefix, "share", "jupyter", "kernels")
    data = os.environ.get("JUPYTER_DATA_DIR") or Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share", "jupyter")
    return Path(data, "kernels")


def main(program, words):
    """program: the path of the hpe command; words: the arguments after `hpe jupyter`."""
    parser = argparse.ArgumentParser(
        prog="hpe jupyter", description="Installs a Jupyter kernel of this Python environment that runs under `hpe run`.",
        epilog="Further options are those of `hpe run`, for example --cuda soft.")
    parser.add_argument("command", choices=["install"])
    parser.add_argument("--name", default="hpe", help="the kernel's name (default: hpe)")
    parser.add_argument("--sys-prefix", action="store_true", help="install into this environment, not for the user")
    chosen, options = parser.parse_known_args(words)
    if not chosen.name or not all(c.isalnum() and c.isascii() or c in "-._" for c in chosen.name):
        parser.error(f"the name of a kernel consists of letters, digits, '-', '.' and '_', not {chosen.name!r}")
    if importlib.util.find_spec("ipykernel_launcher") is None:
        sys.exit(f"hpe jupyter: {sys.executable} has no IPython kernel; pip install ipykernel")
    start = [str(program), "run", *options, "--"]
    if subprocess.run([*start, "true"], check=False).returncode != 0:  # prints what is wrong with the options
        sys.exit(2)
    specification = {
        "argv": [*start, sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": f"Python ({' '.join([chosen.name, *options])})",
        "language": "python",
    }
    folder = _folder(chosen.sys_prefix) / chosen.name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.json").write_text(json.dumps(specification, indent=1) + "\n")
    print(f"installed the kernel {chosen.name} in {folder}")
