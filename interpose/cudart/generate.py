#!/usr/bin/env python3
"""Makes what follows from the toolkit's header and from the names that its library exports.

    generate.py cuda_runtime_api.h functions.txt absent.S own_default_stream.cpp

absent.S has a weak definition of every name: it serves calls of functions that nothing in this folder defines.
own_default_stream.cpp has the functions that end with _ptsz and _ptds, which programs compiled with --default-stream per-thread
call: each is the function without the ending, called while stream 0 means the thread's own.
"""

import re
import sys
from pathlib import Path

PROTOTYPE = re.compile(r"^\s*extern\s[^;{}()]*?(cudaError_t)\s+CUDARTAPI\s+(\w+)\s*\(([^;]*)\)\s*;", re.MULTILINE)
OWN_DEFAULT_STREAM = re.compile(r"(\w+)_pt[sd][sz]$")


def prototypes(header):
    found = {}
    for match in PROTOTYPE.finditer(header):
        _, name, parameters = match.groups()
        parameters = re.sub(r"\s*__dv\([^)]*\)|\s*=\s*\w+", "", parameters)
        found.setdefault(name, [each.strip() for each in parameters.split(",") if each.strip() != "void"])
    return found


def absent(names):
    yield "/* Made by generate.py. A strong definition of a name elsewhere takes the place of the one here. */"
    yield "        .text"
    for name in names:
        yield f"        .weak {name}\n        .type {name}, @function\n{name}:\n        endbr64"
        yield f"        lea .Lname_{name}(%rip), %rdi\n        jmp hpe_cudart_absent\n        .size {name}, . - {name}"
    yield "        .section .rodata"
    for name in names:
        yield f'.Lname_{name}: .string "{name}"'
    yield '        .section .note.GNU-stack, "", @progbits'


def own_default_stream(names, known):
    yield "// Made by generate.py.\n"
    yield "#include <cuda_runtime_api.h>\n"
    yield '#include "interpose/cudart/device/thread_state.h"\n'
    yield "using hpe::cudart::own_default_stream;\n"
    yield 'extern "C" {'
    for name in names:
        match = OWN_DEFAULT_STREAM.match(name)
        if not match or match[1] not in known:
            continue
        parameters = known[match[1]]
        arguments = [re.search(r"(\w+)$", each)[1] for each in parameters]
        yield f"cudaError_t CUDARTAPI {name}({', '.join(parameters)}) {{"
        yield "  const own_default_stream scope;"
        yield f"  return {match[1]}({', '.join(arguments)});\n}}"
    yield "}"


def main():
    header, names, absent_path, own_path = (Path(each) for each in sys.argv[1:])
    names = names.read_text().split()
    known = prototypes(header.read_text())
    absent_path.write_text("\n".join(absent(names)) + "\n")
    own_path.write_text("\n".join(own_default_stream(names, known)) + "\n")


if __name__ == "__main__":
    main()
