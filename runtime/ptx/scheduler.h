#pragma once

/// Runs one block with an engine: lets threads run, and brings together those that wait for each other.

#include "runtime/ptx/block.h"

namespace hpe::ptx {

class scheduler {
 public:
  /// waiting: only for the other blocks of the cluster.
  enum class state : std::uint8_t { ended, paused, waiting };

  /// Both must outlive the scheduler. The shared memory's static part is not initialised, as on a GPU.
  scheduler(engine& runs, const launch_configuration& configuration);
  scheduler(const scheduler&) = delete;
  scheduler& operator=(const scheduler&) = delete;
  ~scheduler();

  /// Begins another block. Everything allocated is kept. Of a cluster, all blocks begin before the first advances; it
  /// must outlive the run.
  void begin(dimensions block, cluster_members* cluster = nullptr);
  /// Runs until all threads have ended, or until some only go round waiting loops, so that it is the turn of other
  /// blocks. Throws fault_exception, also for threads that wait for what cannot come.
  state advance();
  /// Whether all threads that have not ended have arrived at the cluster's barrier as often as given.
  [[nodiscard]] bool has_arrived(std::uint64_t times) const;
  /// Stops the kernel, whose threads wait for what cannot come.
  [[noreturn]] void report_deadlock();
  [[nodiscard]] block_context& context() { return block_; }

  /// The scheduler that runs compiled code in this thread, for the handler of page faults; or null.
  [[nodiscard]] static block_context* running();

 private:
  struct warp {
    std::uint32_t lanes = 0;  // that it has
    std::uint32_t alive = 0;  // that have not ended
    std::uint32_t ready = 0;  // that can go on
    std::uint32_t point = 0;  // where all lanes are, or mixed
  };

  state run_together();
  void part();
  void run_ready();
  void look_at(std::uint32_t w);
  bool meet_warps();
  bool meet_named(std::uint32_t w, std::uint32_t waiting);
  bool meet_barriers();
  bool release_pauses();
  [[nodiscard]] static bool is_plain_barrier(const instruction& what);
  [[nodiscard]] static bool is_whole(const instruction& what);
  [[nodiscard]] bool names_all_lanes(const instruction& what) const;
  [[nodiscard]] std::uint32_t mask_of(std::uint32_t thread, const instruction& what) const;
  [[nodiscard]] std::string text_of(const instruction& what) const;
  bool meet_cluster();
  [[nodiscard]] bool waits_for_cluster() const;
  [[nodiscard]] bool waits(std::uint32_t t) const { return (warps_[t / 32].ready >> (t % 32) & 1) == 0; }
  [[nodiscard]] bool has_ended(std::uint32_t t) const { return next_[t] == block_context::ended; }
  void release(std::uint32_t t) { warps_[t / 32].ready |= 1U << (t % 32); }

  engine& engine_;
  const launch_configuration& configuration_;
  block_context block_;
  shared_memory shared_;
  std::vector<std::uint8_t> local_;
  std::vector<std::uint64_t> frame_;
  std::vector<std::uint64_t*> bases_;
  std::vector<std::uint32_t> next_, tid_x_, tid_y_, tid_z_;
  std::vector<warp> warps_;                  // not kept up while the block is together
  std::uint32_t together_ = 0;               // where all threads of the block go on, or mixed
  std::array<std::uint32_t, 16> arrived_{};  // by bar.arrive
  std::vector<std::uint64_t> arrivals_;      // of each thread at the cluster's barrier; empty before the first
};

/// Executes a meeting of some lanes of a warp, each waiting at an instruction of the same opcode, and writes their
/// results. first is the thread of lane 0; bit n of lanes stands for lane n.
void meet(block_context& block, const engine& points, std::uint32_t first, std::uint32_t lanes);

/// The same where all 32 lanes of the warp wait at one instruction, for each other.
void meet_together(block_context& block, const engine& points, const instruction& what, std::uint32_t first);

/// An operand of the instruction that a thread waits at.
[[nodiscard]] std::uint64_t value_of(const block_context& block, std::uint32_t thread, const operand& o);
void set_result(block_context& block, std::uint32_t thread, const operand& o, std::uint64_t value);

/// The meeting of wmma.mma, mma and ldmatrix and its relatives.
void meet_matrices(block_context& block, const instruction& what, std::uint32_t first);

}  // namespace hpe::ptx
