#pragma once

/// Simulated links between soft devices and the host, with a bandwidth and a latency (HPE_SOFT_HOST_LINK,
/// HPE_SOFT_PEER_LINK). Each link is a clock in shared memory. Copies take as long as the links need, and so do
/// accesses of PTX kernels to memory of the host or of other devices (runtime/device/soft/softd/meter.h).

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "runtime/device/device.h"
#include "runtime/device/soft/shared/device_specification.h"

namespace hpe::device::soft {

inline constexpr unsigned priorities = 4;

/// One direction of one link. Times are nanoseconds of steady_clock.
///
/// A copy or kernel reserves the link for one *burst* of its bytes after the other. If it has more bursts to transfer,
/// it also claims the link, at its priority, for a short time after the current burst. Users of lower priority wait
/// until this time has passed. Each claim ends by itself, so a process that dies does not block other processes.
struct link_clock {
  alignas(64) std::atomic<std::uint64_t> busy_until{0};
  std::array<std::atomic<std::uint64_t>, priorities> claimed_until{};
};

/// The size of one burst in bytes: the bytes that the link transfers in a quarter of a millisecond, but at least 4 KiB
/// and at most 1 MiB.
[[nodiscard]] std::uint64_t burst_size(const link_limit& limit) noexcept;

/// Reserves the links of a path, all of which have the same limit, for the next burst of a copy, which has `bytes`
/// bytes. Waits while one of the links is claimed with a more urgent priority. `ready`: the time at which the transfer
/// of the burst can begin; this time may be in the past, so that a copy whose sleep ended late makes up for the delay.
/// `more_to_come`: whether the copy has further bursts, for which this claims the links. Returns the time at which the
/// burst arrives, without the latency.
[[nodiscard]] std::uint64_t reserve_path(std::span<link_clock* const> path, const link_limit& limit,
                                         std::uint64_t bytes, std::uint64_t ready, priority level,
                                         bool more_to_come) noexcept;

/// The current time in the unit of link clocks.
[[nodiscard]] std::uint64_t link_time() noexcept;

/// Sleeps until 60 us before a time, because the operating system may end sleeps late.
void approach(std::uint64_t time) noexcept;
/// Calls approach(), and then spins until `time`.
void wait_until(std::uint64_t time) noexcept;

}  // namespace hpe::device::soft
