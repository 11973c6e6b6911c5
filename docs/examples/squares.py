# A Numba program as you might have it on your disk; it does not use hpe.

import numpy
from numba import cuda


@cuda.jit
def square(numbers):
    i = cuda.grid(1)
    if i < numbers.size:
        numbers[i] *= numbers[i]


numbers = cuda.to_device(numpy.arange(1 << 20, dtype=numpy.float64))
square[4096, 256](numbers)
print(f"31 * 31 = {numbers.copy_to_host()[31]:g} on {cuda.get_current_device().name}")
