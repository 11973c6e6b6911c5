#include "runtime/device/soft/shared/timeline.h"

#include <algorithm>
#include <cstring>

namespace hpe::device::soft {

void failure_log::append(const command_failure& what) noexcept {
  const std::uint64_t index = count_.load(std::memory_order_relaxed);
  record& r = records_[index % kept];
  // An exchange, because the processor could move the following stores before a plain store.
  r.value.exchange(0, std::memory_order_acq_rel);
  r.order = what.order;
  r.status = what.status;
  r.fault = what.fault;
  const std::size_t length = std::min(what.sentence.size(), sizeof r.sentence - 1);
  std::memcpy(r.sentence, what.sentence.data(), length);
  r.sentence[length] = '\0';
  r.value.store(what.value, std::memory_order_release);
  count_.store(index + 1, std::memory_order_release);
}

std::optional<command_failure> failure_log::at(std::uint64_t index) const {
  const std::uint64_t n = count();
  if (index >= n || index + kept < n) return std::nullopt;
  const record& r = records_[index % kept];
  const std::uint64_t value = r.value.load(std::memory_order_acquire);
  command_failure found{value, r.order, r.status, std::string(r.sentence, ::strnlen(r.sentence, sizeof r.sentence)),
                        r.fault};
  // fetch_add(0) instead of a load, because the reads above could happen after a plain load.
  if (value == 0 || r.value.fetch_add(0, std::memory_order_acq_rel) != value) return std::nullopt;
  return found;
}

std::optional<command_failure> failure_log::find(std::uint64_t value) const {
  const std::uint64_t n = count();
  for (std::uint64_t index = n; index > 0 && index + kept > n; --index) {
    if (records_[(index - 1) % kept].value.load(std::memory_order_acquire) != value) continue;
    if (auto found = at(index - 1); found && found->value == value) return found;
  }
  return std::nullopt;
}

}  // namespace hpe::device::soft
