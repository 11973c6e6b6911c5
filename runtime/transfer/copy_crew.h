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
  explicit copy_crew(unsigned helpers = helpers_for_this_machine());
  ~copy_crew();
  copy_crew(const copy_crew&) = delete;
  copy_crew& operator=(const copy_crew&) = delete;

  /// How the bytes are written. What a device reads next is best left in the caches; what goes to the program's memory
  /// is best written past them, or else each line is read before it is written.
  enum class writing : std::uint8_t { cached, past_caches };

  /// memcpy.
  void copy(void* to, const void* from, std::size_t bytes, writing how = writing::cached);

 private:
  static unsigned helpers_for_this_machine();
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
  std::atomic<std::size_t> bytes_{0};
  std::atomic<writing> how_{writing::cached};
  std::atomic<std::uint64_t> next_{0};    // the job's number, and in the low half its next slice
  std::atomic<std::size_t> finished_{0};  // slices
  std::atomic<std::uint32_t> job_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace hpe::transfer
