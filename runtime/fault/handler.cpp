#include "runtime/fault/handler.h"

#include <unistd.h>

#include <atomic>

#include "runtime/base/log.h"
#include "runtime/fault/service.h"
#include "runtime/os/signals.h"

// The code that runs in the signal handler: it finds the service, asks it and returns. The static pointers here lead to
// the service.

namespace hpe::fault {

namespace {

verdict on_fault(const os::access_violation& f) noexcept;

// A server of faults, and the process that has its threads: a child made by fork does not have them.
template <class Server>
struct installed {
  std::atomic<Server> server{nullptr};
  std::atomic<pid_t> process{0};

  void set(Server to) {
    process.store(::getpid(), std::memory_order_relaxed);
    server.store(to, std::memory_order_release);
    if (to != nullptr) os::install_fault_handler(on_fault);
  }
  [[nodiscard]] bool inherited() const noexcept { return ::getpid() != process.load(std::memory_order_relaxed); }
};

constinit installed<service*> coherent_memory;
constinit installed<other_faults> other_memory;

// If the processor does not report the kind of access, a write is the safe assumption.
bool is_write(const os::access_violation& f) noexcept { return f.kind != os::access_kind::read; }

verdict offer_to_others(const os::access_violation& f) noexcept {
  const other_faults resolve = other_memory.server.load(std::memory_order_acquire);
  if (resolve == nullptr || other_memory.inherited()) return verdict::not_ours;
  return resolve(static_cast<std::byte*>(f.address), is_write(f));
}

verdict on_fault(const os::access_violation& f) noexcept {
  service* const to = coherent_memory.server.load(std::memory_order_acquire);
  auto* const address = static_cast<std::byte*>(f.address);
  if (to == nullptr || !to->covers(address)) return offer_to_others(f);
  if (coherent_memory.inherited()) {
    handler_line()
        .text("hpe: ")
        .hex(reinterpret_cast<std::uintptr_t>(address))
        .text(" is memory of the parent process; a child made by fork has none of it")
        .write();
    return verdict::not_ours;
  }
  if (in_lane_thread()) {
    handler_line()
        .text("hpe: defect: the runtime itself touched ")
        .hex(reinterpret_cast<std::uintptr_t>(address))
        .text(" at instruction ")
        .hex(reinterpret_cast<std::uintptr_t>(f.instruction))
        .write();
    return verdict::not_ours;
  }
  return to->resolve(address, is_write(f));
}

}  // namespace

void handle_faults_with(service* to) { coherent_memory.set(to); }

void handle_other_faults_with(other_faults resolve) { other_memory.set(resolve); }

}  // namespace hpe::fault
