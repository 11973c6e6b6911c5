#pragma once

/// The state of a block of threads while it runs, shared by the engines (interpreter, compiled code) and the scheduler.
///
/// Addresses: generic, global, constant and local addresses are addresses of this process. A shared address is an
/// offset into the block's shared memory. In shared::cluster, the upper 8 of the 32 bits are 0, or r + 1; then the
/// other bits are an offset into the shared memory of the block whose rank in the cluster is r.

#include <array>
#include <csetjmp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ptx/program/image.h"

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
  struct shared_place {
    std::int64_t offset;
    std::uint32_t block_bytes;  // size of the block's shared memory
    std::string variable;       // the result of name_of_shared
  };
  std::optional<shared_place> shared;  // set if the access was meant for shared memory

  /// Returns a sentence that contains all members that are set.
  [[nodiscard]] std::string message() const;
};

class device_queue;

/// The functions that a kernel needs from the process that runs it. Several CPU threads that run blocks may call them
/// at the same time.
struct surroundings {
  std::function<void(std::string_view)> print;  // receives the output of printf
  /// Returns whether a kernel may access these bytes. Null if a page-fault handler detects wrong accesses instead
  /// (land_page_fault).
  std::function<bool(std::uint64_t address, std::size_t bytes)> may_touch;
  std::function<void*(std::size_t bytes)> allocate;  // for malloc in kernels, which returns NULL if this function does
  std::function<void(void*)> release;
  device_queue* queue = nullptr;  // the grid's queue for dynamic parallelism; null: kernels cannot queue work
  std::uint32_t device = 0, device_count = 1;
};

class race_report;
class race_finder;

/// The alignment of a launch's parameters.
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
  std::optional<dimensions> cluster;  // cluster size in blocks; none: the size that the kernel declares
  void* workspace = nullptr;          // for grid.sync in cooperative launches: 16 zeroed bytes, aligned to 16
  std::uint32_t local_limit =
      16 << 10;  // bytes per thread for the local memory and the call frames of the functions that the kernel calls
  const ptx::surroundings* surroundings = nullptr;
  race_report* races = nullptr;  // null: hpe does not look for races; only the interpreter can find races
};

struct block_context;
class engine;

/// The blocks of a cluster. They take turns in one CPU thread.
struct cluster_members {
  dimensions size;                     // in blocks
  bool is_explicit = false;            // the launch or the kernel has specified a cluster size
  std::vector<block_context*> blocks;  // by rank, x fastest
  std::uint64_t phases = 0;            // completed phases of barrier.cluster
  race_finder* races = nullptr;        // null: hpe does not look for races
};

/// Compiled code reads and writes the members up to `current` by their offsets.
struct block_context {
  static constexpr std::uint32_t ended = ~0U;
  static constexpr std::uint32_t mixed = ~0U - 1;  // several threads have different points

  std::uint8_t* shared = nullptr;
  const std::uint8_t* parameters = nullptr;
  std::uint8_t* local = nullptr;  // local memory; that of thread t begins at t * local_stride
  std::uint64_t local_stride = 0;
  std::uint64_t* frame = nullptr;  // compiled code: register slot s of thread t is frame[s * thread_count + t]
  std::uint32_t* next = nullptr;   // by thread: the meeting point after which the thread continues, or `ended`
  const std::uint32_t* tid_x = nullptr;
  const std::uint32_t* tid_y = nullptr;
  const std::uint32_t* tid_z = nullptr;
  std::uint32_t thread_count = 0;
  dimensions ntid, ctaid, nctaid;
  std::uint32_t dynamic_shared_offset = 0;
  std::uint32_t dynamic_shared_size = 0;
  std::uint32_t static_shared_size = 0;
  std::int32_t budget = 0;      // how many iterations of waiting loops may still run before the next pause
  std::uint32_t may_group = 1;  // 0: compiled code runs threads one by one, so that `current` is exact
  std::uint32_t current = 0;    // the running thread, or the first of the threads that run together; for messages

  const launch_configuration* configuration = nullptr;
  const cluster_members* cluster = nullptr;
  std::uint32_t cluster_rank = 0;
  race_finder* races = nullptr;
  std::uint64_t** bases = nullptr;  // where the registers of waiting threads are, see register_of()
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
  /// Call record(), which stores the reason of a trap, and then stop(), which stops the kernel: stop() throws the trap
  /// or, in compiled code, leaves it by longjmp. A longjmp runs no destructors, so functions called from compiled code
  /// must have no objects with destructors when they call stop().
  void record(ptx::trap::reason why, std::uint64_t address, const std::string& detail);
  [[noreturn]] void stop();
  /// Calls record() and stop(). Functions that compiled code calls must not use it.
  [[noreturn]] void fail(ptx::trap::reason why, std::uint64_t address, const std::string& detail) {
    record(why, address, detail);
    stop();
  }
};

/// The shared memory of a block, between inaccessible pages. An access at any 32-bit offset before or after the memory
/// is a page fault, except in the padding at the end, which has less than 1024 bytes.
class shared_memory {
 public:
  explicit shared_memory(std::size_t bytes);
  shared_memory(const shared_memory&) = delete;
  shared_memory& operator=(const shared_memory&) = delete;
  ~shared_memory();

  /// Returns the first byte, which is aligned to 1024.
  [[nodiscard]] std::uint8_t* data() const noexcept { return data_; }

  /// Returns whether an address is in the shared memory at `data`, or so near that an access to it was probably meant
  /// for that memory.
  [[nodiscard]] static bool is_near(const std::uint8_t* data, std::uint64_t address) noexcept;

  struct mapping;

 private:
  std::unique_ptr<mapping> mapping_;  // null if the memory has no bytes
  std::uint8_t* data_ = nullptr;
};

/// Thrown by engines and schedulers when a kernel is stopped.
struct trap_exception {
  ptx::trap trap;
};

/// Runs threads of a block until each reaches its next meeting point: an instruction at which threads wait for others.
class engine {
 public:
  engine() = default;
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  virtual ~engine() = default;

  /// Returns the number of register slots per thread in block_context::frame; 0 if the engine stores registers itself.
  [[nodiscard]] virtual std::uint32_t frame_slots() const = 0;
  /// Returns the instruction at a meeting point; its kind is warp, barrier, matrix or pause. Point 0 is the kernel's
  /// entry and has no instruction.
  [[nodiscard]] virtual const instruction& at(std::uint32_t point) const = 0;
  /// Prepares to run a block from its entry.
  virtual void begin(block_context& block) = 0;
  /// Runs threads first <= t < last. All of them continue after the meeting point `point`, each to its next meeting
  /// point or its end. Returns that next point if it is the same for all threads; otherwise returns mixed, and
  /// block.next contains the points. Throws trap_exception.
  virtual std::uint32_t run(block_context& block, std::uint32_t point, std::uint32_t first, std::uint32_t last) = 0;
  /// Runs all threads of the block as run() does, and continues past barriers of the whole block at which all threads
  /// meet. Returns at the latest at the barrier number `most`. Not for blocks with a race finder, because the race
  /// finder must see these barriers.
  virtual std::uint32_t run_block(block_context& block, std::uint32_t point, std::uint32_t most);
  /// `lanes` are some lanes of a warp; all of them wait at meetings. Returns those lanes that wait at the earliest
  /// position in the program; positions inside a call are earlier than the code after the call. `first` is the thread
  /// of lane 0; bit n of `lanes` is lane n.
  [[nodiscard]] virtual std::uint32_t earliest(const block_context& block, std::uint32_t first,
                                               std::uint32_t lanes) const;
  /// Returns a new engine for another block of the same kernel. The two engines run their blocks in turns.
  [[nodiscard]] virtual std::shared_ptr<engine> another() const = 0;
};

}  // namespace hpe::ptx
