#pragma once

#include <memory>
#include <thread>

#include "interpose/cuda/adopted/adopted_memory.h"
#include "runtime/fault/request_board.h"

namespace hpe::cuda_hooks {

/// The thread that serves the program's faults on device memory. Faulting threads sleep meanwhile. Lives until the
/// process ends.
class touch_service {
 public:
  explicit touch_service(adopted_memory& memory);

  /// Called in the signal handler of the faulting thread.
  fault::verdict resolve(std::byte* address, bool write) noexcept;

 private:
  void run();

  adopted_memory& memory_;
  std::unique_ptr<device::gate> gate_;
  std::unique_ptr<fault::request_board> board_;
  std::thread thread_;
};

}  // namespace hpe::cuda_hooks
