#!/usr/bin/env python3
"""Runs mpi4py under `hpe run` with the MPI libraries on PyPI: messages from ordinary memory and from hpe
memory, and a persistent collective of MPI 4, in two ranks. Also runs the tests of large messages, and a program for MPI's
standard ABI. Both need the programs that are built with MPICH's headers.

    wheels_test.py hpe test-mpi [test-mpich program-for-the-standard-abi]

pip installs the libraries into a temporary folder. If pip cannot install a library, its test is skipped and
prints the reason; the status is 77 if all tests are skipped.
"""

import os
import subprocess
import sys
import tempfile
import unittest
import venv
from pathlib import Path

HPE, SUITE, SUITE_OF_MPICH, ABI_PROGRAM = (*(str(Path(each).resolve()) for each in sys.argv[1:]), None, None)[:4]
SKIPPED = 77

PROGRAM = """
import ctypes
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, other = comm.rank, 1 - comm.rank
hpe = ctypes.CDLL("libhpe.so.0")  # returns the library that the program has already loaded

def exchange(mine, got):
    for i in range(0, len(mine), 997):
        mine[i] = (i + rank) % 251
    requests = [comm.Irecv([got, MPI.BYTE], source=MPI.ANY_SOURCE, tag=5), comm.Isend([mine, MPI.BYTE], dest=other, tag=5)]
    status = [MPI.Status(), MPI.Status()]
    MPI.Request.Waitall(requests, status)
    assert status[0].Get_count(MPI.BYTE) == len(got) and status[0].source == other
    assert all(got[i] == (i + other) % 251 for i in range(0, len(got), 997))

def of_hpe(size):
    place = ctypes.c_void_p()
    assert hpe.hpeMalloc(ctypes.byref(place), ctypes.c_size_t(size)) == 0
    return (ctypes.c_ubyte * size).from_address(place.value)

def persistent(mine, got):
    half = len(mine) // 2
    try:
        request = comm.Alltoall_init([mine, MPI.BYTE], [got, MPI.BYTE])
    except NotImplementedError:  # the library implements only MPI 3
        return
    for start in (10, 30):
        mine[0], mine[half] = start + rank, start + 10 + rank
        request.Start()
        request.Wait()
        assert (got[0], got[half]) == (start + 10 * rank, start + 10 * rank + 1)
    request.Free()

persistent(of_hpe(100000), of_hpe(100000))
for size in (1000, 3000000):
    exchange(bytearray(size), bytearray(size))
    exchange(of_hpe(size), of_hpe(size))
assert comm.allreduce(rank + 1) == 3
comm.Barrier()
print("rank", rank, "all right:", MPI.Get_library_version().splitlines()[0])
"""


class Wheels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_on(self, wheel, mpiexec):
        place = Path(self.folder.name) / wheel
        try:
            venv.create(place, with_pip=True)
        except subprocess.CalledProcessError as e:
            self.skipTest(f"there is no pip for environments of Python (python3-venv): {e}")
        pip = [place / "bin/python", "-m", "pip", "-q", "--disable-pip-version-check"]
        if (got := subprocess.run([*pip, "install", wheel, "mpi4py"], capture_output=True, text=True, timeout=300)).returncode != 0:
            self.skipTest(f"pip cannot get {wheel}: {got.stderr}")
        program = place / "program.py"
        program.write_text(PROGRAM)
        environment = {**os.environ, "PATH": f"{place}/bin:{os.environ['PATH']}", "HPE_SOFT_MEMORY": "256M",
                       "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        result = subprocess.run([place / "bin" / mpiexec[0], *mpiexec[1:], "-n", "2", HPE, "run", "--devices", "soft:1", "--",
                                 place / "bin/python", program], capture_output=True, text=True, timeout=120, env=environment)
        output = result.stdout + result.stderr
        self.assertEqual(result.returncode, 0, output)
        self.assertEqual(output.count("all right"), 2, output)
        self.assertNotIn("is none of the MPI libraries that hpe knows", output)
        return place, environment

    # A suite was linked with another release of its library, which has the same binary interface. A test is skipped if the
    # library has no direct copies.
    def large_messages(self, place, environment, mpiexec, suite):
        environment = environment | {"HPE_DEVICES": "soft:1", "HPE_SOFT_THREADS": "1"}
        result = subprocess.run([place / "bin" / mpiexec[0], *mpiexec[1:], "-n", "2", suite, "--gtest_filter=large_messages.*"],
                                capture_output=True, text=True, timeout=120, env=environment)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertNotIn("SKIPPED", result.stdout)

    def large_messages_of_mpich(self, place, environment):
        if SUITE_OF_MPICH is None:
            return
        (place / "debian").mkdir()
        (place / "debian/libmpich.so.12").symlink_to(place / "lib/libmpi.so.12")  # the name in Debian
        search = f"{place}/debian:{place}/lib:{place}/lib/mpich"
        self.large_messages(place, environment | {"LD_LIBRARY_PATH": search}, ["mpiexec"], SUITE_OF_MPICH)

    def standard_abi(self, place, environment):
        if ABI_PROGRAM is None:
            return
        environment = environment | {"LD_LIBRARY_PATH": f"{place}/lib:{place}/lib/mpich"}
        result = subprocess.run([place / "bin/mpiexec", "-n", "2", HPE, "run", "--devices", "soft:1", "--", ABI_PROGRAM, "device"],
                                capture_output=True, text=True, timeout=120, env=environment)
        output = result.stdout + result.stderr
        self.assertEqual(result.returncode, 0, output)
        self.assertIn("other library: all right", output)
        self.assertNotIn("knows", output)
        self.assertNotIn("touches of device memory", output)

    def test_open_mpi_5(self):
        place, environment = self.run_on("openmpi", ["mpiexec", "--oversubscribe"])
        self.large_messages(place, environment | {"LD_LIBRARY_PATH": str(place / "lib")},
                            ["mpiexec", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"], SUITE)

    def test_mpich(self):
        place, environment = self.run_on("mpich", ["mpiexec"])
        self.large_messages_of_mpich(place, environment)
        self.standard_abi(place, environment)

    def test_intel(self):
        place, environment = self.run_on("impi-rt", ["mpiexec"])
        self.large_messages_of_mpich(place, environment)
        self.standard_abi(place, environment)


if __name__ == "__main__":
    done = unittest.main(argv=sys.argv[:1], exit=False).result
    sys.exit(SKIPPED if len(done.skipped) == done.testsRun else not done.wasSuccessful())
