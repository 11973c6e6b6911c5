"""Where the bytes of arrays lie."""

from __future__ import annotations

import struct
import weakref

import numpy

from . import library

ADDRESS = struct.Struct("=Q")
_ACCESS = struct.Struct("@PNi0P")  # hpeAccess
_NO_ANSWER = bytes(library.PointerInfo())


def pointer_info(address: int) -> library.PointerInfo:
    """Describes the memory at an address."""
    found = library.PointerInfo.from_buffer_copy(_NO_ANSWER)
    library.call("hpeGetPointerInfo", address, found)
    return found


def bounds(array: numpy.ndarray) -> tuple[int, int]:
    """Returns the address of the array's first byte, and the number of bytes up to its last one."""
    if array.flags.forc:
        return array.ctypes.data, array.nbytes
    below = sum((extent - 1) * stride for extent, stride in zip(array.shape, array.strides) if stride < 0)
    above = sum((extent - 1) * stride for extent, stride in zip(array.shape, array.strides) if stride > 0)
    return array.ctypes.data + below, above - below + array.itemsize


class Location(weakref.ref):
    """The bytes of an array in hpe memory, which stay the same as long as the array has the same owner of its memory and the same
    strides.

    pointer: the address of the first element, as the bytes of a kernel's parameter; first, size: all bytes from the first one to
    the last one; base: the allocation that contains them; accesses: bytes of hpeAccess, by mode."""

    __slots__ = ("key", "owner", "strides", "pointer", "first", "size", "base", "accesses")


# By the array's id. The array of an entry may have been replaced by another object, or have other memory or other strides now.
known: dict[int, Location] = {}


def _forget(location):
    known.pop(location.key, None)


def locate(array: numpy.ndarray) -> Location | None:
    """Returns where an array in hpe memory lies; None for arrays without elements, and for other memory. Later calls for the same
    array need no call of hpe."""
    before = known.get(id(array))
    if before is not None and before() is array and before.owner is array.base and before.strides == array.strides:
        return before
    if array.size == 0:
        return None
    first, size = bounds(array)
    found = pointer_info(first)
    if found.base is None:
        return None
    made = Location(array, _forget)
    made.key, made.owner, made.strides, made.pointer, made.base = (
        id(array), array.base, array.strides, ADDRESS.pack(array.ctypes.data), found.base)
    made.first, made.size = first, size
    overwrites = library.OUT if size == array.nbytes else library.INOUT  # the bytes between the elements stay
    modes = {library.IN: library.IN, library.OUT: overwrites, library.INOUT: library.INOUT}
    made.accesses = {asked: _ACCESS.pack(first, size, mode) for asked, mode in modes.items()}
    known[made.key] = made
    return made
