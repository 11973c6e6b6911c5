#pragma once

/// What a process has of CUDA: the composition of everything in this folder.

#include <driver_types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "hpe/hpe.h"
#include "interpose/cudart/errors.h"
#include "interpose/cudart/managed_advice.h"
#include "interpose/cudart/memory_table.h"
#include "interpose/cudart/work.h"

namespace hpe::cudart {

class array_table;
class capture_table;
class device_table;
class event_table;
class exec_table;
class graph_memory_table;
class graph_table;
class ipc_table;
class module_table;
class pool_table;
class stream;
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

  /// All memory that kernels may use is entered here by whoever allocates it; launches name it to hpe.
  [[nodiscard]] memory_table& memory() noexcept { return memory_; }
  [[nodiscard]] managed_advice& advice() noexcept { return advice_; }
  [[nodiscard]] module_table& modules() noexcept { return *modules_; }

  /// Start hpe at the first call. Throw hpe::error where it cannot start, and cudaErrorInitializationError in a child
  /// made by fork after the start.
  [[nodiscard]] device_table& devices();
  [[nodiscard]] stream_table& streams();
  [[nodiscard]] event_table& events();
  [[nodiscard]] capture_table& captures();
  [[nodiscard]] graph_table& graphs();
  [[nodiscard]] exec_table& execs();
  [[nodiscard]] pool_table& pools();
  [[nodiscard]] graph_memory_table& graph_memory();
  [[nodiscard]] array_table& arrays();
  [[nodiscard]] texture_table& textures();
  [[nodiscard]] texture_table& surfaces();
  [[nodiscard]] user_object_table& user_objects();
  [[nodiscard]] ipc_table& ipc();

  /// The stream of a handle as the calling thread means it: with its current device and its default stream. Throws
  /// cudaErrorInvalidResourceHandle where there is none.
  [[nodiscard]] std::shared_ptr<stream> find_stream(cudaStream_t handle);

  /// The calling thread's device.
  [[nodiscard]] int current_device();

  /// All memory that kernels on a device may use.
  [[nodiscard]] std::vector<hpeAccess> accesses(int device);

  /// What a kernel with these arguments may use: all of it, or with HPE_SCOPE=args what they point to, and variables.
  [[nodiscard]] memory_uses kernel_uses(int device, std::span<const std::byte> arguments);

  /// Waits for the work of all streams, if there is any, whatever comes of it.
  void finish_work();

  /// cudaDeviceReset: ends what the program has on a device, and the sticky error.
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

/// The process's. It is made by the first call, which may come before main, and never destroyed: static objects and
/// other threads may call to the end. Exported functions ask for it and hand its parts on.
[[nodiscard]] context& process();

}  // namespace hpe::cudart
