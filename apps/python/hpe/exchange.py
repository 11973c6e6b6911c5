"""Arrays that other libraries use on a device (CuPy, Numba, PyTorch), and NumPy views of the memory of these libraries."""

from __future__ import annotations

import contextlib
import ctypes
from ctypes import byref, c_char_p, c_int, c_int32, c_size_t, c_uint, c_void_p, py_object, pythonapi
from functools import lru_cache
from typing import Any

import numpy

from . import library
from .arrays import Array, info, lend, lent, refuse_lent
from .devices import current_device
from .locations import bounds, locate, pointer_info

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # DLPack's kinds of devices

_is_valid = ctypes.PYFUNCTYPE(c_int, py_object, c_char_p)(("PyCapsule_IsValid", pythonapi))
_pointer = ctypes.PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", pythonapi))


class _Driver:
    """The CUDA driver of this process. Raises RuntimeError if there is none, or if a call fails."""

    MEMORY_TYPE, IS_MANAGED, DEVICE_ORDINAL = 2, 8, 9  # of CUpointer_attribute
    HOST_MEMORY = 1  # CU_MEMORYTYPE_HOST
    HELP = "for soft devices, start the program by `hpe run --cuda soft -- python ...`"

    def __init__(self):
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as e:
            raise RuntimeError(f"this process has no CUDA driver ({e}); {self.HELP}") from e
        self._contexts = {}  # by device
        self.call("cuInit", 0)

    def call(self, name, *arguments):
        if (status := getattr(self._library, name)(*arguments)) != 0:
            raise RuntimeError(f"{name} returned CUDA's error {status}")

    def device_of(self, address):
        """Returns CUDA's number of the device on which hpe memory lies."""
        number = c_int()
        try:
            self.call("cuPointerGetAttribute", byref(number), self.DEVICE_ORDINAL, c_void_p(address))
        except RuntimeError as e:
            raise RuntimeError(f"the CUDA driver of this process does not know the memory of hpe's devices; {self.HELP}") from e
        return number.value

    def is_host_memory(self, address):
        """Whether CPU code itself can use the byte at an address: pinned, registered or managed memory."""
        kind, is_managed = c_uint(), c_uint()
        for attribute, value in ((self.MEMORY_TYPE, kind), (self.IS_MANAGED, is_managed)):
            self._library.cuPointerGetAttribute(byref(value), attribute, c_void_p(address))  # other memory has neither
        return kind.value == self.HOST_MEMORY or is_managed.value == 1

    @contextlib.contextmanager
    def context(self, device):
        """In the body, the primary context of a device is current, which libraries use. The context stays retained, because hpe
        itself uses it as long as the program runs."""
        if (wanted := self._contexts.get(device)) is None:
            handle, wanted = c_int(), c_void_p()
            self.call("cuDeviceGet", byref(handle), device)
            self.call("cuDevicePrimaryCtxRetain", byref(wanted), handle)
            self._contexts[device] = wanted
        current = c_void_p()
        self.call("cuCtxGetCurrent", byref(current))
        if current.value == wanted.value:
            yield
            return
        self.call("cuCtxPushCurrent_v2", wanted)
        try:
            yield
        finally:
            self.call("cuCtxPopCurrent_v2", byref(c_void_p()))


_driver = lru_cache(maxsize=None)(_Driver)


class DeviceView:
    """An array in hpe memory as an array of a CUDA device; see device_view."""

    def __init__(self, array: Array, stream: Any = None) -> None:
        if not isinstance(array, numpy.ndarray):
            raise TypeError(f"device_view needs a NumPy array, not {type(array).__name__}")
        self._location = locate(array)
        if array.size and (self._location is None or pointer_info(self._location.first).kind != library.ON_DEVICE):
            raise ValueError("device_view needs an array on one device (hpe.array and hpe.asarray make one), and this array lies in "
                             f"{info(array).kind} memory")
        self._array = array
        self._stream = stream.__cuda_stream__()[1] if hasattr(stream, "__cuda_stream__") else stream
        if self._stream is not None and not isinstance(self._stream, int):
            raise TypeError(f"stream must be the handle of a CUDA stream or an object with __cuda_stream__, not {stream!r}")
        self._driver = _driver()
        self._work: c_void_p | None = None  # in a with block: the announcement of the work on the device
        self.shape, self.dtype = array.shape, array.dtype
        if self._location is not None:
            self._driver.device_of(self._location.first)  # raises an exception if CUDA does not know the memory

    def __enter__(self) -> DeviceView:
        if self._work is not None:
            raise RuntimeError("this device view is in use; make another one by hpe.device_view")
        work = c_void_p()
        if (location := self._location) is not None:
            lend(self._array)
            is_written = self._array.flags.writeable
            refuse_lent(location.first, location.size, is_written, "the array")
            library.call("hpeAcquire", byref(work), location.accesses[library.INOUT if is_written else library.IN], 1)
            self._range = location.first, location.first + location.size, is_written
            self._ranges = lent.ranges  # of this thread; the block may end in another one
            self._ranges.append(self._range)
        self._work = work
        return self

    def __exit__(self, *_: object) -> None:
        work, self._work = self._work, None
        if work is None or work.value is None:
            return
        self._ranges.remove(self._range)
        stream_ends = False
        try:
            with self._driver.context(self.device):
                if self._stream is None:
                    self._driver.call("cuCtxSynchronize")
                else:
                    end = library.address_of("hpeAnnouncedEndOnStream")
                    self._driver.call("cuStreamAddCallback", c_void_p(self._stream), end, work, 0)
                    stream_ends = True
        finally:
            if not stream_ends:
                library.call("hpeAnnouncedEnd", work)

    @property
    def device(self) -> int:
        """CUDA's number of the array's device. A migration changes it, but not during a block."""
        return current_device() if self._location is None else self._driver.device_of(self._location.first)

    def _acquired(self):
        if self._work is None:
            raise RuntimeError("a device view can be used only inside its block: with hpe.device_view(array) as view: ...")
        return self._array

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        interface = self._acquired().__array_interface__
        if not self._array.size:
            interface["data"] = 0, interface["data"][1]
        return {**interface, "stream": None}  # every stream may use the array at once

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.device

    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        """Returns a capsule. stream: as in the Python array API; every stream may use the array at once."""
        if stream is not None and (not isinstance(stream, int) or stream < -1 or stream == 0):
            raise ValueError(f"stream must be None, -1, 1, 2 or a CUDA stream's handle, not {stream!r}")
        if dl_device not in (None, self.__dlpack_device__()):
            raise BufferError(f"the array lies on {self.__dlpack_device__()} and cannot be passed as an array on {dl_device}")
        if copy:
            raise BufferError("a device view passes arrays without copies; hpe.array copies an array")
        options = {"max_version": max_version} if max_version is not None and numpy.lib.NumpyVersion(numpy.__version__) >= "2.1.0" else {}
        capsule = self._acquired().__dlpack__(**options)
        device, _ = _device_in(capsule)
        device[:] = self.__dlpack_device__()
        return capsule


def device_view(array: Array, *, stream: Any = None) -> DeviceView:
    """Lends an array in hpe memory to libraries that use device memory, without a copy.

        with hpe.device_view(array) as view:
            cupy.asarray(view)...               # or numba.cuda.as_cuda_array(view), torch.as_tensor(view, device="cuda")

    The view has __cuda_array_interface__ (version 3) and __dlpack__. The beginning of the block waits until earlier work on the
    array has finished and the data is on the device, so the block may use the array on any stream. The end of the block waits for
    all streams of the device. With stream (the handle, or an object with __cuda_stream__), the end does not wait, and the block may
    use the array only on this stream. Python code, hpe.Kernel and other blocks that use the array wait until the work has finished.

    In the block, the thread must use the array only through the view: its Python code would wait for the end of the block forever
    (hpe.Kernel and a second view raise RuntimeError). Another thread may end the block. Arrays that libraries made of the view must not be used after the block.
    Read-only arrays stay read-only. Raises ValueError for arrays that do not lie on one device, and RuntimeError if CUDA does not
    know hpe's devices."""
    return DeviceView(array, stream)


def _device_in(capsule):
    """Returns the device of a DLPack capsule as two numbers, kind and number, that can be changed, and whether the array is
    read-only. NumPy makes and reads all capsules, but only for memory of the host."""
    for name, offset in ((b"dltensor", 8), (b"dltensor_versioned", 40)):
        if _is_valid(capsule, name):
            address = _pointer(capsule, name)
            return (c_int32 * 2).from_address(address + offset), offset == 40 and c_int32.from_address(address + 24).value & 1 == 1
    raise BufferError("__dlpack__ returned no DLPack capsule, or one that was used before")


class _Memory:
    """Memory as NumPy understands it, whose owner lives as long as an array uses it."""

    def __init__(self, interface, owner):
        self.__array_interface__ = interface
        self._owner = owner


class _OfHost:
    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, **_):
        return self._capsule

    def __dlpack_device__(self):
        return CPU, 0


def _dlpack_view(source):
    capsule = source.__dlpack__(stream=-1) if source.__dlpack_device__()[0] == CUDA else source.__dlpack__()
    device, is_read_only = _device_in(capsule)
    kind = device[0]
    if kind not in (CPU, CUDA, CUDA_HOST, CUDA_MANAGED):
        raise BufferError(f"NumPy cannot view memory of DLPack's device kind {kind}, only of CPUs (1) and CUDA devices (2)")
    device[:] = CPU, 0
    array = numpy.from_dlpack(_OfHost(capsule))
    interface = array.__array_interface__
    interface["data"] = interface["data"][0], is_read_only
    return interface, array, kind in (CUDA, CUDA_MANAGED)


def _waited_for_host_memory(address, size):
    """If memory is pinned, registered or managed, waits for the program's work in the current context. Returns whether it is."""
    try:
        driver = _driver()
    except RuntimeError:
        return False
    if not (driver.is_host_memory(address) and driver.is_host_memory(address + size - 1)):
        return False
    driver.call("cuCtxSynchronize")
    return True


def view(source: Any) -> Array:
    """Returns a numpy.ndarray that shares the memory of an array of another library (CuPy, Numba), which must have
    __cuda_array_interface__ or __dlpack__, without a copy.

    Python code that uses the result waits for all earlier work of the program on the device, and hpe moves the data. This is possible
    for all memory of CUDA in a program that `hpe run` has started, with --cuda soft or on GPUs, and for memory of hpe's own arrays.
    For CUDA's pinned, registered and managed memory, only this function waits for the earlier work in the current context, and the
    program itself must wait for later work. Raises ValueError for other memory: copy the array to the host by its library. On GPUs, hpe.Kernel and hpe.device_view refuse
    the result, unless the memory is that of hpe's own arrays."""
    if hasattr(source, "__cuda_array_interface__"):
        interface, owner, is_on_device = dict(source.__cuda_array_interface__), source, True
        if interface.pop("mask", None) is not None:
            raise ValueError("NumPy cannot view an array with a mask")
    elif hasattr(source, "__dlpack__"):
        interface, owner, is_on_device = _dlpack_view(source)
    else:
        raise TypeError(f"{type(source).__name__} has neither __cuda_array_interface__ nor __dlpack__")
    if 0 in interface["shape"]:
        return numpy.empty(interface["shape"], interface["typestr"])
    array = numpy.asarray(_Memory(interface, owner))
    if is_on_device:
        address, size = bounds(array)
        accessible = c_size_t()
        library.call("hpeGetAccessibleBytes", address, byref(accessible))
        if accessible.value < size and not _waited_for_host_memory(address, size):
            raise ValueError("the array does not lie inside one allocation that Python code can use, so NumPy cannot view it: start the "
                             "program by `hpe run -- python ...`, which makes CUDA's memory usable, or copy the array to the host by its "
                             "library")
    return array
