#include "runtime/device/soft/shared/link.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "runtime/os/futex.h"

namespace hpe::device::soft {

namespace {

constexpr std::uint64_t second = 1'000'000'000;
constexpr std::uint64_t late_wakeup = 60'000;  // nanoseconds by which a sleep may end late
// How long a claim on a link lasts after the arrival of the user's current burst, in nanoseconds.
constexpr std::uint64_t return_time = 100'000;

void raise(std::atomic<std::uint64_t>& value, std::uint64_t to) noexcept {
  std::uint64_t seen = value.load();
  while (seen < to && !value.compare_exchange_weak(seen, to)) {
  }
}

// Returns the time at which the last claim of a more urgent user ends; 0 if no more urgent user has claimed a link of
// the path.
std::uint64_t urgent_until(std::span<link_clock* const> path, priority level) noexcept {
  std::uint64_t end = 0;
  for (const link_clock* link : path)
    for (unsigned above = 0; above < static_cast<unsigned>(level); ++above)
      end = std::max(end, link->claimed_until[above].load());
  return end;
}

}  // namespace

std::uint64_t link_time() noexcept {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

std::uint64_t burst_size(const link_limit& limit) noexcept {
  constexpr std::uint64_t page = 4096;
  constexpr std::uint64_t largest = 1U << 20;
  return std::clamp(limit.bytes_per_second / 4000 / page * page, page, largest);
}

std::uint64_t reserve_path(std::span<link_clock* const> path, const link_limit& limit, std::uint64_t bytes,
                           std::uint64_t ready, priority level, bool more_to_come) noexcept {
  for (std::uint64_t end = 0; (end = urgent_until(path, level)) > link_time(); ready = end) wait_until(end);

  const auto duration = static_cast<std::uint64_t>(static_cast<double>(bytes) * second / limit.bytes_per_second);
  std::uint64_t arrival = 0;
  for (link_clock* link : path) {
    std::uint64_t busy = link->busy_until.load();
    std::uint64_t end = 0;
    do {
      end = std::max(busy, ready) + duration;
    } while (!link->busy_until.compare_exchange_weak(busy, end));
    arrival = std::max(arrival, end);
  }
  if (more_to_come)
    for (link_clock* link : path) raise(link->claimed_until[static_cast<unsigned>(level)], arrival + return_time);
  return arrival;
}

void approach(std::uint64_t time) noexcept {
  const std::uint64_t begin = link_time();
  if (time > begin + late_wakeup) std::this_thread::sleep_for(std::chrono::nanoseconds(time - begin - late_wakeup));
}

void wait_until(std::uint64_t time) noexcept {
  approach(time);
  while (link_time() < time) os::hardware::relax();
}

}  // namespace hpe::device::soft
