// Sorts hpe's own types with CUB: keys by radix sort, pairs by merge sort.

#include <cub/device/device_radix_sort.cuh>
#include <map>
#include <type_traits>

#include "apps/sort/local_sort.cuh"
#include "kernels/sort.h"

namespace hpe::sort {

namespace {

template <class T>
std::size_t scratch_of_keys(std::size_t count, bool in_place) {
  std::size_t bytes = 0;
  cub::DoubleBuffer<T> buffers(nullptr, nullptr);
  // The number of passes is even, so a sort that alternates between two arrays ends in the first one. A sort that is
  // not in place uses a third array in its scratch bytes, so that it ends in the output without a copy.
  detail::require(in_place ? cub::DeviceRadixSort::SortKeys(nullptr, bytes, buffers, count)
                           : cub::DeviceRadixSort::SortKeys(nullptr, bytes, static_cast<const T*>(nullptr),
                                                            static_cast<T*>(nullptr), count));
  return bytes;
}

template <class T>
int sort_keys(const local_range& r, void* cuda_stream) {
  T* const input = reinterpret_cast<T*>(r.input.data());
  T* const output = reinterpret_cast<T*>(r.output.data());
  const std::size_t count = r.input.size() / sizeof(T);
  constexpr int bits = 8 * sizeof(T);
  std::size_t bytes = r.scratch.size();
  const auto stream = static_cast<cudaStream_t>(cuda_stream);
  if (!r.in_place())
    return cub::DeviceRadixSort::SortKeys(r.scratch.data(), bytes, static_cast<const T*>(input), output, count, 0, bits,
                                          stream);
  cub::DoubleBuffer<T> buffers(input, reinterpret_cast<T*>(r.workspace.data()));
  const cudaError_t status = cub::DeviceRadixSort::SortKeys(r.scratch.data(), bytes, buffers, count, 0, bits, stream);
  if (status != cudaSuccess || buffers.Current() == input) return status;
  return cudaMemcpyAsync(input, buffers.Current(), r.input.size(), cudaMemcpyDeviceToDevice, stream);
}

template <class T>
local_sort sort_of_type() {
  if constexpr (std::is_arithmetic_v<T>)
    return {sort_keys<T>, scratch_of_keys<T>};
  else
    return local_sort_by<T, kernels::by_key>;
}

}  // namespace

const local_sort* find_local_sort(const std::string& name) {
  static const std::map<std::string, local_sort> all = {
#define HPE_SORT_PAIR(K, V) kernels::sort_pair<K, V>
#define HPE_SORT(name, ...) {#name, sort_of_type<__VA_ARGS__>()},
#include "kernels/sort.def"
  };
  const auto found = all.find(name);
  return found == all.end() ? nullptr : &found->second;
}

}  // namespace hpe::sort
