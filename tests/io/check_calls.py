#!/usr/bin/env python3
"""Fails if interpose/io/calls.def misses a function of libc that takes a buffer, or if libhpe.so lacks a listed function.

    check_calls.py CALLS.DEF COMPILER LIBHPE LIBC

A function takes a buffer if one of its parameters is a pointer to void, to bytes that are not constant, or to one of the
structures below, in one of the headers below. Constant strings are names and do not count as buffers, except in fputs and puts.
Other exports of libc whose names are variants of an interposed function (__read_chk, pread64) must be listed, too.
"""

import re
import subprocess
import sys

HEADERS = ["aio.h", "fcntl.h", "mqueue.h", "stdio.h", "sys/msg.h", "sys/random.h", "sys/sendfile.h", "sys/socket.h",
           "sys/uio.h", "unistd.h"]
STRUCTURES = ["iovec", "msghdr", "mmsghdr", "aiocb", "aiocb64"]
BUFFER = re.compile(r"\bvoid\s*\*|\bstruct\s+(" + "|".join(STRUCTURES) + r")\s*\*|(?<!const )\bchar\s*\*(?!\s*[*c])")


def read_calls(path):
    calls = {}
    for kind, name in re.findall(r"^HPE_IO_(TAKEN|WATCHED|LEFT)\((\w+),", open(path).read(), re.MULTILINE):
        if name in calls:
            sys.exit(f"{name} is listed twice")
        calls[name] = kind
    return calls


def without_groups(text, word):
    """Returns the text without parts of the form `word ((...))`, in which parentheses may be nested."""
    result = []
    at = 0
    for match in re.finditer(word + r"\s*\(", text):
        if match.start() < at:
            continue
        result.append(text[at:match.start()])
        depth, at = 1, match.end()
        while depth > 0:
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
    return "".join(result) + text[at:]


def declared(compiler):
    """Returns {name: parameters} for all functions of the headers."""
    source = "".join(f"#include <{h}>\n" for h in HEADERS)
    text = subprocess.run([compiler, "-E", "-P", "-x", "c", "-D_GNU_SOURCE", "-"], input=source, text=True, check=True,
                          capture_output=True).stdout
    for word in ["__attribute__", "__asm__"]:
        text = without_groups(text, word)
    text = re.sub(r"\b(__extension__|__restrict|__inline)\b", " ", text)
    functions = {}
    for statement in re.sub(r"\{[^{}]*\}", ";", text).split(";"):
        match = re.fullmatch(r"\s*extern\s+[\w\s*]+?\b(\w+)\s*\((.*)\)\s*", " ".join(statement.split()))
        if match:
            functions[match.group(1)] = match.group(2)
    return functions


def exports(library):
    text = subprocess.run(["nm", "-D", "--defined-only", library], text=True, check=True, capture_output=True).stdout
    for line in text.splitlines():
        _, kind, name = line.split()[-3:]
        if kind in "TWi" and "GLIBC_PRIVATE" not in name:
            yield name.split("@")[0]


def plain(name):
    """Returns the basic name of a variant: read for __read_chk, pread for __libc_pread64."""
    name = re.sub(r"^_+(libc_)?", "", name)
    return re.sub(r"(_chk|_nocancel|_unlocked|64|v2|2)+$", "", name)


def main():
    path, compiler, ours, libc = sys.argv[1:]
    calls = read_calls(path)
    functions = declared(compiler)
    if len(functions) < 300 or "read" not in functions or "aio_read" not in functions:
        sys.exit(f"only {len(functions)} functions were found in the headers, so this script probably misreads them")
    wrong = [f"{name}({parameters}) takes a buffer, but is not in {path}"
             for name, parameters in sorted(functions.items()) if BUFFER.search(parameters) and name not in calls]
    defined = set(exports(libc))
    taken = {plain(name) for name, kind in calls.items() if kind == "TAKEN"}
    wrong += [f"libc's {name} looks like a variant of a listed function, but is not in {path}"
              for name in sorted(defined) if plain(name) in taken and name not in calls]
    wrong += [f"{name} is in {path}, but is no function of libc or its headers"
              for name in sorted(calls) if name not in defined and name not in functions]
    mine = set(exports(ours))
    wrong += [f"{name} is in {path}, but libhpe.so does not define it"
              for name, kind in sorted(calls.items()) if kind != "LEFT" and name not in mine]
    wrong += [f"{name} is marked LEFT in {path}, but libhpe.so defines it"
              for name, kind in sorted(calls.items()) if kind == "LEFT" and name in mine]
    print(f"{len(functions)} functions of libc's headers, {len(calls)} in the list, {len(wrong)} errors")
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


main()
