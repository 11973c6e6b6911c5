#!/usr/bin/env python3
"""NumPy views of memory that a program has allocated through the CUDA driver of GPUs. Runs under `hpe run`, with a stand-in for the
driver. As with a GPU, the stand-in's device memory can be read only by copies."""

import ctypes
import unittest
from ctypes import byref, c_size_t, c_uint, c_void_p

import numpy

import hpe

COUNT = 100_000


class Tensor:
    """An array of another library."""

    def __init__(self, address, count=COUNT):
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "<u4", "data": (address, False), "version": 3}


class Views(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.driver = ctypes.CDLL("libcuda.so.1")
        cls.call("cuInit", 0)
        context = c_void_p()
        cls.call("cuDevicePrimaryCtxRetain", byref(context), 0)
        cls.call("cuCtxSetCurrent", context)

    @classmethod
    def call(cls, name, *arguments):
        status = getattr(cls.driver, name)(*arguments)
        assert status == 0, (name, status)

    def allocate(self):
        address = c_void_p()
        self.call("cuMemAlloc_v2", byref(address), c_size_t(4 * COUNT))
        return address.value

    def test_share_the_memory(self):
        address = self.allocate()
        a = hpe.view(Tensor(address))
        self.assertEqual((type(a), a.ctypes.data, a.dtype), (numpy.ndarray, address, numpy.dtype("uint32")))
        for value in (3, 4):
            self.call("cuMemsetD32Async", c_void_p(address), c_uint(value), c_size_t(COUNT), None)
            self.assertEqual((int(a.min()), int(a.max())), (value, value))
        a += 1
        copied = numpy.empty_like(a)
        self.call("cuMemcpyDtoH_v2", c_void_p(copied.ctypes.data), c_void_p(address), c_size_t(copied.nbytes))
        self.assertEqual((int(copied.min()), int(copied.max())), (5, 5))
        self.call("cuMemFree_v2", c_void_p(address))
        with self.assertRaisesRegex(ValueError, "start the program by `hpe run"):
            hpe.view(Tensor(address))

    def test_share_pinned_and_registered_memory(self):
        pinned, registered = c_void_p(), numpy.zeros(COUNT, "uint32")
        self.call("cuMemHostAlloc", byref(pinned), c_size_t(4 * COUNT), c_uint(0))
        self.call("cuMemHostRegister_v2", c_void_p(registered.ctypes.data), c_size_t(4 * COUNT), c_uint(0))
        device = self.allocate()
        for address in (pinned.value, registered.ctypes.data):
            for value in (3, 4):
                self.call("cuMemsetD32Async", c_void_p(device), c_uint(value), c_size_t(COUNT), None)
                self.call("cuMemcpyDtoHAsync_v2", c_void_p(address), c_void_p(device), c_size_t(4 * COUNT), None)
                a = hpe.view(Tensor(address))
                self.assertEqual((a.ctypes.data, int(a.min()), int(a.max())), (address, value, value))
            with self.assertRaisesRegex(ValueError, "inside one allocation"):
                hpe.view(Tensor(address, COUNT + (1 << 20)))

    def test_refuse_other_memory(self):
        address = self.allocate()
        last = hpe.view(Tensor(address + 4 * (COUNT - 1), 1))
        self.assertEqual(last.size, 1)
        ordinary = numpy.zeros(COUNT, "uint32")
        for at, count in ((address, COUNT + 1), (address - 4, COUNT), (ordinary.ctypes.data, COUNT)):
            with self.assertRaisesRegex(ValueError, "inside one allocation"):
                hpe.view(Tensor(at, count))
        with self.assertRaisesRegex(ValueError, "lies in ordinary memory"):
            hpe.device_view(last)


if __name__ == "__main__":
    unittest.main()
