#!/usr/bin/env python3
"""Generates the parts of hpe's libcuda.so.1 that are derived from the toolkit's headers.

    generate.py --compiler CXX --header cuda.h --entries driver_entries.def --like-runtime like_runtime.txt FOLDER

writes into FOLDER:
    absent.S           a weak definition of every function that the driver exports, for functions that no source file
                       defines
    like_runtime.cpp   the functions of like_runtime.txt: each calls a function of the CUDA runtime
    versions.cpp       the functions that differ from other functions only in their names: cuX if cuX_v2 takes the same parameters,
                       and the functions with the suffixes _ptsz and _ptds, for programs compiled with --default-stream per-thread
    entries.def        HPE_LIBCUDA_ENTRY(name for cuGetProcAddress, first CUDA version, function, the same function for programs with
                       per-thread default streams)
    results.def        HPE_LIBCUDA_RESULT(name), the codes of CUresult
"""

import argparse
import re
import subprocess
from collections import defaultdict
from pathlib import Path

PROTOTYPE = re.compile(r"\bCUresult\s+(cu\w+)\s*\(([^;{}]*)\)\s*;")
OWN_DEFAULT_STREAM = re.compile(r"(cu\w+)_pt[sd][sz]$")
POINTER_TYPE = re.compile(r"\(CUDAAPI \*PFN_(cu\w+?)_v(\d+)(_pt[sd][sz])?\)")


def prototypes(compiler, header):
    """The functions of cuda.h with their parameters; each version of a function has its own name."""
    text = subprocess.run([compiler, "-E", "-P", "-x", "c++", "-D__CUDA_API_VERSION_INTERNAL", header], check=True,
                          capture_output=True, text=True).stdout
    found = {}
    for match in PROTOTYPE.finditer(text):
        parameters = [" ".join(each.split()) for each in match[2].split(",")]
        found.setdefault(match[1], [each for each in parameters if each not in ("", "void")])
    return found


def types(parameters):
    return [re.sub(r"\s*\w+$", "", each) for each in parameters]


def argument(parameter):
    return re.search(r"(\w+)$", parameter)[1]


def absent(names):
    yield "/* Made by generate.py. A strong definition of the same name replaces a weak definition of this file. */"
    yield "        .text"
    for name in names:
        yield f"        .weak {name}\n        .type {name}, @function\n{name}:\n        endbr64"
        yield f"        lea .Lname_{name}(%rip), %rdi\n        jmp hpe_libcuda_absent\n        .size {name}, . - {name}"
    yield "        .section .rodata"
    for name in names:
        yield f'.Lname_{name}: .string "{name}"'
    yield '        .section .note.GNU-stack, "", @progbits'


def like_runtime(lines, known):
    yield '// Made by generate.py.\n\n#include "interpose/soft/libcuda/call.h"\n#include "interpose/soft/libcuda/same.h"\n'
    yield '#include <cuda.h>\n#include <cudaProfiler.h>\n#include <cuda_profiler_api.h>\n#include <cuda_runtime_api.h>\n\nusing namespace hpe::libcuda;\n\nextern "C" {\n'
    for name, of_runtime, *anywhere in lines:
        arguments = ", ".join(f"same({argument(each)})" for each in known[name])
        yield f"CUresult CUDAAPI {name}({', '.join(known[name])}) {{"
        yield f'  return {"call" if anywhere else "in_context"}("{name}", [&] {{ return {of_runtime}({arguments}); }});\n}}'
    yield "}"


def versions(names, known):
    yield '// Made by generate.py.\n\n#include <cuda.h>\n\n#include "interpose/soft/cudart/device/thread_state.h"\n'
    yield 'using hpe::cudart::own_default_stream;\n\nextern "C" {\n'
    for name in names:
        own_stream = OWN_DEFAULT_STREAM.match(name)
        of = own_stream[1] if own_stream else name + "_v2"
        if name not in known or of not in known or types(known[name]) != types(known[of]) or of not in names:
            continue
        yield f"CUresult CUDAAPI {name}({', '.join(known[name])}) {{"
        if own_stream:
            yield "  const own_default_stream scope;"
        yield f"  return {of}({', '.join(argument(each) for each in known[name])});\n}}"
    yield "}"


def entries(names, known, typedefs):
    """Yields a line HPE_LIBCUDA_ENTRY for each function. cudaTypedefs.h lists the CUDA versions in which a function changed; in
    ascending order, these belong to NAME, NAME_v2 and NAME_v3."""
    since = defaultdict(set)
    for match in POINTER_TYPE.finditer(typedefs):
        if not match[3]:
            since[match[1]].add(int(match[2]))
    functions = defaultdict(list)
    for name in names:
        match = re.match(r"(cu\w+?)(?:_v(\d))?$", name)
        if not OWN_DEFAULT_STREAM.match(name):
            functions[match[1]].append(name)
    yield "// Made by generate.py."
    for name, all_of_it in sorted(functions.items()):
        first = sorted(since.get(name, {4000}))  # the functions cuProfiler... are declared in another header
        assert len(first) == len(all_of_it), (name, first, all_of_it)
        for version, function in zip(first, sorted(all_of_it)):
            own = next((function + end for end in ("_ptsz", "_ptds") if function + end in known), function)
            yield f"HPE_LIBCUDA_ENTRY({name}, {version}, {function}, {own})"


def results(header):
    enumeration = re.search(r"typedef enum cudaError_enum \{(.*?)\} CUresult;", header, re.DOTALL)[1]
    yield "// Made by generate.py."
    for name in re.findall(r"^\s*(CUDA_\w+)\s*=", enumeration, re.MULTILINE):
        yield f"HPE_LIBCUDA_RESULT({name})"


def main():
    parser = argparse.ArgumentParser()
    for option in ("--compiler", "--header", "--entries", "--like-runtime"):
        parser.add_argument(option, required=True)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    names = re.findall(r"^HPE_DRIVER_ENTRY\((\w+)\)", Path(given.entries).read_text(), re.MULTILINE)
    known = prototypes(given.compiler, given.header)
    known |= {"cuProfilerStart": [], "cuProfilerStop": []}  # declared in cudaProfiler.h
    lines = [line.split() for line in Path(given.like_runtime).read_text().splitlines() if line and not line.startswith("#")]
    typedefs = Path(given.header).with_name("cudaTypedefs.h").read_text()
    made = {
        "absent.S": absent(names),
        "like_runtime.cpp": like_runtime(lines, known),
        "versions.cpp": versions(names, known),
        "entries.def": entries(names, known, typedefs),
        "results.def": results(Path(given.header).read_text()),
    }
    for name, text in made.items():
        (given.folder / name).write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
