#pragma once

#include <memory>
#include <vector>

#include "runtime/fault/lane.h"
#include "runtime/memory/uvas.h"

namespace hpe::fault {

/// Serves page faults of the UVAS, from the signal to the opened view. The service consists of the board, the lanes,
/// and the function that the signal handler calls (handler.cpp). A process has at most one service at a time, because
/// the signal handler must find it.
class service {
 public:
  service(const memory::uvas& space, const lane_environment& environment, unsigned lane_count);
  ~service();
  service(const service&) = delete;
  service& operator=(const service&) = delete;

  /// Starts to fetch data before the host touches the data. A hint; returns at once.
  void prefetch(std::uint32_t region, coherence::byte_range range) { lane_of(region).prefetch(region, range); }

  /// Makes the lane of a region check its waiting requests again. Call this when requests may continue for a reason
  /// other than the end of device work.
  void look_again(std::uint32_t region) { lane_of(region).gate().ring(); }
  void look_again();  ///< the same for all regions

  /// Whether this service resolves faults at the address. Safe in a signal handler.
  [[nodiscard]] bool covers(const std::byte* address) const noexcept { return space_.contains(address); }

  /// The signal handler calls this before the process ends, so that core files contain the data that the host has.
  void prepare_core() const noexcept { space_.keep_views_in_core(); }

  /// The signal handler calls this in the faulting thread, for an address that covers() accepts. Returns `retry` when
  /// the thread can repeat the access; `not_ours` if a lane has found no allocation at the address, or cannot bring the
  /// data to the host.
  fault_verdict resolve(std::byte* address, bool write) noexcept;

 private:
  /// Returns the text that trace::awaited reports about a touch. `of`: the service.
  static std::string words_for_touch(const void* of, std::uint64_t address, std::uint64_t write);
  lane& lane_of(std::uint32_t region) { return *lanes_[region % lanes_.size()]; }

  const memory::uvas& space_;
  const lane_environment env_;
  std::unique_ptr<request_board> board_;
  std::vector<std::unique_ptr<lane>> lanes_;  // declared after the board, which the lanes' threads read until they end
};

}  // namespace hpe::fault
