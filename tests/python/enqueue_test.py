#!/usr/bin/env python3
"""hpeEnqueue with functions in Python, whose threads share one lock. Runs with a CUDA driver: that of soft devices, and a stand-in for
the driver of GPUs."""

import ctypes
import faulthandler
import os
import subprocess
import sys
import threading
import time
import unittest
from ctypes import CFUNCTYPE, POINTER, byref, c_int, c_size_t, c_uint, c_void_p
from pathlib import Path

import numpy

import hpe
from hpe import library

COUNT = 1 << 18


class Access(ctypes.Structure):
    _fields_ = [("address", c_void_p), ("size", c_size_t), ("mode", c_int)]


Function = CFUNCTYPE(c_int, c_void_p, c_void_p)
enqueue = library.load().hpeEnqueue
enqueue.argtypes = [c_int, Function, c_void_p, POINTER(Access), c_size_t]
driver = ctypes.CDLL("libcuda.so.1")


def fill(array, value, stream):
    return driver.cuMemsetD32Async(c_void_p(array.ctypes.data), c_uint(value), c_size_t(array.size), c_void_p(stream))


class Enqueue(unittest.TestCase):
    def setUp(self):
        self.array = hpe.zeros(COUNT, "uint32")
        faulthandler.dump_traceback_later(60, exit=True)  # after a deadlock, no code of Python runs

    def tearDown(self):
        faulthandler.cancel_dump_traceback_later()

    def enqueue(self, function, *, device=0):
        """Calls function(stream) by hpeEnqueue. Returns hpe's status."""
        call = Function(lambda stream, _: function(stream))
        return enqueue(device, call, None, byref(Access(self.array.ctypes.data, self.array.nbytes, library.INOUT)), 1)

    def test_work_runs_in_the_order_of_calls(self):
        for value in range(1, 20):
            self.assertEqual(self.enqueue(lambda stream: fill(self.array, value, stream)), 0)
            self.assertEqual((int(self.array[0]), int(self.array[-1])), (value, value))
            self.array[5] = 0
            self.assertEqual(self.enqueue(lambda stream: fill(self.array[COUNT // 2:], value + 1, stream)), 0)
            hpe.wait(self.array)
            self.assertEqual((self.array[4:7].tolist(), int(self.array[-1])), ([value, 0, value], value + 1))

    def test_other_threads_may_access_the_bytes(self):
        ends = time.monotonic() + 1
        calls = 0

        def queue():
            nonlocal calls
            while time.monotonic() < ends:
                self.assertEqual(self.enqueue(lambda stream: fill(self.array[1:], 7, stream)), 0)
                calls += 1

        thread = threading.Thread(target=queue)
        thread.start()
        written = 0
        while thread.is_alive():
            self.array[0] += 1  # this thread has Python's lock, and so waits for no function
            written += 1
        thread.join()
        self.assertGreater(calls, 0)
        self.assertEqual((int(self.array[0]), int(self.array[1:].min()), int(self.array.max(initial=7, where=self.array < 8))), (written, 7, 7))

    def test_functions_may_access_the_bytes_and_call_hpe(self):
        def function(stream):
            self.array[:] = numpy.arange(COUNT)
            hpe.zeros(10)
            return fill(self.array[:2], 9, stream)

        self.assertEqual(self.enqueue(function), 0)
        self.assertEqual(self.array[:4].tolist(), [9, 9, 2, 3])

    @unittest.skipIf("HPE_CUDA_DRIVER" in os.environ, "only with soft devices")
    def test_calls_that_wait_for_work_wait_for_the_whole_of_it(self):
        free, synchronize, synchronize_device, wait = (
            getattr(library.load(), name) for name in ("hpeFree", "hpeSynchronize", "hpeSynchronizeDevice", "hpeWait"))
        waits = {"hpeFree": free, "hpeSynchronize": lambda _: synchronize(), "hpeSynchronizeDevice": lambda _: synchronize_device(0),
                 "hpeWait": lambda pointer: wait(pointer, c_size_t(0))}
        # The memory is on the device that does not run the work, or on the host.
        for place, device in (("hpeMallocOn", [1]), ("hpeMallocHost", [])):
            for name, call in waits.items():
                if (place, name) == ("hpeMallocHost", "hpeWait"):
                    continue  # CPU code does not wait for announced work on host memory
                with self.subTest(place=place, call=name):
                    pointer = c_void_p()
                    self.assertEqual(getattr(library.load(), place)(byref(pointer), c_size_t(4096), *device), 0)
                    finished = []
                    slow = CFUNCTYPE(None, c_void_p)(lambda _: (time.sleep(0.1), finished.append(True)))
                    queue = Function(lambda stream, _: driver.cuLaunchHostFunc(c_void_p(stream), slow, None))
                    self.assertEqual(enqueue(0, queue, None, byref(Access(pointer, 4096, library.INOUT)), 1), 0)
                    self.assertEqual(call(pointer), 0)
                    had_finished = bool(finished)
                    time.sleep(0 if had_finished else 0.2)  # `slow` must outlive the work
                    self.assertTrue(had_finished)
                    if name != "hpeFree":
                        self.assertEqual(free(pointer), 0)

    def test_errors(self):
        self.array[:] = 3
        for function, words in ((lambda stream: fill(self.array, 4, stream) or 77, "returned 77"),
                                (lambda stream: fill(self.array, 4, stream) or driver.cuStreamSynchronize(c_void_p(stream)) * 0, "CUDA cannot capture")):
            status = self.enqueue(function)
            error = library.error_of(status, library._library.hpeGetLastErrorMessage().decode())
            self.assertEqual(error.status, "HPE_ERROR_LAUNCH_FAILED")
            self.assertIn(words, str(error))
            self.assertEqual((int(self.array.min()), int(self.array.max())), (3, 3))
        self.assertEqual(self.enqueue(lambda stream: fill(self.array, 4, stream)), 0)
        self.assertEqual(int(self.array[9]), 4)

    @unittest.skipIf("HPE_CUDA_DRIVER" not in os.environ, "not with soft devices")
    def test_the_first_use_of_another_device_of_a_spread_program_has_a_stream(self):
        program = """if True:
            import enqueue_test
            streams = []
            function = enqueue_test.Function(lambda stream, _: streams.append(stream) or 0)
            print(enqueue_test.enqueue(1, function, None, None, 0), streams[0] is not None)
        """
        told = subprocess.run([sys.executable, "-c", program], env={**os.environ, "HPE_SPREAD": "1"}, cwd=Path(__file__).parent,
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(told.stdout, "0 True\n", told.stderr)

    @unittest.skipIf("HPE_CUDA_DRIVER" in os.environ, "only with soft devices")
    def test_works_after_a_reset_of_the_device(self):
        for value in (4, 5):
            self.assertEqual(self.enqueue(lambda stream: fill(self.array, value, stream), device=1), 0)
            self.assertEqual(int(self.array[9]), value)
            self.assertEqual(driver.cuDevicePrimaryCtxReset_v2(1), 0)

    @unittest.skipIf("HPE_CUDA_DRIVER" in os.environ, "only with soft devices")
    def test_errors_of_the_driver_are_not_blamed_on_the_function(self):
        program = """if True:
            import enqueue_test
            function = enqueue_test.Function(lambda stream, _: print("called"))
            enqueue_test.enqueue(1, function, None, None, 0)
            print(enqueue_test.library._library.hpeGetLastErrorMessage().decode())
        """
        told = subprocess.run([sys.executable, "-c", program], env={**os.environ, "HPE_SPREAD": "1"}, cwd=Path(__file__).parent,
                              capture_output=True, text=True, timeout=60)
        self.assertIn("the CUDA driver of device 1 cannot record work: CUDA_ERROR_INVALID_DEVICE", told.stdout, told.stderr)
        self.assertNotIn("called", told.stdout)


if __name__ == "__main__":
    unittest.main()
