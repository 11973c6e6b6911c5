#pragma once

/// The parts of the stand-in: contexts, memory, streams. Functions may be called by any thread.

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "tests/interpose/cuda/stand_in/stand_in.h"

// Names that cuda.h spells with a version are exported with that version, as by the driver, through the macros of
// cuda.h.
#define STAND_IN extern "C" __attribute__((visibility("default")))
#define COUNT() ::stand_in::count(__func__)
/// At the beginning of an entry that stand_in_fail can refuse, after COUNT().
#define REFUSE() \
  if (const CUresult refused = ::stand_in::refusal(__func__); refused != CUDA_SUCCESS) return refused

namespace stand_in {

void count(const char* symbol);
/// The result with which stand_in_fail refuses this call of an entry, or CUDA_SUCCESS.
CUresult refusal(const char* symbol);

// ---- contexts: the primary one of each device, and those that programs make -------------------------------------

inline constexpr int device_count = 2;

struct context {
  int device;
  std::atomic<unsigned> users{0};
  std::atomic<std::uint64_t> generation{0};  // counts its ends
};

context* primary(int device);  // nullptr if there is no such device
context* make_context(int device);
inline CUcontext handle_of(context* c) { return reinterpret_cast<CUcontext>(c); }
inline context* context_of(CUcontext c) { return reinterpret_cast<context*>(c); }
/// The contexts of a thread; the last one is current. Has no destructor, because exit handlers call the driver after
/// the thread's variables are destroyed.
class context_list {
 public:
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] CUcontext back() const { return contexts_.at(count_ - 1); }
  void push_back(CUcontext c) { contexts_.at(count_++) = c; }
  void pop_back() { --count_; }

 private:
  std::array<CUcontext, 64> contexts_{};
  std::size_t count_ = 0;
};
/// Those of the calling thread.
context_list& context_stack();
/// Finds the current context; returns an error if it cannot be used.
CUresult current(context*& found);
/// Ends a context: waits for its work, then releases everything that it has.
void end(context& c);

/// For stand_in_held.
void count_memory(held& all);
void count_streams(held& all);
std::size_t mapped_bytes(int device);

// ---- streams and events ------------------------------------------------------------------------------------------

/// Runs work in order, in its own thread.
class queue {
 public:
  std::uint64_t add(std::function<void()> work);
  void wait(std::uint64_t number);
  bool reached(std::uint64_t number);
  std::uint64_t last();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::uint64_t added_ = 0;
  std::uint64_t done_ = 0;
  bool started_ = false;
};

enum class stream_kind : std::uint8_t { legacy, blocking, non_blocking };
enum class capture_state : std::uint8_t { none, active, invalidated };

struct stream {
  context* of;
  std::uint64_t generation;
  stream_kind kind;
  bool destroyed = false;
  queue work;
  std::atomic<capture_state> capture{capture_state::none};
};

struct event {
  context* of;
  std::uint64_t generation;
  bool destroyed = false;
  std::atomic<queue*> in{nullptr};
  std::atomic<std::uint64_t> number{0};
};

/// Finds the object of a handle, or returns an error. The default streams are those of the current context.
CUresult find(CUstream given, stream*& found);
CUresult find(CUevent given, event*& found);
stream* make_stream(context& c, stream_kind kind);
event* make_event(context& c);

/// Queues work behind the work that CUDA's rules put before it.
std::uint64_t add(stream& s, std::function<void()> work);
void wait_for(const context& c);
/// What a wait for a context does to the captures in it. Whether there were any.
bool invalidate_captures(const context& c);
/// Holds up queued work, or lets it run.
void pause(bool paused);

/// A parameter's place; no bytes where the kernel has fewer.
struct formal {
  std::size_t offset = 0, bytes = 0;
};
/// A parameter of a kernel of a module; nothing for any other function.
[[nodiscard]] std::optional<formal> formal_of_module(CUfunction function, std::size_t index);
/// Whether stand_in_limit_parameters refuses a kernel of a module.
[[nodiscard]] bool is_over_limit(CUfunction function);
struct launch_shape {
  unsigned grid[3];
  unsigned block[3];
};
/// Queues a kernel of a module; false for any other function. Parameters are given one by one or in a block.
bool launch_of_module(CUfunction function, const launch_shape& shape, stream& in, void** parameters, void** extra);

// ---- memory ------------------------------------------------------------------------------------------------------

/// Memory of a pool has no context that the driver tells, and no handle for other processes.
CUdeviceptr allocate(context& c, std::size_t bytes, bool of_pool = false);
bool free_memory(CUdeviceptr address);
void* allocate_pinned(context& c, std::size_t bytes);
bool free_pinned(void* address);
bool register_pinned(context& c, void* address, std::size_t bytes);
bool unregister_pinned(void* address);

/// The allocation in which an address lies.
struct object {
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  context* of = nullptr;
  std::uint64_t number = 0;  ///< unique in the process
  bool of_pool = false;      ///< or mapped: without a context
  bool mapped = false;       ///< by cuMemMap
};
bool find_object(CUdeviceptr address, object& found);
/// Memory between processes. Return 0 and false if that is not possible.
bool share_object(CUdeviceptr address, CUipcMemHandle& handle);
CUdeviceptr open_object(context& c, const CUipcMemHandle& handle);
bool close_object(CUdeviceptr address);
bool is_device(CUdeviceptr address, std::size_t bytes);
bool is_pinned(CUdeviceptr address);
/// The place of the byte that a device address names.
std::byte* memory_at(CUdeviceptr address);

/// Ranges of addresses without memory, and what is mapped there. A mapping has no context that the driver tells.
/// `alias` is where the bytes can be read. The functions that remove return false if there is no such range.
void add_range(CUdeviceptr base, std::size_t bytes, std::byte* alias);
bool remove_range(CUdeviceptr base);
void add_mapping(CUdeviceptr address, std::size_t bytes, int device);
bool remove_mapping(CUdeviceptr address);
/// The memory for mappings that each device has.
inline constexpr std::size_t memory_of_device = std::size_t{192} << 20;

/// Whether one device's kernels and direct copies reach the other's memory.
bool reaches(int from, int to);
void set_reach(int from, int to, bool on);

// ---- copies ------------------------------------------------------------------------------------------------------

/// Rows of memory: one side of a copy.
struct rows {
  CUdeviceptr base;
  std::size_t pitch = 0;
  std::size_t slice = 0;  ///< bytes from one plane to the next
};

/// A copy: refuses what the driver refuses, and queues the copy or does it at once, like the driver.
CUresult copy(rows to, rows from, std::size_t width, std::size_t height, std::size_t depth, CUstream in, bool wait);
inline CUresult copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream in, bool wait) {
  return copy(rows{to}, rows{from}, bytes, 1, 1, in, wait);
}
CUresult fill(CUdeviceptr to, unsigned value, std::size_t width, std::size_t count, CUstream in, bool wait);

inline CUdeviceptr number_of(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

}  // namespace stand_in
