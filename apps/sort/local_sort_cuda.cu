// Sorts by CUB: radix sorts of keys, merge sorts of pairs.

#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <algorithm>
#include <map>
#include <type_traits>

#include "apps/sort/local_sort.h"
#include "hpe/cuda.hpp"
#include "kernels/sort.h"

namespace hpe::sort {

namespace {

struct range {
  int device;
  std::span<std::byte> input, output, workspace;
};

void require(cudaError_t status) {
  if (status != cudaSuccess) throw error(HPE_ERROR_SYSTEM, std::string("CUB: ") + cudaGetErrorString(status));
}

/// Bytes of CUB's own for a sort; freed behind it by hpe, which waits for what uses them.
array<std::byte> temporary(int device, std::size_t bytes) {
  return array<std::byte>(std::max<std::size_t>(bytes, 1), on_device(device));
}

template <class T>
void sort_keys(const range& r) {
  T* const input = reinterpret_cast<T*>(r.input.data());
  T* const output = reinterpret_cast<T*>(r.output.data());
  T* const workspace = reinterpret_cast<T*>(r.workspace.data());
  const std::size_t count = r.input.size() / sizeof(T);
  cub::DoubleBuffer<T> buffers(input, workspace);
  std::size_t bytes = 0;
  require(cub::DeviceRadixSort::SortKeys(nullptr, bytes, buffers, count));
  const array<std::byte> scratch = temporary(r.device, bytes);
  enqueue(
      r.device,
      [&](cudaStream_t stream) {
        cudaError_t status = cub::DeviceRadixSort::SortKeys(scratch.data(), bytes, buffers, count, 0, 8 * sizeof(T), stream);
        if (status == cudaSuccess && buffers.Current() != output)
          status = cudaMemcpyAsync(output, buffers.Current(), r.input.size(), cudaMemcpyDeviceToDevice, stream);
        return status;
      },
      inout(r.input), inout(r.workspace), inout(scratch));
}

template <class T>
void sort_pairs(const range& r) {
  T* const input = reinterpret_cast<T*>(r.input.data());
  T* const output = reinterpret_cast<T*>(r.output.data());
  const std::size_t count = r.input.size() / sizeof(T);
  std::size_t bytes = 0;
  require(cub::DeviceMergeSort::StableSortKeys(nullptr, bytes, input, count, kernels::by_key{}));
  const array<std::byte> scratch = temporary(r.device, bytes);
  enqueue(
      r.device,
      [&](cudaStream_t stream) {
        cudaError_t status =
            cub::DeviceMergeSort::StableSortKeys(scratch.data(), bytes, input, count, kernels::by_key{}, stream);
        if (status == cudaSuccess && output != input)
          status = cudaMemcpyAsync(output, input, r.input.size(), cudaMemcpyDeviceToDevice, stream);
        return status;
      },
      inout(r.input), inout(r.workspace), inout(scratch));
}

template <class T>
void sort_range(const range& r) {
  if constexpr (std::is_arithmetic_v<T>)
    sort_keys<T>(r);
  else
    sort_pairs<T>(r);
}

using function = void (*)(const range&);

const std::map<std::string, function>& functions() {
  static const std::map<std::string, function> all = {
#define HPE_SORT_PAIR(K, V) kernels::sort_pair<K, V>
#define HPE_SORT(name, ...) {#name, sort_range<__VA_ARGS__>},
#include "kernels/sort.def"
  };
  return all;
}

}  // namespace

bool can_sort_locally(const std::string& name) { return functions().count(name) != 0; }

void sort_locally(const std::string& name, int device, std::span<std::byte> input, std::span<std::byte> output,
                  std::span<std::byte> workspace) {
  functions().at(name)({device, input, output, workspace});
}

}  // namespace hpe::sort
