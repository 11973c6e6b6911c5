#pragma once

#include <atomic>

#include "interpose/adopted_pointers.h"
#include "runtime/core/operations/host_access.h"

namespace hpe::interpose::mpi {

/// Memory of the CUDA driver that hpe leaves to the MPI library: with HPE_MPI=auto, if the MPI library itself transfers
/// this memory (libraries/own_transport.h). hpe keeps all memory that CPU code has touched, because only hpe knows
/// which bytes are on the host.
class left_memory {
 public:
  /// Decides for this process. The wrappers of MPI_Init call this after MPI has started.
  static void decide();

  [[nodiscard]] static bool exists() noexcept { return any_exists.load(std::memory_order_relaxed); }
  /// Whether hpe leaves a buffer to the MPI library.
  [[nodiscard]] static bool has(const void* buffer) noexcept {
    if (!exists() || core::host_access::of(buffer) != nullptr) return false;
    adopted_pointers* const driver = adopted_pointers::instance();
    return driver == nullptr || !driver->touched(reinterpret_cast<std::uintptr_t>(buffer));
  }
  /// The same, for an operation that outlives its call. hpe cannot keep the memory coherent if CPU code touches the
  /// allocation before the operation ends, and then warns.
  [[nodiscard]] static bool has_for_operation(const void* buffer) noexcept {
    if (!has(buffer)) return false;
    if (adopted_pointers* const driver = adopted_pointers::of(buffer); driver != nullptr)
      driver->left_to_library(reinterpret_cast<std::uintptr_t>(buffer));
    return true;
  }

 private:
  static std::atomic<bool> any_exists;
};

}  // namespace hpe::interpose::mpi
