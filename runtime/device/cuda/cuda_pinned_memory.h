#pragma once

/// The host memory that copies between host and GPUs use: the registered ranges, and the pinned parts of these ranges.
///
/// Registered ranges outside the UVAS may be far larger than the machine's memory, so this class pins a part of a range
/// only when a copy uses or will probably use the part. The part is then a *pinned range*. Unless other threads pin
/// ahead, a pinned range that a copy adds directly after another pinned range is at least twice as large as that pinned
/// range, up to 32 MiB. When the budget of pinned bytes is spent, the least recently used pinned range is unpinned. If
/// memory cannot be pinned, the driver copies it through the driver's own buffers, which is slower. Registered ranges
/// inside the UVAS are pinned as a whole, because kernels use them.
///
/// Before missing pages are pinned, this class allocates them, as huge pages if the operating system supports these.
/// Several threads of this class allocate and pin the pages of expected ranges, because a single thread is ten times
/// slower than the link (H200: one thread that only calls cuMemHostRegister allocates and pins 2.9 GB/s; eight threads
/// of this class reach 28 GB/s). When no copies are expected, the threads prepare (allocate and pin) ranges that copies
/// may use later, for example new allocations. Prepared ranges that no copy has used have their own budget, and occupy
/// at most a quarter of the free host memory.

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
class cuda_pinned_memory {
 public:
  /// The functions that this class calls: `reached` returns whether a timepoint is reached; `wait` waits for a
  /// timepoint; `context` returns the context of a device that is not lost; `free_memory` returns how many bytes of
  /// host memory are free.
  struct environment {
    std::function<bool(timepoint)> reached;
    std::function<void(timepoint)> wait;
    std::function<CUcontext()> context;
    std::function<double()> free_memory = [] { return os::free_memory().bytes; };
  };
  /// `pinned`: the largest number of bytes that may be pinned for copies. `prepared`: the largest number of these bytes
  /// in prepared ranges that no copy has used.
  struct budgets {
    std::size_t pinned;
    std::size_t prepared;
  };
  cuda_pinned_memory(const driver& cu, const uvas_layout& layout, budgets most, environment around);
  ~cuda_pinned_memory();
  cuda_pinned_memory(const cuda_pinned_memory&) = delete;
  cuda_pinned_memory& operator=(const cuda_pinned_memory&) = delete;

  /// See device_set::expect_copies.
  void expect(std::uintptr_t address, std::size_t bytes);

  /// See device_set::prepare_host and prepared_host.
  void prepare(std::uintptr_t address, std::size_t bytes);
  [[nodiscard]] std::size_t prepared(std::uintptr_t address, std::size_t bytes) const noexcept;

  /// See device_set::register_host, unregister_host and release_host. The caller must hold an object of class entered
  /// with the context of a device that is not lost.
  void insert(std::uintptr_t address, std::size_t bytes, int fd, std::int64_t offset);
  void erase(std::uintptr_t address, std::size_t bytes);
  void release(std::uintptr_t address, std::size_t bytes);

  /// Returns the end of the registered range that contains the address; nullopt if no range contains it.
  [[nodiscard]] std::optional<std::uintptr_t> find(std::uintptr_t address) const;

  /// Pins registered memory for a copy if possible. The caller may copy [address, result.end) with one command of the
  /// driver; result.end is at most address + bytes. The pinned range at pinned_use::begin stays pinned until the caller
  /// has called done(uses, by) and the timepoint `by` is reached. If no command was queued, the caller passes none() as
  /// `by`.
  struct pinned_use {
    std::uintptr_t begin = 0;  // the first byte of the pinned range; 0: not pinned
    std::uintptr_t end = 0;
  };
  [[nodiscard]] pinned_use begin(std::uintptr_t address, std::size_t bytes);
  void done(std::span<const pinned_use> uses, timepoint by) noexcept;

 private:
  /// Maps a file over pages of the UVAS and pins these pages for kernels. Throws HPE_ERROR_OUT_OF_MEMORY if the pages
  /// cannot be pinned; the mapping is then removed.
  void pin_for_kernels(std::uintptr_t address, std::size_t bytes, int fd, std::int64_t offset) const;

  struct pinned_range {
    bool pinned = false;             // false while a thread pins or unpins the range
    bool prepared = false;           // the range was prepared, and no copy has used it yet
    unsigned busy = 0;               // the number of copies on the range that are being queued
    std::vector<timepoint> users{};  // for each timeline, the last timepoint at which a copy uses the range
    std::uint64_t age = 0;
  };
  struct registered_range {
    bool in_space;
  };
  using pinned_ranges = interval_map<std::uintptr_t, pinned_range>;

  /// A range that overlaps no pinned range and that is to be pinned.
  struct unpinned_range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;

    [[nodiscard]] std::size_t size() const noexcept { return end - begin; }
  };
  using unpinned_ranges = std::deque<unpinned_range>;
  using locked = std::unique_lock<std::mutex>;

  [[nodiscard]] bool in_space(std::uintptr_t address) const noexcept;
  /// Returns the pinned range that contains the address; pinned_ranges_.end() if there is none. Waits while a thread
  /// pins or unpins this range.
  pinned_ranges::iterator find_pinned(locked& lock, std::uintptr_t address);
  [[nodiscard]] unpinned_range range_for_copy(std::uintptr_t address, std::size_t bytes) const;
  /// Adds the registered part of a range to `ranges`, whose bytes the threads will pin. Starts the threads if they do
  /// not run.
  void add(unpinned_ranges& ranges, std::uintptr_t address, std::size_t bytes);
  /// Removes from `ranges` the next bytes for one thread to pin, and returns them. Skips bytes that are in pinned
  /// ranges. Returns at most `most` bytes, and fewer if idle threads can share the range. Returns an empty range if
  /// `ranges` contains no further bytes.
  [[nodiscard]] unpinned_range next(unpinned_ranges& ranges, std::size_t most);
  /// Returns the next range to prepare; an empty range if none is left or a budget is spent. May release `lock` and
  /// lock it again.
  [[nodiscard]] unpinned_range next_to_prepare(locked& lock);
  /// Pins an unpinned range, and releases `lock` meanwhile. Returns false if the system or the budget does not allow
  /// this.
  enum class purpose : std::uint8_t { copy, expectation, preparation };
  bool pin(locked& lock, unpinned_range where, purpose why);
  /// Calls cuMemHostRegister for a thread that pins ahead of copies. Only one of these threads registers memory at a
  /// time; the others wait.
  CUresult register_in_turn(unpinned_range where);
  void work_ahead();
  /// Unpins idle pinned ranges outside the UVAS, the least recently used one first, until `bytes` more bytes can be
  /// pinned or no idle pinned range is left. May release `lock` and lock it again.
  void make_room(locked& lock, std::size_t bytes);
  /// If the pinned range was prepared and no copy has used it yet, subtracts its bytes from prepared_.
  void count_as_used(pinned_range& p, std::size_t bytes);
  bool idle(const pinned_range& p) const;
  /// Unpins and erases a pinned range, and releases `lock` meanwhile.
  void unpin(locked& lock, pinned_ranges::iterator p);

  const driver& cu_;
  const uvas_layout layout_;
  const budgets most_;
  const environment around_;
  mutable std::mutex mutex_;
  // Held by a thread that pins ahead, while the thread registers memory; never held together with mutex_.
  std::mutex registering_;
  // Notified when a pinned range was pinned or erased, when ranges are added, when prepared bytes are used, and for
  // stop_.
  std::condition_variable changed_;
  interval_map<std::uintptr_t, registered_range> registered_ranges_;
  pinned_ranges pinned_ranges_;
  std::size_t pinned_ = 0;     // bytes outside the UVAS that are pinned, or are being pinned
  std::size_t prepared_ = 0;   // how many bytes of pinned_ are in prepared ranges that no copy has used
  std::size_t unchecked_ = 0;  // bytes that may be prepared before hpe reads the machine's free memory again
  std::uint64_t clock_ = 0;
  unpinned_ranges expected_;    // the expected ranges, which may contain pinned ranges
  unpinned_ranges to_prepare_;  // the ranges to prepare, which may contain pinned ranges
  std::uint64_t requests_ = 0;  // how many ranges have been added to the two lists
  std::size_t idle_ = 0;        // the number of idle threads
  bool stop_ = false;
  std::vector<std::thread> threads_;  // started by the first call of expect() or prepare()
};

}  // namespace hpe::device::cuda
