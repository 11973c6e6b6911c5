#pragma once

/// Finds races in the shared memory of the blocks of a cluster while the interpreter runs them. A race is a pair of
/// accesses of different threads to the same bytes that no synchronisation orders. At least one of the accesses writes,
/// and at most one is atomic. The result does not depend on the order in which the interpreter runs the threads.
///
/// Each thread has a clock. The clock advances when the thread meets other threads, arrives at a barrier, or releases a
/// flag (also by an atomic access that may write). For every other thread u, a thread t also stores a time of u's
/// clock: the accesses of u up to this time are ordered before the next accesses of t (vector clocks; compare Flanagan
/// and Freund, "FastTrack", 2009). The race finder ignores shuffles and votes, because they do not order memory
/// accesses. Volatile accesses count as plain accesses. Two writes of the same value are not a race.

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/ptx/races/race_report.h"

namespace hpe::ptx {

class race_finder {
 public:
  /// `blocks` is the number of blocks that the finder checks at a time: the blocks of one cluster. One CPU thread must
  /// run all of them.
  race_finder(race_report& report, std::uint32_t threads_of_a_block, std::uint32_t blocks);

  /// Call this when the blocks of the next cluster begin.
  void begin();

  /// Call this before thread `thread` of block `by` accesses memory. `at` is the address in this process. For a write,
  /// `value` points to the bytes that the thread will store; null if the bytes are unknown.
  void touch(const block_context& by, std::uint32_t thread, const instruction& what, const std::uint8_t* at,
             std::uint64_t bytes, memory_use how, const void* value = nullptr);

  // Call these functions when a group of threads meets at a barrier. The accesses that each thread made before the
  // barrier are ordered before all later accesses of the group.
  void meet(const block_context& block, std::span<const std::uint32_t> threads, std::uint32_t barrier = no_barrier);
  void meet_lanes(const block_context& block, std::uint32_t first, std::uint32_t lanes);
  void meet_all(const block_context& block);
  /// Call this when the thread arrives at a barrier of the block and does not wait there (bar.arrive).
  void arrive(const block_context& block, std::uint32_t thread, std::uint32_t barrier);

  // Call these functions for synchronisation through an object that the number `flag` identifies, such as a barrier or
  // flag in memory. Accesses that other threads made before their release are ordered before all accesses of this
  // thread after its acquire.
  void acquire(const block_context& block, std::uint32_t thread, std::uint64_t flag);
  void release(const block_context& block, std::uint32_t thread, std::uint64_t flag);

  // Call these functions for a thread's asynchronous copies, which form groups. `pending`: the number of groups that
  // may be incomplete after the wait.
  void commit_copies(const block_context& block, std::uint32_t thread);
  void wait_for_copies(const block_context& block, std::uint32_t thread, std::uint32_t pending);

  static constexpr std::uint32_t no_barrier = 16;

 private:
  using clock = std::uint32_t;
  // For each thread, a time of its clock; then, for each thread, the number of its last complete group of asynchronous
  // copies.
  using times = std::vector<clock>;
  struct thread_state {
    clock now = 1;
    // The numbers of the last committed and of the last complete group of asynchronous copies.
    clock committed = 0, complete = 0;
    clock settled = 0;  // the last group that was complete at the last barrier of the whole block
    // The times up to which accesses are ordered before the next access; null: only accesses before the last barrier of
    // the whole block are.
    std::shared_ptr<const times> known;
  };
  // Accesses to one word that several threads made with the same instruction at the same time of their clocks.
  struct record {
    const instruction* what = nullptr;
    clock when = 0;
    memory_use how = memory_use::read;
    std::uint8_t bytes = 0;  // bit n: whether byte n of the word is accessed
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
  std::uint32_t epoch_ =
      1;  // for a single block: the number of barriers of the whole block, each of which orders all accesses
  std::vector<thread_state> states_;
  std::vector<std::vector<word>> words_;                                       // by block
  std::vector<std::array<std::shared_ptr<const times>, no_barrier>> arrived_;  // by block: times of bar.arrive
  std::unordered_map<std::uint64_t, std::shared_ptr<const times>> flags_;
};

}  // namespace hpe::ptx
