"""What hpe does in a part of a program."""

from __future__ import annotations

import time
from ctypes import byref, c_size_t, c_uint64

from . import library

# The members of hpeStatistics after its size, in order.
_NAMES = ("faults_read", "faults_write", "bytes_to_device", "bytes_to_host", "bytes_peer", "bytes_staged", "blocks_prefetched",
          "blocks_rolled", "launches", "protections", "migrations", "degraded", "bytes_evicted", "bytes_written_back", "bytes_brought_in",
          "evicting_ns", "bytes_given_back", "turn_wait_ns", "bytes_spilled", "bytes_unspilled")


class _Statistics(library.Struct):
    _fields_ = [("struct_size", c_size_t), *((name, c_uint64) for name in _NAMES)]


def _statistics():
    counts = _Statistics()
    library.call("hpeGetStatistics", byref(counts))
    return {name: getattr(counts, name) for name in _NAMES}


class Profile:
    """What hpe did in the body of `with hpe.profile() as profile:`, over all threads and devices.

    seconds: the duration of the body. counts: the members of hpeStatistics (<hpe/hpe.h>), by name, for example "launches",
    "bytes_to_device", "bytes_to_host" and "faults_read". Both are set at the end of the body. print(profile) shows the counts that
    are not 0."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.counts: dict[str, int] = {}

    def __enter__(self) -> Profile:
        self._before, self._began = _statistics(), time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._began
        self.counts = {name: count - self._before[name] for name, count in _statistics().items()}

    def __repr__(self) -> str:
        parts = [f"{name.replace('_', ' ')} {count:,}" for name, count in self.counts.items() if count]
        return "\n".join([f"{self.seconds:.6f} s", *parts])


def profile() -> Profile:
    """Counts what hpe does in the body of a with statement: launches, copied bytes, page faults.

        with hpe.profile() as profile:
            kernel(1000, 256, (a, a.size))
            a.sum()
        print(profile)

    The environment variables HPE_PROFILE and HPE_TRACE, and `hpe run --profile`, show the places in the program and the times."""
    return Profile()
