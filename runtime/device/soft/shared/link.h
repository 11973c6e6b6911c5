#pragma once

/// Links with a bandwidth and a latency, kept as clocks in shared memory. Copies take time on links, and kernels of PTX
/// do that use other memories than their device's (runtime/device/soft/softd/meter.h).

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
/// Users reserve the link piece by piece. A user with more pieces to come claims its priority for a moment beyond the
/// piece, and users of lower priority let it go first. A claim expires by itself, so a process that dies holds up no
/// other.
struct link_clock {
  alignas(64) std::atomic<std::uint64_t> busy_until{0};
  std::array<std::atomic<std::uint64_t>, priorities> claimed_until{};
};

/// The bytes of one piece: a quarter of a millisecond of the link, at most 1 MiB.
[[nodiscard]] std::uint64_t piece_size(const link_limit& limit) noexcept;

/// Reserves the links of a path (all with one limit) for the next piece of a copy. Waits while a more urgent user
/// claims one of them. ready: when the piece can start; it may have passed, so that a copy whose sleep ended late
/// catches up. Returns when the piece will have arrived, without latency.
[[nodiscard]] std::uint64_t reserve_path(std::span<link_clock* const> path, const link_limit& limit,
                                         std::uint64_t bytes, std::uint64_t ready, priority level,
                                         bool more_to_come) noexcept;

/// The current time, as links count it.
[[nodiscard]] std::uint64_t link_time() noexcept;

/// Sleeps until shortly before a time, because sleeps end late.
void approach(std::uint64_t time) noexcept;
/// Sleeps until shortly before a time, and spins for the rest.
void wait_until(std::uint64_t time) noexcept;

}  // namespace hpe::device::soft
