"""Fourier transforms on devices, with the names of numpy.fft.

On GPUs, the transforms need cuFFT (the CUDA toolkit, or `pip install nvidia-cufft`). On soft devices, they need a build of hpe with
FFTW, which hpe's wheels do not contain because of its licence: use numpy.fft there, which also transforms arrays in hpe memory.

Arrays of float32 or complex64 give complex64, all other types complex128. Transforms run on device 0, or on all devices if the array
is distributed. Raises ValueError for axes other than the last ones, and Error with status HPE_ERROR_NOT_SUPPORTED if cuFFT or FFTW is
missing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy
from numpy.typing import ArrayLike

from .algorithms import call, each_number, place_like
from .arrays import Array, array, empty, is_hpe
from .library import Error

__all__ = ["fft", "fft2", "ifft", "ifft2"]


def _transform(a, lengths, axes, norm, sign):
    a = numpy.asarray(a)
    dimensions = len(axes)
    last = tuple(range(-dimensions, 0))
    if a.ndim < dimensions or tuple(axis - a.ndim if axis >= 0 else axis for axis in axes) != last:
        raise ValueError(f"hpe.fft transforms along the last {dimensions} axes, not along {axes} of {a.ndim}; numpy.moveaxis moves axes")
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f'norm must be "backward", "ortho" or "forward", not {norm!r}')
    lengths = a.shape[-dimensions:] if lengths is None else tuple(lengths)
    if len(lengths) != dimensions or any(length < 1 for length in lengths):
        raise ValueError(f"the lengths must be {dimensions} positive numbers, not {lengths}")
    dtype = numpy.dtype("complex64" if a.dtype.newbyteorder("=") in ("float32", "complex64") else "complex128")
    place, devices = place_like(a)
    if devices is None or devices:
        place = {"device": 0}
    shape = a.shape[:-dimensions] + lengths
    if shape != a.shape:
        part = tuple(slice(min(had, length)) for had, length in zip(a.shape[-dimensions:], lengths))
        padded = numpy.zeros(shape, dtype)
        padded[(...,) + part] = a[(...,) + part]
        a = padded
    ready = a.dtype == dtype and a.flags.c_contiguous and is_hpe(a)
    result = empty(shape, dtype, **place) if ready else array(a, dtype, **place)
    if not result.size:
        return result
    count = math.prod(lengths)
    rows = lengths[0] if dimensions == 2 else 1
    try:
        call("hpeFourierTransform", dtype.itemsize // 2, sign, (a if ready else result).ctypes.data, result.ctypes.data, rows,
             lengths[-1], result.size // count, 0 if devices == [] else 1)
    except Error as e:
        if e.status == "HPE_ERROR_NOT_SUPPORTED":
            raise Error(e.status, f"{e}; numpy.fft transforms arrays in hpe memory, too") from None
        raise
    scaled = {"backward": sign > 0, None: sign > 0, "forward": sign < 0, "ortho": True}[norm]
    if scaled:
        each_number("scale", result.view(result.real.dtype), 1 / math.sqrt(count) if norm == "ortho" else 1 / count)
    return result


def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Returns the Fourier transform along the last axis in hpe memory, like numpy.fft.fft. n: the axis is cut, or extended by zeros,
    to this length; a new length costs a copy by Python code."""
    return _transform(a, None if n is None else (n,), (axis,), norm, -1)


def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Returns the inverse transform along the last axis, like numpy.fft.ifft. Parameters: see fft."""
    return _transform(a, None if n is None else (n,), (axis,), norm, 1)


def fft2(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Array:
    """Returns the transform along the last two axes, like numpy.fft.fft2. s: two lengths, as n of fft."""
    return _transform(a, s, axes, norm, -1)


def ifft2(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Array:
    """Returns the inverse transform along the last two axes, like numpy.fft.ifft2. Parameters: see fft2."""
    return _transform(a, s, axes, norm, 1)
