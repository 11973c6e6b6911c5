#include "runtime/fault/handler.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <new>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/touch.h"
#include "runtime/fault/service.h"
#include "runtime/os/signals.h"
#include "runtime/os/virtual_memory.h"

// The code that runs in the signal handler: it finds the service through the static pointers in this file, asks the
// service to resolve the fault, and returns.

namespace hpe::fault {

namespace {

fault_verdict on_fault(const os::access_violation& f) noexcept;

// The object or function that resolves faults in this process. Its threads serve the address space in which they run.
// They also serve a child made by vfork, which shares this address space. They do not serve a child made by fork, which
// has a copy of the address space. The operating system clears the page `mark` in this copy, so that inherited()
// detects the child.
template <class Server>
struct installed {
  std::atomic<Server> server{nullptr};
  std::atomic<std::atomic<std::uint32_t>*> mark{nullptr};  // nullptr until a server is set

  void set(Server to) {
    if (to != nullptr && mark.load() == nullptr) mark.store(make_mark());
    if (to != nullptr) mark.load()->store(1, std::memory_order_relaxed);
    server.store(to, std::memory_order_release);
    if (to != nullptr) os::install_fault_handler(on_fault);
  }
  [[nodiscard]] bool inherited() const noexcept { return mark.load()->load(std::memory_order_relaxed) == 0; }

 private:
  static std::atomic<std::uint32_t>* make_mark() {
    const std::size_t bytes = os::page_size();
    void* const page = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || ::madvise(page, bytes, MADV_WIPEONFORK) != 0) throw_system_error("madvise");
    return new (page) std::atomic<std::uint32_t>(0);
  }
};

constinit installed<service*> coherent_memory;
constinit installed<other_faults> other_memory;

// If the processor does not report the kind of access, a write is the safe assumption.
bool is_write(const os::access_violation& f) noexcept { return f.kind != os::fault_access::read; }

fault_verdict offer_to_others(const os::access_violation& f) noexcept {
  const other_faults resolve = other_memory.server.load(std::memory_order_acquire);
  if (resolve == nullptr || other_memory.inherited()) return fault_verdict::not_ours;
  return resolve(static_cast<std::byte*>(f.address), is_write(f));
}

touch_answer offer_to_watcher(const os::access_violation& f) noexcept {
  const touch_watcher* const watcher = watcher_of_touches();
  if (watcher == nullptr) return touch_answer::not_watched;
  const auto fault = reinterpret_cast<std::uintptr_t>(f.address);
  cpu_touch what{f.address, fault, 1, is_write(f), f.instruction};
  if (fault - f.of_access.begin < f.of_access.bytes) what.begin = f.of_access.begin, what.bytes = f.of_access.bytes;
  return watcher->faulted(what);
}

fault_verdict on_fault(const os::access_violation& f) noexcept {
  switch (offer_to_watcher(f)) {
    case touch_answer::repeat: return fault_verdict::retry;
    case touch_answer::step: return fault_verdict::step;
    case touch_answer::not_watched: break;
  }
  service* const to = coherent_memory.server.load(std::memory_order_acquire);
  auto* const address = static_cast<std::byte*>(f.address);
  if (to == nullptr || !to->covers(address)) return offer_to_others(f);
  if (coherent_memory.inherited()) {
    handler_line()
        .text("hpe: ")
        .hex(reinterpret_cast<std::uintptr_t>(address))
        .text(" is memory of the parent process; a child made by fork cannot use it")
        .write();
    return fault_verdict::not_ours;
  }
  if (in_lane_thread()) {
    handler_line()
        .text("hpe: defect: the runtime itself touched ")
        .hex(reinterpret_cast<std::uintptr_t>(address))
        .text(" at instruction ")
        .hex(reinterpret_cast<std::uintptr_t>(f.instruction))
        .write();
    return fault_verdict::not_ours;
  }
  return to->resolve(address, is_write(f));
}

}  // namespace

void handle_faults_with(service* to) {
  coherent_memory.set(to);
  os::before_death([]() noexcept {
    const service* const its = coherent_memory.server.load(std::memory_order_acquire);
    if (its != nullptr && !coherent_memory.inherited()) its->prepare_core();
  });
}

bool show_touches_to(const touch_watcher* by) {
  const bool has_steps = os::allow_steps();
  os::install_fault_handler(on_fault);
  touch_watcher_of_process.store(by, std::memory_order_release);
  return has_steps;
}

void handle_other_faults_with(other_faults resolve) { other_memory.set(resolve); }

}  // namespace hpe::fault
