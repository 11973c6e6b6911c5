#include "runtime/core/operations/zero_copy_trial.h"

#include <algorithm>

#include "runtime/base/log.h"

namespace hpe::core {

namespace {

// The launches of a trial, by number. The first launches in parts bring in the data, and the first launch with
// zero-copy memory creates this memory. The next launch is measured alone, because it may take very long.
constexpr unsigned parts_from = 4, parts_end = 12, first_zero_copy = 13, zero_copy_from = 14, zero_copy_end = 18;
// Zero-copy memory evicts all other data from the device, so it must save a tenth of the time.
constexpr double least_gain = 0.9;
// If the program makes more different launches, hpe forgets the results.
constexpr std::size_t most_keys = 4096;

}  // namespace

zero_copy_trial::key zero_copy_trial::key_of(const void* kernel, const std::array<std::uint32_t, 3>& grid,
                                             std::span<const hpeAccess> accesses, const allocator& memory) {
  key result{kernel, grid, {}};
  for (const hpeAccess& each : accesses)
    if (const allocation found = memory.find(each.address); found.region != nullptr)
      result.allocations.push_back(found.base);
  std::ranges::sort(result.allocations);
  const auto same = std::unique(result.allocations.begin(), result.allocations.end());
  result.allocations.erase(same, result.allocations.end());
  return result;
}

zero_copy_trial::way zero_copy_trial::choose(const key& of, function_ref<void()> await) {
  unsigned number = 0;
  {
    const lock_guard lock(mutex_);
    if (states_.size() > most_keys) states_.clear();
    state& its = states_[of];
    if (its.is_decided) return its.decided;
    number = its.launches++;
    const bool waits = number == parts_from || number == parts_end || number == first_zero_copy ||
                       number == zero_copy_from || number == zero_copy_end;
    if (!waits) return number < parts_end ? way::parts : way::zero_copy;
  }
  try {
    await();
  } catch (...) {  // the next launch waits in place of this one
    const lock_guard lock(mutex_);
    states_[of].launches = number;
    throw;
  }
  const lock_guard lock(mutex_);
  state& its = states_[of];
  const auto now = clock::now();
  measure(its, number, std::chrono::duration<double>(now - its.began).count());
  its.began = now;
  if (its.is_decided) return its.decided;
  return number < parts_end ? way::parts : way::zero_copy;
}

void zero_copy_trial::measure(state& its, unsigned number, double seconds) {
  if (number == parts_end) its.seconds_in_parts = seconds / (parts_end - parts_from);
  const bool is_slow = number == zero_copy_from && seconds > 2 * its.seconds_in_parts;
  if (!is_slow && number != zero_copy_end) return;
  const double with_zero_copy = seconds / (is_slow ? 1 : zero_copy_end - zero_copy_from);
  its.is_decided = true;
  its.decided = with_zero_copy < least_gain * its.seconds_in_parts ? way::zero_copy : way::parts;
  log(log_level::info,
      "a launch whose memory does not fit takes {:.3f} ms in parts, and {:.3f} ms with data in host memory",
      its.seconds_in_parts * 1e3, with_zero_copy * 1e3);
}

void zero_copy_trial::decide(const key& of, way how) {
  const lock_guard lock(mutex_);
  state& its = states_[of];
  its.is_decided = true;
  its.decided = how;
}

}  // namespace hpe::core
