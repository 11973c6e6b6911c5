#include "runtime/fault/handler.h"

#include <unistd.h>

#include <atomic>

#include "runtime/base/log.h"
#include "runtime/fault/service.h"
#include "runtime/os/signals.h"

// All that runs in the signal handler: find the service, ask it, return. The service is reached through the one static
// pointer that a handler needs.

namespace hpe::fault {

namespace {

std::atomic<service*> current{nullptr};
std::atomic<other_faults> others{nullptr};
std::atomic<pid_t> owner{0};

os::fault_verdict offer_to_others(const os::fault& f) noexcept {
  const other_faults resolve = others.load(std::memory_order_acquire);
  if (resolve == nullptr || ::getpid() != owner.load(std::memory_order_relaxed)) return os::fault_verdict::not_ours;
  const bool write = f.access != os::fault_access::read;
  return resolve(static_cast<std::byte*>(f.address), write) == verdict::retry ? os::fault_verdict::retry
                                                                              : os::fault_verdict::not_ours;
}

os::fault_verdict on_fault(const os::fault& f) noexcept {
  service* const to = current.load(std::memory_order_acquire);
  auto* const address = static_cast<std::byte*>(f.address);
  if (to == nullptr || !to->covers(address)) return offer_to_others(f);
  if (::getpid() != owner.load(std::memory_order_relaxed)) {
    handler_line()
        .text("hpe: ")
        .hex(reinterpret_cast<std::uintptr_t>(address))
        .text(" is memory of the parent process; a child made by fork has none of it")
        .write();
    return os::fault_verdict::not_ours;
  }
  if (in_lane_thread()) {
    handler_line()
        .text("hpe: defect: the runtime itself touched ")
        .hex(reinterpret_cast<std::uintptr_t>(address))
        .text(" at instruction ")
        .hex(reinterpret_cast<std::uintptr_t>(f.instruction))
        .write();
    return os::fault_verdict::not_ours;
  }
  // Where the processor does not tell, a write is the safe guess.
  const bool write = f.access != os::fault_access::read;
  return to->resolve(address, write) == verdict::retry ? os::fault_verdict::retry : os::fault_verdict::not_ours;
}

}  // namespace

void handle_faults_with(service* to) {
  owner.store(::getpid(), std::memory_order_relaxed);
  current.store(to, std::memory_order_release);
  if (to != nullptr) os::install_fault_handler(on_fault);
}

void handle_other_faults_with(other_faults resolve) {
  owner.store(::getpid(), std::memory_order_relaxed);
  others.store(resolve, std::memory_order_release);
  if (resolve != nullptr) os::install_fault_handler(on_fault);
}

}  // namespace hpe::fault
