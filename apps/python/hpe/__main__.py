"""`python -m hpe` and the command `hpe` of the wheel: the hpe command with the same arguments."""

import os
import sys
from pathlib import Path

TREE = Path(__file__).parent / "tree"


def main():
    program = TREE / "bin" / "hpe"
    if not program.exists():
        sys.exit("hpe: this Python package does not contain the hpe command; pip installs it with the package, from hpe's wheel")
    os.execv(program, ["hpe", *sys.argv[1:]])


if __name__ == "__main__":
    main()
