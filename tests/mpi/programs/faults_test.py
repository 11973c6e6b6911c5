#!/usr/bin/env python3
"""Tests jobs in which a rank fails: the result must be the same with hpe memory as with host memory, and no process may remain.

    faults_test.py faults plain libhpe-mpi.so mpirun [arguments of mpirun ...]
"""

import os
import re
import subprocess
import sys
import threading
import time
import unittest
import uuid
from pathlib import Path

PROGRAM, PLAIN, LIBRARY, *MPIRUN = sys.argv[1:]


def processes_with(token):
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                if token in (process / "environ").read_bytes():
                    found.append(int(process.name))
            except OSError:
                pass
    return found


class Faults(unittest.TestCase):
    # The options for the three ways in which hpe sends messages from device memory.
    CHUNKS = {"HPE_MPI_LARGE": "2k", "HPE_MPI_CHUNK": "64k", "HPE_MPI_DIRECT": "0"}
    DIRECTLY = {"HPE_MPI_DIRECT": "2k"}
    WHOLE = {"HPE_MPI_PIPELINE": "off"}

    def run_job(self, what, memory, options=WHOLE):
        token = uuid.uuid4().hex
        job = subprocess.run([*MPIRUN, "-x", "HPE_TEST_TOKEN", *(word for o in options for word in ("-x", o)), "-n", "2", PROGRAM, what, memory], capture_output=True,
                             text=True, timeout=120, env={**os.environ, "HPE_TEST_TOKEN": token, **options})
        deadline = time.monotonic() + 10
        while processes_with(token.encode()) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(processes_with(token.encode()), [], "processes of the job are left")
        return job.returncode, job.stdout + job.stderr

    def same_as_on_host(self, what, sentence):
        host = self.failure_that_tells(what, "host", sentence, self.WHOLE)
        for options in (self.WHOLE, self.CHUNKS, self.DIRECTLY):
            with self.subTest(options):
                self.assertEqual(self.failure_that_tells(what, "device", sentence, options), host)

    def failure_that_tells(self, what, memory, sentence, options=WHOLE):
        """Returns the exit status of a job that must fail and print `sentence`. When mpirun ends its ranks, it may lose output,
        so this runs the job up to 8 times."""
        for _ in range(8):
            code, output = self.run_job(what, memory, options)
            self.assertNotEqual(code, 0)
            self.assertNotIn("went on", output)
            if sentence in output:
                return code
        self.fail(f"'{sentence}' is nowhere in: {output}")

    def test_a_rank_is_killed_in_the_middle(self):
        self.same_as_on_host("killed", "signal 9")

    def test_a_message_is_too_long(self):
        self.same_as_on_host("truncated", "MPI_ERR_TRUNCATE")

    def test_a_rank_is_killed_while_it_sends(self):
        self.same_as_on_host("killed-sending", "signal 9")

    def test_an_error_of_hpe_is_told_by_the_fatal_handler(self):
        for options in (self.WHOLE, self.CHUNKS, self.DIRECTLY):
            with self.subTest(options):
                self.failure_that_tells("past-the-end", "device", "1 bytes past the end of the allocation", options)

    def test_a_device_is_lost(self):
        for options in (self.WHOLE, self.CHUNKS, self.DIRECTLY):
            with self.subTest(options):
                code, output = self.run_job("lost-device", "device", options)
                self.assertEqual(code, 0, output)
                self.assertEqual(output.count("went on"), 2, output)
                self.assertIn("hpe: device 0", output)

    def test_a_rank_that_waits_long_says_for_what(self):
        for memory in ("host", "device"):
            code, output = self.run_job("late", memory, {"HPE_STALL_AFTER": "1"})
            self.assertEqual(code, 0, output)
            # On a busy machine, a rank may also wait in MPI_Init or MPI_Finalize for more than a second.
            told = [line for line in output.splitlines() if re.search("waits since.* MPI_(Recv|Barrier)", line)]
            self.assertEqual(len(told), 2, output)
            self.assertIn("MPI_Recv(any source, tag 7) waits for other ranks", told[0])
            self.assertIn("MPI_Barrier waits for other ranks", told[1])
            for line in told:
                self.assertRegex(line, r"for more than 1 s, at \S*faults\.cpp:\d+: ")

    def test_a_rank_without_the_library_is_told(self):
        """One rank has no libhpe-mpi.so and does not vote, so the job hangs; a report names the reason."""
        with subprocess.Popen([*MPIRUN, "-x", "HPE_STALL_AFTER=1", "-n", "1", "-x", f"LD_PRELOAD={LIBRARY}", PLAIN, ":",
                               *MPIRUN[1:], "-n", "1", PLAIN], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as job:
            end = threading.Timer(60, job.terminate)
            end.start()
            told = next((line for line in job.stdout if "waits since" in line), None)
            end.cancel()
            job.terminate()
        self.assertIsNotNone(told)
        self.assertIn("the vote in MPI_Init, which needs libhpe-mpi.so and the same HPE_MPI_PIPELINE in all ranks, waits for other ranks", told)

    def test_a_rank_with_a_wrong_option_votes_too(self):
        """If one rank has an invalid option, no rank uses the protocol, and all ranks continue."""
        of_rank = "case $OMPI_COMM_WORLD_RANK in 0) export HPE_MPI_PIPELINE=fast;; esac; exec \"$0\" \"$@\""
        job = subprocess.run([*MPIRUN, "-n", "2", "sh", "-c", of_rank, PROGRAM, "nothing", "host"], capture_output=True, text=True,
                             timeout=120)
        self.assertEqual(job.returncode, 0, job.stdout + job.stderr)
        self.assertEqual(job.stdout.count("went on"), 2, job.stdout)
        self.assertIn('HPE_MPI_PIPELINE="fast" is none of on, off, 1 and 0', job.stderr)

    def test_a_rank_without_shared_memory(self):
        """One rank cannot write to /dev/shm, so no rank uses the board of offers."""
        without = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o ro none /dev/shm && exec "$0" "$@"']
        if subprocess.run([*without, "true"], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("only root may hide /dev/shm")
        of_rank = 'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then exec "$@"; fi; shift 5; exec "$@"'
        job = subprocess.run([*MPIRUN, "--mca", "btl", "self,tcp", "-x", "HPE_LOG=info", "-n", "2", "sh", "-c", of_rank, "sh", *without,
                              PROGRAM, "nothing", "host"], capture_output=True, text=True, timeout=120)
        self.assertEqual(job.returncode, 0, job.stdout + job.stderr)
        self.assertEqual(job.stderr.count("ranks cannot share memory"), 2, job.stderr)

    def test_a_program_without_mpi_does_not_mind_the_library(self):
        subprocess.run(["/bin/true"], check=True, env={**os.environ, "LD_PRELOAD": LIBRARY})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
