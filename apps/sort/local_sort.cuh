#pragma once

/// Local sorts on GPUs by any order, by CUB's merge sort. A program that sorts elements of its own includes this in a .cu
/// file, and gives the result to its sorter, beside the merges that its module has (HPE_CUDA_MERGE):
///
///   const hpe::sort::local_sort* on_gpus() { return &hpe::sort::local_sort_by<record, by_date>; }
///   ... sorter({"record", sizeof(record), "./records.so", on_gpus()}, count)

#include <cub/device/device_merge_sort.cuh>

#include "apps/sort/local_sort.h"
#include "hpe/cuda.hpp"

namespace hpe::sort {

namespace detail {

inline void require(cudaError_t status) {
  if (status != cudaSuccess) throw error(HPE_ERROR_SYSTEM, std::string("CUB: ") + cudaGetErrorString(status));
}

template <class T, class Less>
std::size_t scratch_of_merges(std::size_t count) {
  std::size_t bytes = 0;
  require(cub::DeviceMergeSort::StableSortKeys(nullptr, bytes, static_cast<T*>(nullptr), count, Less{}));
  return bytes;
}

template <class T, class Less>
void sort_by_merges(const local_range& r) {
  T* const input = reinterpret_cast<T*>(r.input.data());
  T* const output = reinterpret_cast<T*>(r.output.data());
  const std::size_t count = r.input.size() / sizeof(T);
  std::size_t bytes = r.scratch.size();
  enqueue(
      r.device,
      [&](cudaStream_t stream) {
        cudaError_t status =
            cub::DeviceMergeSort::StableSortKeys(r.scratch.data(), bytes, input, count, Less{}, stream);
        if (status == cudaSuccess && output != input)
          status = cudaMemcpyAsync(output, input, r.input.size(), cudaMemcpyDeviceToDevice, stream);
        return status;
      },
      inout(r.input), inout(r.workspace), inout(r.scratch));
}

}  // namespace detail

/// Less is a type without state, a strict weak order that host and device can call (kernels::by_key has its form).
template <class T, class Less>
inline constexpr local_sort local_sort_by{detail::sort_by_merges<T, Less>, detail::scratch_of_merges<T, Less>};

}  // namespace hpe::sort
