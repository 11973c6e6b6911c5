"""The examples of numba-cuda's manual: vector addition, a matrix product with shared memory, reductions, atomic operations.

Prints one line for each example whose result is right.
"""

import numpy as np
from numba import cuda, float32

TILE = 16


@cuda.jit
def vector_add(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


@cuda.jit
def matrix_product(a, b, c):
    a_tile = cuda.shared.array((TILE, TILE), float32)
    b_tile = cuda.shared.array((TILE, TILE), float32)
    row, column = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for first in range(0, a.shape[1], TILE):
        a_tile[tx, ty] = a[row, first + ty] if row < a.shape[0] and first + ty < a.shape[1] else 0
        b_tile[tx, ty] = b[first + tx, column] if column < b.shape[1] and first + tx < b.shape[0] else 0
        cuda.syncthreads()
        for k in range(TILE):
            total += a_tile[tx, k] * b_tile[k, ty]
        cuda.syncthreads()
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = total


@cuda.reduce
def add_up(a, b):
    return a + b


@cuda.jit
def histogram(values, bins, most):
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(bins, values[i], 1)
        cuda.atomic.max(most, 0, values[i])


def main():
    rng = np.random.default_rng(1)
    x, y = rng.random(10000, dtype=np.float32), rng.random(10000, dtype=np.float32)
    out = cuda.device_array_like(x)
    on_device = cuda.to_device(x), cuda.to_device(y)
    vector_add[(x.size + 127) // 128, 128](*on_device, out)
    np.testing.assert_array_equal(out.copy_to_host(), x + y)
    print("vector addition: right")

    a, b = rng.random((50, 70), dtype=np.float32), rng.random((70, 40), dtype=np.float32)
    c = cuda.device_array((50, 40), dtype=np.float32)
    on_device = cuda.to_device(a), cuda.to_device(b)
    matrix_product[(4, 3), (TILE, TILE)](*on_device, c)
    np.testing.assert_allclose(c.copy_to_host(), a @ b, rtol=1e-5)
    print("matrix product: right")

    numbers = np.arange(1234, dtype=np.float64)
    assert add_up(cuda.to_device(numbers)) == numbers.sum()
    print("reduction: right")

    values = rng.integers(0, 32, 5000).astype(np.int32)
    bins, most = cuda.to_device(np.zeros(32, np.int32)), cuda.to_device(np.zeros(1, np.int32))
    stream = cuda.stream()
    on_device = cuda.to_device(values, stream)
    histogram[(values.size + 63) // 64, 64, stream](on_device, bins, most)
    stream.synchronize()
    np.testing.assert_array_equal(bins.copy_to_host(), np.bincount(values, minlength=32))
    assert most.copy_to_host()[0] == values.max()
    print("atomic operations: right")


main()
