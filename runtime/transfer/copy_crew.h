#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace hpe::transfer {

/// Threads that help with large copies of host memory: one core alone is slower than the link of a GPU. They start with
/// the first such copy. Any thread may copy; while one has the crew, others copy alone.
class copy_crew {
 public:
  /// helpers: how many threads help; the default fits the machine.
  explicit copy_crew(unsigned helpers = threads_for_this_machine() - 1);
  ~copy_crew();
  copy_crew(const copy_crew&) = delete;
  copy_crew& operator=(const copy_crew&) = delete;

  /// The most threads that make sense, the calling one among them.
  [[nodiscard]] static unsigned threads_for_this_machine();

  /// How the bytes are written. What a device reads next is best left in the caches; what goes to the program's memory
  /// is best written past them, or else each line is read before it is written.
  enum class writing : std::uint8_t { cached, past_caches };

  /// Smaller copies are made by one thread.
  static constexpr std::size_t worth_helping = std::size_t{512} << 10;
  static void copy_alone(void* to, const void* from, std::size_t bytes, writing how);

  /// memcpy.
  void copy(void* to, const void* from, std::size_t bytes, writing how = writing::cached) {
    copy_rows(to, from, {bytes, 1, 0, 0}, how);
  }

  /// Rows of bytes at distances of their own on either side.
  struct rows {
    std::size_t width;
    std::size_t count;
    std::size_t to_pitch;
    std::size_t from_pitch;
  };
  void copy_rows(void* to, const void* from, rows what, writing how = writing::cached);

 private:
  /// Part of a job that a thread takes at once.
  static void copy_slice(std::byte* to, const std::byte* from, rows what, writing how, std::size_t slice);
  void help();
  /// Copies slices of the job in hand until none is left.
  void work(std::uint32_t job);
  /// Whether another job than `done` is there; waits for one, first awake.
  std::uint32_t next_job(std::uint32_t done);

  const unsigned helpers_;
  std::mutex turn_;  // who has the crew
  std::vector<std::jthread> threads_;

  // The job: a helper reads these, and finds out when it takes a slice whether they were those of its job.
  std::atomic<std::byte*> to_{nullptr};
  std::atomic<const std::byte*> from_{nullptr};
  std::atomic<std::size_t> width_{0};
  std::atomic<std::size_t> count_{0};
  std::atomic<std::size_t> to_pitch_{0};
  std::atomic<std::size_t> from_pitch_{0};
  std::atomic<writing> how_{writing::cached};
  std::atomic<std::uint64_t> next_{0};    // the job's number, and in the low half its next slice
  std::atomic<std::size_t> finished_{0};  // slices
  std::atomic<std::uint32_t> job_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace hpe::transfer
