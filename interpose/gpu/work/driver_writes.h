#pragma once

#include <atomic>
#include <cstdint>

namespace hpe::cuda_hooks {

/// Counts the work that may have changed memory of the driver, which may contain constants (__constant__ variables) of
/// the program. If the count has not changed since a copy of a constant was made, the copy is valid. hpe counts work
/// after it has been queued. While no kind of memory is registered (memory_kind.h), no copies exist, and hpe does not
/// count all work.
class driver_writes {
 public:
  static void count() noexcept { number.fetch_add(1, std::memory_order_acq_rel); }
  /// Returns the count; not 0.
  [[nodiscard]] static std::uint64_t counted() noexcept { return number.load(std::memory_order_acquire); }

 private:
  inline static constinit std::atomic<std::uint64_t> number{1};
};

}  // namespace hpe::cuda_hooks
