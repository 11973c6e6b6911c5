// Sorts by CUB: radix sorts of keys, merge sorts of pairs.

#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <map>
#include <type_traits>

#include "apps/sort/local_sort.h"
#include "hpe/cuda.hpp"
#include "kernels/sort.h"

namespace hpe::sort {

namespace {

struct range {
  int device;
  std::span<std::byte> input, output, workspace, scratch;
};

void require(cudaError_t status) {
  if (status != cudaSuccess) throw error(HPE_ERROR_SYSTEM, std::string("CUB: ") + cudaGetErrorString(status));
}

template <class T>
std::size_t scratch_for(std::size_t count) {
  std::size_t bytes = 0;
  if constexpr (std::is_arithmetic_v<T>) {
    cub::DoubleBuffer<T> buffers(nullptr, nullptr);
    require(cub::DeviceRadixSort::SortKeys(nullptr, bytes, buffers, count));
  } else {
    require(cub::DeviceMergeSort::StableSortKeys(nullptr, bytes, static_cast<T*>(nullptr), count, kernels::by_key{}));
  }
  return bytes;
}

template <class T>
void sort_keys(const range& r) {
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
void sort_pairs(const range& r) {
  T* const input = reinterpret_cast<T*>(r.input.data());
  T* const output = reinterpret_cast<T*>(r.output.data());
  const std::size_t count = r.input.size() / sizeof(T);
  std::size_t bytes = r.scratch.size();
  enqueue(
      r.device,
      [&](cudaStream_t stream) {
        cudaError_t status =
            cub::DeviceMergeSort::StableSortKeys(r.scratch.data(), bytes, input, count, kernels::by_key{}, stream);
        if (status == cudaSuccess && output != input)
          status = cudaMemcpyAsync(output, input, r.input.size(), cudaMemcpyDeviceToDevice, stream);
        return status;
      },
      inout(r.input), inout(r.workspace), inout(r.scratch));
}

template <class T>
void sort_range(const range& r) {
  if constexpr (std::is_arithmetic_v<T>)
    sort_keys<T>(r);
  else
    sort_pairs<T>(r);
}

struct functions_of_type {
  void (*sort)(const range&);
  std::size_t (*scratch)(std::size_t);
};

const std::map<std::string, functions_of_type>& functions() {
  static const std::map<std::string, functions_of_type> all = {
#define HPE_SORT_PAIR(K, V) kernels::sort_pair<K, V>
#define HPE_SORT(name, ...) {#name, {sort_range<__VA_ARGS__>, scratch_for<__VA_ARGS__>}},
#include "kernels/sort.def"
  };
  return all;
}

}  // namespace

bool can_sort_locally(const std::string& name) { return functions().count(name) != 0; }

std::size_t scratch_of_local_sort(const std::string& name, std::size_t count) {
  return functions().at(name).scratch(count);
}

void sort_locally(const std::string& name, int device, std::span<std::byte> input, std::span<std::byte> output,
                  std::span<std::byte> workspace, std::span<std::byte> scratch) {
  functions().at(name).sort({device, input, output, workspace, scratch});
}

}  // namespace hpe::sort
