#!/usr/bin/env python3
"""Exchange of arrays with other libraries. Runs under `hpe run --cuda soft`: the other library is this program's own use of the
CUDA driver. The Numba package does the same in tests/interpose/soft/libcuda/numba_examples.py."""

import ctypes
import gc
import subprocess
import sys
import threading
import time
import unittest
import weakref
from ctypes import byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint, c_void_p, py_object, pythonapi
from pathlib import Path

import numpy

import hpe

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry increment(.param .u64 data, .param .u32 count, .param .u64 rounds) {
  .reg .pred %p<3>;
  .reg .b32 %r<6>;
  .reg .b64 %a<6>;
  ld.param.u64 %a0, [data];
  ld.param.u32 %r0, [count];
  ld.param.u64 %a2, [rounds];
  mov.u64 %a3, 1;
NEXT:
  shl.b64 %a4, %a3, 7;
  xor.b64 %a3, %a3, %a4;
  shr.u64 %a4, %a3, 9;
  xor.b64 %a3, %a3, %a4;
  sub.u64 %a2, %a2, 1;
  setp.ne.u64 %p1, %a2, 0;
  @%p1 bra NEXT;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  setp.ge.u32 %p0, %r4, %r0;
  @%p0 bra END;
  mul.wide.u32 %a1, %r4, 4;
  add.s64 %a1, %a0, %a1;
  ld.global.u32 %r5, [%a1];
  setp.eq.u64 %p2, %a3, 0;
  selp.u32 %r4, 2, 1, %p2;
  add.u32 %r5, %r5, %r4;
  st.global.u32 [%a1], %r5;
END:
  ret;
}
.visible .entry stop() { trap; }
"""

SLOW = 1 << 17  # rounds of a kernel that can be overtaken


class Cuda:
    """Kernels on streams, as another library makes them."""

    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        self.contexts, self.streams, self.kernels = [], [], []
        for device in range(2):
            context, stream, module, kernel = c_void_p(), c_void_p(), c_void_p(), c_void_p()
            self.call("cuDevicePrimaryCtxRetain", byref(context), device)
            self.call("cuCtxSetCurrent", context)
            self.call("cuStreamCreate", byref(stream), 1)  # one that does not wait for the default stream
            self.call("cuModuleLoadData", byref(module), PTX)
            self.call("cuModuleGetFunction", byref(kernel), module, b"increment")
            self.contexts.append(context)
            self.streams.append(stream)
            self.kernels.append(kernel)

    def call(self, name, *arguments):
        status = getattr(self.driver, name)(*arguments)
        assert status == 0, (name, status)

    def increment(self, address, count, device=0, rounds=1):
        self.call("cuCtxSetCurrent", self.contexts[device])
        values = c_void_p(address), c_uint(count), ctypes.c_uint64(rounds)
        pointers = (c_void_p * 3)(*(ctypes.addressof(value) for value in values))
        self.call("cuLaunchKernel", self.kernels[device], (count + 255) // 256, 1, 1, 256, 1, 1, 0, self.streams[device], pointers, None)

    def fail(self):
        """Queues a kernel that fails on the first device; then the driver fails, too."""
        module, kernel = c_void_p(), c_void_p()
        self.call("cuCtxSetCurrent", self.contexts[0])
        self.call("cuModuleLoadData", byref(module), PTX)
        self.call("cuModuleGetFunction", byref(kernel), module, b"stop")
        self.call("cuLaunchKernel", kernel, 1, 1, 1, 1, 1, 1, 0, self.streams[0], None, None)

    def allocate(self, size):
        address = c_void_p()
        self.call("cuCtxSetCurrent", self.contexts[0])
        self.call("cuMemAlloc_v2", byref(address), size)
        return address.value


cuda = Cuda()


class Other:
    """An array of another library."""

    def __init__(self, array_or_address, dtype="uint32", shape=None, read_only=False, **more):
        self.__cuda_array_interface__ = {"shape": shape, "typestr": numpy.dtype(dtype).str, "data": (array_or_address, read_only),
                                         "version": 3, **more}


def data_of(view):
    return view.__cuda_array_interface__["data"][0]


class Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device", c_int32 * 2), ("ndim", c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(c_int64)), ("strides", ctypes.POINTER(c_int64)),
                ("offset", ctypes.c_uint64), ("context", c_void_p), ("deleter", ctypes.CFUNCTYPE(None, c_void_p))]


get_pointer = ctypes.PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", pythonapi))
set_name = ctypes.PYFUNCTYPE(c_int, py_object, c_char_p)(("PyCapsule_SetName", pythonapi))
USED = b"used_dltensor"


def consume(capsule):
    tensor = Tensor.from_address(get_pointer(capsule, b"dltensor"))
    set_name(capsule, USED)
    return tensor


def kind_of_memory(address):
    return hpe.info(numpy.ctypeslib.as_array((ctypes.c_uint8 * 1).from_address(address))).kind


def becomes_free(address):
    """Whether the memory of an array that was deleted is free soon."""
    gc.collect()
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            if kind_of_memory(address) == "ordinary":
                return True
        except hpe.Error as e:  # the thread that frees arrays frees the memory during the question
            if "was freed by another thread just now" not in str(e):
                raise
        time.sleep(0.001)
    return False


class DeviceViews(unittest.TestCase):
    def test_other_libraries_and_python_code_see_the_same_values(self):
        for device in range(2):
            for count in (1, 1000, 1 << 20):
                a = hpe.zeros(count, "uint32", device=device)
                for n in range(3):
                    a[:] = numpy.arange(count)
                    with hpe.device_view(a) as view:
                        self.assertEqual(view.__dlpack_device__(), (2, device))
                        self.assertEqual((view.shape, view.dtype, view.device), (a.shape, a.dtype, device))
                        for _ in range(4):
                            cuda.increment(data_of(view), count, device)
                    numpy.testing.assert_array_equal(a, numpy.arange(count) + 4)

    def test_a_block_begins_after_hpes_work_and_ends_after_the_streams(self):
        add = hpe.Kernel(PTX, "increment")
        a = hpe.zeros(1000, "uint32")
        for n in range(20):
            add(4, 256, (a, 1000, SLOW // 8))
            with hpe.device_view(a) as view:
                cuda.increment(data_of(view), 1000, rounds=SLOW // 8)
            self.assertEqual((int(a[0]), int(a[-1])), (2 * n + 2, 2 * n + 2))

    def test_a_block_with_a_stream_does_not_wait(self):
        a = hpe.zeros(1000, "uint32")

        class Stream:
            def __cuda_stream__(self):
                return 0, cuda.streams[0].value

        for stream in (cuda.streams[0].value, Stream()):
            a[:] = 1
            began = time.monotonic()
            with hpe.device_view(a, stream=stream) as view:
                cuda.increment(data_of(view), 1000, rounds=16 * SLOW)  # much longer than a pause of this thread
            left = time.monotonic()
            self.assertEqual(a[999], 2)  # waits for the stream
            self.assertLess(left - began, (time.monotonic() - began) / 2)
        address = a.ctypes.data
        with hpe.device_view(a, stream=stream) as view:
            cuda.increment(data_of(view), 1000, rounds=SLOW)
        del a, view  # while the kernel runs
        self.assertTrue(becomes_free(address))
        cuda.call("cuStreamSynchronize", cuda.streams[0])

    def test_other_threads_wait_for_the_end_of_a_block(self):
        a = hpe.zeros(1000, "uint32")
        seen = []
        with hpe.device_view(a) as view:
            readers = [threading.Thread(target=lambda: (hpe.wait(a), seen.append(int(a[5])))) for _ in range(2)]
            for reader in readers:
                reader.start()
            time.sleep(0.02)
            cuda.increment(data_of(view), 1000, rounds=SLOW // 4)
            self.assertEqual(seen, [])
        for reader in readers:
            reader.join()
        self.assertEqual(seen, [1, 1])

    def test_other_arrays_stay_usable_if_a_small_one_is_alone(self):
        arrays = [hpe.zeros(8, "uint32", alone=n == 1) for n in range(3)]
        with hpe.device_view(arrays[1]) as view:
            cuda.increment(data_of(view), 8)
            for n in (0, 2):  # this thread would wait for itself if the arrays shared a block
                arrays[n] += 1
            self.assertEqual(int(hpe.full(8, 7, "uint32").sum()), 56)
        self.assertEqual([a.tolist() for a in arrays], 3 * [8 * [1]])

    def test_exceptions_end_a_block(self):
        a = hpe.zeros(1000, "uint32")
        with self.assertRaises(KeyError):
            with hpe.device_view(a) as view:
                cuda.increment(data_of(view), 1000, rounds=SLOW // 4)
                raise KeyError
        self.assertEqual(a[7], 1)
        with self.assertRaisesRegex(RuntimeError, "inside its block"):
            view.__cuda_array_interface__
        with self.assertRaisesRegex(RuntimeError, "inside its block"):
            view.__dlpack__()
        with view:  # once more
            with self.assertRaisesRegex(RuntimeError, "is in use"):
                view.__enter__()
        with self.assertRaisesRegex(RuntimeError, "cuStreamAddCallback"):
            with hpe.device_view(a, stream=0xbad0):
                pass
        self.assertEqual(a[7], 1)

    def test_describe_views_and_read_only_arrays(self):
        a = hpe.array(numpy.arange(24, dtype="float32").reshape(4, 6))
        for part in (a, a.T, a[::2, 1:4], a[::-1, ::-1], a[1:1], a[3], hpe.zeros((), "float32")):
            with hpe.device_view(part) as view:
                interface = view.__cuda_array_interface__
                self.assertEqual((interface["shape"], interface["typestr"], interface["version"], interface["stream"]),
                                 (part.shape, "<f4", 3, None))
                self.assertEqual(interface["strides"], None if part.flags.c_contiguous else part.strides)
                self.assertEqual(interface["data"], (part.ctypes.data if part.size else 0, False))
                back = hpe.view(view)
                self.assertEqual((back.shape, back.dtype), (part.shape, part.dtype))
                if part.size:
                    self.assertEqual((back.ctypes.data, back.strides), (part.ctypes.data, part.strides))
        a.flags.writeable = False
        with hpe.device_view(a) as view:
            self.assertEqual(view.__cuda_array_interface__["data"], (a.ctypes.data, True))
            self.assertEqual(a[1, 1], 7)  # reads do not wait for readers
            self.assertFalse(hpe.view(view).flags.writeable)

    def test_dlpack(self):
        a = hpe.array(numpy.arange(24, dtype="int16").reshape(4, 6), device=1)
        with hpe.device_view(a[:, ::-2]) as view:
            for stream in (None, -1, 1, 2, cuda.streams[1].value):
                tensor = consume(view.__dlpack__(stream=stream, dl_device=(2, 1)))
                self.assertEqual((tensor.data + tensor.offset, tuple(tensor.device), tensor.code, tensor.bits, tensor.lanes),
                                 (a[:, 5:].ctypes.data, (2, 1), 0, 16, 1))
                self.assertEqual((tensor.shape[:2], tensor.strides[:2]), ([4, 3], [6, -2]))
                tensor.deleter(ctypes.addressof(tensor))
            for wrong, options in ((ValueError, {"stream": 0}), (ValueError, {"stream": -2}), (ValueError, {"stream": "1"}),
                                   (BufferError, {"copy": True}), (BufferError, {"dl_device": (1, 0)})):
                with self.subTest(options), self.assertRaises(wrong):
                    view.__dlpack__(**options)
            view.__dlpack__(max_version=(1, 0), copy=False)
        for dtype in (">f4", "M8[s]", "S3", [("x", "f4")]):
            with self.subTest(dtype), hpe.device_view(hpe.zeros(3, dtype)) as view, self.assertRaises(BufferError):
                view.__dlpack__()

    def test_capsules_keep_the_memory_and_do_not_leak(self):
        a = hpe.zeros(1 << 17, "uint32")
        with hpe.device_view(a) as view:
            tensor = consume(view.__dlpack__())
            for _ in range(100_000):
                view.__dlpack__()  # nobody consumes these capsules
            try:
                [view.__dlpack__(), 1 / 0]  # a capsule ends while an exception is on its way
            except ZeroDivisionError:
                pass
        del a, view
        gc.collect()
        address = tensor.data
        self.assertEqual(kind_of_memory(address), "device")
        tensor.deleter(ctypes.addressof(tensor))
        self.assertTrue(becomes_free(address))

    def test_refuse_what_is_not_possible(self):
        for wrong, message, call in (
            (ValueError, "lies in ordinary memory", lambda: hpe.device_view(numpy.zeros(3))),
            (ValueError, "lies in host memory", lambda: hpe.device_view(hpe.zeros(3, device="host"))),
            (ValueError, "lies in striped memory", lambda: hpe.device_view(hpe.zeros(3, distribution="block"))),
            (TypeError, "not list", lambda: hpe.device_view([1])),
            (TypeError, "stream must be", lambda: hpe.device_view(hpe.zeros(3), stream="1")),
        ):
            with self.subTest(message), self.assertRaisesRegex(wrong, message):
                call()

    def test_follow_an_array_that_moves(self):
        a = hpe.zeros(1 << 20, "uint8")
        view = hpe.device_view(a)
        hpe.migrate(a, 1)
        with view:
            self.assertEqual(view.__dlpack_device__(), (2, 1))

    def test_are_ordered_with_each_other(self):
        a, seen = hpe.zeros(1000, "uint32"), numpy.zeros(1000, "uint32")
        for n in range(1, 6):
            with hpe.device_view(a, stream=cuda.streams[0].value) as view:
                for _ in range(3):
                    cuda.increment(data_of(view), 1000, rounds=SLOW // 16)
            with hpe.device_view(a) as view:  # a copy on another stream
                cuda.call("cuMemcpyDtoHAsync_v2", c_void_p(seen.ctypes.data), c_void_p(data_of(view)), c_size_t(a.nbytes), cuda.streams[1])
            self.assertEqual(seen.tolist(), [3 * n] * 1000)

    def test_of_a_thread_do_not_overlap(self):
        a = hpe.zeros(1000, "uint32")
        fixed = hpe.array(a)
        fixed.flags.writeable = False
        add = hpe.Kernel(PTX, "increment")
        with hpe.device_view(a[:500]) as first, hpe.device_view(a[500:]) as second, hpe.device_view(fixed):
            cuda.increment(data_of(first), 500)
            cuda.increment(data_of(second), 500)
            with hpe.device_view(fixed[5:]):
                pass
            with self.assertRaisesRegex(RuntimeError, "the array is in use by a device view of this thread"):
                hpe.device_view(a).__enter__()
            with self.assertRaisesRegex(RuntimeError, "argument 0 of increment is in use"):
                add(1, 32, (a[3:], 5, 1))
            with self.assertRaisesRegex(RuntimeError, "or a neighbour in memory is in use"):
                hpe.migrate(a, 1)
            large = hpe.full(1 << 20, 2, "uint8")
            hpe.migrate(large, 1)
            self.assertEqual((hpe.info(large).device, int(large[-1])), (1, 2))
        add(4, 256, (a, 1000, 1))
        self.assertEqual(a.sum(), 2000)

    def test_may_end_in_another_thread(self):
        a = hpe.zeros(1000, "uint32")
        increment = hpe.Kernel(PTX, "increment")
        for _ in range(2):
            view = hpe.device_view(a)
            cuda.increment(data_of(view.__enter__()), 1000)
            end = threading.Thread(target=view.__exit__, args=3 * (None,))
            end.start()
            end.join()
            increment(4, 256, (a, 1000, 1))
        self.assertEqual(a.tolist(), 1000 * [4])

    def test_end_if_a_kernel_fails(self):
        program = """if True:
            import exchange_test, hpe
            a = hpe.zeros(1000)
            for stream in (exchange_test.cuda.streams[0].value, None):
                try:
                    with hpe.device_view(a, stream=stream):
                        exchange_test.cuda.fail()
                except (AssertionError, RuntimeError):  # the driver has failed
                    pass
                print(a[7])"""
        told = subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parent, capture_output=True, text=True, timeout=60)
        self.assertEqual(told.stdout, "0.0\n0.0\n", told.stderr)

    def test_may_be_in_use_at_the_end_of_the_program(self):
        program = """if True:
            import hpe, sys
            view = hpe.device_view(hpe.zeros(1000, "uint32")).__enter__()
            sys.modules["kept"] = [view, view.__dlpack__()]"""
        subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


class Views(unittest.TestCase):
    def test_share_the_memory_of_other_libraries(self):
        count = 300_000
        address = cuda.allocate(4 * count)
        a = hpe.view(Other(address, shape=(3, count // 3)))
        self.assertEqual((type(a), a.shape, a.dtype, a.ctypes.data), (numpy.ndarray, (3, count // 3), numpy.dtype("uint32"), address))
        a[...] = 5
        cuda.increment(address, count, rounds=SLOW // 8)
        self.assertEqual((int(a[0, 0]), int(a[-1, -1])), (6, 6))  # waits for the stream
        a += 1
        hpe.Kernel(PTX, "increment")(count // 256 + 1, 256, (a, count, 1))
        cuda.increment(address, count)
        self.assertEqual(int(a.sum(dtype="int64")), 9 * count)
        reverse = hpe.view(Other(address + 4 * (count - 1), shape=(10,), strides=(-8,)))
        a[...] = numpy.arange(count).reshape(a.shape)
        numpy.testing.assert_array_equal(reverse, numpy.arange(count)[::-2][:10])
        self.assertFalse(hpe.view(Other(address, shape=(2,), read_only=True)).flags.writeable)
        pair = hpe.view(Other(address, "V8", (2,), descr=[("x", "<u4"), ("y", "<u4")]))
        self.assertEqual(pair["y"].tolist(), [1, 3])

    def test_keep_the_array_alive(self):
        other = Other(cuda.allocate(400), shape=(100,))
        alive = weakref.ref(other)
        a = hpe.view(other)[3:]
        del other
        self.assertIsNotNone(alive())
        del a
        self.assertIsNone(alive())

    def test_dlpack(self):
        class Exporter:
            ended = False

            def __init__(self, kind, **options):
                self.array, self.kind, self.options = hpe.array(numpy.arange(6, dtype="int64").reshape(2, 3)), kind, options

            def __dlpack__(self, *, stream=None):
                self.stream = stream
                with hpe.device_view(self.array.T) as view:
                    capsule = view.__dlpack__(**self.options)
                    if self.kind != 2:
                        (c_int32 * 2).from_address(get_pointer(capsule, b"dltensor") + 8)[:] = self.kind, 0
                    return capsule

            def __dlpack_device__(self):
                return self.kind, 0

        for options in ({}, {"max_version": (1, 1)}):
            source = Exporter(2, **options)
            a = hpe.view(source)
            self.assertEqual(source.stream, -1)
            self.assertEqual((a.ctypes.data, a.tolist()), (source.array.ctypes.data, [[0, 3], [1, 4], [2, 5]]))
            a[0, 0] = 9
            self.assertEqual(source.array[0, 0], 9)
            del source
            self.assertEqual(a[2, 1], 5)
            address = a.ctypes.data
            del a
            self.assertTrue(becomes_free(address))
        self.assertEqual(hpe.view(Exporter(1))[2, 1], 5)
        with self.assertRaisesRegex(BufferError, "device kind 10"):
            hpe.view(Exporter(10))

    def test_of_nothing(self):
        self.assertEqual(hpe.view(Other(0, "int8", (3, 0))).shape, (3, 0))

    def test_refuse_what_is_not_possible(self):
        ordinary_memory = numpy.zeros(3)
        for wrong, message, source in (
            (TypeError, "list has neither", [1]),
            (ValueError, "inside one allocation", Other(ordinary_memory.ctypes.data, "float64", (3,))),
            (ValueError, "inside one allocation", Other(8, "float64", (3,))),
            (ValueError, "inside one allocation", Other(cuda.allocate(80), "float64", (11,))),
            (ValueError, "inside one allocation", Other(cuda.allocate(80), "float64", (2,), strides=(-8,))),
            (ValueError, "mask", Other(0, "float64", (3,), mask=1)),
        ):
            with self.subTest(message), self.assertRaisesRegex(wrong, message):
                hpe.view(source)


if __name__ == "__main__":
    unittest.main()
