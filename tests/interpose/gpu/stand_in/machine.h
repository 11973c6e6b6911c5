#pragma once

/// The objects of the stand-in: contexts, memory and streams. Any thread may call the functions.

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "tests/interpose/gpu/stand_in/stand_in.h"

// The macros of cuda.h add versions to the names of entries, so the stand-in exports the same versioned names as the
// driver.
#define STAND_IN extern "C" __attribute__((visibility("default")))
#define COUNT() ::stand_in::count(__func__)
/// Belongs after COUNT() at the beginning of each entry (function of the driver) that stand_in_fail can make fail.
#define REFUSE() \
  if (const CUresult refused = ::stand_in::refusal(__func__); refused != CUDA_SUCCESS) return refused

namespace stand_in {

void count(const char* symbol);
/// Returns the error that stand_in_fail has set for this call of an entry, or CUDA_SUCCESS.
CUresult refusal(const char* symbol);

// ---- contexts: the primary one of each device, and those that programs make -------------------------------------

inline constexpr int device_count = 2;

struct context {
  int device;
  std::atomic<unsigned> users{0};
  std::atomic<std::uint64_t> generation{0};  // how often the context has ended
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
/// Returns the contexts of the calling thread.
context_list& context_stack();
/// Finds the current context; returns an error if there is no current context or it cannot be used.
CUresult current(context*& found);
/// Ends a context: waits for its work, then releases its memory, streams and events.
void end(context& c);

/// Add the number of objects to `all`, for stand_in_held.
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
  bool records = false;                ///< whether the capture is of mode relaxed
  std::thread::id captures_from = {};  ///< the thread that must end the capture, unless it is of mode relaxed
  std::vector<std::function<void()>> recorded = {};  ///< the captured work; guarded like the queues

  [[nodiscard]] bool is_recording() const { return records && capture == capture_state::active; }
};

struct event {
  context* of;
  std::uint64_t generation;
  bool destroyed = false;
  std::atomic<queue*> in{nullptr};
  std::atomic<std::uint64_t> number{0};
  std::atomic<bool> captured{false};  ///< whether a capture has recorded the event
};

/// Finds the object of a handle, or returns an error. The handles of default streams mean the default streams of the
/// current context.
CUresult find(CUstream given, stream*& found);
CUresult find(CUevent given, event*& found);
stream* make_stream(context& c, stream_kind kind);
event* make_event(context& c);

/// Queues work that runs after all work that must precede it by CUDA's rules. Returns the work's number in the stream.
std::uint64_t add(stream& s, std::function<void()> work);
void wait_for(const context& c);
/// Invalidates the captures in a context, as a wait for the context does. Returns whether there were any captures.
bool invalidate_captures(const context& c);
/// If `paused` is true, queued work waits until pause(false) is called.
void pause(bool paused);

/// The offset and size of a parameter; `bytes` is 0 if the kernel has fewer parameters.
struct formal {
  std::size_t offset = 0, bytes = 0;
};
/// Returns a parameter of a kernel of a module; nullopt for any other function.
[[nodiscard]] std::optional<formal> formal_of_module(CUfunction function, std::size_t index);
/// Whether a kernel of a module has more parameters than stand_in_limit_parameters allows.
[[nodiscard]] bool is_over_limit(CUfunction function);
struct launch_shape {
  unsigned grid[3];
  unsigned block[3];
};
/// Queues a kernel of a module; returns false for any other function. The parameters are either in `parameters`, one by
/// one, or in `extra`, as one block.
bool launch_of_module(CUfunction function, const launch_shape& shape, stream& in, void** parameters, void** extra);

// ---- memory ------------------------------------------------------------------------------------------------------

/// of_pool: memory of a pool, for which the driver reports no context and returns no IPC handle.
CUdeviceptr allocate(context& c, std::size_t bytes, bool of_pool = false);
bool free_memory(CUdeviceptr address);
void* allocate_pinned(context& c, std::size_t bytes);
bool free_pinned(void* address);
bool register_pinned(context& c, void* address, std::size_t bytes);
bool unregister_pinned(void* address);

/// An allocation.
struct object {
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  context* of = nullptr;
  std::uint64_t number = 0;  ///< unique in the process
  bool of_pool = false;      ///< memory of a pool or mapped memory, for which the driver reports no context
  bool mapped = false;       ///< mapped by cuMemMap
};
bool find_object(CUdeviceptr address, object& found);
/// Share memory with other processes. If that is not possible, open_object returns 0 and the other functions return
/// false.
bool share_object(CUdeviceptr address, CUipcMemHandle& handle);
CUdeviceptr open_object(context& c, const CUipcMemHandle& handle);
bool close_object(CUdeviceptr address);
bool is_device(CUdeviceptr address, std::size_t bytes);
bool is_pinned(CUdeviceptr address);
/// Returns the address at which the stand-in has the byte at a device address.
std::byte* memory_at(CUdeviceptr address);

/// Add and remove ranges of addresses without memory, and mappings in these ranges. The driver reports no context for a
/// mapping. alias: the address at which the stand-in has the bytes. The functions that remove return false if the range
/// or mapping does not exist.
void add_range(CUdeviceptr base, std::size_t bytes, std::byte* alias);
bool remove_range(CUdeviceptr base);
void add_mapping(CUdeviceptr address, std::size_t bytes, int device);
bool remove_mapping(CUdeviceptr address);
/// Whether cuMemSetAccess has let a device access the mapping that contains an address; true outside of mappings.
bool can_access(int device, CUdeviceptr address);
/// Each device's capacity for allocations that can be mapped, in bytes.
inline constexpr std::size_t memory_of_device = std::size_t{192} << 20;

/// Whether kernels and direct copies of device `from` can access the memory of device `to`.
bool reaches(int from, int to);
void set_reach(int from, int to, bool on);

// ---- copies ------------------------------------------------------------------------------------------------------

/// One side of a copy.
struct rows {
  CUdeviceptr base;
  std::size_t pitch = 0;
  std::size_t slice = 0;  ///< the distance in bytes from one plane to the next
};

/// Executes a copy like the driver: refuses invalid copies, and queues the copy or runs it at once.
CUresult copy(rows to, rows from, std::size_t width, std::size_t height, std::size_t depth, CUstream in, bool wait);
inline CUresult copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream in, bool wait) {
  return copy(rows{to}, rows{from}, bytes, 1, 1, in, wait);
}
CUresult fill(CUdeviceptr to, unsigned value, std::size_t width, std::size_t count, CUstream in, bool wait);

inline CUdeviceptr number_of(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

}  // namespace stand_in
