#pragma once

/// What a program said about managed memory (cudaMemAdvise) and where it was last prefetched to: kept so that it can be
/// asked for (cudaMemRangeGetAttribute). By pages of 4 KiB, as CUDA rounds. Thread-safe.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "interpose/cudart/memory_table.h"

namespace hpe::cudart {

/// A device's number, or one of these.
constexpr int at_the_host = -1;  // cudaCpuDeviceId
constexpr int nowhere = -2;      // cudaInvalidDeviceId

struct page_advice {
  bool read_mostly = false;
  int preferred = nowhere;
  int prefetched = nowhere;
  std::uint32_t accessed_by = 0;  // a bit for each device, and the uppermost for the host
};

class managed_advice {
 public:
  /// Changes the pages of a range in an allocation.
  void change(const allocation& whole, const void* address, std::size_t bytes,
              const std::function<void(page_advice&)>& how);

  /// What the pages of a range have: one entry for each run of equal ones, at least one.
  [[nodiscard]] std::vector<page_advice> of(const allocation& whole, const void* address, std::size_t bytes) const;

  /// A new allocation with this base has none.
  void forget(const void* base);

 private:
  mutable std::mutex mutex_;
  std::map<const void*, std::map<std::size_t, page_advice>> all_;  // by base, and from which page on
};

}  // namespace hpe::cudart
