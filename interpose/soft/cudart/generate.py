#!/usr/bin/env python3
"""Generates the parts of hpe's CUDA runtime that are derived from the toolkit's header and from the toolkit's library.

    generate.py cuda_runtime_api.h libcudart.so FOLDER

writes into FOLDER:
    absent.S                a weak definition of every function that the toolkit's library exports, for functions that no source
                            file defines
    own_default_stream.cpp  the functions with the suffixes _ptsz and _ptds, for programs compiled with --default-stream
                            per-thread: each calls the function without the suffix, with stream 0 as the thread's own stream
    errors.def              the codes of errors with the names and sentences that the toolkit's library returns

    generate.py forward LIBRARY FILE [OBJECT...]

writes, for every function of CUDA in libhpe-cudart.so, a function that jumps to it. The object files contain CUDA 12's versions
of functions. Their undefined symbols show which functions of CUDA 13 need another name in libcudart.so.12: CUDA 13's version of
NAME is called NAME_v2 or NAME_v3 if CUDA 12 has it under this name, otherwise hpe_cuda13_NAME.
"""

import ctypes
import re
import subprocess
import sys
from pathlib import Path

PROTOTYPE = re.compile(r"^\s*extern\s[^;{}()]*?(cudaError_t)\s+CUDARTAPI\s+(\w+)\s*\(([^;]*)\)\s*;", re.MULTILINE)
OWN_DEFAULT_STREAM = re.compile(r"(\w+)_pt[sd][sz]$")
ERROR_CODES = range(10001)  # cudaErrorApiFailureBase (10000) is the last code


def prototypes(header):
    found = {}
    for match in PROTOTYPE.finditer(header):
        _, name, parameters = match.groups()
        parameters = re.sub(r"\s*__dv\([^)]*\)|\s*=\s*\w+", "", parameters)
        found.setdefault(name, [each.strip() for each in parameters.split(",") if each.strip() != "void"])
    return found


def symbols(files, *options):
    """The names of the functions of objects, archives or libraries that nm lists with these options, sorted."""
    listed = subprocess.run(["nm", "--format=posix", *options, *files], check=True, capture_output=True, text=True).stdout
    words = [line.split() for line in listed.splitlines()]
    return sorted({each[0].split("@")[0] for each in words if len(each) > 1 and each[1] in "TWU"})


def absent(names):
    yield "/* Made by generate.py. A strong definition of the same name replaces a weak definition of this file. */"
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
    yield '#include "interpose/soft/cudart/device/thread_state.h"\n'
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


def errors(library):
    runtime = ctypes.CDLL(str(library.resolve()))
    runtime.cudaGetErrorName.restype = runtime.cudaGetErrorString.restype = ctypes.c_char_p
    yield "// Made by generate.py: HPE_CUDART_ERROR(code, the sentence of cudaGetErrorString), in the order of the codes."
    for code in ERROR_CODES:
        name = runtime.cudaGetErrorName(code).decode()
        if name.startswith("cuda"):
            yield f'HPE_CUDART_ERROR({name}, "{runtime.cudaGetErrorString(code).decode()}")'


def renamed(called, defined):
    for name in called:
        match = re.match(r"hpe_cuda13_(\w+)|(\w+?)_v\d$", name)
        if not match:
            continue
        old = match[1] or match[2]
        for ending in ("", "_ptsz", "_ptds"):
            if old + ending in defined:
                yield old + ending, name + ending


def forward(names):
    """names: pairs of the name in libhpe-cudart.so and the name of the function to write."""
    yield "/* Made by generate.py. The symbol version distinguishes a function of libhpe-cudart.so from the function here. */"
    yield "        .text"
    for name, here in names:
        yield f"        .globl {here}\n        .type {here}, @function\n{here}:\n        endbr64"
        yield f"        jmp *next_{here}@GOTPCREL(%rip)\n        .size {here}, . - {here}"
        yield f"        .symver next_{here}, {name}@HPE_CUDA"
    yield '        .section .note.GNU-stack, "", @progbits'


def main():
    if sys.argv[1] == "forward":
        library, to, *objects = sys.argv[2:]
        functions = [name for name in symbols([library], "--dynamic", "--defined-only") if re.match(r"(__)?cuda", name)]
        others = dict(renamed(symbols(objects, "--undefined-only"), functions)) if objects else {}
        own = set(symbols(objects, "--defined-only")) if objects else set()
        here = [(name, others.get(name, name)) for name in functions]
        Path(to).write_text("\n".join(forward([pair for pair in here if pair[1] not in own])) + "\n")
        return
    header, library, folder = (Path(each) for each in sys.argv[1:])
    exported = symbols([library], "--dynamic", "--defined-only")
    functions = [name for name in exported if re.match(r"(__)?cuda", name)]
    known = prototypes(header.read_text())
    made = {
        "absent.S": absent(functions),
        "own_default_stream.cpp": own_default_stream(functions, known),
        "errors.def": errors(library),
    }
    for name, lines in made.items():
        (folder / name).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
