#pragma once

/// Host memory that copies use: which ranges were registered, and which pieces of them are pinned.
///
/// Ranges outside the UVAS may be far larger than the machine's memory, so nothing of them is pinned until a copy uses
/// it: pieces grow as copies walk on, and the piece that was pinned first goes when the budget is spent. What cannot be
/// pinned is copied through the driver's own buffers, which is slower. Ranges inside the UVAS are pinned as a whole,
/// because kernels use them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/timepoint.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/device.h"

namespace hpe::device::cuda {

/// Any thread.
class host_memory {
 public:
  /// reached tells whether a timepoint is; wait waits for one.
  struct order {
    std::function<bool(timepoint)> reached;
    std::function<void(timepoint)> wait;
  };
  /// budget: bytes that may be pinned for copies.
  host_memory(const driver& cu, const uvas_layout& layout, std::size_t budget, order points);
  ~host_memory();
  host_memory(const host_memory&) = delete;
  host_memory& operator=(const host_memory&) = delete;

  /// See device_set. The caller has entered a live context in all of these.
  void insert(std::uintptr_t address, std::size_t bytes, int fd, std::int64_t offset);
  void erase(std::uintptr_t address, std::size_t bytes);
  void release(std::uintptr_t address, std::size_t bytes);

  /// Where the registered range that contains the address ends.
  [[nodiscard]] std::optional<std::uintptr_t> find(std::uintptr_t address) const;

  /// Pins registered memory for a copy as far as it can. A copy of [address, result.end) is one command; end is at most
  /// address + bytes. Pieces in use stay pinned until done() says what they are used by.
  struct use {
    std::uintptr_t piece = 0;  // 0: not pinned
    std::uintptr_t end = 0;
  };
  [[nodiscard]] use begin(std::uintptr_t address, std::size_t bytes);
  void done(std::span<const use> uses, timepoint by);

 private:
  struct piece {
    std::uintptr_t end;
    unsigned busy = 0;             // copies that are being queued
    std::vector<timepoint> users;  // the last of each timeline
    std::uint64_t age = 0;
  };
  struct range {
    std::uintptr_t end;
    bool in_space;
  };
  using pieces = std::map<std::uintptr_t, piece>;

  [[nodiscard]] bool in_space(std::uintptr_t address) const noexcept;
  pieces::iterator pin(std::uintptr_t address, std::size_t bytes, const range& in);
  bool make_room(std::size_t bytes);
  bool idle(const piece& p) const;
  void unpin(pieces::iterator p);

  const driver& cu_;
  const uvas_layout layout_;
  const std::size_t budget_;
  const order points_;
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, range> ranges_;  // by first address
  pieces pieces_;                           // by first address
  std::size_t pinned_ = 0;
  std::uint64_t clock_ = 0;
};

}  // namespace hpe::device::cuda
