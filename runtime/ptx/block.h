#pragma once

/// A block of threads while it runs: what the engines (interpreter, compiled code) and the scheduler share.
///
/// Addresses: generic, global and constant addresses are addresses of this process, local ones too. A shared address is
/// an offset into the block's shared memory; in shared::cluster its upper 8 bits of 32 may hold r + 1, and then it is
/// one into that of the cluster's block of rank r.

#include <array>
#include <csetjmp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ptx/image.h"

namespace hpe::ptx {

struct dimensions {
  std::uint32_t x = 1, y = 1, z = 1;
  [[nodiscard]] std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

/// Why a kernel was stopped.
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

  /// One sentence with everything.
  [[nodiscard]] std::string message() const;
};

/// What a kernel needs from those who run it. Called from the threads that run blocks, several at once.
struct surroundings {
  std::function<void(std::string_view)> print;  // output of printf
  /// Whether a kernel may touch these bytes. Null where the owner catches page faults instead (fault_landing).
  std::function<bool(std::uint64_t address, std::size_t bytes)> may_touch;
  std::function<void*(std::size_t bytes)> allocate;  // malloc in kernels; null gives NULL
  std::function<void(void*)> release;
};

/// Parameters of a launch begin at a multiple of this.
inline constexpr std::size_t parameter_alignment = 16;

/// A cluster has no more blocks than this.
inline constexpr std::uint32_t most_blocks_of_cluster = 16;

struct launch_configuration {
  const ptx::image* image = nullptr;
  const function* kernel = nullptr;
  dimensions grid, block;
  std::uint32_t dynamic_shared = 0;
  const void* parameters = nullptr;   // formals_size bytes, laid out as the kernel's formals say
  std::uint64_t number = 0;           // %gridid
  std::optional<dimensions> cluster;  // of blocks, where the launch says; else as the kernel says, or none
  void* workspace = nullptr;          // of grid.sync: 16 bytes, zeroed, 16-aligned; of cooperative launches
  std::uint32_t local_limit =
      16 << 10;  // bytes of local memory and call frames of each thread, beyond what the kernel declares
  const ptx::surroundings* surroundings = nullptr;
};

struct block_context;

/// The blocks of a cluster. They run in turns in one thread of the machine.
struct cluster_members {
  dimensions size;                     // in blocks
  bool is_explicit = false;            // asked for by launch or kernel
  std::vector<block_context*> blocks;  // by rank, x fastest
  std::uint64_t phases = 0;            // of barrier.cluster that are complete
};

/// Compiled code reads the members up to `current` by their offsets.
struct block_context {
  static constexpr std::uint32_t ended = ~0U;
  static constexpr std::uint32_t mixed = ~0U - 1;  // of several threads: not all the same

  std::uint8_t* shared = nullptr;
  const std::uint8_t* parameters = nullptr;
  std::uint8_t* local = nullptr;  // of thread t: at t * local_stride
  std::uint64_t local_stride = 0;
  std::uint64_t* frame = nullptr;  // of compiled code: register slot s of thread t is frame[t * slots + s]
  std::uint32_t* next = nullptr;   // where each thread goes on: the number of a meeting point, or ended
  const std::uint32_t* tid_x = nullptr;
  const std::uint32_t* tid_y = nullptr;
  const std::uint32_t* tid_z = nullptr;
  std::uint32_t thread_count = 0;
  dimensions ntid, ctaid, nctaid;
  std::uint32_t dynamic_shared_offset = 0;
  std::uint32_t dynamic_shared_size = 0;
  std::uint32_t static_shared_size = 0;
  std::int32_t budget = 0;    // turns of waiting loops until the next pause
  std::uint32_t current = 0;  // the thread that runs, for messages

  const launch_configuration* configuration = nullptr;
  const cluster_members* cluster = nullptr;
  std::uint32_t cluster_rank = 0;
  std::uint64_t** bases = nullptr;  // registers of a thread that waits: index n is bases[t][n]
  bool in_compiled_code = false;
  jmp_buf landing;
  ptx::trap trap;

  [[nodiscard]] std::uint64_t shared_end() const {
    return reinterpret_cast<std::uint64_t>(shared) + dynamic_shared_offset + dynamic_shared_size;
  }
  [[nodiscard]] dimensions thread_of(std::uint32_t t) const { return {tid_x[t], tid_y[t], tid_z[t]}; }
  /// Says what is wrong, and stops the kernel: throws the trap, or leaves compiled code by a jump. A jump destroys
  /// nothing, so who may be called from compiled code has no object with a destructor when it calls stop.
  void record(ptx::trap::reason why, std::uint64_t address, const std::string& detail);
  [[noreturn]] void stop();
  /// Both, where nothing is called from compiled code.
  [[noreturn]] void fail(ptx::trap::reason why, std::uint64_t address, const std::string& detail) {
    record(why, address, detail);
    stop();
  }
};

/// The shared memory of one block, with memory around it whose use is a page fault: 64 KiB before it, and behind it all
/// that a 32-bit offset reaches, but for less than 1024 bytes that lie behind its end unused.
class shared_memory {
 public:
  explicit shared_memory(std::size_t bytes);
  shared_memory(const shared_memory&) = delete;
  shared_memory& operator=(const shared_memory&) = delete;
  ~shared_memory();

  /// Aligned to 1024.
  [[nodiscard]] std::uint8_t* data() const noexcept { return data_; }

  /// Whether an access to this address meant the shared memory at `data`.
  [[nodiscard]] static bool is_near(const std::uint8_t* data, std::uint64_t address) noexcept;

  struct mapping;

 private:
  std::unique_ptr<mapping> mapping_;  // null where there are no bytes
  std::uint8_t* data_ = nullptr;
};

/// Thrown by what runs a block.
struct trap_exception {
  ptx::trap trap;
};

/// Runs threads of a block up to their next meeting point.
class engine {
 public:
  engine() = default;
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  virtual ~engine() = default;

  /// How many registers a waiting thread keeps, for block_context::frame; 0 where the engine keeps them itself.
  [[nodiscard]] virtual std::uint32_t frame_slots() const = 0;
  /// The instruction at a meeting point: a warp, barrier, matrix or pause. Point 0 is the kernel's entry and has none.
  [[nodiscard]] virtual const instruction& at(std::uint32_t point) const = 0;
  /// Prepares to run a block from its entry.
  virtual void begin(block_context& block) = 0;
  /// Runs threads first <= t < last, all of which go on behind the given point, each up to its next meeting point or
  /// end. Returns that point if it is the same for all; else mixed, and the points are in block.next. Throws
  /// trap_exception.
  virtual std::uint32_t run(block_context& block, std::uint32_t point, std::uint32_t first, std::uint32_t last) = 0;
  /// An engine for another block of the same kernel, which takes turns with this one's.
  [[nodiscard]] virtual std::shared_ptr<engine> another() const = 0;
};

}  // namespace hpe::ptx
