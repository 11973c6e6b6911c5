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

/// Threads that help with large copies of host memory: one core alone is slower than the link of a GPU. They start with
/// the first such copy. Any thread may copy. Several copies at once share the helpers evenly, as one for each direction
/// of a link must; only more than `most_jobs` of them copy alone. So does everybody where the system has no room for
/// threads.
///
/// Each thread begins with a part of its own, which is the same one in every copy, and helps with the others'
/// afterwards. So a core that fills staging buffers again and again finds its lines of them in its own cache; if
/// another core wrote them last, six threads copy at 23 GB/s instead of 50 (H200 host, docs/measurements.md).
class copy_crew {
 public:
  /// helpers: how many threads help; the default fits the machine.
  /// settle: what each helper does first.
  explicit copy_crew(
      unsigned helpers = threads_for_this_machine() - 1, std::function<void()> settle = [] {});
  ~copy_crew();
  copy_crew(const copy_crew&) = delete;
  copy_crew& operator=(const copy_crew&) = delete;

  /// The most threads that make sense, the calling one among them.
  [[nodiscard]] static unsigned threads_for_this_machine();

  /// How the bytes are written. What goes to the program's memory is best written past the caches, or else each line is
  /// read before it is written.
  using writing = transfer::writing;
  /// How staging buffers that a GPU reads are best written in a copy of so many bytes. A GPU gets what is still in a
  /// core's own cache at less than half of the link's rate (H200: 20 of 55 GB/s). In long copies it is soon behind by
  /// so much that the buffers have left those caches, and the memory is spared two of three ways; up to 64 MiB that
  /// does not pay.
  [[nodiscard]] static writing to_stage(std::size_t whole);

  /// How many copies are helped at once.
  static constexpr unsigned most_jobs = 4;

  /// Smaller copies are made by one thread, through the caches.
  static constexpr std::size_t worth_helping = std::size_t{256} << 10;
  static void copy_alone(void* to, const void* from, std::size_t bytes, writing how);

  /// memcpy.
  void copy(void* to, const void* from, std::size_t bytes, writing how = writing::cached);

  /// Rows of bytes at distances of their own on either side.
  struct rows {
    std::size_t width;
    std::size_t count;
    std::size_t to_pitch;
    std::size_t from_pitch;
  };

  class pending;
  /// Begins a copy, and returns while the helpers make it: its maker can begin the next one, so that they need not meet
  /// between the two. What nobody helps with is done on return. Source and destination stay as they are until finish.
  [[nodiscard]] pending begin_rows(void* to, const void* from, rows what, writing how);
  [[nodiscard]] pending begin(void* to, const void* from, std::size_t bytes, writing how);

 private:
  using job = basic_copy_job<os::hardware>;

  job* take_job() noexcept;
  void start_helpers() noexcept;
  void help(unsigned number);
  /// Takes a slice of a part of a job and copies it. False if none is left.
  bool take_slice(job& j, unsigned part) const noexcept;
  /// Takes one of any part, that one first.
  bool take_any_slice(job& j, unsigned part) const noexcept;
  /// Returns how many copies were posted, when it is another number than `seen`; waits for that, first awake.
  std::uint32_t next_post(std::uint32_t seen) const;

  const unsigned helpers_;
  const unsigned parts_;  // the last one is the caller's
  const std::function<void()> settle_;
  std::once_flag started_;
  std::array<job, most_jobs> jobs_;
  std::atomic<std::uint32_t> posted_{0};  // copies
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;  // as many as the system has room for
};

/// A copy that was begun. Of the thread that began it; the crew outlives it.
class copy_crew::pending {
 public:
  pending() = default;
  pending(pending&& other) noexcept
      : crew_(other.crew_), job_(std::exchange(other.job_, nullptr)), slices_(other.slices_) {}
  pending& operator=(pending&&) = delete;
  ~pending() { finish(); }

  /// Takes slices of it until all are copied.
  void finish() noexcept;

 private:
  friend class copy_crew;
  pending(const copy_crew& crew, job& its, std::size_t slices) : crew_(&crew), job_(&its), slices_(slices) {}

  const copy_crew* crew_ = nullptr;
  job* job_ = nullptr;  // none where it is done
  std::size_t slices_ = 0;
};

inline copy_crew::pending copy_crew::begin(void* to, const void* from, std::size_t bytes, writing how) {
  return begin_rows(to, from, {bytes, 1, 0, 0}, how);
}

inline void copy_crew::copy(void* to, const void* from, std::size_t bytes, writing how) {
  begin(to, from, bytes, how).finish();
}

}  // namespace hpe::transfer
