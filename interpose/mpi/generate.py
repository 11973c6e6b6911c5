#!/usr/bin/env python3
"""Generates the wrappers of functions.txt from the prototypes in an MPI library's headers, and the list of all wrappers.

    generate.py wrap functions.txt wrappers.cpp mpi.h... [--newer mpi.h...]
    generate.py list functions.def mpi.h libhpe-*.so...
    generate.py declare mpi_functions.h mpi.h...

The headers after --newer declare functions of MPI 4 that the MPI library's own headers may lack, but that a newer release of
the MPI library has. MPI_X_c, with large counts, has the row of MPI_X. In the list, the macro HPE_MPI_FUNCTION marks functions
that mpi.h declares, which all MPI libraries have; the macro HPE_MPI_NEWER_FUNCTION marks newer functions. `declare` writes the
prototypes of MPI's functions without the names of the library's own types and attributes.
"""

import re
import subprocess
import sys
from pathlib import Path

# The first pattern matches prototypes in Open MPI's mpi.h, the second pattern those in MPICH's mpi.h, mpi_proto.h and
# mpio.h.
PROTOTYPES = [re.compile(pattern, re.DOTALL | re.MULTILINE) for pattern in (
    r"OMPI_DECLSPEC\s+[\w\s*]+?\bMPI_(\w+)\s*\(([^;]*?)\)\s*(?:__mpi_interface_\w+__\(.*?\)\s*)?;",
    r"^\s*[\w\s*]+?\bMPI_(\w+)\s*\(([^;]*?)\)\s*(?:(?:MPICH|ROMIO)_\w+(?:\([\d,]*\))?\s*)+;")]
PARAMETER = re.compile(r"^(.*?)(\w+)\s*((?:\[\w*\])*)$")
# Parameters whose names in Open MPI 4.1 differ from those in the standard.
RENAMED = {("Rsend", "ibuf"): "buf", ("Mrecv", "type"): "datatype", ("Imrecv", "type"): "datatype"}
DIRECTIONS = {"in", "out", "inout", "received"}


class Parameter:
    def __init__(self, function, text):
        kind, name, array = PARAMETER.match(" ".join(text.split())).groups()
        self.name = RENAMED.get((function, name), name)
        self.type = kind.strip() + ("*" if array else "")
        self.text = f"{self.type} {self.name}"

    @property
    def may_be_buffer(self):
        return self.type.replace(" ", "") in ("void*", "constvoid*")


def read_prototypes(*headers):
    """Returns {name without MPI_: [Parameter]} for all functions that the headers declare."""
    found = {}
    for header in headers:
        text = re.sub(r"/\*.*?\*/", "", Path(header).read_text(), flags=re.DOTALL)
        for name, parameters in (match for pattern in PROTOTYPES for match in pattern.findall(text)):
            if "(" in parameters or parameters.strip() == "void":
                found[name] = []  # a function with callback parameters, or without parameters
            else:
                found[name] = [Parameter(name, p) for p in parameters.split(",") if "..." not in p]
    return found


def declare(output, *headers):
    found = {}
    for header in headers:
        text = re.sub(r"/\*.*?\*/", "", Path(header).read_text(), flags=re.DOTALL)
        for name, parameters in PROTOTYPES[1].findall(text):
            foreign = re.search(r"\b(MPIX_|QMPI_|MPI_T_|MPI_Fint|MPI_F08)|_function\b", parameters)
            own = re.search(r"\b(MPI_(User|Grequest|(Comm|Type)_(copy|delete)|Comm_err|File_err|Win_err)\w*_function(_c)?)\b", parameters)
            if not name.startswith("T_") and (not foreign or own):
                found[name] = f"int MPI_{name}({' '.join(parameters.split())});\n"
    # MPICH 4.0 declares this array as a number.
    found["Type_create_darray"] = found["Type_create_darray"].replace("array_of_psizes,", "array_of_psizes[],")
    for name in ("Wtime", "Wtick", "Aint_add", "Aint_diff"):
        found.pop(name, None)
    Path(output).write_text("".join(found[name] for name in sorted(found)))


class Row:
    def __init__(self, names, clauses):
        self.names = names
        self.clauses = clauses  # (direction, pointer, bytes, condition or None)
        self.first = {}  # for each MPI function, the function of hpe that the wrapper calls first


def read_table(path):
    """Returns the rows (functions that only wait have no clauses), {name: file} for functions written by hand, and {name: reason}
    for functions without buffers. A line `first` names the function of hpe that the wrappers of some functions call first."""
    rows, by_hand, exempt, first = [], {}, {}, {}
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        names, _, rest = line.partition(":")
        words = names.split()
        if words[:2] == ["by", "hand"]:
            by_hand.update({name: rest.strip() for name in words[2:]})
        elif words[0] == "first":
            first.update({name: rest.strip() for name in words[1:]})
        elif words[0] == "waits":
            rows.append(Row(words[1:], []))
        elif words[0] == "exempt":
            exempt.update({name: rest.strip() for name in words[1:]})
        else:
            clauses = []
            for clause in rest.split(";"):
                what, _, condition = clause.partition(" when ")
                direction, pointer, which = what.split(None, 2)
                if direction not in DIRECTIONS:
                    sys.exit(f"{path}:{number}: {direction} is none of {', '.join(sorted(DIRECTIONS))}")
                clauses.append((direction, pointer, which.strip(), condition.strip() or None))
            rows.append(Row(words, clauses))
    for row in rows:
        row.first = {name: first[name] for name in row.names if name in first}
    return rows, by_hand, exempt


def wrapper(name, parameters, clauses, first):
    names = [p.name for p in parameters]
    call = f"next({', '.join(names)})"
    pointers = list(dict.fromkeys(pointer for _, pointer, _, _ in clauses))
    missing = [p for p in pointers if p not in names]
    if missing:
        sys.exit(f"MPI_{name} has no argument {missing[0]}")
    objects = {"comm": "on_comm{comm}", "win": "on_win{win}", "fh": "on_file{fh}"}
    where = next((told for n, told in objects.items() if n in names), "no_object{}")

    first_way = []
    if first:
        large = [p.name for p in parameters if p.type == "MPI_Count"]  # the counts of MPI_X_c
        arguments = [f"static_cast<int>({n})" if n in large else n for n in names]
        condition = " && ".join(["job::current() != nullptr", *(f"std::in_range<int>({n})" for n in large)])
        first_way = [f"  if ({condition})",
                     f"    if (const auto result = {first}({', '.join(arguments)})) return leave(*result);"]
    first_is_send = first is not None and first.startswith("large_")

    # hpe records the messages that MPI itself sends (messages/unmatched_sends.h).
    is_persistent = name.removesuffix("_c").endswith("_init")
    to = f"comm, dest, {'sendtag' if 'sendtag' in names else 'tag'}"
    is_send = "dest" in names
    noted = [f"  const unmatched_sends::by_mpi passing({to});"] if is_send and not is_persistent else []
    end = "leave"
    if is_send and is_persistent:
        end = "made"
        noted = ["  const auto made = [=](int result) {",
                 f"    if (result == MPI_SUCCESS) unmatched_sends::made(*request, {to});",
                 "    return leave(result);", "  };"]

    # Only blocking calls wait for other ranks.
    waiting = []
    if "request" not in names and "win" not in names:
        told = [n for n in ("source", "dest", "root", "recvtag", "tag") if n in names][:2]
        words = "".join(f', "{n}"' for n in told)
        waiting = [f'  static constexpr named_call about{{"MPI_{name}"{words}}};',
                   f"  const waiting_call waiting({', '.join(['about', *told])});"]

    concerns = "operation_concerns" if {"request", "win"} & set(names) else "any_concerns"
    if_ordinary = [f"  if (!{concerns}({', '.join(pointers)})) return {end}({call});"]
    if first_is_send and not is_persistent:
        if_ordinary = [f"  if (!{concerns}({', '.join(pointers)})) {{", *(f"  {line}" for line in noted),
                       f"    return leave({call});", "  }"]

    # In a collective call, other ranks wait for this rank, so it must take part even if its buffer cannot be used.
    is_collective = ("comm" in names and not {"dest", "source", "position"} & set(names)) or (
        "fh" in names and ("_all" in name or "_ordered" in name))
    kind = "persistent" if is_persistent else "collective" if is_collective else ""
    kind = f", operation_kind::{kind}" if kind else ""
    lines = [
        f"int MPI_{name}({', '.join(p.text for p in parameters)}) {{",
        f'  static constinit real_function<decltype(::MPI_{name})> next("PMPI_{name}");',
        *waiting,
        # In a dynamic window, the displacement is an address of the target, which may be in device memory.
        *(["  target_disp = attached_ranges::place_of(win, target_rank, target_disp);"] if "target_disp" in names else []),
        # Receives try hpe's own protocol first. Sends try it only from hpe memory and device memory.
        *([] if first_is_send else first_way),
        *([] if first_is_send and not is_persistent else noted),
        *(if_ordinary if pointers else [f"  return leave({call});"]),
        *(first_way if first_is_send else []),
        *(noted if first_is_send and not is_persistent else []),
        "  auto with_staging = [=](operation& here) mutable {",
    ]
    for direction, pointer, which, condition in clauses:
        condition = f" && ({condition})" if condition else ""
        if direction == "out" and pointer == "recvbuf" and "sendbuf" in names:
            action = f"sendbuf == MPI_IN_PLACE ? here.inout({pointer}, {which}) : here.out({pointer}, {which})"
        else:
            action = f"here.{direction}({pointer}, {which})"
        lines.append(f"    if (concerns({pointer}){condition}) {action};")
    if not pointers:
        return "\n".join([*lines[:-1], "}", ""])
    if "fh" in names and is_collective:
        lines.append("    if (here.failed()) count = 0;  // so that MPI does not write zeros to the file")
    lambda_call = f"[&] {{ return {call}; }}"
    if "request" in names and is_persistent:
        lines.append(f"    return here.prepare(request, {lambda_call});")
    elif "request" in names and "win" in names:
        lines.append(f"    return here.start(request, win, target_rank, {lambda_call});")
    elif "request" in names:
        lines.append(f"    return here.start(request, {lambda_call});")
    elif "win" in names:
        lines.append(f"    return here.start(win, target_rank, {lambda_call});")
    elif "status" in names:
        lines.append(f"    return here.run(status, {lambda_call});")
    else:
        lines.append(f"    return here.run({lambda_call});")
    lines += [
        "  };",
        f"  return {end}(carry_out({where}, with_staging, [=] {{ return {call}; }}{kind}));",
        "}",
        "",
    ]
    return "\n".join(lines)


def checked(name, parameters, clauses, body):
    """Returns the wrapper `body`, and in front of it the wrapper of a program that is checked (checked_call.h)."""
    names = [p.name for p in parameters]
    declared = f"MPI_{name}({', '.join(p.text for p in parameters)})"
    call = f"unchecked_{name}({', '.join(names)})"
    lines = [f"int {declared};",  # mpi.h may lack it
             body.replace(f"int {declared} {{", f"static int unchecked_{name}({', '.join(p.text for p in parameters)}) {{", 1),
             f"int {declared} {{",
             f"  if (!is_checked()) [[likely]] return {call};",
             f'  checked_call here("MPI_{name}");']
    for direction, pointer, which, condition in clauses:
        lines.append(f"  here.add({pointer}, {'false' if direction == 'in' else 'true'}, [&] {{ "
                     f"return {f'!({condition}) ? layout() : ' if condition else ''}{which}; }});")
    is_persistent = name.removesuffix("_c").endswith("_init")
    if not is_persistent:
        lines.append("  here.begin();")
    if "request" in names:
        call = f"here.{'made' if is_persistent else 'lasts'}({call}, request)"
    return "\n".join([*lines, f"  return {call};", "}", ""])


def forms_of(name, prototypes):
    """Returns which of MPI_X and MPI_X_c (for large counts) the headers declare, for a row with the name X."""
    return [form for form in (name, f"{name}_c") if form in prototypes]


def first_of(row, form):
    """Returns the function of hpe that the wrapper of a form calls first. A receive MPI_X_c has the function of MPI_X."""
    own = row.first.get(form)
    of_int = row.first.get(form.removesuffix("_c"), "")
    return own or (of_int if of_int.startswith("any_") else None)


def wrap(table, output, *headers):
    own, newer = headers, []
    if "--newer" in headers:
        at = headers.index("--newer")
        own, newer = headers[:at], headers[at + 1:]
    prototypes = {**read_prototypes(*newer), **read_prototypes(*own)}
    rows, _, _ = read_table(table)
    text = [
        "// Generated by interpose/mpi/generate.py from functions.txt and mpi.h.",
        "#include <utility>",
        "",
        '#include "interpose/mpi/checks/checked_call.h"',
        '#include "interpose/mpi/collectives/calls.h"',
        '#include "interpose/mpi/device_pack.h"',
        '#include "interpose/mpi/groups.h"',
        '#include "interpose/mpi/messages/job.h"',
        '#include "interpose/mpi/messages/point_to_point.h"',
        '#include "interpose/mpi/messages/unmatched_sends.h"',
        '#include "interpose/mpi/reduction_operation.h"',
        '#include "interpose/mpi/waiting_call.h"',
        '#include "interpose/mpi/windows/attached_ranges.h"',
        "",
        "using namespace hpe::interpose::mpi;",
        "",
        "#pragma GCC visibility push(default)",
        'extern "C" {',
        "",
    ]
    for row in rows:
        for name in row.names:
            for form in forms_of(name, prototypes):
                text.append(checked(form, prototypes[form], row.clauses,
                                    wrapper(form, prototypes[form], row.clauses, first_of(row, form))))
    text += ["}", "#pragma GCC visibility pop"]
    Path(output).write_text("\n".join(text) + "\n")


def list_functions(output, header, *libraries):
    """Writes the names of all functions that the wrapper libraries define to a file."""
    symbols = subprocess.run(["nm", "-D", "--defined-only", *libraries], check=True, capture_output=True, text=True).stdout
    names = sorted(set(re.findall(r" T MPI_(\w+)$", symbols, re.MULTILINE)))
    everywhere = read_prototypes(header)
    macros = ("HPE_MPI_FUNCTION" if name in everywhere else "HPE_MPI_NEWER_FUNCTION" for name in names)
    Path(output).write_text("".join(f"{macro}({name})\n" for macro, name in zip(macros, names)))


if __name__ == "__main__":
    {"wrap": wrap, "list": list_functions, "declare": declare}[sys.argv[1]](*sys.argv[2:])
