# Uses CuPy arrays, a kernel that CuPy compiles at run time, and large copies in both directions.
import sys

sys.path.pop(0)  # this folder contains a file with the module's name

import cupy
import numpy

host = numpy.arange(1 << 25, dtype=numpy.float64)
device = cupy.asarray(host)
print("round trip", bool((cupy.asnumpy(device) == host).all()))
print("sum", float(device.sum()))
scale = cupy.RawKernel(
    'extern "C" __global__ void scale(double* p, double k, size_t n) {'
    "  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; if (i < n) p[i] *= k; }", "scale")
scale(((1 << 25) // 256,), (256,), (device, cupy.float64(3), cupy.uint64(1 << 25)))
print("scaled", bool((cupy.asnumpy(device) == host * 3).all()))
print("sorted", float(cupy.sort(device)[12345]))
