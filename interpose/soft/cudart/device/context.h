#pragma once

/// The state of the CUDA runtime in a process. Owns the tables of this folder and of the neighbouring folders (memory,
/// modules, streams, events, graphs).

#include <driver_types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "hpe/hpe.h"
#include "interpose/soft/cudart/device/errors.h"
#include "interpose/soft/cudart/memory/managed_advice.h"
#include "interpose/soft/cudart/memory/memory_table.h"
#include "interpose/soft/cudart/stream/stream_task.h"

namespace hpe::cudart {

class array_table;
class capture_table;
class condition_table;
class device_table;
class event_table;
class exec_table;
class graph_memory_table;
class graph_table;
class ipc_table;
class mipmap_table;
class module_table;
class pool_table;
class cudart_stream;
class stream_table;
class texture_table;
class user_object_table;

class context {
 public:
  context();
  ~context();
  context(const context&) = delete;
  context& operator=(const context&) = delete;

  [[nodiscard]] sticky_error& fault() noexcept { return fault_; }

  /// The table of all memory that kernels may use. Code that allocates memory for kernels adds the allocation; launches
  /// pass the table's allocations to hpe as accesses.
  [[nodiscard]] memory_table& memory() noexcept { return memory_; }
  [[nodiscard]] managed_advice& advice() noexcept { return advice_; }
  [[nodiscard]] module_table& modules() noexcept { return *modules_; }

  [[nodiscard]] bool has_started() const noexcept { return is_started_; }

  /// The first call of one of the functions below starts hpe. These functions throw hpe::error if hpe cannot start, and
  /// cudaErrorInitializationError in a child process that was forked after the start.
  [[nodiscard]] device_table& devices();
  [[nodiscard]] stream_table& streams();
  [[nodiscard]] event_table& events();
  [[nodiscard]] capture_table& captures();
  [[nodiscard]] graph_table& graphs();
  [[nodiscard]] exec_table& execs();
  [[nodiscard]] condition_table& conditions();
  [[nodiscard]] pool_table& pools();
  [[nodiscard]] graph_memory_table& graph_memory();
  [[nodiscard]] array_table& arrays();
  [[nodiscard]] mipmap_table& mipmaps();
  [[nodiscard]] texture_table& textures();
  [[nodiscard]] texture_table& surfaces();
  [[nodiscard]] user_object_table& user_objects();
  [[nodiscard]] ipc_table& ipc();

  /// Returns the stream for a handle. The stream may depend on the calling thread's current device and default stream.
  /// Throws cudaErrorInvalidResourceHandle for an unknown handle.
  [[nodiscard]] std::shared_ptr<cudart_stream> find_stream(cudaStream_t handle);

  /// Returns the calling thread's current device.
  [[nodiscard]] int current_device();

  /// Returns a list of accesses that contains all memory that kernels on the device may use.
  [[nodiscard]] std::vector<hpeAccess> accesses(int device);

  /// Returns the memory that a kernel may use: all CUDA memory that kernels on the device may use or, with
  /// HPE_SCOPE=args, all variables on the device and the allocations to which the arguments point. In both cases also
  /// other hpe memory (hpeMalloc) to which the arguments point.
  [[nodiscard]] task_memory_uses kernel_uses(int device, std::span<const std::byte> arguments);

  /// Waits for all work on all streams and ignores errors. Has no effect if hpe has not started.
  void finish_work();

  /// Like finish_work(), but for the checker, the program has not waited.
  void finish_work_untold();

  /// Implements cudaDeviceReset: frees the program's objects on a device and clears the sticky error.
  void reset(int device);

 private:
  struct started;
  started& start();

  sticky_error fault_;
  memory_table memory_;
  managed_advice advice_;
  std::unique_ptr<module_table> modules_;
  std::once_flag start_;
  std::atomic<bool> has_failed_{false};
  std::atomic<bool> is_started_{false};
  std::unique_ptr<started> started_;
};

/// Returns the context of this process. The first call, which may come before main, creates it. The context is never
/// destroyed, because static objects and other threads may make CUDA calls until the process ends.
[[nodiscard]] context& process();

}  // namespace hpe::cudart
