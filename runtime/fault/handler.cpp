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

verdict on_fault(const os::access_violation& f) noexcept;

// A part of the process that serves faults, and the process that it has threads in: a child made by fork has none.
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

// Where the processor does not tell, a write is the safe guess.
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
