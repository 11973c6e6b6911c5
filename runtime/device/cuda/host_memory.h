#pragma once

/// Host memory that copies use: the ranges that were registered, and the pieces of them that are pinned.
///
/// Ranges outside the UVAS may be far larger than the machine's memory, so a piece is pinned only when a copy uses it,
/// or is expected to. Pieces grow as copies walk on. When the budget is spent, the least recently used piece is
/// unpinned. Memory that cannot be pinned is copied through the driver's own buffers, which is slower. Ranges inside
/// the UVAS are pinned as a whole, because kernels use them.
///
/// Missing pages are made before they are pinned, as huge pages where the kernel can. Threads of this class make and
/// pin expected ranges, because one thread alone is ten times slower than the link. (H200: with the driver's own call
/// one thread makes and pins 2.9 GB/s; eight of these threads reach 28 GB/s.) When nothing is expected, the threads
/// prepare ranges that copies may use at some time, such as new allocations. Prepared pieces that no copy has used yet
/// have a budget of their own, and take no more than a part of the memory that is free.

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
#include "runtime/os/free_memory.h"

namespace hpe::device::cuda {

/// Thread-safe.
class host_memory {
 public:
  /// The functions that are used here. Of the set: query a timepoint, wait for one, and give a context that lives. Of
  /// the system: give the number of bytes that are free.
  struct environment {
    std::function<bool(timepoint)> reached;
    std::function<void(timepoint)> wait;
    std::function<CUcontext()> context;
    std::function<double()> free_memory = [] { return os::free_memory(); };
  };
  /// The most bytes that are pinned for copies, and how many of them may be prepared for copies that never came.
  struct budgets {
    std::size_t pinned;
    std::size_t prepared;
  };
  host_memory(const driver& cu, const uvas_layout& layout, budgets most, environment around);
  ~host_memory();
  host_memory(const host_memory&) = delete;
  host_memory& operator=(const host_memory&) = delete;

  /// See device_set::expect_copies.
  void expect(std::uintptr_t address, std::size_t bytes);

  /// See device_set::prepare_host and prepared_host.
  void prepare(std::uintptr_t address, std::size_t bytes);
  [[nodiscard]] std::size_t prepared(std::uintptr_t address, std::size_t bytes) const noexcept;

  /// See device_set. The caller must have entered a live context.
  void insert(std::uintptr_t address, std::size_t bytes, int fd, std::int64_t offset);
  void erase(std::uintptr_t address, std::size_t bytes);
  void release(std::uintptr_t address, std::size_t bytes);

  /// The end of the registered range that contains the address; empty if there is none.
  [[nodiscard]] std::optional<std::uintptr_t> find(std::uintptr_t address) const;

  /// Pins registered memory for a copy as far as possible. One command can copy [address, result.end); end is at most
  /// address + bytes. Pieces in use stay pinned until done() is called, and then until `by` is reached.
  struct use {
    std::uintptr_t piece = 0;  // 0: not pinned
    std::uintptr_t end = 0;
  };
  [[nodiscard]] use begin(std::uintptr_t address, std::size_t bytes);
  void done(std::span<const use> uses, timepoint by);

 private:
  struct piece {
    bool pinned = false;             // false: a thread is pinning it
    bool prepared = false;           // no copy has used it yet
    unsigned busy = 0;               // number of copies that are being queued
    std::vector<timepoint> users{};  // the last point of each timeline
    std::uint64_t age = 0;
  };
  struct range {
    bool in_space;
  };
  using pieces = interval_map<std::uintptr_t, piece>;

  /// A range to pin, without pieces in it.
  struct gap {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;

    [[nodiscard]] std::size_t size() const noexcept { return end - begin; }
  };
  using gaps = std::deque<gap>;
  using locked = std::unique_lock<std::mutex>;

  [[nodiscard]] bool in_space(std::uintptr_t address) const noexcept;
  /// The piece that contains the address, pinned; waits for a thread that is pinning it.
  pieces::iterator pinned_piece(locked& lock, std::uintptr_t address);
  [[nodiscard]] gap gap_for_copy(std::uintptr_t address, std::size_t bytes) const;
  /// Adds the registered part of a range to the ranges that the threads work on, and starts the threads.
  void add(gaps& ranges, std::uintptr_t address, std::size_t bytes);
  /// Removes the first gap, of at most so many bytes, from ranges and returns it; empty if there is none.
  [[nodiscard]] gap next(gaps& ranges, std::size_t most);
  /// The next gap to prepare; empty if there is none, or a budget is spent. May release the lock meanwhile.
  [[nodiscard]] gap next_to_prepare(locked& lock);
  /// Pins a gap; releases the lock meanwhile. Returns false if the system or the budget does not allow it.
  enum class purpose : std::uint8_t { copy, expectation, preparation };
  bool pin(locked& lock, gap where, purpose why);
  /// For threads that pin ahead of copies.
  CUresult register_in_turn(gap where);
  void work_ahead();
  /// Unpins the pieces that were not used for the longest time, as far as they are idle, until so many bytes more can
  /// be pinned. May release the lock meanwhile.
  void make_room(locked& lock, std::size_t bytes);
  /// Takes a piece of this size out of the budget of prepared pieces, if it is one.
  void count_as_used(piece& p, std::size_t bytes);
  bool idle(const piece& p) const;
  /// Releases the lock meanwhile.
  void unpin(locked& lock, pieces::iterator p);

  const driver& cu_;
  const uvas_layout layout_;
  const budgets most_;
  const environment around_;
  mutable std::mutex mutex_;
  std::mutex registering_;           // held without mutex_
  std::condition_variable changed_;  // a piece was pinned or could not be; a range is expected; stop_
  interval_map<std::uintptr_t, range> ranges_;
  pieces pieces_;
  std::size_t pinned_ = 0;     // bytes that are pinned, or are being pinned
  std::size_t prepared_ = 0;   // those of them in prepared pieces
  std::size_t unchecked_ = 0;  // bytes that may be prepared before the machine's free memory is looked at again
  std::uint64_t clock_ = 0;
  gaps expected_;         // ranges; there may be pieces in them
  gaps to_prepare_;       // likewise
  std::size_t idle_ = 0;  // number of idle threads
  bool stop_ = false;
  std::vector<std::thread> threads_;  // started for the first range
};

}  // namespace hpe::device::cuda
