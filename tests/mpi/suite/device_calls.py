#!/usr/bin/env python3
"""Checks that the tests call every function of interpose/mpi/functions.txt successfully with device memory in each of its
buffer arguments.

    device_calls.py define functions.txt calls.cpp mpi.h...      writes the definitions that record calls (device_calls.h)
    device_calls.py compare functions.txt FOLDER RANKS,... mpi.h...
        reads the files FOLDER/<run>.<ranks>.<rank> that the processes have written; fails if, for one of the numbers of
        ranks, a function is missing
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "interpose" / "mpi"))
sys.dont_write_bytecode = True
from generate import forms_of, read_prototypes, read_table  # noqa: E402

# Functions that have no memory argument, but return an address in device memory.
GIVE_BACK = {"Buffer_detach", "Win_get_attr"}
# Functions that do not accept device memory (docs/mpi.md).
REFUSE = {"Win_attach", "Psend_init", "Precv_init"}


def functions(table, headers):
    """Returns {name: [Parameter]} for the functions for which the table has wrappers."""
    rows, by_hand, _ = read_table(table)
    prototypes = read_prototypes(*headers)
    names = [*(n for row in rows for n in row.names), *by_hand]
    return {form: prototypes[form] for name in names for form in forms_of(name, prototypes)}


def buffers(parameters):
    return [p.name for p in parameters if p.may_be_buffer]


def definition(name, parameters):
    how = "given_back" if name in GIVE_BACK else "given"
    expected = "!=" if name in REFUSE else "=="
    return "\n".join([
        f"int MPI_{name}({', '.join(p.text for p in parameters)}) {{",
        f'  static auto* const next = reinterpret_cast<decltype(&::MPI_{name})>(device_calls::behind("MPI_{name}"));',
        f'  const device_calls::call here("{name}");',
        f"  const int result = next({', '.join(p.name for p in parameters)});",
        f"  if (result {expected} MPI_SUCCESS) {{",
        *[f'    here.{how}("{b}", {b});' for b in buffers(parameters)],
        "  }",
        "  return result;",
        "}",
        "",
    ])


def define(table, output, *headers):
    text = ["// Made by tests/mpi/device_calls.py.", "#include <mpi.h>", "",
            '#include "tests/mpi/suite/device_calls.h"', "", 'extern "C" {', ""]
    text += [definition(name, parameters) for name, parameters in functions(table, headers).items()]
    Path(output).write_text("\n".join(text + ["}"]) + "\n")


def compare(table, folder, numbers_of_ranks, *headers):
    wanted = {f"{name} {b}" for name, parameters in functions(table, headers).items() for b in buffers(parameters)}
    failed = False
    for ranks in numbers_of_ranks.split(","):
        files = list(Path(folder).glob(f"*.{ranks}.*"))
        seen = {line for f in files for line in f.read_text().splitlines()}
        print(f"{ranks} ranks: {len(wanted & seen)} of {len(wanted)} buffers of MPI's functions were device memory")
        for line in sorted(wanted - seen):
            name, argument = line.split()
            print(f"  no test calls MPI_{name} with device memory as {argument}")
            failed = True
    sys.exit(failed)


if __name__ == "__main__":
    {"define": define, "compare": compare}[sys.argv[1]](*sys.argv[2:])
