"""The devices of the process, and waiting for their work."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from ctypes import byref, c_int
from dataclasses import dataclass
from functools import lru_cache

from . import library


@dataclass(frozen=True)
class Device:
    """A device. memory_total and memory_free are bytes that allocations can use, now or in all."""

    number: int
    kind: str  # "soft" or "cuda"
    name: str
    memory_total: int
    memory_free: int
    compute_units: int
    lost: bool
    peers: tuple[int, ...]  # the numbers of the devices whose memory kernels of this device can use


def device_count() -> int:
    """Returns the number of devices, which is at least 1."""
    count = c_int()
    library.call("hpeGetDeviceCount", byref(count))
    return count.value


@lru_cache(maxsize=None)
def is_only_device() -> bool:
    """Whether the process has one device."""
    return device_count() == 1


def devices() -> list[Device]:
    """Returns a list of all devices."""
    found = []
    for number in range(device_count()):
        info = library.DeviceInfo()
        library.call("hpeGetDeviceInfo", number, byref(info))
        peers = tuple(d for d in range(64) if info.peers >> d & 1)
        found.append(Device(number, ("soft", "cuda")[info.kind], info.name.decode(), info.memory_total, info.memory_free,
                            info.compute_units, bool(info.lost), peers))
    return found


def device_number(value: int) -> int:
    """Returns the number of a device as an int. Raises TypeError for another type; hpe itself refuses devices that do not exist."""
    return library.whole_number(value, "the number of a device", 0, 0x7FFFFFFF)


def current_device() -> int:
    """Returns the number of the device that arrays and kernels of this thread use if they name no device."""
    if is_only_device():
        return 0
    number = c_int()
    library.call("hpeGetDevice", byref(number))
    return number.value


@contextlib.contextmanager
def device(number: int) -> Iterator[None]:
    """In the body of `with hpe.device(number):`, arrays and kernels of this thread use this device if they name none."""
    before = current_device()
    library.call("hpeSetDevice", device_number(number))
    try:
        yield
    finally:
        library.call("hpeSetDevice", before)


def synchronize(number: int | None = None) -> None:
    """Waits until all work has finished (on one device, if a number is given). Raises Error if a kernel or a copy failed since
    the last call. Programs need this only to measure times and to learn of errors: accesses to arrays wait by themselves."""
    if number is None:
        library.call("hpeSynchronize")
    else:
        library.call("hpeSynchronizeDevice", device_number(number))
