#include "interpose/gpu/adopted/touch_service.h"

#include <fmt/core.h>

#include "runtime/fault/handler.h"
#include "runtime/os/futex.h"
#include "runtime/os/thread.h"
#include "runtime/trace/measured.h"
#include "runtime/trace/stalls.h"
#include "runtime/trace/status_page.h"

namespace hpe::cuda_hooks {

namespace {

[[gnu::tls_model("initial-exec")]] constinit thread_local bool serving = false;
constinit std::atomic<touch_service*> the_service{nullptr};

os::fault_verdict resolve_in_handler(std::byte* address, bool write) noexcept {
  // A fault in the service thread itself is a bug of hpe, so the program's own signal action handles the fault.
  return serving ? os::fault_verdict::not_ours : the_service.load()->resolve(address, write);
}

// Returns the text for trace::awaited. `address` is the touched address; `write` is 1 for a write and 0 for a read.
std::string words_for_touch(const void* /*about*/, std::uint64_t address, std::uint64_t write) {
  return fmt::format("its {} of device memory at {:#x} waits for all work that the program has queued on devices",
                     write != 0 ? "write" : "read", address);
}

// A gate at which a thread sleeps until ring() is called or the deadline is reached.
class bell final : public device::gate {
 public:
  void ring() noexcept override {
    rings_.fetch_add(1);
    os::futex_wake_all(rings_);
  }
  void sleep(std::span<const timepoint> /*points*/, std::chrono::steady_clock::time_point deadline) override {
    os::futex_wait_until(rings_, seen_, deadline);
    seen_ = rings_.load();
  }

 private:
  os::futex_word rings_{0};
  std::uint32_t seen_ = 0;
};

}  // namespace

touch_service::touch_service(adopted_memory& memory) : memory_(memory), gate_(std::make_unique<bell>()) {
  device::gate* const gates[] = {gate_.get()};
  board_ = std::make_unique<fault::request_board>(gates);
  requests_.reserve(fault::request_board::slot_count);
  static_cast<void>(trace::status_page::own());
  thread_ = os::start_thread("hpe-touch", [this] { run(); });
  the_service.store(this);
  fault::handle_other_faults_with(resolve_in_handler);
}

os::fault_verdict touch_service::resolve(std::byte* address, bool write) noexcept {
  trace::measured measure(trace::way::touch, 0, address);
  const trace::awaited here({words_for_touch, nullptr, reinterpret_cast<std::uintptr_t>(address), write ? 1U : 0U});
  const os::fault_verdict result = board_->ask(0, address, write);
  if (result != os::fault_verdict::retry) {
    measure.forget();
    return result;
  }
  // The constructor has created the status page, so this line does not throw.
  counters& count = trace::status_page::own().count;
  counters::add(write ? count.faults_write : count.faults_read, 1);
  return result;
}

void touch_service::run() {
  serving = true;
  for (;;) {
    board_->take(0, requests_);
    if (requests_.empty() && !memory_.fetch_ahead()) gate_->sleep({}, std::chrono::steady_clock::time_point::max());
    for (fault::request* r : requests_)
      r->answer(memory_.touch(reinterpret_cast<CUdeviceptr>(r->address()), r->write()));
    requests_.clear();
  }
}

}  // namespace hpe::cuda_hooks
