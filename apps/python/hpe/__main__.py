"""`python -m hpe` and the command `hpe` of the wheel: the hpe command with the same arguments, and `hpe jupyter`."""

import os
import sys
from pathlib import Path

TREE = Path(__file__).parent / "tree"


def main():
    program = TREE / "bin" / "hpe"
    if not program.exists():
        sys.exit("hpe: this Python package does not contain the hpe command; pip installs it with the package, from hpe's wheel")
    if sys.argv[1:2] == ["jupyter"]:
        from hpe import jupyter

        jupyter.main(program, sys.argv[2:])
    else:
        os.execv(program, ["hpe", *sys.argv[1:]])


if __name__ == "__main__":
    main()
