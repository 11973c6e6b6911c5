#!/usr/bin/env python3
"""hpe.sort, hpe.cumsum and hpe.fft, compared with NumPy, and hpe.rtm."""

import os
import threading
import unittest

import numpy

import hpe

PLACES = ({}, {"device": 1}, {"device": "host"}, {"distribution": "block"})
random = numpy.random.default_rng(3)


def numbers(count, dtype):
    if numpy.dtype(dtype).kind == "f":
        return random.standard_normal(count).astype(dtype)
    return random.integers(0, 1 << 32, count).astype(dtype)


class Sort(unittest.TestCase):
    def test_like_numpy(self):
        for dtype in ("int32", "uint32", "int64", "uint64", "float32", "float64", ">i4"):
            for count in (0, 1, 100, (1 << 16) + 3):
                source = numbers(count, dtype)
                if source.dtype.kind == "f" and count > 10:
                    source[random.integers(0, count, count // 5)] = numpy.nan
                    source[:5] = numpy.inf, -numpy.inf, 0.0, -0.0, -numpy.nan
                for place in PLACES:
                    a = hpe.array(source, **place)
                    ordered = hpe.sort(a)
                    with self.subTest((dtype, count, place)):
                        self.assertEqual((ordered.dtype, hpe.is_hpe(ordered)), (source.dtype.newbyteorder("="), count > 0))
                        numpy.testing.assert_array_equal(ordered, numpy.sort(source))
                        numpy.testing.assert_array_equal(a, source)
        numpy.testing.assert_array_equal(hpe.sort(numpy.array([[3, 1], [2, 0]]), axis=None), [0, 1, 2, 3])
        numpy.testing.assert_array_equal(hpe.sort([3, 1, 2], axis=0), [1, 2, 3])
        large = numbers(3 << 20, "int32")
        numpy.testing.assert_array_equal(hpe.sort(hpe.array(large, distribution="cyclic")), numpy.sort(large))

    def test_is_on_the_device_of_the_array(self):
        self.assertEqual(hpe.info(hpe.sort(hpe.zeros(100, device=1))).device, 1)
        with hpe.device(1):
            self.assertEqual(hpe.info(hpe.sort(numpy.zeros(100))).device, 1)
        self.assertEqual(hpe.info(hpe.sort(hpe.zeros(1 << 20, distribution="block"))).kind, "striped")

    def test_waits_for_kernels_and_threads_do_not_disturb_each_other(self):
        failures = []

        def work():
            try:
                for _ in range(20):
                    source = random.integers(0, 1000, 1000).astype("int32")
                    numpy.testing.assert_array_equal(hpe.cumsum(hpe.sort(source)), numpy.cumsum(numpy.sort(source)))
            except BaseException as e:  # the test reports it
                failures.append(e)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


class Cumsum(unittest.TestCase):
    def test_like_numpy(self):
        for shape in (0, 1, 1000, (3, 700), (300, 5), (2, 3, 4), (3, 0), (2, 70000)):
            for dtype in ("int8", "uint32", "int64", "float32", "float64"):
                source = random.integers(0, 100, shape).astype(dtype)
                for place in PLACES:
                    a = hpe.array(source, **place)
                    for axis in {None, -1, a.ndim - 1}:
                        with self.subTest((shape, dtype, place, axis)):
                            expected, sums = numpy.cumsum(source, axis), hpe.cumsum(a, axis)
                            self.assertEqual((sums.dtype, sums.shape), (expected.dtype, expected.shape))
                            numpy.testing.assert_allclose(sums, expected, rtol=1e-5)
        self.assertEqual(hpe.cumsum(numpy.full(3, 1 << 30, "uint32"), dtype="int32").tolist(), [1 << 30, -(1 << 31), -(1 << 30)])


class Fft(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            hpe.fft.fft(numpy.ones(4))
        except hpe.Error as e:
            assert e.status == "HPE_ERROR_NOT_SUPPORTED" and "numpy.fft" in str(e), e
            raise unittest.SkipTest(str(e)) from None

    def test_like_numpy(self):
        for shape in ((1,), (7,), (1000,), (3, 256), (2, 3, 17), (0, 4)):
            for dtype in ("float32", "complex64", "complex128", "int16"):
                source = (9 * random.standard_normal(shape)).astype(dtype)
                if source.dtype.kind == "c":
                    source += 1j * random.standard_normal(shape).astype(source.real.dtype)
                names = ("fft", "ifft") if len(shape) == 1 or source.size == 0 else ("fft", "ifft", "fft2", "ifft2")
                for place, norm in ((PLACES[0], None), (PLACES[1], "ortho"), (PLACES[2], "backward"), (PLACES[3], "forward")):
                    a = hpe.array(source, **place)
                    for name in names:
                        with self.subTest((shape, dtype, place, norm, name)):
                            self.check(getattr(hpe.fft, name)(a, norm=norm), getattr(numpy.fft, name)(source, norm=norm))
                    numpy.testing.assert_array_equal(a, source)

    def check(self, got, expected):
        self.assertEqual(got.shape, expected.shape)
        error = 1e-5 if got.dtype == "complex64" else 1e-12
        numpy.testing.assert_allclose(got, expected, rtol=100 * error, atol=10 * error * abs(expected).max(initial=0))

    def test_other_lengths_and_axes(self):
        source = random.standard_normal((4, 10))
        for n in (5, 16):
            self.check(hpe.fft.fft(hpe.array(source), n), numpy.fft.fft(source, n))
            self.check(hpe.fft.ifft2(source, (3, n), axes=(0, 1)), numpy.fft.ifft2(source, (3, n)))
        self.check(hpe.fft.fft(source, axis=1), numpy.fft.fft(source))
        self.assertEqual(hpe.fft.fft(source.astype("float32")).dtype, numpy.dtype("complex64"))


class Mistakes(unittest.TestCase):
    def test_are_told(self):
        for wrong, message, call in (
            (TypeError, "hpe.sort has no kernels for complex128, only for int32", lambda: hpe.sort(numpy.zeros(3, complex))),
            (ValueError, "not 2 dimensions along axis -1", lambda: hpe.sort(numpy.zeros((2, 2)))),
            (ValueError, "along axis 1", lambda: hpe.sort(numpy.zeros(2), axis=1)),
            (TypeError, "hpe.cumsum has no kernels for float16", lambda: hpe.cumsum(numpy.zeros(3), dtype="float16")),
            (ValueError, "not along axis 0 of 2", lambda: hpe.cumsum(numpy.zeros((2, 2)), axis=0)),
            (ValueError, "not along axis -1 of 0", lambda: hpe.cumsum(numpy.zeros(()), axis=-1)),
            (ValueError, r"along \(0,\) of 2", lambda: hpe.fft.fft(numpy.zeros((2, 2)), axis=0)),
            (ValueError, "last 2 axes", lambda: hpe.fft.fft2(numpy.zeros(2))),
            (ValueError, "norm must be", lambda: hpe.fft.fft(numpy.zeros(2), norm="both")),
            (ValueError, "positive numbers", lambda: hpe.fft.fft(numpy.zeros(2), 0)),
        ):
            with self.subTest(message), self.assertRaisesRegex(wrong, message):
                call()


class Migration(unittest.TestCase):
    def test_shows_an_interface(self):
        if "HPE_TEST_COMMAND" in os.environ:
            os.environ["PATH"] += ":" + os.path.dirname(os.environ["HPE_TEST_COMMAND"])
        velocities = numpy.full((40, 30), 2000, "float32")
        velocities[:, 20:] = 3000
        done = []
        image = hpe.rtm.migrate(velocities, 20, shots=1, progress=done.append, smooth=60)
        self.assertEqual((image.shape, image.dtype, hpe.is_hpe(image)), ((40, 30), numpy.float32, True))
        self.assertLess(abs(int(numpy.abs(image[20, 8:]).argmax()) + 8 - 20), 4)
        self.assertEqual((done, done[-1]), (sorted(done), 1))
        with self.assertRaisesRegex(ValueError, "shape"):
            hpe.rtm.migrate(velocities[0], 20)
        with self.assertRaisesRegex(RuntimeError, "no-such-option"):
            hpe.rtm.migrate(velocities, 20, no_such_option=True)


if __name__ == "__main__":
    unittest.main()
