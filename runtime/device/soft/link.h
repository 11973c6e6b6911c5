#pragma once

/// Links with a bandwidth and a latency, kept as clocks in shared memory. Only copies are charged: a kernel that reads
/// a peer's memory runs at the speed of the machine.

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "runtime/device/device.h"
#include "runtime/device/soft/specification.h"

namespace hpe::device::soft {

inline constexpr unsigned priorities = 4;

/// One direction of one link. Times are nanoseconds of steady_clock.
///
/// Who uses the link reserves it piece by piece. A user with more pieces to come claims its priority for a moment
/// beyond the piece, and users of lower priority let it pass; a claim runs out by itself, so that a process that dies
/// holds up nobody.
struct link_clock {
  alignas(64) std::atomic<std::uint64_t> busy_until{0};
  std::array<std::atomic<std::uint64_t>, priorities> claimed_until{};
};

/// Bytes of one piece: a quarter of a millisecond of the link, at most 1 MiB.
[[nodiscard]] std::uint64_t piece_size(const link_limit& limit) noexcept;

/// Takes the links of a path (all of one limit) for the next piece of a copy; waits while somebody more urgent wants
/// one. Returns when the piece will have arrived, latency not counted.
[[nodiscard]] std::uint64_t reserve_path(std::span<link_clock* const> path, const link_limit& limit,
                                         std::uint64_t bytes, priority level, bool more_to_come) noexcept;

/// Sleeps until a time, and stays awake for the end of it, because sleeps end late.
void wait_until(std::uint64_t time) noexcept;

}  // namespace hpe::device::soft
