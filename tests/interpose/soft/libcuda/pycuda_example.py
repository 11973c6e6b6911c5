"""The first example of PyCUDA's manual, and an example with a constant, a GPU array and a stream.

Prints one line for each part whose result is right.
"""

import numpy as np
import pycuda.autoinit  # noqa: F401: makes a context
import pycuda.driver as drv
from pycuda import gpuarray
from pycuda.compiler import SourceModule

SOURCE = """
__constant__ float factor;

__global__ void multiply_them(float *dest, float *a, float *b)
{
  const int i = threadIdx.x;
  dest[i] = a[i] * b[i];
}

__global__ void scale(float *data, int count)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] *= factor;
}
"""


def main():
    module = SourceModule(SOURCE)
    rng = np.random.default_rng(1)
    a, b = rng.random(400, dtype=np.float32), rng.random(400, dtype=np.float32)
    dest = np.zeros_like(a)
    module.get_function("multiply_them")(drv.Out(dest), drv.In(a), drv.In(b), block=(400, 1, 1), grid=(1, 1))
    np.testing.assert_array_equal(dest, a * b)
    print("multiplication: right")

    factor, size = module.get_global("factor")
    assert size == 4
    drv.memcpy_htod(factor, np.float32(3))
    stream = drv.Stream()
    on_gpu = gpuarray.to_gpu_async(a, stream=stream)
    scale = module.get_function("scale").prepare("Pi")
    scale.prepared_async_call((4, 1), (128, 1, 1), stream, on_gpu.gpudata, a.size)
    stream.synchronize()
    np.testing.assert_array_equal(on_gpu.get(), a * np.float32(3))
    print("constant and stream: right")


main()
