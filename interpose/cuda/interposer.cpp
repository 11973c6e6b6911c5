#include "interpose/cuda/interposer.h"

#include "interpose/cuda/queuing_threads.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/trace/profile.h"
#include "runtime/trace/recorder.h"

namespace hpe::cuda_hooks {

namespace {

constinit std::atomic<interposer*> the_interposer{nullptr};

}  // namespace

interposer::interposer() : copies_(cu_), adopted_(cu_, copies_) {
  HPE_REQUIRE(option_.scope == "all" || option_.scope == "args", HPE_ERROR_INITIALIZATION,
              "HPE_SCOPE=\"{}\" is neither all nor args", option_.scope);
  trace::profile::start(option_.profile);
  trace::recorder::start(option_.trace);
}

interposer* interposer::started() noexcept { return the_interposer.load(std::memory_order_acquire); }

interposer* interposer::instance() noexcept {
  static interposer* const made = []() -> interposer* {
    try {
      auto* const result = new interposer;
      the_interposer.store(result, std::memory_order_release);
      return result;
    } catch (const std::exception& e) {
      log(log_level::warn, "hpe takes no part in this program: {}", e.what());
      return nullptr;
    }
  }();
  return made;
}

void interposer::serve_touches() {
  std::call_once(serving_, [this] {
    if (!queuing_threads::prepare())
      return log(log_level::warn, "CPU code cannot use device memory here: the kernel has no membarrier for it");
    new touch_service(adopted_);  // its thread runs to the end of the process
  });
}

}  // namespace hpe::cuda_hooks
