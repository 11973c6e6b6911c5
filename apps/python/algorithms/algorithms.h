/* The sorts, scans and Fourier transforms of hpe's applications as C functions, for the Python package.
 *
 * The pointers are hpe pointers. The functions queue the work, and return HPE_SUCCESS or the status of an error, whose
 * message hpeAlgorithmsMessage returns. devices lists the devices that share the work; count 0 means all devices. Each
 * function keeps the plan of its last call, and the plan's memory, for later calls of the same kind. Thread-safe. */
#ifndef HPE_ALGORITHMS_H
#define HPE_ALGORITHMS_H

#include "hpe/hpe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the message of the calling thread's last failed call of a function below. */
HPE_API const char* hpeAlgorithmsMessage(void);

/* Sorts elements of a type of kernels/sort.def ("i32") in ascending order, in place. Stable. NaNs without a sign come
 * last, and NaNs with a sign first. */
HPE_API hpeStatus hpeSort(const char* type, void* data, uint64_t elements, const int* devices, size_t count);

/* Computes inclusive prefix sums of `problems` consecutive arrays of `length` elements, in place. type: i32, i64, f32
 * or f64. */
HPE_API hpeStatus hpeCumulativeSum(const char* type, void* data, uint64_t length, uint64_t problems, const int* devices,
                                   size_t count);

/* Transforms `batch` consecutive arrays of rows * length complex elements, stored row by row, on the first `devices`
 * devices (0: all). precision: 4 or 8 bytes for each of the two numbers of an element. sign: -1 forward, 1 inverse. The
 * results are not scaled. `in` and `out` are identical or do not overlap. */
HPE_API hpeStatus hpeFourierTransform(int precision, int sign, const void* in, void* out, int64_t rows, int64_t length,
                                      int64_t batch, int devices);

#ifdef __cplusplus
}
#endif
#endif
