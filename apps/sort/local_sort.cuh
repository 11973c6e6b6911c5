#pragma once

/// Sorts on one GPU by any order, with CUB's merge sort. A program that sorts its own type of elements includes this
/// header in a .cu file, and passes local_sort_by to its sorter; its module has the merge kernels (HPE_CUDA_MERGE):
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
std::size_t scratch_of_merges(std::size_t count, bool /*in_place*/) {
  std::size_t here = 0, across = 0;
  require(cub::DeviceMergeSort::StableSortKeys(nullptr, here, static_cast<T*>(nullptr), count, Less{}));
  require(cub::DeviceMergeSort::StableSortKeysCopy(nullptr, across, static_cast<const T*>(nullptr),
                                                   static_cast<T*>(nullptr), count, Less{}));
  return here > across ? here : across;
}

template <class T, class Less>
int sort_by_merges(const local_range& r, void* cuda_stream) {
  T* const input = reinterpret_cast<T*>(r.input.data());
  T* const output = reinterpret_cast<T*>(r.output.data());
  const std::size_t count = r.input.size() / sizeof(T);
  std::size_t bytes = r.scratch.size();
  const auto stream = static_cast<cudaStream_t>(cuda_stream);
  if (r.in_place()) return cub::DeviceMergeSort::StableSortKeys(r.scratch.data(), bytes, input, count, Less{}, stream);
  return cub::DeviceMergeSort::StableSortKeysCopy(r.scratch.data(), bytes, static_cast<const T*>(input), output, count,
                                                  Less{}, stream);
}

}  // namespace detail

/// Less is a stateless function object, callable on host and device, that defines a strict weak order, like
/// kernels::by_key.
template <class T, class Less>
inline constexpr local_sort local_sort_by{detail::sort_by_merges<T, Less>, detail::scratch_of_merges<T, Less>};

}  // namespace hpe::sort
