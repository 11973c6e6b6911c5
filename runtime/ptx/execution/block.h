#pragma once

/// The state of a running block of threads. The engines (interpreter and compiled code) and the scheduler share this
/// state.
///
/// Generic, global, constant and local addresses are addresses of this process. A shared address is an offset into the
/// block's shared memory. An address in shared::cluster has 32 bits. If its upper 8 bits are 0, it is an offset into
/// the block's own shared memory. If the upper 8 bits are r + 1, the other bits are an offset into the shared memory of
/// the block with rank r in the cluster.

#include <array>
#include <csetjmp>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ptx/program/image.h"

namespace hpe::ptx {

struct dimensions {
  std::uint32_t x = 1, y = 1, z = 1;
  [[nodiscard]] std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

/// Why a kernel was stopped, and in which thread.
struct trap {
  enum class reason : std::uint8_t {
    none,
    address,
    misaligned,
    trap,
    assertion,
    stack,
    deadlock,
    bad_function,
    surface,
    illegal
  };
  reason why = reason::none;
  std::string kernel;
  dimensions block, thread;
  std::uint64_t address = 0;
  std::string detail;
  struct shared_place {
    std::int64_t offset;
    std::uint32_t block_bytes;  // size of the block's shared memory
    std::string variable;       // the name of the accessed variable (name_of_shared)
  };
  std::optional<shared_place> shared;  // set if the access was probably meant for shared memory

  /// Returns a sentence for the user, from all members that are set.
  [[nodiscard]] std::string message() const;
};

class device_queue;

/// The functions that the process which runs a kernel must supply. CPU threads that run blocks may call these functions
/// at the same time.
struct surroundings {
  std::function<void(std::string_view)> print;  // receives the output of printf
  /// Returns whether a kernel may access `bytes` bytes at `address`. Null if a page-fault handler detects wrong
  /// accesses instead (land_page_fault).
  std::function<bool(std::uint64_t address, std::size_t bytes)> may_touch;
  std::function<void*(std::size_t bytes)> allocate;  // for malloc in kernels; may return null
  std::function<void(void*)> release;
  device_queue* queue = nullptr;  // the grid's queue for dynamic parallelism; null if kernels cannot launch kernels
  std::uint32_t device = 0, device_count = 1;
};

class race_report;
class race_finder;

/// The alignment of a launch's parameters, in bytes.
inline constexpr std::size_t parameter_alignment = 16;

/// The largest number of blocks in a cluster.
inline constexpr std::uint32_t most_blocks_of_cluster = 16;

struct launch_configuration {
  const ptx::image* image = nullptr;
  const function* kernel = nullptr;
  dimensions grid, block;
  std::uint32_t dynamic_shared = 0;
  const void* parameters = nullptr;   // formals_size bytes, in the layout that the kernel declares
  std::uint64_t number = 0;           // %gridid
  std::optional<dimensions> cluster;  // cluster size in blocks; if empty, the size that the kernel declares
  void* workspace = nullptr;          // 16 bytes for grid.sync, aligned to 16; null: run_together uses its own
  std::uint32_t local_limit =
      16 << 10;  // bytes per thread for the local memory and the call frames of the functions that the kernel calls
  const ptx::surroundings* surroundings = nullptr;
  race_report* races = nullptr;  // null if hpe does not look for races; only the interpreter can find races
};

struct block_context;
class execution_engine;

/// The blocks of a cluster. One CPU thread runs them in turns.
struct cluster_members {
  dimensions size;                     // in blocks
  bool is_explicit = false;            // whether the launch or the kernel specifies a cluster size
  std::vector<block_context*> blocks;  // by rank; ranks count along x first
  std::uint64_t phases = 0;            // the number of completed phases of barrier.cluster
  race_finder* races = nullptr;        // null if hpe does not look for races
};

/// The state of one block. Compiled code accesses the members up to `record_colour` by their offsets.
struct block_context {
  static constexpr std::uint32_t ended = ~0U;
  static constexpr std::uint32_t mixed = ~0U - 1;  // the threads have different points

  std::uint8_t* shared = nullptr;
  const std::uint8_t* parameters = nullptr;
  std::uint8_t* local = nullptr;  // local memory; the local memory of thread t begins at byte t * local_stride
  std::uint64_t local_stride = 0;
  std::uint64_t* frame = nullptr;  // for compiled code: register slot s of thread t is frame[s * thread_count + t]
  std::uint32_t* next = nullptr;   // by thread: the meeting point after which the thread continues, or `ended`
  const std::uint32_t* tid_x = nullptr;
  const std::uint32_t* tid_y = nullptr;
  const std::uint32_t* tid_z = nullptr;
  std::uint32_t thread_count = 0;
  dimensions ntid, ctaid, nctaid;
  std::uint32_t dynamic_shared_offset = 0;
  std::uint32_t dynamic_shared_size = 0;
  std::uint32_t static_shared_size = 0;
  std::int32_t budget = 0;      // the number of iterations of waiting loops before the next pause
  std::uint32_t may_group = 1;  // if 0, compiled code runs threads one by one, so that `current` is exact
  // The number of adjacent blocks, in x, whose threads the next call of compiled code runs (run_strip). The code counts
  // ctaid.x up.
  std::uint32_t strip = 1;
  std::uint32_t current = 0;  // for messages: the running thread, or the first of the threads that run together
  // The distance from the records of the first colour to those of the block's colour (access_recording.h).
  std::uint64_t record_colour = 0;

  const launch_configuration* configuration = nullptr;
  const cluster_members* cluster = nullptr;
  std::uint32_t cluster_rank = 0;
  race_finder* races = nullptr;
  std::uint64_t** bases = nullptr;  // by thread: the address of the registers of a waiting thread, see register_of()
  std::size_t register_stride = 1;
  bool in_compiled_code = false;
  jmp_buf landing;
  ptx::trap trap;

  /// Returns register n of a waiting thread.
  [[nodiscard]] std::uint64_t& register_of(std::uint32_t thread, std::uint32_t n) const {
    return bases[thread][n * register_stride];
  }
  [[nodiscard]] std::uint64_t shared_end() const {
    return reinterpret_cast<std::uint64_t>(shared) + dynamic_shared_offset + dynamic_shared_size;
  }
  [[nodiscard]] dimensions thread_of(std::uint32_t t) const { return {tid_x[t], tid_y[t], tid_z[t]}; }
  /// record() stores the reason of a trap. After record(), call stop(), which stops the kernel: stop() throws the trap,
  /// or leaves compiled code by longjmp. A longjmp runs no destructors, so no object with a destructor may exist in a
  /// function that compiled code calls when the function calls stop().
  void record(ptx::trap::reason why, std::uint64_t address, const std::string& detail);
  [[noreturn]] void stop();
  /// Calls record() and stop(). Functions that compiled code calls must not use it.
  [[noreturn]] void fail(ptx::trap::reason why, std::uint64_t address, const std::string& detail) {
    record(why, address, detail);
    stop();
  }
};

/// The shared memory of a block, between inaccessible pages. An access at any 32-bit offset outside of the memory is a
/// page fault, except in the padding: less than 1024 bytes after the memory, and at most 3072 bytes before it.
class shared_memory {
 public:
  explicit shared_memory(std::size_t bytes);
  shared_memory(const shared_memory&) = delete;
  shared_memory& operator=(const shared_memory&) = delete;
  ~shared_memory();

  /// Returns the address of the first byte, a multiple of 1024.
  [[nodiscard]] std::uint8_t* data() const noexcept { return data_; }

  /// Returns whether an address is in the shared memory at `data`, or so near that an access to the address was
  /// probably meant for this shared memory.
  [[nodiscard]] static bool is_near(const std::uint8_t* data, std::uint64_t address) noexcept;

  struct mapping;

 private:
  std::unique_ptr<mapping> mapping_;  // null if the size is 0
  std::uint8_t* data_ = nullptr;
};

/// Engines and schedulers throw this exception to stop a kernel.
struct trap_exception {
  ptx::trap trap;
};

/// Runs threads of a block until each thread reaches its next meeting point. A meeting point is an instruction at which
/// threads wait for other threads. An engine numbers its meeting points.
class execution_engine {
 public:
  execution_engine() = default;
  execution_engine(const execution_engine&) = delete;
  execution_engine& operator=(const execution_engine&) = delete;
  virtual ~execution_engine() = default;

  /// Returns the number of register slots per thread in block_context::frame; 0 if the engine stores registers itself.
  [[nodiscard]] virtual std::uint32_t frame_slots() const = 0;
  /// Returns the instruction at a meeting point; its kind is warp, barrier, matrix or pause. Point 0 is the kernel's
  /// entry and has no instruction.
  [[nodiscard]] virtual const instruction& at(std::uint32_t point) const = 0;
  /// Prepares the engine to run a block from the kernel's entry.
  virtual void begin(block_context& block) = 0;
  /// Runs threads first <= t < last from the meeting point `point`, each to its next meeting point or its end. Returns
  /// the next point if it is the same for all threads. Otherwise returns block_context::mixed, and block.next contains
  /// the points. Throws trap_exception.
  virtual std::uint32_t run(block_context& block, std::uint32_t point, std::uint32_t first, std::uint32_t last) = 0;
  /// Like run() for all threads of the block, but continues past barriers of the whole block at which all threads
  /// arrive. Returns at barrier number `most` at the latest. Not for blocks with a race finder, because the race finder
  /// must see these barriers.
  virtual std::uint32_t run_block(block_context& block, std::uint32_t point, std::uint32_t most);
  /// Whether run_strip() can run blocks of the kernel.
  [[nodiscard]] virtual bool runs_strips() const { return false; }
  /// Runs `count` blocks from the kernel's entry to their ends: the block with the index block.ctaid and the blocks
  /// that follow in x. Runs the first row of threads of each block, then the second row of each block, and so on,
  /// because adjacent blocks often use adjacent memory. All blocks use the state of `block`. Throws trap_exception.
  virtual void run_strip(block_context& /*block*/, std::uint32_t /*count*/) {}
  /// Returns the lanes, among `lanes`, that wait at the earliest position in the program. Positions inside a call are
  /// earlier than the code after the call. All `lanes` must wait at meeting points. `first` is the thread of lane 0;
  /// bit n of `lanes` is lane n.
  [[nodiscard]] virtual std::uint32_t earliest(const block_context& block, std::uint32_t first,
                                               std::uint32_t lanes) const;
  /// Where a thread of a block waits.
  struct waiting_thread {
    std::uint32_t position = 0;  // of the meeting in the kernel's code; `ended` or `entry` if there is none
    const std::uint64_t* registers = nullptr;
    static constexpr std::uint32_t ended = ~0U, entry = ~0U - 1;
  };
  /// Continues a block that an interpreter has begun: stores the registers of each thread in the block's frame, and the
  /// point after which the thread continues in block.next. Only for engines that compiled_image::successor_for returns.
  virtual void take_over(block_context& /*block*/, std::span<const waiting_thread> /*threads*/) {}
  /// Returns a new engine for another block of the same kernel. The two engines run their blocks in turns.
  [[nodiscard]] virtual std::shared_ptr<execution_engine> another() const = 0;
};

}  // namespace hpe::ptx
