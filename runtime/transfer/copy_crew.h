#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/os/futex.h"
#include "runtime/transfer/copy_job.h"

namespace hpe::transfer {

/// Threads that help with large copies in host memory, because a single core copies more slowly than the link of a GPU.
/// The first large copy starts these threads, if start() has not. Thread-safe. If several copies run at once, for
/// example in both directions of a link, the helpers are shared evenly. The calling thread copies without helpers if
/// `most_jobs` other copies are running, or if the system cannot start threads.
///
/// Each thread copies slices of its own part first, the same part in every copy, and then helps with other parts. So a
/// core that fills the same staging buffer again still has the buffer's lines in its cache. If another core wrote the
/// lines last, six threads copy at 23 GB/s instead of 50 GB/s (H200 host, docs/measurements.md).
class copy_crew {
 public:
  /// helpers: the number of helper threads; the default depends on the machine.
  /// settle: each helper calls this function first.
  explicit copy_crew(
      unsigned helpers = threads_for_this_machine() - 1, std::function<void()> settle = [] {});
  ~copy_crew();
  copy_crew(const copy_crew&) = delete;
  copy_crew& operator=(const copy_crew&) = delete;

  /// The largest useful number of threads, including the calling thread.
  [[nodiscard]] static unsigned threads_for_this_machine();

  /// The largest useful number of threads for writing::to_new_pages. Making pages keeps more cores busy than copying.
  [[nodiscard]] static unsigned threads_for_new_pages();

  /// How the bytes of the destination are written. Writes to the program's memory are fastest if they bypass the
  /// caches; otherwise the processor reads each cache line before it writes the line. to_new_pages: like past_caches,
  /// for memory without pages; each thread makes the pages of a slice before it copies the slice, because the system
  /// makes pages faster in one call than in page faults.
  using writing = transfer::writing;
  /// The fastest way to write staging buffers that a GPU reads, in a copy of `whole` bytes. A GPU reads lines that are
  /// still in a core's own cache at less than half of the link's rate (H200: 20 of 55 GB/s), so writes to buffers
  /// should bypass the caches. In a longer copy, the GPU soon lags so far behind that the buffers' lines have left
  /// those caches before the GPU reads them. Then writes through the caches are better, because they save two of three
  /// memory accesses. Copies of up to 64 MiB are too short for this.
  [[nodiscard]] static writing to_stage(std::size_t whole);

  /// The largest number of copies with which the helpers help at the same time.
  static constexpr unsigned most_jobs = 4;

  /// The calling thread makes copies of fewer bytes without helpers, through the caches.
  static constexpr std::size_t worth_helping = std::size_t{256} << 10;
  static void copy_alone(void* to, const void* from, std::size_t bytes, writing how);

  /// Starts the helpers, unless an earlier call, or a large copy, has started them.
  void start() noexcept {
    if (helpers_ != 0) std::call_once(started_, [this] { start_helpers(); });
  }
  /// Whether the helpers have been started. Then copy() allocates no memory and starts no thread.
  [[nodiscard]] bool started() const noexcept { return helping_.load(std::memory_order_acquire); }

  /// Like memcpy: the copy is complete on return.
  void copy(void* to, const void* from, std::size_t bytes, writing how = writing::cached);

  class pending;
  /// Begins a copy of a box of one plane and returns while the helpers copy, so that the caller can begin another copy.
  /// If the calling thread copies alone, the copy is complete on return. Until finish(), source and destination must
  /// stay valid, and the caller must not change them.
  [[nodiscard]] pending begin(void* to, const void* from, const box_copy& shape, writing how);
  [[nodiscard]] pending begin(void* to, const void* from, std::size_t bytes, writing how);

 private:
  using job = basic_copy_job<os::hardware>;

  job* take_job() noexcept;
  void start_helpers() noexcept;
  void help(unsigned number);
  /// Copies the next slice of one part of a job. Returns false if the part has no slice left.
  bool take_slice(job& j, unsigned part) const noexcept;
  /// Copies the next slice of `part`, or of another part if `part` has no slice left. Returns false if the job has no
  /// slice left.
  bool take_any_slice(job& j, unsigned part) const noexcept;
  /// Waits until the number of posted copies differs from `seen` (spins first, then sleeps), and returns that number.
  std::uint32_t next_post(std::uint32_t seen) const;

  const unsigned helpers_;
  const unsigned parts_;  // the number of parts of a job; the calling thread begins with the last part
  const std::function<void()> settle_;
  std::once_flag started_;
  std::atomic<bool> helping_{false};  // whether `threads_` is complete
  std::array<job, most_jobs> jobs_;
  std::atomic<std::uint32_t> posted_{0};  // the number of copies posted so far
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;  // the helpers that could be started
};

/// A copy that begin() has begun. Only the thread that began the copy may use the object, and the crew must outlive the
/// object.
class copy_crew::pending {
 public:
  pending() = default;
  pending(pending&& other) noexcept
      : crew_(other.crew_), job_(std::exchange(other.job_, nullptr)), slices_(other.slices_) {}
  pending& operator=(pending&&) = delete;
  ~pending() { finish(); }

  /// Copies slices until the whole copy is complete.
  void finish() noexcept;

 private:
  friend class copy_crew;
  pending(const copy_crew& crew, job& its, std::size_t slices) : crew_(&crew), job_(&its), slices_(slices) {}

  const copy_crew* crew_ = nullptr;
  job* job_ = nullptr;  // nullptr if the copy is complete
  std::size_t slices_ = 0;
};

inline copy_crew::pending copy_crew::begin(void* to, const void* from, std::size_t bytes, writing how) {
  return begin(to, from, box_copy{{bytes}}, how);
}

inline void copy_crew::copy(void* to, const void* from, std::size_t bytes, writing how) {
  begin(to, from, bytes, how).finish();
}

}  // namespace hpe::transfer
