// Buffers of MPI in memory that the checker does not know.

#include <algorithm>

#include "runtime/check/checker.h"

namespace hpe::check {

void checker::add_ordinary(const operation_run& message, std::span<const access_range> ranges) {
  const lock_guard lock(mutex_);
  const auto by = std::make_shared<const actor>(actor{message, 0});
  for (const access_range& each : ranges) ordinary_.push_back({each, by});
}

void checker::forget(const operation_run& message) {
  const lock_guard lock(mutex_);
  std::erase_if(ordinary_, [&](const ordinary_use& each) { return each.by->run.work == message.work; });
}

void checker::add_ordinary_touch(const touched& touch, use how) {
  for (const ordinary_use& each : ordinary_) {
    const std::uint64_t begin = std::max<std::uint64_t>(touch.begin, each.range.begin);
    const std::uint64_t end = std::min<std::uint64_t>(touch.end, each.range.end);
    if (begin < end && (how == use::write || each.range.how == use::write))
      add_touch(nullptr, 0, begin, end, **touch.by, how, *each.by, each.range.how);
  }
}

void checker::add_change(const operation_run& message, std::uint64_t address, const call_place& noticed) {
  const lock_guard lock(mutex_);
  const auto place = std::make_shared<const call_place>(noticed);
  const auto code = std::make_shared<const checked_operation>(
      checked_operation{.what = "CPU code before " + noticed.call, .place = place, .is_host = true});
  add_touch(nullptr, 0, address, address + 1, {{code, nullptr}, 0}, use::write, {message, 0}, use::read);
}

}  // namespace hpe::check
