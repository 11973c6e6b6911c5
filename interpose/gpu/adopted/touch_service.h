#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "interpose/gpu/adopted/adopted_memory.h"
#include "runtime/fault/request_board.h"

namespace hpe::cuda_hooks {

/// Serves the program's page faults on device memory, in a thread of its own. A faulting thread sleeps until the
/// service has handled its fault. The object exists until the process ends.
class touch_service {
 public:
  explicit touch_service(adopted_memory& memory);

  /// To be called in the signal handler of the thread that faulted. Returns whether the signal handler must retry the
  /// access (retry) or call the program's own signal action (not_ours).
  os::fault_verdict resolve(std::byte* address, bool write) noexcept;

 private:
  void run();

  adopted_memory& memory_;
  std::unique_ptr<device::gate> gate_;
  std::unique_ptr<fault::request_board> board_;
  std::vector<fault::request*> requests_;  // reserved in advance, because the serving thread must not allocate
  std::thread thread_;
};

}  // namespace hpe::cuda_hooks
