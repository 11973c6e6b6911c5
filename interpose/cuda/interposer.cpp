#include "interpose/cuda/interposer.h"

#include <cstdio>

#include "interpose/cuda/queuing_threads.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace hpe::cuda_hooks {

namespace {

constinit std::atomic<interposer*> the_interposer{nullptr};

}  // namespace

namespace {

// At the end of the process, when the program's own output is written.
[[gnu::destructor]] void tell_profile() {
  interposer* const hpe = interposer::started();
  if (hpe != nullptr && hpe->profile() != nullptr) std::fputs(hpe->profile()->report().c_str(), stderr);
}

std::unique_ptr<trace::profile> profile_if(const std::string& wanted) {
  HPE_REQUIRE(wanted == "0" || wanted == "1", HPE_ERROR_INITIALIZATION, "HPE_PROFILE=\"{}\" is neither 0 nor 1",
              wanted);
  return wanted == "1" ? std::make_unique<trace::profile>() : nullptr;
}

}  // namespace

interposer::interposer() : profile_(profile_if(option_.profile)), copies_(cu_), adopted_(cu_, copies_, profile_.get()) {
  HPE_REQUIRE(option_.scope == "all" || option_.scope == "args", HPE_ERROR_INITIALIZATION,
              "HPE_SCOPE=\"{}\" is neither all nor args", option_.scope);
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
    new touch_service(adopted_, profile_.get());  // its thread runs to the end of the process
  });
}

}  // namespace hpe::cuda_hooks
