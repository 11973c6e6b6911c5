// Kernels that combine arrays of numbers element by element, for MPI reductions.

namespace hpe::cuda_hooks {

namespace {

struct sum {
  template <class T>
  __device__ static T of(T a, T b) {
    return a + b;
  }
};
struct product {
  template <class T>
  __device__ static T of(T a, T b) {
    return a * b;
  }
};
struct least {
  template <class T>
  __device__ static T of(T a, T b) {
    return b < a ? b : a;
  }
};
struct greatest {
  template <class T>
  __device__ static T of(T a, T b) {
    return a < b ? b : a;
  }
};

template <class Operation, class T>
__device__ void reduce(T* to, const T* with, unsigned long long count) {
  const unsigned long long all = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  for (unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += all)
    to[i] = Operation::of(to[i], with[i]);
}

}  // namespace

// Each kernel sets to[i] = operation(to[i], with[i]).
#define HPE_REDUCE_KERNEL(operation, name, type)                                              \
  extern "C" __global__ void __launch_bounds__(256)                                           \
      hpe_reduce_##operation##_##name(type* to, const type* with, unsigned long long count) { \
    reduce<operation>(to, with, count);                                                       \
  }
#define HPE_REDUCE_KERNELS(operation)                   \
  HPE_REDUCE_KERNEL(operation, i32, int)                \
  HPE_REDUCE_KERNEL(operation, u32, unsigned)           \
  HPE_REDUCE_KERNEL(operation, i64, long long)          \
  HPE_REDUCE_KERNEL(operation, u64, unsigned long long) \
  HPE_REDUCE_KERNEL(operation, f32, float)              \
  HPE_REDUCE_KERNEL(operation, f64, double)
HPE_REDUCE_KERNELS(sum)
HPE_REDUCE_KERNELS(product)
HPE_REDUCE_KERNELS(least)
HPE_REDUCE_KERNELS(greatest)

}  // namespace hpe::cuda_hooks
