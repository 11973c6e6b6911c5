#!/usr/bin/env python3
"""The Python package hpe on soft devices: arrays, kernels, devices. The environment names the package and the library."""

import contextlib
import copy
import gc
import inspect
import os
import pickle
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock
import warnings

import numpy

import hpe
from hpe import arrays

AXPY = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry axpy(.param .u64 y, .param .u64 x, .param .f32 factor, .param .u32 count) {
  .reg .pred %outside;
  .reg .b32 %r<5>;
  .reg .b64 %a<5>;
  .reg .f32 %f<4>;
  ld.param.u64 %a0, [y];
  ld.param.u64 %a1, [x];
  ld.param.f32 %f0, [factor];
  ld.param.u32 %r0, [count];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  setp.ge.u32 %outside, %r4, %r0;
  @%outside bra END;
  mul.wide.u32 %a2, %r4, 4;
  add.s64 %a3, %a0, %a2;
  add.s64 %a4, %a1, %a2;
  ld.global.f32 %f1, [%a4];
  ld.global.f32 %f2, [%a3];
  fma.rn.f32 %f3, %f0, %f1, %f2;
  st.global.f32 [%a3], %f3;
END:
  ret;
}
.visible .entry mix(.param .u64 result, .param .u64 rounds) {
  .reg .pred %again;
  .reg .b64 %a<4>;
  ld.param.u64 %a0, [result];
  ld.param.u64 %a1, [rounds];
  mov.u64 %a2, 1;
NEXT:
  shl.b64 %a3, %a2, 7;
  xor.b64 %a2, %a2, %a3;
  shr.u64 %a3, %a2, 9;
  xor.b64 %a2, %a2, %a3;
  sub.u64 %a1, %a1, 1;
  setp.ne.u64 %again, %a1, 0;
  @%again bra NEXT;
  st.global.u64 [%a0], %a2;
  ret;
}
.visible .entry clear_even(.param .u64 y, .param .u32 count) {
  .reg .pred %outside;
  .reg .b32 %r<3>;
  .reg .b64 %a<3>;
  ld.param.u64 %a0, [y];
  ld.param.u32 %r0, [count];
  mov.u32 %r1, %tid.x;
  setp.ge.u32 %outside, %r1, %r0;
  @%outside bra END;
  mul.wide.u32 %a1, %r1, 8;
  add.s64 %a2, %a0, %a1;
  mov.u32 %r2, 0;
  st.global.u32 [%a2], %r2;
END:
  ret;
}
.visible .entry stop() { trap; }
"""

axpy = hpe.Kernel(AXPY, "axpy")


def add_scaled(y, x, factor, **options):
    axpy((y.size + 255) // 256, 256, (y, x, factor, y.size), reads=[x], **options)


class Arrays(unittest.TestCase):
    def test_refuse_a_wrong_shape_also_after_an_equal_one(self):
        for right, wrong in ((3, 3.0), ((3, 4), (3, 4.0))):
            for _ in range(2):
                self.assertEqual(hpe.empty(right, "f4").size, numpy.prod(right))
                with self.assertRaises(TypeError):
                    hpe.empty(wrong, "f4")

    def test_are_numpy_arrays_in_hpe_memory(self):
        for order in "CF":
            a = hpe.empty((3, 4), "int16", order)
            self.assertIs(type(a), numpy.ndarray)
            self.assertEqual((a.shape, a.dtype, a.strides), ((3, 4), numpy.dtype("int16"), numpy.empty((3, 4), "int16", order).strides))
            self.assertTrue(hpe.is_hpe(a) and hpe.is_hpe(a[1:, ::2]))
            self.assertEqual(a.ctypes.data % 256, 0)
        self.assertEqual(hpe.info(numpy.ones(3)).kind, "ordinary")
        self.assertFalse(hpe.is_hpe(numpy.ones(3)))

    def test_have_the_wanted_contents(self):
        hpe.empty(64, "uint8")[:] = 7  # its memory is used again
        self.assertEqual(hpe.zeros(64, "uint8").tolist(), [0] * 64)
        self.assertEqual(hpe.full((2, 2), 1.5).tolist(), [[1.5, 1.5], [1.5, 1.5]])
        self.assertEqual(hpe.full(2, 3).dtype, numpy.asarray(3).dtype)
        source = numpy.arange(24, dtype="float32").reshape(2, 3, 4)
        for part in (source, source.T, source[:, ::2], source[::-1], source[:0], numpy.asfortranarray(source), numpy.float32(5)):
            for order in "CF":
                ours = hpe.array(part, order=order)
                numpy.testing.assert_array_equal(ours, part)
                self.assertFalse(numpy.shares_memory(ours, part))
        self.assertEqual(hpe.array([1, 2], "float64").tolist(), [1.0, 2.0])
        large = numpy.random.default_rng(1).standard_normal(1 << 20)
        numpy.testing.assert_array_equal(hpe.array(large), large)

    def test_asarray_copies_only_what_is_not_hpe_memory(self):
        a = hpe.zeros(8)
        self.assertIs(hpe.asarray(a), a)
        self.assertIs(hpe.asarray(a, "float64"), a)
        self.assertIsNot(hpe.asarray(a, "float32"), a)
        self.assertTrue(hpe.is_hpe(hpe.asarray([1, 2, 3])))
        self.assertEqual(hpe.info(hpe.asarray(a, device="host")).kind, "host")

    def test_without_elements_or_dimensions(self):
        for shape in (0, (3, 0), (0, 0)):
            self.assertEqual(hpe.zeros(shape).shape, numpy.zeros(shape).shape)
        scalar = hpe.zeros(())
        scalar[...] = 4
        self.assertEqual(float(scalar), 4)

    def test_refuse_what_is_not_possible(self):
        for wrong, message, call in (
            (ValueError, "an extent must be between 0 and", lambda: hpe.empty((2, -1))),
            (TypeError, "an extent must be a whole number, not 2.5", lambda: hpe.empty((2.5, 3))),
            (TypeError, "an extent must be a whole number, not '12'", lambda: hpe.empty("12")),
            (hpe.OutOfMemoryError, "larger than the address space", lambda: hpe.empty((1 << 32, 1 << 32))),
            (ValueError, "order must be", lambda: hpe.empty(2, order="K")),
            (ValueError, "has no size", lambda: hpe.empty(2, "S")),
            (ValueError, "number of a device must be between 0", lambda: hpe.empty(2, device=-1)),
            (TypeError, "number of a device must be a whole number", lambda: hpe.empty(2, device=1.0)),
            (ValueError, "number of a device must be between", lambda: hpe.empty(2, device=1 << 32)),
            (ValueError, "bytes of a chunk must be between 1", lambda: hpe.empty(2, distribution=("cyclic", -1))),
            (TypeError, "number of a device must be a whole number", lambda: hpe.migrate(hpe.zeros(2), "host")),
            (TypeError, "number of a device must be a whole number", lambda: hpe.prefetch(hpe.zeros(2), "gpu")),
            (TypeError, "Python objects", lambda: hpe.empty(2, object)),
            (hpe.Error, "no device 99", lambda: hpe.empty(2, device=99)),
            (ValueError, "device must be", lambda: hpe.empty(2, device="gpu")),
            (ValueError, "not both", lambda: hpe.empty(2, device=0, distribution="block")),
            (ValueError, "distribution must be", lambda: hpe.empty(2, distribution="rows")),
            (hpe.OutOfMemoryError, "bytes were asked for", lambda: hpe.empty(1 << 50)),
            (MemoryError, "bytes were asked for", lambda: hpe.empty(1 << 50)),
            (ValueError, "advice must be", lambda: hpe.advise(hpe.zeros(2), "quick")),
            (hpe.Error, "no device 99", lambda: hpe.synchronize(99)),
            (RuntimeError, "start the program by `hpe run --cuda soft", lambda: hpe.device_view(hpe.zeros(2))),
        ):
            with self.subTest(message), self.assertRaisesRegex(wrong, message):
                call()
        with self.assertRaises(hpe.Error) as raised:
            hpe.empty(2, device=99)
        self.assertEqual(raised.exception.status, "HPE_ERROR_INVALID_DEVICE")

    def test_lie_where_the_program_wants(self):
        large = 4 << 20
        on_second = hpe.info(hpe.zeros(large, "uint8", device=1))
        self.assertEqual((on_second.kind, on_second.device, on_second.allocated), ("device", 1, large))
        self.assertEqual(hpe.info(hpe.zeros(8, device="host")).kind, "host")
        for distribution, last in (("block", 1), ("cyclic", 1), (("cyclic", large), 0)):
            a = hpe.zeros(large, "uint8", distribution=distribution)
            self.assertEqual((hpe.info(a).kind, hpe.info(a).device, hpe.info(a[-1:]).device), ("striped", 0, last))
        with hpe.device(1):
            self.assertEqual((hpe.current_device(), hpe.info(hpe.zeros(large)).device), (1, 1))
        self.assertEqual(hpe.current_device(), 0)
        a = hpe.full(large, 2, "uint8")
        hpe.migrate(a, 1)
        self.assertEqual((hpe.info(a).device, int(a.sum(dtype="int64"))), (1, 2 * large))
        hpe.prefetch(a[::-3], 1)
        hpe.prefetch(a, "host")
        for advice in ("lazy", "rolling", "read mostly", "write only", "default"):
            hpe.advise(a, advice)

    def test_are_described(self):
        a = hpe.zeros(1 << 20, "float32", device=1)
        what = "float32, shape (1048576,), 4194304 bytes"
        self.assertEqual(hpe.describe(a), f"{what} on device 1; valid: 0 % on the host, 100 % on the device")
        a.sum()
        self.assertEqual(hpe.describe(a), f"{what} on device 1; valid: 100 % on the host, 100 % on the device")
        add_scaled(a, a, 1.0, device=1)
        self.assertEqual(hpe.describe(a), f"{what} on device 1; valid: 0 % on the host, 100 % on the device")
        hpe.advise(a, "lazy")
        a[::1 << 14] = 1
        self.assertIn("valid: 100 % on the host, 0 % on the device", hpe.describe(a[::-1]))
        half = hpe.zeros((2, 1 << 20), "float32", distribution="block")
        half[0].sum()
        self.assertRegex(hpe.describe(half), r"on devices 0, 1; valid: \d+ % on the host, 100 % on the devices")
        self.assertIn("(3,), 24 bytes in host memory", hpe.describe(hpe.zeros(3, device="host")))
        for ordinary in (numpy.zeros(3), hpe.zeros(0)):
            self.assertIn("in ordinary memory", hpe.describe(ordinary))

    def test_functions_have_types_and_descriptions(self):
        for module in (hpe, hpe.fft):
            for name in module.__all__:
                function = getattr(module, name)
                if callable(function):
                    self.assertTrue(function.__doc__, name)
                    if inspect.isfunction(function):
                        parameters = inspect.signature(function).parameters.values()
                        self.assertIn("return", function.__annotations__, name)
                        self.assertEqual([p.name for p in parameters if p.annotation is p.empty], [], name)

    def test_prefetch_of_nothing_does_nothing(self):
        a = hpe.zeros(10)
        hpe.prefetch(a[5:5], 1)
        hpe.prefetch(hpe.zeros(0), "host")

    def test_do_not_inherit_the_advice_or_the_device_of_earlier_arrays(self):
        count = 1 << 18  # as much memory as is kept
        advised = hpe.empty(count, "float32")
        hpe.advise(advised, "write only")
        migrated = hpe.empty(count, "float32")
        hpe.migrate(migrated, 1)
        del advised, migrated
        y, x = hpe.full(count, 0, "float32"), hpe.full(count, 3, "float32")
        self.assertEqual((hpe.info(y).device, hpe.info(x).device), (0, 0))
        add_scaled(y, x, 1.0)
        y[0] = 7
        self.assertEqual(float(y.sum(dtype="float64")), 7 + 3 * (count - 1))

    def test_reuse_the_memory_of_arrays_that_are_being_freed(self):
        program = "import hpe\nfor n in range(50): hpe.empty(40 << 20, 'uint8')[0] = n"
        subprocess.run([sys.executable, "-c", program], check=True,
                       env={**os.environ, "HPE_DEVICES": "soft:1", "HPE_SOFT_MEMORY": "64M", "HPE_OVERSUBSCRIBE": "off"})

    def test_are_copied_by_pickle_and_fork_as_usual(self):
        a = hpe.array([1, 2, 3])
        numpy.testing.assert_array_equal(pickle.loads(pickle.dumps(a)), a)
        child = os.fork()
        if child == 0:
            del a
            gc.collect()
            try:
                hpe.zeros(3)
            except hpe.Error as e:
                os._exit(0 if e.status == "HPE_ERROR_FORKED" else 1)
            os._exit(2)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(a.tolist(), [1, 2, 3])

    def test_errors_are_copied_by_pickle(self):
        with self.assertRaises(hpe.Error) as raised:
            hpe.empty(2, device=99)
        other = pickle.loads(pickle.dumps(raised.exception))
        self.assertEqual((type(other), other.status, str(other)), (hpe.Error, raised.exception.status, str(raised.exception)))

    def test_free_their_memory(self):
        before = hpe.devices()[0].memory_free
        view = None
        for n in range(100_000):
            a = hpe.empty(1 + n % 300)
            a[0] = n
            view = a[:1] if n % 1000 == 0 else view
            self.assertEqual(view[0], n // 1000 * 1000)  # a view keeps the memory
        for _ in range(100):
            hpe.zeros(1 << 20)
        del a, view
        gc.collect()
        end = time.monotonic() + 30
        kept = 8 << 20  # memory of small arrays, for later ones
        while hpe.devices()[0].memory_free < before - kept and time.monotonic() < end:
            time.sleep(0.01)
        self.assertGreaterEqual(hpe.devices()[0].memory_free, before - kept)
        for key, addresses in arrays._kept.items():
            self.assertEqual(len(addresses), len(set(addresses)))
            self.assertLessEqual(len(addresses) * key[1], arrays.MOST_KEPT)


class Library(unittest.TestCase):
    def test_tells_what_to_do_if_it_cannot_be_loaded(self):
        for problem, advice in (("no such file", "install it"), ("cannot allocate memory in static TLS block", "import hpe before other")):
            with unittest.mock.patch("ctypes.CDLL", side_effect=OSError(problem)), self.assertRaisesRegex(ImportError, advice):
                hpe.library.open_library("libhpe.so.0", "install it")


class NumpyCases(unittest.TestCase):
    """Random operations of NumPy on an array in hpe memory and on an ordinary array, between kernels on all devices."""

    STEPS = [
        lambda a, n: numpy.add(a, 1, out=a),
        lambda a, n: numpy.multiply(a, numpy.float32(0.5), out=a),
        lambda a, n: a.__setitem__(slice(n, None, 3), a[: len(a[n::3])]),
        lambda a, n: a.__setitem__(a > 100, -1),
        lambda a, n: a.sort(),
        lambda a, n: a[::-1].copy(),
        lambda a, n: a.sum(dtype="float64"),
        lambda a, n: a.reshape(2, -1).T.cumsum(axis=0),
        lambda a, n: a[a.argsort(kind="stable")[: n + 1]],
        lambda a, n: numpy.minimum.reduceat(a, [0, n, len(a) // 2]),
        lambda a, n: a.view("int32") & 0xFFFF,
        lambda a, n: numpy.where(a % 2 == 0, a, n),
        lambda a, n: a.__iadd__(a[::-1]),
        lambda a, n: numpy.roll(a, n),
        lambda a, n: a.tobytes(),
        lambda a, n: numpy.rint(a, out=a),
        lambda a, n: a.__setitem__(slice(None), numpy.clip(a, -1e6, 1e6)),
    ]

    def test_agree_with_ordinary_memory(self):
        random = numpy.random.default_rng(7)
        cases = 0
        for _ in range(100):
            size = 2 * int(random.integers(4, 3000))
            plain = random.integers(-50, 50, size).astype("float32")
            ours = hpe.array(plain, device=int(random.integers(2)))
            other = random.integers(-3, 4, size).astype("float32")
            others = hpe.array(other)
            for _ in range(100):
                if random.integers(4) == 0:
                    factor = float(random.integers(-2, 3))
                    add_scaled(ours, others, factor, device=int(random.integers(2)))
                    plain += numpy.float32(factor) * other
                step = self.STEPS[random.integers(len(self.STEPS))]
                n = int(random.integers(1, size // 2))
                with numpy.errstate(all="ignore"):
                    expected, got = step(plain, n), step(ours, n)
                self.assertTrue(numpy.array_equal(numpy.asarray(expected), numpy.asarray(got)), (step.__code__.co_firstlineno, size, n))
                cases += 1
            self.assertEqual(plain.tobytes(), ours.tobytes())
        self.assertEqual(cases, 10_000)


class Kernels(unittest.TestCase):
    def test_use_arrays_without_copies(self):
        x, y = hpe.full(1000, 2, "float32"), hpe.zeros(1000, "float32")
        for n in range(1, 20):
            add_scaled(y, x, 0.5, device=n % 2)
            self.assertEqual((y[0], y[-1]), (n, n))
            x[:] = 2
        add_scaled(y[::-1][::-1], x, numpy.float32(1))
        self.assertEqual(y.sum(), 21 * 1000)

    def test_overwrite_arrays_but_not_the_bytes_between_elements(self):
        clear = hpe.Kernel(AXPY, "clear_even")
        for size in (1000, 1 << 20):
            y = hpe.full(size, 2, "uint32")
            evens = y[:1000:2]
            clear(1, 512, (evens, evens.size), overwrites=evens)
            self.assertEqual((int(evens.sum()), int(y[1:1000:2].min()), int(y[-1])), (0, 2, 2))

    def test_declare_empty_and_read_only_arrays(self):
        x, y = hpe.zeros(0, "float32"), hpe.zeros(4, "float32")
        axpy(1, 32, (y, x, 1.0, 0), reads=[x])
        y.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "argument 0 of axpy is a read-only array"):
            axpy(1, 32, (y, x, 1.0, 0))
        axpy(1, 32, (y, x, 1.0, 0), reads=[y])

    def test_take_arrays_without_dimensions(self):
        result = hpe.zeros((), "uint64")
        hpe.Kernel(AXPY, "mix")(1, 1, (result, numpy.asarray(1, ">u8")))
        self.assertEqual(int(result), 128 ^ 1)

    def test_later_uses_of_an_array_call_hpe_only_for_the_work(self):
        x, y = hpe.full(4, 2, "float32"), hpe.zeros(4, "float32")
        mix = hpe.Kernel(AXPY, "mix")
        result = hpe.empty(1, "uint64")
        launches = [] if "_hpe_launcher" in sys.modules else ["hpeLaunchPacked"]  # the module calls it without these functions
        uses = (
            (launches, lambda: axpy(1, 32, (y, x, numpy.float32(1), 4), reads=[x])),
            (launches, lambda: mix((1, 1), (1,), (result, 1), overwrites=result)),
            (["hpeGetDevice", "hpeGetPointerInfo"], lambda: hpe.empty(100, "uint8")),
            (["hpeWait"], lambda: hpe.wait(y)),
        )
        for expected, use in uses:
            use()
            names = []
            call, launch = hpe.library.call, hpe.library.launch
            with unittest.mock.patch.object(hpe.library, "call", lambda *all: names.append(all[0]) or call(*all)), \
                    unittest.mock.patch.object(hpe.library, "launch", lambda all: names.append("hpeLaunchPacked") or launch(all)):
                use()
            self.assertEqual(names, expected)
        self.assertEqual((y[0], result[0]), (4, 128 ^ 1))

    def test_are_counted_by_a_profile(self):
        y, x = hpe.zeros(1 << 20, "float32"), hpe.full(1 << 20, 1, "float32")
        with hpe.profile() as profile:
            add_scaled(y, x, 1.0)
            y.sum()
        self.assertEqual(profile.counts["launches"], 1)
        self.assertGreaterEqual(profile.counts["bytes_to_host"], y.nbytes)
        self.assertIn("launches 1\n", f"{profile}\n")
        self.assertGreater(profile.seconds, 0)

    def test_follow_changes_of_the_memory_of_an_array(self):
        clear = hpe.Kernel(AXPY, "clear_even")
        a, b = hpe.full(512, 2, "uint32"), hpe.full(512, 3, "uint32")
        clear(1, 256, (a, 256))
        with contextlib.suppress(AttributeError), warnings.catch_warnings():  # not in the newest versions of NumPy
            warnings.simplefilter("ignore")  # newer versions of NumPy discourage it
            a.data = b.data
            clear(1, 256, (a, 256))
            self.assertEqual((a[:2].tolist(), b[:2].tolist()), ([0, 3], [0, 3]))
        a.__setstate__((1, (512,), numpy.dtype("uint32"), False, bytes(2048)))
        with self.assertRaisesRegex(ValueError, "array in ordinary memory"):
            clear(1, 256, (a, 256))

    def test_follow_changes_of_an_array(self):
        clear = hpe.Kernel(AXPY, "clear_even")
        y = hpe.full((2, 512), 2, "uint32")
        clear(1, 256, (y, 256))
        y.shape = -1
        clear(1, 256, (y[512:], 256))
        self.assertEqual((int(y[::2].sum()), int(y[1::2].min())), (0, 2))
        part = y[:512]
        clear(1, 256, (part, 256))
        part.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "argument 0 of clear_even is a read-only array"):
            clear(1, 256, (part, 256))
        for n in range(1000):  # arrays that die leave their id to later arrays
            other = hpe.full(4, n, "uint32") if n % 2 else numpy.full(4, n, "uint32")
            if n % 2:
                clear(1, 2, (other, 2))
                self.assertEqual(other.tolist(), [0, n, 0, n])
            else:
                with self.assertRaisesRegex(ValueError, "ordinary memory"):
                    clear(1, 2, (other, 2))
            del other

    def test_end_without_waiting_for_their_launches(self):
        mix, result = hpe.Kernel(AXPY, "mix"), hpe.zeros(1, "uint64")
        mix(1, 1, (result, 1 << 26))
        began = time.monotonic()
        del mix
        gc.collect()
        released = time.monotonic() - began
        hpe.synchronize()
        self.assertLess(released, (time.monotonic() - began) / 2)

    def test_live_as_long_as_their_copies(self):
        mix, result = hpe.Kernel(AXPY, "mix"), hpe.zeros(1, "uint64")
        copies = [copy.copy(mix), copy.deepcopy(mix)]
        del mix
        gc.collect()
        for kernel in copies:
            kernel(1, 1, (result, 1))
            self.assertEqual(result[0], 128 ^ 1)

    def test_refuse_wrong_arguments(self):
        x, y = hpe.zeros(4, "float32"), hpe.zeros(4, "float32")
        for wrong, message, arguments in (
            (TypeError, "4 parameters, and the launch has 3", (y, x, 1.0)),
            (ValueError, "argument 1 of axpy is an array in ordinary memory", (y, numpy.zeros(4, "float32"), 1.0, 4)),
            (TypeError, "argument 2 of axpy is an array, but the parameter has 4 bytes", (y, x, x, 4)),
            (TypeError, "argument 2 of axpy is float64, which has 8 bytes", (y, x, numpy.float64(1), 4)),
            (TypeError, "does not fit a parameter of 4 bytes", (y, x, "1", 4)),
            (OverflowError, "argument 3 of axpy, 4294967296,", (y, x, 1.0, 1 << 32)),
            (OverflowError, "argument 3 of axpy, -2147483649,", (y, x, 1.0, -(1 << 31) - 1)),
            (OverflowError, "argument 2 of axpy, 1e", (y, x, 1e300, 4)),
        ):
            with self.subTest(message), self.assertRaisesRegex(wrong, message):
                axpy(1, 32, arguments)
        arguments = (y, x, 1.0, 4)
        for wrong, message, options in (
            (ValueError, "reads and overwrites may name only arrays", {"reads": [hpe.zeros(4)]}),
            (ValueError, "reads and overwrites may name only arrays", {"overwrites": [numpy.zeros(4)]}),
            (hpe.Error, "no device 99", {"device": 99}),
        ):
            with self.subTest(message), self.assertRaisesRegex(wrong, message):
                axpy(1, 32, arguments, **options)
        for grid, block, message in ((0, 32, "each number of grid must be"), (1, (1, 1, 1, 1), "block must be"), (1, 2048, "threads"),
                                     ((3.9,), 32, "each number of grid must be a whole number")):
            with self.subTest(message), self.assertRaisesRegex((ValueError, TypeError, hpe.Error), message):
                axpy(grid, block, arguments)
        with self.assertRaisesRegex(ValueError, "shared_mem must be between"):
            axpy(1, 32, arguments, shared_mem=1 << 32)
        self.assertEqual(y.sum(), 0)
        for code, name, message in ((AXPY, "missing", "missing"), (AXPY.replace("mad.lo", "mad.lu"), "axpy", "mad")):
            with self.subTest(message), self.assertRaisesRegex(hpe.Error, message):
                hpe.Kernel(code, name)

    def test_errors_are_told_by_synchronize(self):
        hpe.Kernel(AXPY, "stop")(1, 1, ())
        with self.assertRaisesRegex(hpe.Error, "stop") as raised:
            hpe.synchronize()
        self.assertEqual(raised.exception.status, "HPE_ERROR_LAUNCH_FAILED")
        hpe.synchronize()

    def test_waiting_releases_the_gil(self):
        mix = hpe.Kernel(AXPY, "mix")
        result = hpe.zeros(1, "uint64")
        rounds = 1 << 22
        while True:  # until a kernel takes a tenth of a second
            began = time.monotonic()
            mix(1, 1, (result, rounds))
            hpe.synchronize()
            if time.monotonic() - began > 0.1:
                break
            rounds *= 2
        turns, waiting = 0, True

        def turn():
            nonlocal turns
            while waiting:
                turns += 1
                time.sleep(0.001)

        thread = threading.Thread(target=turn)
        thread.start()
        for wait in (hpe.synchronize, lambda: hpe.wait(result)):
            before = turns
            mix(1, 1, (result, 2 * rounds))
            wait()
            self.assertGreater(turns - before, 2)
        waiting = False
        thread.join()
        hpe.wait(numpy.zeros(3))  # ordinary memory

    def test_threads_work_at_the_same_time(self):
        failures = []

        def work(seed):
            try:
                random = numpy.random.default_rng(seed)
                for _ in range(100):
                    x = hpe.array(random.integers(0, 9, 500).astype("float32"), device=seed % 2)
                    y = hpe.zeros(500, "float32")
                    expected = numpy.zeros(500, "float32")
                    for _ in range(3):
                        add_scaled(y, x, 2.0, device=int(random.integers(2)))
                        expected += 2 * x
                    numpy.testing.assert_array_equal(y, expected)
            except BaseException as e:  # the test reports it
                failures.append(e)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


class CudaSource(unittest.TestCase):
    """Needs NVRTC."""

    def test_functions_and_templates(self):
        source = """
            template <class T> __global__ void add(T* y, const T* x, unsigned count) {
              unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
              if (i < count) y[i] += x[i];
            }
            extern "C" __global__ void negate(double* y, unsigned count) {
              for (unsigned i = threadIdx.x; i < count; i += blockDim.x) y[i] = SIGN y[i];
            }"""
        x, y = hpe.full(300, 2.0), hpe.array(numpy.arange(300.0))
        hpe.Kernel(source.replace("SIGN", "-"), "add<double>")(2, 256, (y, x, 300), reads=[x])
        hpe.Kernel(source, "negate", ["-DSIGN=-"])(1, 64, (y, 300))
        numpy.testing.assert_array_equal(y, -(numpy.arange(300.0) + 2))
        with self.assertRaisesRegex(hpe.CompileError, "SIGN"):
            hpe.Kernel(source, "negate")
        with self.assertRaises(hpe.CompileError):
            hpe.Kernel(source.replace("SIGN", ""), "missing")


class Devices(unittest.TestCase):
    def test_are_described(self):
        self.assertEqual(hpe.device_count(), 2)
        first, second = hpe.devices()
        self.assertEqual((first.number, second.number, first.kind, first.lost), (0, 1, "soft", False))
        self.assertIn(1, first.peers)
        self.assertTrue(0 < first.memory_free <= first.memory_total)
        self.assertRegex(hpe.__version__, r"^\d+\.\d+\.\d+$")


if __name__ == "__main__":
    unittest.main()
