// Sorts of hpe's own types by CUB: radix sorts of keys, merge sorts of pairs.

#include <cub/device/device_radix_sort.cuh>
#include <map>
#include <type_traits>

#include "apps/sort/local_sort.cuh"
#include "kernels/sort.h"

namespace hpe::sort {

namespace {

template <class T>
std::size_t scratch_of_keys(std::size_t count) {
  std::size_t bytes = 0;
  cub::DoubleBuffer<T> buffers(nullptr, nullptr);
  detail::require(cub::DeviceRadixSort::SortKeys(nullptr, bytes, buffers, count));
  return bytes;
}

template <class T>
void sort_keys(const local_range& r) {
  T* const input = reinterpret_cast<T*>(r.input.data());
  T* const output = reinterpret_cast<T*>(r.output.data());
  T* const workspace = reinterpret_cast<T*>(r.workspace.data());
  const std::size_t count = r.input.size() / sizeof(T);
  cub::DoubleBuffer<T> buffers(input, workspace);
  std::size_t bytes = r.scratch.size();
  enqueue(
      r.device,
      [&](cudaStream_t stream) {
        cudaError_t status = cub::DeviceRadixSort::SortKeys(r.scratch.data(), bytes, buffers, count, 0, 8 * sizeof(T), stream);
        if (status == cudaSuccess && buffers.Current() != output)
          status = cudaMemcpyAsync(output, buffers.Current(), r.input.size(), cudaMemcpyDeviceToDevice, stream);
        return status;
      },
      inout(r.input), inout(r.workspace), inout(r.scratch));
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
