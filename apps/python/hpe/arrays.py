"""NumPy arrays in hpe memory."""

from __future__ import annotations

import atexit
import collections
import ctypes
import math
import os
import sys
import threading
import weakref
from collections.abc import Sequence
from ctypes import byref, c_void_p
from dataclasses import dataclass
from typing import Any, Literal, Union

import numpy
from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import library, releasing
from .devices import current_device, device_number, is_only_device
from .locations import bounds, locate, pointer_info

# Memory of small arrays is kept for later arrays of about the same size. hpe orders a later use of such memory after the kernels
# that still use it. The memory that was given back first is used first, because its kernels have probably finished.
LEAST_KEPT = 256
LARGEST_KEPT = 1 << 20
BLOCK = 64 << 10  # the unit of coherence of small arrays
GRANULE = 2 << 20  # arrays of up to 256 KiB share granules
MOST_KEPT = 4 << 20  # bytes of each size, by place

Array = NDArray[Any]
Shape = Union[int, Sequence[int]]
Place = Union[int, str, None]  # a device, "host" or the thread's current device
Distribution = Union[str, tuple[str, int], None]

_kept: dict[Any, collections.deque[int]] = {}  # by place and size: a deque of addresses
_changed: set[int] = set()  # addresses of live memory that must not be kept, because it was advised, migrated or lent


def _allocate(size, place):
    """Allocates `size` bytes. place: a device, library.HOST, or the kind and the chunk of a distribution."""
    address = c_void_p()
    if isinstance(place, tuple):
        library.call("hpeMallocStriped", byref(address), size, byref(library.Distribution(*place)))
    elif place == library.HOST:
        library.call("hpeMallocHost", byref(address), size)
    else:
        library.call("hpeMallocOn", byref(address), size, place)
    return address.value


def _pop(addresses):
    """Removes and returns the first address; None if there is none, also because another thread was faster."""
    try:
        return addresses.popleft()
    except IndexError:
        return None


def _forget_kept():
    for addresses in list(_kept.values()):
        while (address := _pop(addresses)) is not None:
            releasing.later(os.getpid(), "hpeFree", address)


def _allocate_or_reclaim(size, place):
    """Like _allocate. If memory is short, first frees what earlier arrays have given back."""
    releasing.start()
    if releasing.is_behind():
        releasing.finish()
    try:
        return _allocate(size, place)
    except library.OutOfMemoryError:
        _forget_kept()
        releasing.finish()
        return _allocate(size, place)


def _take(size, place):
    """Returns the address of at least `size` bytes, and the key under which _give_back keeps them; None for memory that is not
    kept."""
    if size > LARGEST_KEPT or isinstance(place, tuple):
        return _allocate_or_reclaim(size, place), None
    size = max(LEAST_KEPT, 1 << (size - 1).bit_length())
    key = place, size
    if kept := _kept.get(key):
        while (address := _pop(kept)) is not None:
            # A launch may have moved the memory to another device.
            if place == library.HOST or is_only_device() or pointer_info(address).device == place:
                return address, key
            releasing.later(os.getpid(), "hpeFree", address)
    return _allocate_or_reclaim(size, place), key


class _Use(weakref.ref):
    """The use of memory by an array and its views."""

    __slots__ = ("address", "key", "process")


class _Process:
    """The process that owns memory of hpe: this process, and not its children of fork."""

    def __init__(self):
        self.number = os.getpid()
        self.owns_memory = True


_uses: dict[int, _Use] = {}  # by address
_memory_types: dict[int, type] = {}  # by size, for kept memory
_process = _Process()


def _disown():
    global _process
    _process.owns_memory = False
    _process = _Process()
    for records in (_kept, _uses, _changed):
        records.clear()


def _end():
    _process.owns_memory = False


os.register_at_fork(after_in_child=_disown)
atexit.register(_end)  # hpe ends with the program


def _memory(address, size, key):
    """Returns the memory as a buffer. _give_back gets the memory after the last use of the buffer."""
    if key is None:
        kind = ctypes.c_char * size
    elif (kind := _memory_types.get(key[1])) is None:
        kind = _memory_types.setdefault(key[1], ctypes.c_char * key[1])
    memory = kind.from_address(address)
    use = _Use(memory, _give_back)
    use.address, use.key, use.process = address, key, _process
    _uses[address] = use
    return memory


def _give_back(use):
    """A finalizer, which may run in any thread at any time. So this function takes no lock and never waits."""
    if not use.process.owns_memory:
        return
    address, key = use.address, use.key
    del _uses[address]
    kept = None if key is None else _kept.get(key)
    if key is not None and kept is None:
        kept = _kept.setdefault(key, collections.deque())
    if kept is None or address in _changed or len(kept) * key[1] >= MOST_KEPT:
        if address in _changed:
            _changed.discard(address)
            releasing.later(use.process.number, "hpeWait", address, 0)  # a stream may still use lent memory
        releasing.later(use.process.number, "hpeFree", address)
    else:
        kept.append(address)


def _place(device, distribution):
    if distribution is None:
        if device is None:
            return current_device()
        if device == "host":
            return library.HOST
        if isinstance(device, str):
            raise ValueError(f'device must be a number of a device, "host" or None, not {device!r}')
        return device_number(device)
    if device is not None:
        raise ValueError("an array has a device or a distribution, not both")
    if distribution in ("block", "cyclic"):
        return ("block", "cyclic").index(distribution), 0
    if isinstance(distribution, (tuple, list)) and len(distribution) == 2 and distribution[0] == "cyclic":
        return 2, library.whole_number(distribution[1], "the bytes of a chunk", 1, sys.maxsize)
    raise ValueError(f'distribution must be "block", "cyclic" or ("cyclic", bytes), not {distribution!r}')


_forms: dict[Any, tuple[numpy.dtype[Any], int]] = {}  # dtypes and sizes of _form, by its arguments
_MOST_FORMS = 1024


def _form(shape, dtype, order):
    """Checks the arguments of empty. Returns the shape, the dtype and the number of bytes."""
    arguments = shape, dtype, order
    dtype = numpy.dtype(dtype)
    if dtype.hasobject:
        raise TypeError(f"{dtype} contains Python objects, which kernels cannot use")
    if dtype.itemsize == 0:
        raise ValueError(f"{dtype!r} has no size; name the size, as in 'S8'")
    if order not in ("C", "F"):
        raise ValueError(f'order must be "C" or "F", not {order!r}')
    extents = shape if isinstance(shape, (tuple, list)) else (shape,)
    shape = tuple([library.whole_number(extent, "an extent", 0, sys.maxsize) for extent in extents])
    size = math.prod(shape) * dtype.itemsize
    if size > sys.maxsize:
        raise library.OutOfMemoryError("HPE_ERROR_OUT_OF_MEMORY", f"an array of {size} bytes is larger than the address space")
    if isinstance(arguments[0], (int, tuple)) and isinstance(arguments[1], (str, type)):
        if len(_forms) >= _MOST_FORMS:
            _forms.clear()
        _forms[arguments] = dtype, size
    return shape, dtype, size


def empty(shape: Shape, dtype: DTypeLike = float, order: Literal["C", "F"] = "C", *, device: Place = None,
          distribution: Distribution = None, alone: bool = False) -> Array:
    """Returns a numpy.ndarray in hpe memory: the same array in Python code, and in kernels on every device.

    shape, dtype: as for numpy.empty. order: "C" or "F". The elements have arbitrary values.
    device: the device whose memory holds the array (default: the thread's current device), or "host": memory that kernels access
    over the link, for small arrays that Python code and kernels change often.
    distribution: the array lies on all devices: "block" (a contiguous part on each device), "cyclic" (granules in turn) or
    ("cyclic", bytes) (chunks of so many bytes in turn).
    alone: a small array shares no block of memory (64 KiB) with other arrays, so that Python code may use those while a device view
    uses this one.
    The memory is freed with the last array or view that uses it. Raises OutOfMemoryError, and Error for an unknown device."""
    try:
        dtype, size = _forms[shape, dtype, order]  # NumPy refuses a shape that only equals that of the entry, such as 3.0
    except (KeyError, TypeError):
        shape, dtype, size = _form(shape, dtype, order)
    place = _place(device, distribution)
    if size == 0:
        return numpy.empty(shape, dtype, order)
    address, key = _take(max(size, BLOCK) if alone else size, place)
    return numpy.ndarray(shape, dtype, _memory(address, size, key), order=order)  # type: ignore[arg-type]


def zeros(shape: Shape, dtype: DTypeLike = float, order: Literal["C", "F"] = "C", *, device: Place = None,
          distribution: Distribution = None, alone: bool = False) -> Array:
    """Like empty, but all elements are 0."""
    result = empty(shape, dtype, order, device=device, distribution=distribution, alone=alone)
    if result.size:
        library.call("hpeMemset", result.ctypes.data, 0, result.nbytes)
    return result


def full(shape: Shape, value: ArrayLike, dtype: DTypeLike | None = None, order: Literal["C", "F"] = "C", *, device: Place = None,
         distribution: Distribution = None, alone: bool = False) -> Array:
    """Like empty, but all elements have the given value. dtype: default is the type of the value."""
    value = numpy.asarray(value)
    result = empty(shape, value.dtype if dtype is None else dtype, order, device=device, distribution=distribution, alone=alone)
    result[...] = value
    return result


def array(source: ArrayLike, dtype: DTypeLike | None = None, order: Literal["C", "F"] = "C", *, device: Place = None,
          distribution: Distribution = None, alone: bool = False) -> Array:
    """Returns a copy of an array, or of anything that numpy.asarray accepts, in hpe memory. Parameters: see empty."""
    source = numpy.asarray(source, dtype)
    result = empty(source.shape, source.dtype, order, device=device, distribution=distribution, alone=alone)
    both_c = source.flags.c_contiguous and result.flags.c_contiguous
    if source.size and (both_c or (source.flags.f_contiguous and result.flags.f_contiguous)):
        library.call("hpeMemcpy", result.ctypes.data, source.ctypes.data, result.nbytes)
    else:
        result[...] = source
    return result


def asarray(source: ArrayLike, dtype: DTypeLike | None = None, *, device: Place = None, distribution: Distribution = None) -> Array:
    """Returns the source itself if it is an array in hpe memory with this dtype, and no device or distribution is given, else a
    copy in hpe memory (see array)."""
    if isinstance(source, numpy.ndarray) and is_hpe(source) and device is None and distribution is None:
        if dtype is None or source.dtype == numpy.dtype(dtype):
            return source
    return array(source, dtype, device=device, distribution=distribution)


@dataclass(frozen=True)
class Info:
    """Where an array lies.

    kind: "ordinary" (not hpe memory), "device", "striped" or "host"; device: the device of the array's first element, or None;
    on_host, on_device: whether the copy of this element in host memory, or on the device, is valid now; allocated: bytes of the
    allocation; block: bytes in a unit of coherence."""

    kind: str
    device: int | None
    on_host: bool
    on_device: bool
    allocated: int
    block: int


def info(array: Array) -> Info:
    """Describes the memory of an array."""
    found = pointer_info(array.ctypes.data)
    kind = ("ordinary", "device", "striped", "host")[found.kind]
    device = found.device if kind in ("device", "striped") else None
    return Info(kind, device, bool(found.on_host), bool(found.on_device), found.size, found.block)


def describe(array: Array) -> str:
    """Returns a sentence that says where an array lies and where its data is valid now, for example
    "float32, shape (1000,), 4000 bytes on device 0; valid: 100 % on the host, 0 % on the device"."""
    what = f"{array.dtype}, shape {array.shape}, {array.nbytes} bytes"
    address, size = bounds(array)
    if size == 0 or not is_hpe(array):
        return f"{what} in ordinary memory"
    block = pointer_info(address).block
    step = block * -(-size // (block * 1000))  # at most 1000 blocks are examined
    found = [pointer_info(at) for at in range(address, address + size, step)]
    if found[0].device == library.HOST:
        return f"{what} in host memory that devices access"
    homes = sorted({each.device for each in found})
    on_host, on_device = (round(100 * sum(values) / len(found)) for values in zip(*((f.on_host, f.on_device) for f in found)))
    where = f"device {homes[0]}" if len(homes) == 1 else f"devices {', '.join(map(str, homes))}"
    return f"{what} on {where}; valid: {on_host} % on the host, {on_device} % on the device{'s' if len(homes) > 1 else ''}"


def is_hpe(array: Array) -> bool:
    """Whether an array lies in hpe memory. An empty array does not."""
    return array.size != 0 and info(array).kind != "ordinary"


def prefetch(array: Array, device: int | str) -> None:
    """Tells hpe that a device, or Python code ("host"), will soon use an array. Does not wait, and does not change results."""
    where = library.HOST if isinstance(device, str) and device == "host" else device_number(device)  # type: ignore[arg-type]
    address, size = bounds(array)
    if size != 0:
        library.call("hpePrefetch", address, size, where)


def wait(array: Array) -> None:
    """Waits until all work that uses an array has finished. Programs need this only to wait without the GIL, so that other threads
    of Python continue: an access to the array waits by itself, with the GIL. Does not report errors (see synchronize)."""
    if (location := locate(array)) is not None:
        library.call("hpeWait", location.first, location.size)


def lend(array: Array) -> None:
    """Ensures that the memory of an array is not kept for other arrays, and is freed after all work that uses it."""
    if (location := locate(array)) is not None:
        _changed.add(location.base)


_ADVICE = {"default": 0, "lazy": 1, "rolling": 2, "write only": 3, "read mostly": 4}


class _Lent(threading.local):
    """The bytes that device views of a thread use: begin, end, and whether they are written."""

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int, bool]] = []


lent = _Lent()


def refuse_lent(address: int, size: int, writes: bool, what: str) -> None:
    """Raises RuntimeError if this thread would wait forever for the end of its own device view."""
    for begin, end, is_written in tuple(lent.ranges):  # another thread may end a view now
        if address < end and begin < address + size and (writes or is_written):
            raise RuntimeError(f"{what} is in use by a device view of this thread, so the thread cannot use it before the end of the "
                               "view's block")


def advise(array: Array, advice: str) -> None:
    """Tells hpe how Python code uses the whole allocation of an array: "default", "lazy" (upload only when a kernel needs the
    data), "rolling" (upload blocks while Python code writes others, in any order), "write only" (Python code overwrites whole
    blocks and never reads; bytes of a block that it does not write become undefined) or "read mostly" (fetch far ahead)."""
    if advice not in _ADVICE:
        raise ValueError(f"advice must be one of {', '.join(map(repr, _ADVICE))}, not {advice!r}")
    lend(array)
    library.call("hpeAdvise", array.ctypes.data, _ADVICE[advice])


def migrate(array: Array, device: int) -> None:
    """Moves the whole allocation of an array to a device. The array stays valid, at the same address. Waits for kernels that use
    the memory."""
    number = device_number(device)
    found = pointer_info(array.ctypes.data)
    if found.base is not None:  # small arrays move together with their neighbours
        first, end = found.base // GRANULE * GRANULE, -(-(found.base + found.size) // GRANULE) * GRANULE
        refuse_lent(first, end - first, True, "the array or a neighbour in memory")
    lend(array)
    library.call("hpeMigrate", array.ctypes.data, number)
