// The merge kernels for GPUs, for the types of sort.def.

#include "kernels/cuda/merge.cuh"

#define HPE_SORT_PAIR(K, V) hpe::kernels::sort_pair<K, V>
#define HPE_SORT(name, ...)           \
  using element_##name = __VA_ARGS__; \
  HPE_CUDA_MERGE(name, element_##name, hpe::kernels::by_key)
#include "kernels/sort.def"
#undef HPE_SORT
