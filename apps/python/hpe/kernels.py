"""Kernels in CUDA C++ or PTX that use arrays in hpe memory."""

from __future__ import annotations

import ctypes
import os
import re
import site
import struct
import weakref
from collections.abc import Iterable, Sequence
from ctypes import byref, c_char_p, c_size_t, c_void_p
from pathlib import Path
from typing import Any, Union

import numpy

from . import library, releasing
from .arrays import Array, lent, refuse_lent
from .devices import device_number
from .locations import ADDRESS, known, locate

Extents = Union[int, Sequence[int]]
IN, OUT, INOUT = library.IN, library.OUT, library.INOUT
NONE: tuple[Array, ...] = ()  # the default of reads and overwrites


class CompileError(ValueError):
    """CUDA C++ source that NVRTC cannot compile. The message is NVRTC's log."""


def _nvrtc():
    """Returns NVIDIA's compiler library. It is not a part of hpe."""
    folders = [Path(path, "lib64") for path in (os.environ.get("CUDA_PATH"), "/usr/local/cuda") if path]
    for packages in [*site.getsitepackages(), site.getusersitepackages()]:
        folders += [Path(packages, "nvidia", name, "lib") for name in ("cu13", "cuda_nvrtc")]
    names = ["libnvrtc.so.13", "libnvrtc.so.12"]
    for name in [*names, *(str(folder / name) for folder in folders for name in names)]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    raise ImportError("CUDA C++ needs NVRTC, and libnvrtc.so.13 and .12 were not found: install the CUDA toolkit, or the package "
                      "nvidia-cuda-nvrtc; kernels in PTX need no NVRTC")


def _compile(source, name, options):
    """Returns the PTX of the source, and the kernel's name in the PTX, which differs for C++ functions."""
    nvrtc = _nvrtc()
    nvrtc.nvrtcGetErrorString.restype = c_char_p
    program = c_void_p()

    def check(status):
        if status != 0:
            raise CompileError(f"NVRTC: {nvrtc.nvrtcGetErrorString(status).decode()}")

    check(nvrtc.nvrtcCreateProgram(byref(program), source.encode(), b"kernel.cu", 0, None, None))
    try:
        check(nvrtc.nvrtcAddNameExpression(program, name.encode()))
        arguments = [b"--gpu-architecture=compute_75", *(option.encode() for option in options)]
        status = nvrtc.nvrtcCompileProgram(program, len(arguments), (c_char_p * len(arguments))(*arguments))
        size = c_size_t()
        if status != 0:
            check(nvrtc.nvrtcGetProgramLogSize(program, byref(size)))
            log = ctypes.create_string_buffer(size.value)
            check(nvrtc.nvrtcGetProgramLog(program, log))
            raise CompileError(log.value.decode().strip())
        lowered = c_char_p()
        check(nvrtc.nvrtcGetLoweredName(program, name.encode(), byref(lowered)))
        check(nvrtc.nvrtcGetPTXSize(program, byref(size)))
        ptx = ctypes.create_string_buffer(size.value)
        check(nvrtc.nvrtcGetPTX(program, ptx))
        return ptx.value, lowered.value
    finally:
        nvrtc.nvrtcDestroyProgram(byref(program))


class _Module:
    """A module of PTX."""

    def __init__(self, text):
        self.handle = c_void_p()
        library.call("hpeModuleLoadPtx", byref(self.handle), (c_char_p * 1)(text), 1)
        releasing.start()
        weakref.finalize(self, releasing.later, os.getpid(), "hpeModuleUnload", self.handle).atexit = False


# hpePackedLaunch: kernel, bytes of parameters, device, number of accesses; and of hpeGrid: blocks, threads of a block, bytes of
# shared memory, and zeros.
_HEAD = struct.Struct("=QQiI3I3II20x")
_MOST_HEADS = 256

# Python numbers as bytes of a parameter, by the parameter's size.
_NUMBERS: dict[type, dict[int, str]] = {int: {1: "b", 2: "h", 4: "i", 8: "q"}, float: {2: "e", 4: "f", 8: "d"}}
_UNSIGNED = {1: "B", 2: "H", 4: "I", 8: "Q"}
_SCALARS = {numpy.dtype(name).type: letter for name, letter in (
    ("i1", "b"), ("i2", "h"), ("i4", "i"), ("i8", "q"), ("u1", "B"), ("u2", "H"), ("u4", "I"), ("u8", "Q"), ("f2", "e"), ("f4", "f"), ("f8", "d"))}


def _extents(value, what):
    if type(value) is int and 0 < value <= 0xFFFFFFFF:
        return value, 1, 1
    extents = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if not 1 <= len(extents) <= 3:
        raise ValueError(f"{what} must be one to three positive numbers, not {value!r}")
    return (*(library.whole_number(extent, f"each number of {what}", 1, 0xFFFFFFFF) for extent in extents), 1, 1)[:3]


class _Parameter:
    """A parameter of a kernel. packers: functions that make its bytes, and those up to the next parameter, by the type of the value."""

    def __init__(self, size, padding):
        self.size, self.padding = size, bytes(padding)
        self.is_pointer = size == 8 and not padding  # an array's address is all bytes

        def packer(letter):
            return struct.Struct(f"={letter}{padding}x").pack

        self.packers = {kind: packer(letters[size]) for kind, letters in _NUMBERS.items() if size in letters}
        self.packers.update((kind, packer(letter)) for kind, letter in _SCALARS.items() if struct.calcsize(f"={letter}") == size)
        self.unsigned = packer(_UNSIGNED[size]) if size in _UNSIGNED else None


def _configure_launcher(launch):
    """Gives _hpe_launcher the objects of this package. launch: the address of hpeLaunchPacked."""
    kinds = {"i": 0, "u": 1, "f": 2}  # number_kind of launcher.cpp
    numbers = {int: kinds["i"], float: kinds["f"]}
    numbers.update((kind, kinds[numpy.dtype(kind).kind] + 4 * numpy.dtype(kind).itemsize) for kind in _SCALARS)
    _hpe_launcher.configure(launch, known, lent, numbers, numpy.ndarray, (IN, OUT, INOUT), library.fail)


try:
    import _hpe_launcher
except ImportError:  # Python without the stable interface, or hpe was built without Python's headers
    class Launcher:
        """Calls of a kernel."""

        def __call__(self, *args: Any, **options: Any) -> None:
            self._launch(*args, **options)

        def prepare(self, heads, parameters):
            """The other Launcher needs these objects."""
else:
    Launcher = _hpe_launcher.Launcher
    _configure_launcher(library.address_of("hpeLaunchPacked").value)


def _several(arrays):
    return (arrays,) if isinstance(arrays, numpy.ndarray) else arrays


class Kernel(Launcher):
    """A kernel, for all devices.

        kernel = hpe.Kernel(code, name, options=())
        kernel(grid, block, args, *, shared_mem=0, reads=(), overwrites=(), device=None)

    code: PTX, or CUDA C++ source, which NVRTC compiles with the options, a list. name: the kernel's name; in CUDA C++ also an
    expression such as "scale<float>". Raises Error for invalid PTX, CompileError for invalid source, and ImportError without NVRTC.

    A launch has the parameters of cupy.RawKernel, and returns as soon as it is queued. grid, block: one to three numbers. args: for
    pointers, arrays in hpe memory; for other parameters, NumPy scalars of exactly the parameter's size, or Python numbers, which
    get the size of the parameter (write 2.0 for a floating-point parameter, not 2). shared_mem: bytes of dynamic shared memory of
    a block. reads: arrays that the kernel only reads; overwrites: arrays of which the kernel writes every byte without reading it.
    Each names an object in args, for its first place there. All other arrays may be read and written. A wrong declaration gives
    wrong results. device: the number of the device (default: the thread's current device). Python code that accesses one of the
    arrays waits for the launch. hpe.synchronize() raises the error of a launch that failed.

    A kernel may use only the arrays in args. Thread-safe."""

    def __init__(self, code: str | bytes, name: str, options: Sequence[str] = ()) -> None:
        if isinstance(options, str):
            raise TypeError("options must be a list of options, not a text")
        code = code.decode() if isinstance(code, bytes) else code
        entry = name.encode()
        if re.search(r"^\s*\.version\s", code, re.MULTILINE):
            text = code.encode()
        else:
            text, entry = _compile(code, name, options)
        self._module = _Module(text)
        kernel = c_void_p()
        library.call("hpeModuleGetKernel", byref(kernel), self._module.handle, entry)
        self._kernel = kernel.value
        facts = library.KernelInfo()
        library.call("hpeKernelGetInfo", self._kernel, byref(facts))
        count, size = facts.parameter_count, facts.parameter_bytes
        offsets = [*facts.parameter_offsets[:count], size + -size % 8]  # the first one is 0
        self._parameters = [_Parameter(each, end - begin - each)
                            for begin, end, each in zip(offsets, offsets[1:], facts.parameter_sizes[:count])]
        self._size = size
        self._heads: dict[Any, bytes] = {}  # hpePackedLaunch, by the arguments of a launch
        self.prepare(self._heads, tuple((each.size, len(each.padding)) for each in self._parameters))
        self.name = name

    def __repr__(self) -> str:
        return f"<hpe.Kernel {self.name}, {len(self._parameters)} parameters>"

    def __copy__(self) -> Kernel:
        return self

    def __deepcopy__(self, _: Any) -> Kernel:
        return self

    def _launch(self, grid: Extents, block: Extents, args: Sequence[Any], *, shared_mem: int = 0, reads: Array | Iterable[Array] = NONE,
                overwrites: Array | Iterable[Array] = NONE, device: int | None = None) -> None:
        """A launch, for all arguments. _hpe_launcher launches without this function if the arguments are valid and not unusual."""
        if len(args) != len(self._parameters):
            raise TypeError(f"{self.name} has {len(self._parameters)} parameters, and the launch has {len(args)} arguments")
        modes = None  # by the array's id
        if reads is not NONE:
            modes = {}
            for array in reads if type(reads) is list else _several(reads):
                modes[id(array)] = IN
        if overwrites is not NONE:
            modes = modes or {}
            for array in _several(overwrites):
                modes[id(array)] = OUT
        is_lent = lent.ranges
        parts: list[Any] = [None]  # bytes of hpePackedLaunch
        accesses, mode = [], INOUT
        for parameter, argument in zip(self._parameters, args):
            if (packer := parameter.packers.get(type(argument))) is not None:
                try:
                    parts.append(packer(argument))
                except (struct.error, OverflowError):
                    parts.append(self._scalar(parameter, argument))
                continue
            key = id(argument)
            location = known.get(key)
            if location is None or not (location() is argument and location.owner is argument.base and location.strides == argument.strides):
                is_array = isinstance(argument, numpy.ndarray)
                location = locate(argument) if is_array else None
                if location is None and not (is_array and argument.ndim > 0):
                    parts.append(self._scalar(parameter, argument))
                    continue
            if modes is not None:
                mode = modes.pop(key, INOUT)
            if location is None or is_lent or not parameter.is_pointer or (mode != IN and not argument.flags.writeable):
                self._check(parameter, argument, location, mode)
                parts.append((ADDRESS.pack(argument.ctypes.data) if location is None else location.pointer) + parameter.padding)
                if location is not None:
                    accesses.append(location.accesses[mode])
                continue
            parts.append(location.pointer)
            accesses.append(location.accesses[mode])
        if modes:
            raise ValueError(f"{self.name}: reads and overwrites may name only arrays that args contains")
        try:
            parts[0] = self._heads[grid, block, shared_mem, device, len(accesses)]
        except (KeyError, TypeError):
            parts[0] = self._head(grid, block, shared_mem, device, len(accesses))
        parts += accesses
        library.launch(b"".join(parts))

    def _head(self, grid, block, shared_mem, device, count):
        """Returns the bytes of hpePackedLaunch, which follow from arguments of a launch."""
        on = library.CURRENT_DEVICE if device is None else device_number(device)
        shared = library.whole_number(shared_mem, "shared_mem", 0, 0xFFFFFFFF)
        head = _HEAD.pack(self._kernel, self._size, on, count, *_extents(grid, "grid"), *_extents(block, "block"), shared)
        if len(self._heads) >= _MOST_HEADS:
            self._heads.clear()
        if all(isinstance(value, (int, tuple)) for value in (grid, block)):
            self._heads[grid, block, shared_mem, device, count] = head
        return head

    def _place(self, parameter):
        """Returns the words that name an argument in messages."""
        return f"argument {self._parameters.index(parameter)} of {self.name}"

    def _check(self, parameter, array, location, mode):
        """Raises an exception if a launch cannot use an array in this way."""
        if parameter.size != 8:
            raise TypeError(f"{self._place(parameter)} is an array, but the parameter has {parameter.size} bytes, so it is no pointer")
        if location is None and array.size:
            raise ValueError(f"{self._place(parameter)} is an array in ordinary memory, which kernels cannot use; hpe.array "
                             "and hpe.asarray copy it to hpe memory")
        if mode != IN and not array.flags.writeable:
            raise ValueError(f"{self._place(parameter)} is a read-only array, so reads must name it")
        if location is not None:
            refuse_lent(location.first, location.size, mode != IN, self._place(parameter))

    def _scalar(self, parameter, value):
        """Returns the bytes of a parameter and its padding, for all values."""
        size = parameter.size
        if isinstance(value, (numpy.generic, numpy.ndarray)):
            if value.nbytes != size:
                raise TypeError(f"{self._place(parameter)} is {value.dtype}, which has {value.nbytes} bytes, but the parameter has {size}")
            native = value if value.dtype.isnative else value.astype(value.dtype.newbyteorder("="))
            return native.tobytes() + parameter.padding
        kind = int if isinstance(value, int) else float
        if not isinstance(value, (int, float)) or kind not in parameter.packers:
            raise TypeError(f"{self._place(parameter)}, {value!r}, does not fit a parameter of {size} bytes; pass a NumPy scalar or array")
        is_large = kind is int and value >= 1 << (8 * size - 1)
        try:
            return (parameter.unsigned if is_large else parameter.packers[kind])(value)
        except (struct.error, OverflowError) as e:
            raise OverflowError(f"{self._place(parameter)}, {value}, does not fit a parameter of {size} bytes") from e
