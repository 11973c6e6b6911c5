"""Programs of Numba with one defect each; cases.h describes the comments. numba_cases.py wrong|right [CASE...]"""

import sys

import numpy as np
from numba import cuda

COUNT = 1024
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


@cuda.jit
def fill(p, value):
    i = cuda.grid(1)
    if i < p.size:
        p[i] = value


@cuda.jit
def twice(to, source):
    i = cuda.grid(1)
    if i < to.size:
        to[i] = 2 * source[i]


def zeros():
    array = cuda.to_device(np.zeros(COUNT, np.int32))
    cuda.synchronize()
    return array


@case  # stream-race fill
def no_event(wrong):
    p, q = zeros(), zeros()
    a, b, done = cuda.stream(), cuda.stream(), cuda.event()
    fill[4, 256, a](p, 1)  # FIRST
    done.record(a)
    if not wrong:
        done.wait(b)
    twice[4, 256, b](q, p)  # SECOND
    cuda.synchronize()


@case  # host-touch -
def result_read_too_early(wrong):
    p, to, a = zeros(), cuda.pinned_array(COUNT, np.int32), cuda.stream()
    to[:] = 0
    p.copy_to_host(to, stream=a)  # FIRST
    if not wrong:
        a.synchronize()
    to[100] + 1  # SECOND
    cuda.synchronize()


@case  # never-written twice
def never_written(wrong):
    q = zeros()
    p = cuda.device_array(COUNT, np.int32)  # FIRST
    if not wrong:
        fill[4, 256](p, 1)
    twice[4, 256](q, p)  # SECOND
    cuda.synchronize()


@cuda.jit(lineinfo=True)
def last(to, source, size):
    i = cuda.grid(1)
    if i < size:
        to[0] = source[i]  # FIRST SECOND


@case  # block-race last
def every_block_writes_one_element(wrong):
    p, q = zeros(), cuda.to_device(np.arange(COUNT, dtype=np.int32))
    last[4, 256](p, q, COUNT if wrong else 1)
    cuda.synchronize()


if __name__ == "__main__":
    for name in sys.argv[2:] or CASES:
        CASES[name](sys.argv[1] == "wrong")
