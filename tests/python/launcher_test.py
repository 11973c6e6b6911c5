#!/usr/bin/env python3
"""_hpe_launcher makes the same bytes of a launch as Kernel._launch, and refuses the same arguments. No kernel runs."""

import copy
import ctypes
import random
import unittest
import unittest.mock
import warnings

import numpy

import hpe
from hpe import arrays, kernels, library, locations

try:
    import _hpe_launcher
except ImportError:
    _hpe_launcher = None

# One parameter of each size, pointers between them, and padding behind small ones.
PTX = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry all(.param .u64 a, .param .u8 b, .param .u64 c, .param .f32 d, .param .u16 e, .param .u32 f, .param .f64 g, .param .u64 h) {
  ret;
}
.visible .entry few(.param .u64 a, .param .u32 b) {
  ret;
}
.visible .entry none() {
  ret;
}
"""
HEAD_BYTES = 72
CASES = 6000


@unittest.skipIf(_hpe_launcher is None, "this Python, or this build of hpe, has no _hpe_launcher")
class Launcher(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(7)
        self.by_module = []

        @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
        def record(packed):
            words = ctypes.cast(packed, ctypes.POINTER(ctypes.c_uint64 * 3))[0]
            size, accesses = words[1], words[2] >> 32
            self.by_module.append(ctypes.string_at(packed, HEAD_BYTES + size + -size % 8 + accesses * locations._ACCESS.size))
            return self.status

        self.record, self.status = record, 0
        kernels._configure_launcher(ctypes.cast(record, ctypes.c_void_p).value)
        self.addCleanup(kernels._configure_launcher, library.address_of("hpeLaunchPacked").value)
        self.owner = hpe.zeros((6, 8), "float32")
        read_only = hpe.zeros(5, "int64")
        read_only.flags.writeable = False
        gone = hpe.zeros(9, "int16")
        locations.locate(gone)
        gone.shape = (3, 3)  # other strides than before
        self.arrays = [self.owner, self.owner[1], self.owner[:, ::2], self.owner[::-1], hpe.zeros(3, "uint8"), hpe.zeros((), "int32"), gone]
        self.others = [read_only, numpy.zeros(4), hpe.zeros(0), None, "text", b"bytes", [1], 1j, object(), numpy.bool_(True), True]

    def number(self):
        of_type = self.random.choice([int, float, *kernels._SCALARS])
        value = self.random.choice([0, 1, -1, 2, 127, 128, -128, 255, 32767, 65535, 2**31 - 1, 2**31, 2**32 - 1, -2**31, 2**63 - 1, 2**63,
                                    2**64 - 1, 2**64, -2**63, -2**63 - 1, 0.5, -0.0, 1e-320, 1e39, 3.4028235e38, 65504.0, float("inf"),
                                    float("nan"), self.random.randrange(2**40)])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                return of_type(value)
        except (OverflowError, ValueError, Warning):
            return value

    def argument(self, parameter):
        usual = self.random.random()
        if usual < 0.03:
            return self.random.choice(self.others)
        if parameter.is_pointer:
            return self.random.choice(self.arrays) if usual < 0.95 else self.number()
        if usual < 0.6:  # a number that fits
            letters = "eefd" if parameter.size in (2, 4, 8) and self.random.random() < 0.5 else "bhiq"
            kind = {1: "b", 2: "h", 4: "i" if letters == "bhiq" else "f", 8: "q" if letters == "bhiq" else "d"}[parameter.size]
            return numpy.dtype(kind).type(self.random.randrange(100))
        return self.number() if usual < 0.98 else self.random.choice(self.arrays)

    def launch(self):
        """Returns the arguments of a random launch."""
        kernel = self.random.choice(self.kernels)
        arguments = tuple(self.argument(parameter) for parameter in kernel._parameters)
        if self.random.random() < 0.03:
            arguments = self.random.choice([list(arguments), arguments[1:], (*arguments, 1)])
        extents = [1, 7, (4,), (4, 2), (1, 2, 3), [3, 1], (4, 0), 0, -1, numpy.int32(3), (2**31, 70000, 1), (2**32,), "a", 1.0]
        grid, block = (extents[self.random.randrange(5 if self.random.random() < 0.9 else len(extents))] for _ in range(2))
        options = {}
        named = [each for each in arguments if isinstance(each, numpy.ndarray)]
        for name in ("reads", "overwrites"):
            if named and self.random.random() < 0.4:
                chosen = self.random.sample(named, self.random.randint(0, len(named)))
                options[name] = self.random.choice([chosen, tuple(chosen), named[0]])
            elif self.random.random() < 0.02:
                options[name] = self.random.choice([None, [numpy.zeros(2)], 3, [self.arrays[4]], iter(named)])
        if self.random.random() < 0.1:
            options["shared_mem"] = self.random.choice([0, 1024, -1, "x"])
        if self.random.random() < 0.1:
            options["device"] = self.random.choice([None, 0, 1, 2, "x"])
        if self.random.random() < 0.01:
            options["other"] = 1
        return kernel, (grid, block, arguments), options

    @staticmethod
    def outcome(call):
        try:
            call()
        except Exception as e:  # all kinds are compared
            return type(e), str(e)
        return None

    def test_makes_the_same_bytes(self):
        self.kernels = [hpe.Kernel(PTX, name) for name in ("all", "few", "none")]
        packed_by_module = 0
        for case in range(CASES):
            kernel, positional, options = self.launch()
            # An iterator serves one of the two calls.
            again = {name: list(value) if hasattr(value, "__next__") else value for name, value in options.items()}
            by_python = []
            with unittest.mock.patch.object(library, "launch", by_python.append):
                expected = self.outcome(lambda: kernel._launch(*positional, **again))
                self.by_module.clear()
                first = list(by_python)
                by_python.clear()
                result = self.outcome(lambda: kernel(*positional, **again))
            packed_by_module += len(self.by_module)
            self.assertEqual((result, self.by_module + by_python), (expected, first), f"case {case}: {kernel}{positional}, {options}")
        self.assertGreater(packed_by_module, CASES // 3)

    def test_reports_the_error_of_a_launch_once(self):
        few = hpe.Kernel(PTX, "few")
        few(1, 1, (self.owner, 1))
        self.by_module.clear()
        self.status = 1
        with self.assertRaises(hpe.Error):
            few(1, 1, (self.owner, 1))
        self.assertEqual(len(self.by_module), 1)

    def test_a_lent_array_is_refused(self):
        few = hpe.Kernel(PTX, "few")
        few(1, 1, (self.owner, 1))
        first, size = locations.bounds(self.owner)
        arrays.lent.ranges.append((first, first + size, True))
        self.addCleanup(arrays.lent.ranges.clear)
        with self.assertRaisesRegex(RuntimeError, "in use by a device view"):
            few(1, 1, (self.owner, 1))

    def test_copies_are_the_kernel(self):
        few = hpe.Kernel(PTX, "few")
        self.assertIs(copy.copy(few), few)
        self.assertIs(copy.deepcopy(few), few)


if __name__ == "__main__":
    unittest.main()
