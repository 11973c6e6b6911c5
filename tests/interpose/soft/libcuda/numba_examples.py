"""The examples of numba-cuda's manual: vector addition, a matrix product with shared memory, reductions, atomic operations. Also
arrays that Numba, NumPy and hpe share.

Prints one line for each example whose result is right.
"""

import hpe
import numpy as np
from numba import cuda, float32

TILE = 16
ADD = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry add(.param .u64 y, .param .u64 x, .param .u32 count) {
  .reg .pred %outside;
  .reg .b32 %r<5>;
  .reg .b64 %a<5>;
  .reg .f32 %f<4>;
  ld.param.u64 %a0, [y];
  ld.param.u64 %a1, [x];
  ld.param.u32 %r0, [count];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  setp.ge.u32 %outside, %r4, %r0;
  @%outside bra END;
  mul.wide.u32 %a2, %r4, 4;
  add.s64 %a3, %a0, %a2;
  add.s64 %a4, %a1, %a2;
  ld.global.f32 %f1, [%a4];
  ld.global.f32 %f2, [%a3];
  add.f32 %f3, %f1, %f2;
  st.global.f32 [%a3], %f3;
END:
  ret;
}
"""


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
    exchange(rng)
    print("exchange with hpe: right")


def exchange(rng):
    """Random steps of NumPy, Numba and hpe on two arrays, one of hpe and one of Numba."""
    add = hpe.Kernel(ADD, "add")
    stream = cuda.stream()
    ours, theirs = hpe.zeros(5000, "float32"), cuda.to_device(np.zeros(5000, np.float32))
    view = hpe.view(theirs)
    expected = np.zeros((2, 5000), np.float32)
    for _ in range(300):
        step, first = rng.integers(4), rng.integers(100)
        part, other = slice(first, None, 7), slice(first, None)
        if step == 0:  # Numba
            with hpe.device_view(ours[part], stream=rng.choice([None, stream])) as lent:
                array = cuda.as_cuda_array(lent)
                vector_add[20, 256, stream](array, theirs[part], array)
            expected[0][part] += expected[1][part]
        elif step == 1:  # hpe
            add(20, 256, (view[other], ours[other], view[other].size))
            expected[1][other] += expected[0][other]
        elif step == 2:  # NumPy
            view[part] = ours[part] - 1
            expected[1][part] = expected[0][part] - 1
        else:
            vector_add[20, 256](theirs, theirs, theirs)
            np.remainder(view, 64, out=view)
            ours %= 64
            expected[1] *= 2
            expected %= 64
    np.testing.assert_array_equal([ours, view], expected)


main()
