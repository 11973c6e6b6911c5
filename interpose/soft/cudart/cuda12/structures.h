#pragma once

/// Structures that differ between CUDA 12 and CUDA 13, in their CUDA 12 form; the comments contain CUDA's names of the
/// structures. All other structures are the same in both versions.

#include <driver_types.h>
#include <vector_types.h>

#include <array>
#include <cstddef>
#include <cstring>

namespace hpe::cudart::cuda12 {

struct pointer_attributes {  // cudaPointerAttributes, without the reserved words at its end
  cudaMemoryType type;
  int device;
  void* devicePointer;
  void* hostPointer;
};
static_assert(offsetof(cudaPointerAttributes, hostPointer) == offsetof(pointer_attributes, hostPointer));

struct launch_parameters {  // cudaLaunchParams
  void* function;
  dim3 grid;
  dim3 block;
  void** arguments;
  std::size_t shared_bytes;
  cudaStream_t stream;
};

/// cudaResourceDesc and cudaResourceViewDesc. The structures of CUDA 13 begin with the same members, followed by
/// reserved bytes, which must be zero.
using resource_description = std::array<std::byte, 64>;
using view_description = std::array<std::byte, 48>;

template <class Wide, std::size_t Size>
Wide widened(const std::array<std::byte, Size>& narrow) {
  static_assert(Size < sizeof(Wide));
  Wide result{};
  std::memcpy(&result, narrow.data(), Size);
  return result;
}

template <class Wide, std::size_t Size>
void narrow(const Wide& wide, std::array<std::byte, Size>& result) {
  std::memcpy(result.data(), &wide, Size);
}

/// cudaDeviceProp. CUDA 13 removed eight members; the other members are the same, in the same order.
class alignas(8) device_properties {
 public:
  /// The offsets of the members that CUDA 13 removed.
  enum removed : std::size_t {
    clock_rate = 348,
    device_overlap = 384,
    kernel_exec_timeout_enabled = 392,
    compute_mode = 404,
    max_texture_1d_linear = 416,
    memory_clock_rate = 608,
    single_to_double_precision_perf_ratio = 668,
    cooperative_multi_device_launch = 692,
  };
  static constexpr std::size_t bytes_of_cuda11 = 728;  // the bytes up to and including reservedSharedMemPerBlock

  device_properties() = default;
  explicit device_properties(const cudaDeviceProp& from);
  [[nodiscard]] cudaDeviceProp as_cuda13() const;
  void set(removed member, int value) { std::memcpy(bytes_.data() + member, &value, sizeof value); }

 private:
  std::array<std::byte, 1032> bytes_{};
};

}  // namespace hpe::cudart::cuda12
