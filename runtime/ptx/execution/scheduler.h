#pragma once

/// Runs one block with an engine: runs the threads of the block, and completes meetings (call_graph.h), at which
/// threads wait for each other.

#include "runtime/ptx/execution/block.h"

namespace hpe::ptx {

class scheduler {
 public:
  /// The state of a block after advance(). `waiting`: no thread can continue before other blocks of the cluster arrive
  /// at a barrier.
  enum class state : std::uint8_t { ended, paused, waiting };

  /// Both arguments must outlive the scheduler. As on a GPU, static shared memory is not initialised.
  scheduler(execution_engine& runs, const launch_configuration& configuration);
  scheduler(const scheduler&) = delete;
  scheduler& operator=(const scheduler&) = delete;
  ~scheduler();

  /// Begins the block with the index (x, y, z) in the grid, and reuses the memory of the previous block. All blocks of
  /// a cluster must begin before the first of them advances. `cluster` must outlive the run of the block.
  void begin(std::uint32_t x, std::uint32_t y, std::uint32_t z, cluster_members* cluster = nullptr);
  /// Runs threads until all have ended, until the remaining threads only wait in loops or for the cluster, or until the
  /// threads have met so often that they may be waiting for another block. If the block has not ended, the caller
  /// should run other blocks next. Throws trap_exception, also in case of a deadlock.
  state advance();
  /// Runs the block that has begun, and the next `count` - 1 blocks in x (execution_engine::run_strip).
  void run_strip(std::uint32_t count);
  /// Continues the block, which the interpreter of `kernel` has begun, with another engine
  /// (execution_engine::take_over). The engine must outlive the scheduler.
  void move_to(execution_engine& engine, const function& kernel);
  /// Returns whether each thread that has not ended has arrived at the cluster's barrier at least `times` times.
  [[nodiscard]] bool has_arrived(std::uint64_t times) const;
  /// Stops the kernel with a trap, because its threads are in a deadlock.
  [[noreturn]] void report_deadlock();
  [[nodiscard]] block_context& context() { return block_; }
  /// Returns the size in bytes of the block's state, without the registers of the interpreter.
  [[nodiscard]] std::size_t bytes() const;

  /// Returns the block that the calling thread runs; null if it runs none. The page-fault handler uses this.
  [[nodiscard]] static block_context* running();

 private:
  struct warp {
    std::uint32_t lanes = 0;  // the lanes that the warp has
    std::uint32_t alive = 0;  // the lanes that have not ended
    std::uint32_t ready = 0;  // the lanes that can continue
    std::uint32_t point = 0;  // the meeting point at which all lanes wait, or mixed
  };

  std::optional<state> run_together();
  [[nodiscard]] bool stand_together() const;
  void note_lockstep(std::uint32_t w);
  void part();
  void run_ready();
  void look_at(std::uint32_t w);
  bool meet_warps();
  bool meet_named(std::uint32_t w, std::uint32_t waiting);
  bool meet_barriers();
  bool release_pauses();
  [[nodiscard]] static bool is_maskless(const instruction& what);
  [[nodiscard]] static bool is_whole(const instruction& what);
  [[nodiscard]] bool names_all_lanes(const instruction& what) const;
  [[nodiscard]] bool is_stray(std::uint32_t lane, std::uint32_t thread, const instruction& what) const;
  [[nodiscard]] std::uint32_t mask_of(std::uint32_t thread, const instruction& what) const;
  [[nodiscard]] std::string text_of(const instruction& what) const;
  bool meet_cluster();
  [[nodiscard]] bool waits_for_cluster() const;
  [[nodiscard]] bool waits(std::uint32_t t) const { return (warps_[t / 32].ready >> (t % 32) & 1) == 0; }
  [[nodiscard]] bool has_ended(std::uint32_t t) const { return next_[t] == block_context::ended; }
  void release(std::uint32_t t) { warps_[t / 32].ready |= 1U << (t % 32); }
  void make_frame();

  execution_engine* engine_;
  const launch_configuration& configuration_;
  block_context block_;
  shared_memory shared_;
  std::vector<std::uint8_t> local_;
  std::vector<std::uint64_t> frame_;
  std::vector<std::uint64_t*> bases_;
  std::vector<std::uint32_t> next_, tid_x_, tid_y_, tid_z_;
  std::vector<warp> warps_;     // valid only while together_ is `mixed`
  std::uint32_t together_ = 0;  // the meeting point after which all threads of the block continue, or mixed
  std::array<std::uint32_t, 16> arrived_{};  // by barrier: the number of arrivals by bar.arrive
  // By thread: the number of arrivals at the cluster's barrier; empty before the first arrival.
  std::vector<std::uint64_t> arrivals_;
};

/// Executes a meeting of some lanes of a warp and writes the results of the lanes. All of these lanes must wait at
/// instructions with the same opcode. `first` is the thread of lane 0; bit n of `lanes` is lane n.
void meet(block_context& block, const execution_engine& points, std::uint32_t first, std::uint32_t lanes);

/// Executes a meeting of a whole warp: all 32 lanes must wait at the same instruction.
void meet_together(block_context& block, const execution_engine& points, const instruction& what, std::uint32_t first);

/// Returns the value of an operand of the instruction at which a thread waits.
[[nodiscard]] std::uint64_t value_of(const block_context& block, std::uint32_t thread, const operand& o);
void set_result(block_context& block, std::uint32_t thread, const operand& o, std::uint64_t value);

/// Executes a meeting of wmma.mma, mma, ldmatrix, stmatrix or movmatrix.
void meet_matrices(block_context& block, const instruction& what, std::uint32_t first);

}  // namespace hpe::ptx
