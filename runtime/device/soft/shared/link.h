#pragma once

/// Simulated links with a bandwidth and a latency, represented by clocks in shared memory. Copies take time on the
/// links; so do accesses of PTX kernels to memory of the host or of other devices (runtime/device/soft/softd/meter.h).

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "runtime/device/device.h"
#include "runtime/device/soft/shared/specification.h"

namespace hpe::device::soft {

inline constexpr unsigned priorities = 4;

/// One direction of one link. Times are nanoseconds of steady_clock.
///
/// Users reserve the link piece by piece. A user that has more pieces to transfer claims the link, at the user's
/// priority, for a short time after the current piece; users of lower priority then wait. A claim expires by itself, so
/// a process that dies does not block other processes.
struct link_clock {
  alignas(64) std::atomic<std::uint64_t> busy_until{0};
  std::array<std::atomic<std::uint64_t>, priorities> claimed_until{};
};

/// The size of one piece in bytes: what the link carries in a quarter of a millisecond, but at most 1 MiB.
[[nodiscard]] std::uint64_t piece_size(const link_limit& limit) noexcept;

/// Reserves the links of a path, all of which have the same limit, for the next piece of a copy. Waits while a more
/// urgent user claims one of the links. `ready`: when the piece can start; this time may be in the past, so that a copy
/// whose sleep ended late catches up. Returns the time when the piece will have arrived, not including the latency.
[[nodiscard]] std::uint64_t reserve_path(std::span<link_clock* const> path, const link_limit& limit,
                                         std::uint64_t bytes, std::uint64_t ready, priority level,
                                         bool more_to_come) noexcept;

/// The current time in the unit of link clocks.
[[nodiscard]] std::uint64_t link_time() noexcept;

/// Sleeps until shortly before a time, because the operating system ends sleeps late.
void approach(std::uint64_t time) noexcept;
/// Sleeps until shortly before a time, and then spins until that time.
void wait_until(std::uint64_t time) noexcept;

}  // namespace hpe::device::soft
