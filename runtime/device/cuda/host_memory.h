#pragma once

/// Host memory that copies use: the registered ranges, and the pieces of these ranges that are pinned.
///
/// Ranges outside the UVAS may be far larger than the machine's memory, so a piece is pinned only when a copy uses it
/// or is expected to use it. Pieces grow as copies advance. When the budget is spent, the least recently used piece is
/// unpinned. Memory that cannot be pinned is copied through the driver's own buffers, which is slower. Ranges inside
/// the UVAS are pinned as a whole, because kernels use them.
///
/// Missing pages are allocated before they are pinned, as huge pages if the operating system supports that. Threads of
/// this class allocate and pin the pages of expected ranges, because a single thread is ten times slower than the link.
/// (H200: with the driver's own call, one thread allocates and pins 2.9 GB/s; eight of these threads reach 28 GB/s.)
/// When no copies are expected, the threads prepare ranges that copies may use later, such as new allocations. Prepared
/// pieces that no copy has used yet have their own budget, and occupy only a part of the memory that is free.

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
  /// The functions that this class needs: `reached` queries a timepoint; `wait` waits for a timepoint; `context`
  /// returns the context of a device that is not lost; `free_memory` returns how many bytes of host memory are free.
  struct environment {
    std::function<bool(timepoint)> reached;
    std::function<void(timepoint)> wait;
    std::function<CUcontext()> context;
    std::function<double()> free_memory = [] { return os::free_memory(); };
  };
  /// The largest number of bytes that may be pinned for copies, and how many of these bytes may be in prepared pieces
  /// that no copy has used yet.
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

  /// See device_set. The caller must have entered the context of a device that is not lost.
  void insert(std::uintptr_t address, std::size_t bytes, int fd, std::int64_t offset);
  void erase(std::uintptr_t address, std::size_t bytes);
  void release(std::uintptr_t address, std::size_t bytes);

  /// Returns the end of the registered range that contains the address; nullopt if no range contains it.
  [[nodiscard]] std::optional<std::uintptr_t> find(std::uintptr_t address) const;

  /// Pins registered memory for a copy if possible. One command can copy [address, result.end); result.end is at most
  /// address + bytes. The piece stays pinned until done() has been called and its point `by` is reached.
  struct use {
    std::uintptr_t piece = 0;  // 0: not pinned
    std::uintptr_t end = 0;
  };
  [[nodiscard]] use begin(std::uintptr_t address, std::size_t bytes);
  void done(std::span<const use> uses, timepoint by) noexcept;

 private:
  /// Maps a file over pages of the UVAS and pins these pages. If pin_for_kernels throws, nothing has changed.
  void pin_for_kernels(std::uintptr_t address, std::size_t bytes, int fd, std::int64_t offset) const;

  struct piece {
    bool pinned = false;             // false while a thread is pinning the piece
    bool prepared = false;           // the piece was prepared, and no copy has used it yet
    unsigned busy = 0;               // the number of copies on the piece that are being queued
    std::vector<timepoint> users{};  // for each timeline, the last timepoint at which a copy uses the piece
    std::uint64_t age = 0;
  };
  struct range {
    bool in_space;
  };
  using pieces = interval_map<std::uintptr_t, piece>;

  /// A range to pin that contains no pieces.
  struct gap {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;

    [[nodiscard]] std::size_t size() const noexcept { return end - begin; }
  };
  using gaps = std::deque<gap>;
  using locked = std::unique_lock<std::mutex>;

  [[nodiscard]] bool in_space(std::uintptr_t address) const noexcept;
  /// Returns the piece that contains the address. If a thread is pinning the piece, waits until it is pinned.
  pieces::iterator pinned_piece(locked& lock, std::uintptr_t address);
  [[nodiscard]] gap gap_for_copy(std::uintptr_t address, std::size_t bytes) const;
  /// Adds the registered part of a range to `ranges`, on which the threads work, and starts the threads.
  void add(gaps& ranges, std::uintptr_t address, std::size_t bytes);
  /// Removes the first gap, of at most `most` bytes, from `ranges` and returns it; returns an empty gap if no gap is
  /// left.
  [[nodiscard]] gap next(gaps& ranges, std::size_t most);
  /// Returns the next gap to prepare; an empty gap if no gap is left or a budget is spent. May release and lock `lock`
  /// again.
  [[nodiscard]] gap next_to_prepare(locked& lock);
  /// Pins a gap, during which `lock` is released. Returns false if the system or the budget does not allow it.
  enum class purpose : std::uint8_t { copy, expectation, preparation };
  bool pin(locked& lock, gap where, purpose why);
  /// Registers a gap for a thread that pins ahead of copies.
  CUresult register_in_turn(gap where);
  void work_ahead();
  /// Unpins idle pieces, the least recently used piece first, until `bytes` more bytes can be pinned. May release and
  /// lock `lock` again.
  void make_room(locked& lock, std::size_t bytes);
  /// If the piece was prepared, removes its bytes from the budget of prepared pieces.
  void count_as_used(piece& p, std::size_t bytes);
  bool idle(const piece& p) const;
  /// Unpins a piece, during which `lock` is released.
  void unpin(locked& lock, pieces::iterator p);

  const driver& cu_;
  const uvas_layout layout_;
  const budgets most_;
  const environment around_;
  mutable std::mutex mutex_;
  std::mutex registering_;           // lets one thread register memory at a time; never held together with mutex_
  std::condition_variable changed_;  // signals pinned pieces, failed pinning, expected ranges, and stop_
  interval_map<std::uintptr_t, range> ranges_;
  pieces pieces_;
  std::size_t pinned_ = 0;     // bytes that are pinned, or are being pinned
  std::size_t prepared_ = 0;   // the part of pinned_ in prepared pieces
  std::size_t unchecked_ = 0;  // bytes that may be prepared before hpe reads the machine's free memory again
  std::uint64_t clock_ = 0;
  gaps expected_;         // the expected ranges, which may contain pieces
  gaps to_prepare_;       // the ranges to prepare, which may contain pieces
  std::size_t idle_ = 0;  // the number of idle threads
  bool stop_ = false;
  std::vector<std::thread> threads_;  // started for the first range
};

}  // namespace hpe::device::cuda
