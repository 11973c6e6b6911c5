#pragma once

/// Finds races in the shared memory of the blocks of a cluster while the interpreter runs them. A race is two accesses
/// of different threads to the same bytes that no synchronisation orders, if at least one access writes and not both
/// are atomic. The order in which the interpreter happens to run the threads does not matter.
///
/// Each thread has a clock, which its barriers advance. For each other thread, it also stores a time of that thread's
/// clock: accesses that the other thread made before this time are ordered before the thread's own accesses (vector
/// clocks; compare Flanagan and Freund, "FastTrack", 2009). A shuffle or a vote does not order memory accesses, so the
/// race finder ignores it. Volatile accesses count as plain accesses. Two writes of the same value are not a race.

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/ptx/races/race_report.h"

namespace hpe::ptx {

class race_finder {
 public:
  /// Checks blocks of one size, which must all run in one host thread.
  race_finder(race_report& report, std::uint32_t threads_of_a_block, std::uint32_t blocks);

  /// Call this when other blocks begin in place of the previous ones.
  void begin();

  /// Call this before a thread of `by` accesses memory. `at` is the address in this process. For a write, `value`
  /// points to the bytes that the thread will store; null if they are not known.
  void touch(const block_context& by, std::uint32_t thread, const instruction& what, const std::uint8_t* at,
             std::uint64_t bytes, memory_use how, const void* value = nullptr);

  // Call these when a group of threads meets at a barrier. The accesses of each thread before the barrier are ordered
  // before all later accesses of the group.
  void meet(const block_context& block, std::span<const std::uint32_t> threads, std::uint32_t barrier = no_barrier);
  void meet_lanes(const block_context& block, std::uint32_t first, std::uint32_t lanes);
  void meet_all(const block_context& block);
  /// Call this when the thread arrives at a barrier of the block and does not wait there (bar.arrive).
  void arrive(const block_context& block, std::uint32_t thread, std::uint32_t barrier);

  // Synchronisation through an object that the number `flag` identifies, such as a barrier or flag in memory. Accesses
  // of other threads before their release are ordered before all accesses of this thread after its acquire.
  void acquire(const block_context& block, std::uint32_t thread, std::uint64_t flag);
  void release(const block_context& block, std::uint32_t thread, std::uint64_t flag);

  // Asynchronous copies of a thread, which form groups. `pending`: how many groups may be incomplete after the wait.
  void commit_copies(const block_context& block, std::uint32_t thread);
  void wait_for_copies(const block_context& block, std::uint32_t thread, std::uint32_t pending);

  static constexpr std::uint32_t no_barrier = 16;

 private:
  using clock = std::uint32_t;
  // A time of each thread's clock, followed by the number of each thread's last complete group of copies.
  using times = std::vector<clock>;
  struct thread_state {
    clock now = 1;
    clock committed = 0, complete = 0;   // groups of copies
    clock settled = 0;                   // the groups that were complete at the last barrier of the whole block
    std::shared_ptr<const times> known;  // null: no access since that barrier
  };
  // Accesses to a word by the same instruction at the same time.
  struct record {
    const instruction* what = nullptr;
    clock when = 0;
    memory_use how = memory_use::read;
    std::uint8_t bytes = 0;  // accessed bytes of the word, bit n for byte n
    std::vector<std::uint64_t> threads;
  };
  struct word {
    std::uint32_t epoch = 0;
    std::vector<record> records;
  };

  void touch_word(word& in, const record& access, const block_context& block, std::uint32_t by, bool changes,
                  race& where);
  [[nodiscard]] bool is_ordered(const record& r, std::uint32_t earlier, std::uint32_t later) const;
  [[nodiscard]] std::optional<std::uint32_t> find_unordered(const record& r, std::uint32_t later) const;
  void forget(word& in) const;
  [[nodiscard]] std::shared_ptr<times> known_to(std::span<const std::uint32_t> threads,
                                                const std::shared_ptr<const times>& more) const;
  void note_in(std::shared_ptr<const times>& to, std::uint32_t thread);
  [[nodiscard]] std::uint32_t number(const block_context& block, std::uint32_t thread) const {
    return block.cluster_rank * threads_ + thread;
  }
  [[nodiscard]] race::access access_of(const block_context& by, std::uint32_t number, const record& r) const;

  race_report& report_;
  const std::uint32_t threads_, blocks_;
  std::uint32_t epoch_ = 1;  // for a single block: number of barriers of the whole block, which order all accesses
  std::vector<thread_state> states_;
  std::vector<std::vector<word>> words_;                                       // by block
  std::vector<std::array<std::shared_ptr<const times>, no_barrier>> arrived_;  // by block: times of bar.arrive
  std::unordered_map<std::uint64_t, std::shared_ptr<const times>> flags_;
};

}  // namespace hpe::ptx
