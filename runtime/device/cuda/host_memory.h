#pragma once

/// Host memory that copies use: which ranges were registered, and which pieces of them are pinned.
///
/// Ranges outside the UVAS may be far larger than the machine's memory, so nothing of them is pinned until a copy uses
/// it, or is expected to: pieces grow as copies walk on, and the piece that was pinned first goes when the budget is
/// spent. What cannot be pinned is copied through the driver's own buffers, which is slower. Ranges inside the UVAS are
/// pinned as a whole, because kernels use them.
///
/// Pages that do not exist yet are made before they are pinned, as huge pages where the kernel can. What is expected is
/// made and pinned by threads of this class, because one thread alone is ten times slower than the link (measured on
/// H200s: 1 GiB of pages that were never used in 300 ms by the driver's own call, in 30 ms so).

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "runtime/base/interval_map.h"
#include "runtime/base/timepoint.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/device.h"

namespace hpe::device::cuda {

/// Any thread.
class host_memory {
 public:
  /// What it needs of its set: whether a timepoint is reached, waiting for one, and a context that lives.
  struct set_access {
    std::function<bool(timepoint)> reached;
    std::function<void(timepoint)> wait;
    std::function<CUcontext()> context;
  };
  /// budget: bytes that may be pinned for copies.
  host_memory(const driver& cu, const uvas_layout& layout, std::size_t budget, set_access set);
  ~host_memory();
  host_memory(const host_memory&) = delete;
  host_memory& operator=(const host_memory&) = delete;

  /// See device_set::expect_copies.
  void expect(std::uintptr_t address, std::size_t bytes);

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
    bool pinned = false;           // false: a thread is about it
    unsigned busy = 0;             // copies that are being queued
    std::vector<timepoint> users;  // the last of each timeline
    std::uint64_t age = 0;
  };
  struct range {
    bool in_space;
  };
  using pieces = interval_map<std::uintptr_t, piece>;

  /// A stretch that is to be pinned, without pieces in it.
  struct gap {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
  };
  using locked = std::unique_lock<std::mutex>;

  [[nodiscard]] bool in_space(std::uintptr_t address) const noexcept;
  /// The piece with the address, pinned; waits for a thread that is about it.
  pieces::iterator pinned_piece(locked& lock, std::uintptr_t address);
  [[nodiscard]] gap gap_for_copy(std::uintptr_t address, std::size_t bytes) const;
  /// The first gap of what is expected, taken from it; empty if there is none.
  [[nodiscard]] gap next_expected();
  /// Without the lock meanwhile. False if the system or the budget does not allow it.
  bool pin(locked& lock, gap where);
  void pin_what_is_expected();
  bool make_room(std::size_t bytes);
  bool idle(const piece& p) const;
  void unpin(pieces::iterator p);

  const driver& cu_;
  const uvas_layout layout_;
  const std::size_t budget_;
  const set_access set_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // a piece was pinned or could not be; something is expected; the end
  interval_map<std::uintptr_t, range> ranges_;
  pieces pieces_;
  std::size_t pinned_ = 0;  // or about to be
  std::uint64_t clock_ = 0;
  std::deque<gap> expected_;  // may have pieces in them
  std::size_t idle_ = 0;      // of the threads
  bool stop_ = false;
  std::vector<std::thread> threads_;  // from the first expectation on
};

}  // namespace hpe::device::cuda
