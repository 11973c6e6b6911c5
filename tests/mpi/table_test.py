#!/usr/bin/env python3
"""Checks that hpe wraps all MPI functions with buffer arguments: compares the headers of an MPI library with
interpose/mpi/functions.txt, with the wrappers for its ABI and with the functions of libhpe-mpi.so.

    table_test.py functions.txt libhpe-mpi.so libhpe-ABI.so mpi.h... [--newer mpi.h...]

The headers after --newer declare functions that the MPI library's own headers do not declare (generate.py).
"""

import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "interpose" / "mpi"))
sys.dont_write_bytecode = True
from generate import forms_of, read_prototypes, read_table  # noqa: E402

TABLE, LIBRARY, WRAPPERS = sys.argv[1:4]
HEADERS = sys.argv[4:]
NEWER = HEADERS[HEADERS.index("--newer") + 1:] if "--newer" in HEADERS else []
HEADERS = HEADERS[:len(HEADERS) - len(NEWER) - 1] if NEWER else HEADERS

# Functions without buffers for which hpe also needs wrappers.
COMPLETION = ("Wait Waitany Waitall Waitsome Test Testany Testall Testsome Request_free Request_get_status Start Startall "
              "Cancel Comm_set_errhandler Init Init_thread Query_thread Finalize Probe Iprobe Mprobe Improbe "
              "Win_fence Win_post Win_complete Win_wait Win_test Win_lock Win_lock_all Win_unlock Win_unlock_all Win_flush "
              "Win_flush_all Win_flush_local Win_flush_local_all Win_sync Win_free").split()


class Table(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.prototypes = {**read_prototypes(*NEWER), **read_prototypes(*HEADERS)}
        rows, cls.by_hand, cls.exempt = read_table(TABLE)
        cls.clauses = {form: row.clauses for row in rows for name in row.names for form in forms_of(name, cls.prototypes)}
        cls.by_hand, cls.exempt = ({form: reason for name, reason in table.items() for form in forms_of(name, cls.prototypes)}
                                   for table in (cls.by_hand, cls.exempt))
        cls.defined, cls.wrappers = map(cls.symbols_of, (LIBRARY, WRAPPERS))

    @staticmethod
    def symbols_of(library):
        symbols = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True)
        return {line.split()[-1] for line in symbols.stdout.splitlines()}

    def buffer_functions(self):
        return {name for name, parameters in self.prototypes.items() if any(p.may_be_buffer for p in parameters)}

    def test_the_header_was_understood(self):
        self.assertGreater(len(self.prototypes), 400)
        self.assertGreater(len(self.buffer_functions()), 130)

    def test_every_function_with_a_pointer_is_known(self):
        known = self.clauses.keys() | self.by_hand.keys() | self.exempt.keys()
        self.assertEqual(self.buffer_functions() - known, set())

    def test_nothing_else_is(self):
        if NEWER:  # both sets of headers together declare all functions of MPI
            rows, by_hand, exempt = read_table(TABLE)
            known = {name for row in rows for name in row.names} | by_hand.keys() | exempt.keys()
            self.assertEqual(known - self.prototypes.keys(), set())
        for one, other in (("clauses", "by_hand"), ("clauses", "exempt"), ("by_hand", "exempt")):
            self.assertEqual(getattr(self, one).keys() & getattr(self, other).keys(), set())

    def test_every_buffer_of_a_function_has_its_clause(self):
        for name, clauses in self.clauses.items():
            with self.subTest(name):
                buffers = {p.name for p in self.prototypes[name] if p.may_be_buffer}
                self.assertEqual({pointer for _, pointer, _, _ in clauses}, buffers)

    def test_what_is_constant_is_only_read(self):
        for name, clauses in self.clauses.items():
            for parameter in self.prototypes[name]:
                directions = {direction for direction, pointer, _, _ in clauses if pointer == parameter.name}
                if directions:
                    with self.subTest(f"{name} {parameter.name}"):
                        self.assertEqual(parameter.type.startswith("const"), directions == {"in"})

    def test_exemptions_have_reasons(self):
        for name, reason in self.exempt.items():
            self.assertGreater(len(reason), 10, name)

    def test_all_wrappers_are_there_under_both_names(self):
        for name in [*self.clauses, *self.by_hand, *COMPLETION]:
            with self.subTest(name):
                self.assertIn(f"MPI_{name}", self.wrappers)
                self.assertIn(f"MPI_{name}", self.defined)
                self.assertIn(f"PMPI_{name}", self.defined)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
