"""Sorts, prefix sums and Fourier transforms on devices: the library libhpe-algorithms.so, which the wheels contain."""

from __future__ import annotations

from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint64, c_void_p
from functools import lru_cache

import numpy
from numpy.typing import ArrayLike, DTypeLike

from . import library
from .arrays import Array, array, info
from .devices import current_device
from .kernels import Kernel

_DEVICES = [POINTER(c_int), c_size_t]
_ARGUMENTS = {
    "hpeSort": [c_char_p, c_void_p, c_uint64, *_DEVICES],
    "hpeCumulativeSum": [c_char_p, c_void_p, c_uint64, c_uint64, *_DEVICES],
    "hpeFourierTransform": [c_int, c_int, c_void_p, c_void_p, c_int64, c_int64, c_int64, c_int],
}


@lru_cache(maxsize=None)
def _algorithms():
    loaded = library.open_library("libhpe-algorithms.so", "hpe's wheel contains this library")
    loaded.hpeAlgorithmsMessage.restype = c_char_p
    for function, types in _ARGUMENTS.items():
        getattr(loaded, function).argtypes = types
    return loaded


def call(function, *arguments):
    """Calls a function of the library without the GIL. Raises Error if the call fails."""
    loaded = _algorithms()
    status = getattr(loaded, function)(*arguments)
    if status != 0:
        raise library.error_of(status, loaded.hpeAlgorithmsMessage().decode())


def place_like(source):
    """Returns the place of a result, as keyword arguments of hpe.empty, and the devices that compute it: the device on which an
    array lies, or all devices if the array is distributed."""
    found = info(source) if source.size else None
    if found is None or found.kind in ("ordinary", "host"):
        return {}, None
    if found.kind == "striped":
        return {"distribution": "block"}, []
    return {"device": found.device}, [found.device]


def _devices(numbers):
    numbers = [current_device()] if numbers is None else numbers
    return (c_int * len(numbers))(*numbers), len(numbers)


# Kernels that change each number of an array. TYPE is f32 or f64, and SIZE the bytes of a number.
_EACH_NUMBER = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry ENTRY(.param .u64 data, .param .u64 count, .param .TYPE factor) {
  .reg .pred %p;
  .reg .b32 %r<4>;
  .reg .b64 %a<5>;
  .reg .TYPE %f<3>;
  ld.param.u64 %a0, [data];
  ld.param.u64 %a1, [count];
  ld.param.TYPE %f0, [factor];
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  cvt.u64.u32 %a3, %r2;
  mad.wide.u32 %a2, %r0, %r1, %a3;
  setp.ge.u64 %p, %a2, %a1;
  @%p bra END;
  mad.lo.s64 %a4, %a2, SIZE, %a0;
  ld.global.TYPE %f1, [%a4];
  CHANGE
  st.global.TYPE [%a4], %f1;
END:
  ret;
}
"""
_CHANGES = {
    "scale": "mul.TYPE %f1, %f1, %f0;",
    "replace_nans": "setp.nan.TYPE %p, %f1, %f1; selp.TYPE %f1, %f0, %f1, %p;",
}


@lru_cache(maxsize=None)
def _kernel_for_each_number(entry, size):
    text = _EACH_NUMBER.replace("ENTRY", entry).replace("CHANGE", _CHANGES[entry])
    return Kernel(text.replace("TYPE", f"f{8 * size}").replace("SIZE", str(size)), entry)


def each_number(entry, a, factor):
    """Changes each number of a contiguous array of float32 or float64 on its device: "scale" multiplies by a factor, "replace_nans"
    replaces NaNs."""
    kernel = _kernel_for_each_number(entry, a.dtype.itemsize)
    kernel(-(-a.size // 256), 256, (a, a.size, a.dtype.type(factor)), device=info(a).device)


SORTED = {"int32": b"i32", "uint32": b"u32", "int64": b"i64", "uint64": b"u64", "float32": b"f32", "float64": b"f64"}
ADDED = {"int32": b"i32", "uint32": b"i32", "int64": b"i64", "uint64": b"i64", "float32": b"f32", "float64": b"f64"}


def _type_name(dtype, names, what):
    name = dtype.newbyteorder("=").name
    if name not in names:
        raise TypeError(f"hpe.{what} has no kernels for {dtype}, only for {', '.join(names)}")
    return names[name]


def sort(a: ArrayLike, axis: int | None = -1) -> Array:
    """Returns a sorted copy of an array in hpe memory, like numpy.sort.

    a: an array of one dimension, or of any shape with axis=None, of int32, uint32, int64, uint64, float32 or float64. The sort runs
    on the device on which the array lies, or on all devices if the array is distributed. NaNs come last.
    Raises TypeError for other types, and ValueError for other shapes."""
    a = numpy.asarray(a)
    name = _type_name(a.dtype, SORTED, "sort")
    if axis is None:
        a = a.reshape(-1)
    elif a.ndim != 1 or axis not in (0, -1):
        raise ValueError("hpe.sort sorts arrays of one dimension, or all elements (axis=None), "
                         f"not {a.ndim} dimensions along axis {axis}")
    place, devices = place_like(a)
    result = array(a, a.dtype.newbyteorder("="), **place)
    if result.size:
        if result.dtype.kind == "f":
            each_number("replace_nans", result.reshape(-1), numpy.nan)  # a NaN with a sign would come first
        call("hpeSort", name, result.ctypes.data, result.size, *_devices(devices))
    return result


def cumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None) -> Array:
    """Returns the prefix sums of an array in hpe memory, like numpy.cumsum.

    axis: the last axis, or None for the sums over all elements in order. dtype: the type of the result, int32, uint32, int64,
    uint64, float32 or float64; the default is that of numpy.cumsum (int64 for smaller integers). Sums of floating-point numbers are
    rounded in another order than NumPy's. The device: see sort. Raises TypeError for other types, and ValueError for another axis."""
    a = numpy.asarray(a)
    dtype = numpy.cumsum(numpy.zeros(1, a.dtype)).dtype if dtype is None else numpy.dtype(dtype)
    name = _type_name(dtype, ADDED, "cumsum")
    if axis is None:
        a = a.reshape(-1)
    elif axis not in (-1, a.ndim - 1) or a.ndim == 0:
        raise ValueError(f"hpe.cumsum adds along the last axis, or over all elements (axis=None), not along axis {axis} of {a.ndim}")
    place, devices = place_like(a)
    result = array(a, dtype.newbyteorder("="), **place)
    if result.size:
        length = result.shape[-1]
        call("hpeCumulativeSum", name, result.ctypes.data, length, result.size // length, *_devices(devices))
    return result
