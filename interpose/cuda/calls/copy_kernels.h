#pragma once

#include <array>
#include <list>
#include <memory>
#include <mutex>

#include "interpose/adopted_pointers.h"
#include "interpose/cuda/calls/byte_places.h"
#include "interpose/cuda/calls/own_memory.h"

namespace hpe::cuda_hooks {

/// Kernels of hpe's own in a context of the program, for copies of bytes that are not in a row. Any thread.
class copy_kernels {
 public:
  /// Throws what the driver refuses.
  copy_kernels(const device::cuda::driver& cu, std::shared_ptr<context_parts> parts, own_memory::goes told);
  ~copy_kernels();
  copy_kernels(const copy_kernels&) = delete;
  copy_kernels& operator=(const copy_kernels&) = delete;

  /// Whether a kernel copies these faster than a copy engine.
  [[nodiscard]] static bool suit(const interpose::copied_rows& shape) noexcept;

  // Each queues a copy, with the context current. Both sides are memory that kernels of the context reach.

  [[nodiscard]] CUresult copy(CUdeviceptr to, CUdeviceptr from, const interpose::copied_rows& shape, CUstream stream);

  /// The stretches of an element, as kernels find them.
  struct table {
    std::shared_ptr<const std::vector<interpose::stretch>> element;
    std::shared_ptr<std::byte> pieces;  // in device memory
    std::size_t bits = 0;               // of all numbers in it
    std::ptrdiff_t begin = 0;           // the lowest byte of the element
    std::ptrdiff_t end = 0;             // behind the highest one
  };
  /// It is kept for the next time. Throws what the driver refuses.
  [[nodiscard]] std::shared_ptr<const table> table_of(const interpose::scattered_bytes& which);
  /// The first `bytes` bytes of scattered data to a row, and from there. Fewer than most_bytes.
  [[nodiscard]] CUresult gather(CUdeviceptr to, CUdeviceptr from, const interpose::scattered_bytes& which,
                                const table& how, std::size_t bytes, CUstream stream);
  [[nodiscard]] CUresult scatter(CUdeviceptr to, CUdeviceptr from, const interpose::scattered_bytes& which,
                                 const table& how, std::size_t bytes, CUstream stream);
  static constexpr std::size_t most_bytes = std::size_t{1} << 31;

  [[nodiscard]] own_memory& memory() noexcept { return *memory_; }

 private:
  static constexpr std::size_t unit_sizes = 5;  // 1, 2, 4, 8 and 16 bytes
  static constexpr std::size_t most_tables = 64;

  CUresult launch(byte_places to, byte_places from, std::size_t bytes, std::size_t bits, CUstream stream);

  const device::cuda::driver& cu_;
  const std::shared_ptr<context_parts> parts_;
  const std::shared_ptr<own_memory> memory_;
  CUmodule module_ = nullptr;
  std::array<CUfunction, unit_sizes> functions_{};
  std::mutex mutex_;
  std::list<std::shared_ptr<const table>> tables_;  // the one that was used last is first
};

}  // namespace hpe::cuda_hooks
