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

/// Threads that help with large copies of host memory, because one core alone is slower than the link of a GPU. They
/// start with the first such copy. Thread-safe. Several copies at once, as for both directions of a link, share the
/// helpers evenly. Copies beyond `most_jobs`, and all copies if the system has no room for threads, are made by the
/// calling thread alone.
///
/// Each thread begins with its own part, the same one in every copy, and helps with other parts afterwards. So a core
/// that fills staging buffers again and again finds its lines of them in its own cache. If another core wrote them
/// last, six threads copy at 23 GB/s instead of 50 (H200 host, docs/measurements.md).
class copy_crew {
 public:
  /// helpers: the number of helping threads; the default fits the machine.
  /// settle: called first in each helper.
  explicit copy_crew(
      unsigned helpers = threads_for_this_machine() - 1, std::function<void()> settle = [] {});
  ~copy_crew();
  copy_crew(const copy_crew&) = delete;
  copy_crew& operator=(const copy_crew&) = delete;

  /// The most threads that are useful, including the calling one.
  [[nodiscard]] static unsigned threads_for_this_machine();

  /// How the destination is written. The program's memory is best written past the caches; otherwise each line is read
  /// before it is written.
  using writing = transfer::writing;
  /// How staging buffers that a GPU reads are best written in a copy of `whole` bytes. A GPU reads lines that are still
  /// in a core's own cache at less than half of the link's rate (H200: 20 of 55 GB/s). In a long copy it is soon so far
  /// behind that the buffers have left those caches; writing through the caches then saves two of three memory
  /// accesses. Up to 64 MiB that does not pay.
  [[nodiscard]] static writing to_stage(std::size_t whole);

  /// The number of copies that are helped at the same time.
  static constexpr unsigned most_jobs = 4;

  /// Smaller copies are made by the calling thread alone, through the caches.
  static constexpr std::size_t worth_helping = std::size_t{256} << 10;
  static void copy_alone(void* to, const void* from, std::size_t bytes, writing how);

  /// Like memcpy: the copy is complete on return.
  void copy(void* to, const void* from, std::size_t bytes, writing how = writing::cached);

  /// `count` rows of `width` bytes; on either side, a pitch is the distance between the starts of two rows.
  struct rows {
    std::size_t width;
    std::size_t count;
    std::size_t to_pitch;
    std::size_t from_pitch;
  };

  class pending;
  /// Begins a copy, and returns while the helpers make it, so that the caller can begin the next one. A copy without
  /// help is complete on return. Source and destination must stay valid and unchanged until finish.
  [[nodiscard]] pending begin_rows(void* to, const void* from, rows what, writing how);
  [[nodiscard]] pending begin(void* to, const void* from, std::size_t bytes, writing how);

 private:
  using job = basic_copy_job<os::hardware>;

  job* take_job() noexcept;
  void start_helpers() noexcept;
  void help(unsigned number);
  /// Copies the next slice of a part of a job. Returns false if none is left.
  bool take_slice(job& j, unsigned part) const noexcept;
  /// Copies the next slice of any part, of `part` if it has one. Returns false if none is left.
  bool take_any_slice(job& j, unsigned part) const noexcept;
  /// Waits, first by spinning, until the number of posted copies differs from `seen`, and returns that number.
  std::uint32_t next_post(std::uint32_t seen) const;

  const unsigned helpers_;
  const unsigned parts_;  // the last one is the calling thread's
  const std::function<void()> settle_;
  std::once_flag started_;
  std::array<job, most_jobs> jobs_;
  std::atomic<std::uint32_t> posted_{0};  // the number of copies posted
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;  // as many as the system has room for
};

/// A copy that was begun. Used by the thread that began it; the crew must outlive it.
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
  return begin_rows(to, from, {bytes, 1, 0, 0}, how);
}

inline void copy_crew::copy(void* to, const void* from, std::size_t bytes, writing how) {
  begin(to, from, bytes, how).finish();
}

}  // namespace hpe::transfer
