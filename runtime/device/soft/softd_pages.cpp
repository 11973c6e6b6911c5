#include "runtime/device/soft/softd_pages.h"

#include <mutex>

#include "runtime/os/virtual_memory.h"

namespace hpe::device::soft {

bool softd_pages::filled(std::uintptr_t number) const {
  const std::shared_lock lock(mutex_);
  return filled_.contains(number);
}

void softd_pages::prepare(void* address, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t last = (begin + bytes) / unit;
  // Units that are written in part are left to faults.
  for (std::uintptr_t number = (begin + unit - 1) / unit; number < last;) {
    if (filled(number)) {
      ++number;
      continue;
    }
    const std::uintptr_t first = number;
    while (number < last && !filled(number)) ++number;
    os::populate_for_writing(reinterpret_cast<void*>(first * unit), (number - first) * unit);  // NOLINT
    const std::unique_lock lock(mutex_);
    for (std::uintptr_t n = first; n < number; ++n) filled_.insert(n);
  }
}

void softd_pages::forget(const void* address, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::unique_lock lock(mutex_);
  if (filled_.empty()) return;
  for (std::uintptr_t number = begin / unit; number * unit < begin + bytes; ++number) filled_.erase(number);
}

}  // namespace hpe::device::soft
