"""The C library libhpe.so: its structs, its functions and its errors. The other modules call hpe only through `call`."""

import ctypes
import operator
import os
from ctypes import POINTER, c_char, c_char_p, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path

# The files of hpe that a wheel contains: bin, lib and libexec, as in hpe's archive.
TREE = Path(__file__).parent / "tree"

HOST = -1
CURRENT_DEVICE = -2
IN, OUT, INOUT = 1, 2, 3  # modes of Access
ORDINARY, ON_DEVICE, STRIPED, ON_HOST = range(4)  # kinds of PointerInfo


class Error(RuntimeError):
    """A call of hpe failed. `status` is the name of the status, such as "HPE_ERROR_INVALID_DEVICE"."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status

    def __reduce__(self):
        return type(self), (self.status, str(self))


class OutOfMemoryError(Error, MemoryError):
    """A device, or the host, has too little memory left."""


class Struct(ctypes.Structure):
    """A struct that hpe fills. Its first member is the size of the struct, which the constructor sets."""

    def __init__(self):
        super().__init__(struct_size=ctypes.sizeof(self))


class DeviceInfo(Struct):
    _fields_ = [("struct_size", c_size_t), ("kind", c_int), ("name", c_char * 64), ("memory_total", c_uint64),
                ("memory_free", c_uint64), ("compute_units", c_uint32), ("lost", c_int32), ("peers", c_uint64)]


class PointerInfo(Struct):
    _fields_ = [("struct_size", c_size_t), ("kind", c_int), ("base", c_void_p), ("size", c_size_t), ("device", c_int),
                ("on_host", c_int32), ("on_device", c_int32), ("block", c_size_t)]


class KernelInfo(Struct):
    _fields_ = [("struct_size", c_size_t), ("parameter_count", c_uint32), ("parameter_offsets", POINTER(c_uint32)),
                ("parameter_sizes", POINTER(c_uint32)), ("parameter_bytes", c_size_t)]


class Distribution(ctypes.Structure):
    _fields_ = [("kind", c_int), ("chunk", c_size_t), ("devices", POINTER(c_int)), ("device_count", c_size_t)]


ARGUMENTS = {
    "hpeGetDeviceCount": [POINTER(c_int)],
    "hpeGetDeviceInfo": [c_int, POINTER(DeviceInfo)],
    "hpeSetDevice": [c_int],
    "hpeGetDevice": [POINTER(c_int)],
    "hpeMallocOn": [POINTER(c_void_p), c_size_t, c_int],
    "hpeMallocHost": [POINTER(c_void_p), c_size_t],
    "hpeMallocStriped": [POINTER(c_void_p), c_size_t, POINTER(Distribution)],
    "hpeFree": [c_void_p],
    "hpeMemcpy": [c_void_p, c_void_p, c_size_t],
    "hpeMemset": [c_void_p, c_int, c_size_t],
    "hpePrefetch": [c_void_p, c_size_t, c_int],
    "hpeAdvise": [c_void_p, c_int],
    "hpeMigrate": [c_void_p, c_int],
    "hpeGetPointerInfo": [c_void_p, POINTER(PointerInfo)],
    "hpeGetAccessibleBytes": [c_void_p, POINTER(c_size_t)],
    "hpeWait": [c_void_p, c_size_t],
    "hpeAcquire": [POINTER(c_void_p), c_void_p, c_size_t],
    "hpeAnnouncedEnd": [c_void_p],
    "hpeGetStatistics": [c_void_p],
    "hpeSynchronize": [],
    "hpeSynchronizeDevice": [c_int],
    "hpeModuleLoadPtx": [POINTER(c_void_p), POINTER(c_char_p), c_size_t],
    "hpeModuleUnload": [c_void_p],
    "hpeModuleGetKernel": [POINTER(c_void_p), c_void_p, c_char_p],
    "hpeKernelGetInfo": [c_void_p, POINTER(KernelInfo)],
    "hpeLaunchPacked": [c_char_p],
}


def open_library(name, advice):
    """Loads a library of hpe: the wheel's, else the system's. Raises ImportError with the advice if there is none."""
    own = TREE / "lib" / name
    try:
        return ctypes.CDLL(str(own) if own.exists() else name)
    except OSError as e:
        if "static TLS" in str(e):
            advice = ("import hpe before other packages, whose libraries have used up the space for thread-local data, or set "
                      "GLIBC_TUNABLES=glibc.rtld.optional_static_tls=4096")
        raise ImportError(f"{name} cannot be loaded: {e}; {advice}") from e


def load():
    """Returns libhpe.so: the one that the process has loaded, for example under `hpe run`, else the wheel's, else the system's."""
    loaded = ctypes.CDLL(None)
    if hasattr(loaded, "hpeVersion"):
        return loaded
    try:
        return ctypes.CDLL("libhpe.so.0", os.RTLD_NOW | os.RTLD_NOLOAD)
    except OSError:
        pass
    return open_library("libhpe.so.0", "install hpe's wheel or package, or name the library's folder in LD_LIBRARY_PATH")


_library = load()
_library.hpeGetLastErrorMessage.restype = c_char_p
_library.hpeStatusName.restype = c_char_p
for _name, _types in ARGUMENTS.items():
    getattr(_library, _name).argtypes = _types

version = ".".join(str(_library.hpeVersion() // scale % 100) for scale in (10000, 100, 1))


def error_of(status, message):
    """Returns the exception for the status of a failed call."""
    kind = _library.hpeStatusName(status).decode()
    return (OutOfMemoryError if kind == "HPE_ERROR_OUT_OF_MEMORY" else Error)(kind, message)


_launch = _library.hpeLaunchPacked


def fail(status):
    """Raises Error for the status of the thread's last call, which has failed."""
    raise error_of(status, _library.hpeGetLastErrorMessage().decode())


def launch(packed):
    """Calls hpeLaunchPacked with bytes. Raises Error if the call fails."""
    if (status := _launch(packed)) != 0:
        fail(status)


def call(name, *arguments):
    """Calls a function of hpe without the GIL. Raises Error if the call fails."""
    status = getattr(_library, name)(*arguments)
    if status != 0:
        fail(status)


def address_of(name):
    """Returns a function of hpe as a number, for callbacks."""
    return ctypes.cast(getattr(_library, name), c_void_p)


def whole_number(value, what, least, most):
    """Returns an integer argument as an int. Raises TypeError for other types, and ValueError outside of [least, most]."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} must be a whole number, not {value!r}") from None
    if not least <= number <= most:
        raise ValueError(f"{what} must be between {least} and {most}, not {number}")
    return number
