#pragma once

/// Records the program's advice about managed memory (cudaMemAdvise) and the last prefetches of managed memory, so that
/// cudaMemRangeGetAttribute can return them. As in CUDA, ranges are rounded to pages; on soft devices, a page is 4 KiB.
/// Thread-safe.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "interpose/soft/cudart/memory/memory_table.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cudart {

/// A location is the number of a device or one of these constants.
constexpr int at_the_host = -1;  // cudaCpuDeviceId
constexpr int nowhere = -2;      // cudaInvalidDeviceId

struct page_advice {
  bool read_mostly = false;
  int preferred = nowhere;
  int prefetched = nowhere;
  std::uint32_t accessed_by = 0;  // contains a bit for each device; the highest bit stands for the host
};

class managed_advice {
 public:
  /// Calls how(advice) for each run of pages with equal advice in a range of an allocation; how() may change the advice
  /// for these pages.
  void change(const cudart_allocation& whole, const void* address, std::size_t bytes,
              const std::function<void(page_advice&)>& how);

  /// Returns the advice for the pages of a range: one element for each run of pages with equal advice, and at least one
  /// element.
  [[nodiscard]] std::vector<page_advice> of(const cudart_allocation& whole, const void* address,
                                            std::size_t bytes) const;

  /// Removes the advice about an allocation, so that a later allocation with this base begins without advice.
  void forget(const void* base);

 private:
  mutable mutex mutex_;
  // The keys are the base of the allocation and the first page of a run.
  std::map<const void*, std::map<std::size_t, page_advice>> all_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::cudart
