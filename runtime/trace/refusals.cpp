#include "runtime/trace/refusals.h"

#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <exception>

#include "runtime/base/log.h"
#include "runtime/base/options.h"

namespace hpe::trace {

namespace {

constinit std::atomic<std::uint64_t> count{0};

bool read_strict() noexcept {
  try {
    return options::from_environment().strict;
  } catch (const std::exception& e) {
    log(log_level::warn, "HPE_STRICT has no effect: {}", e.what());
    return false;
  }
}

void tell_number() noexcept {
  log(log_level::warn,
      "pieces of the program's device work that were refused or failed: {}; results may be wrong (the first reason is "
      "above)",
      count.load());
}

}  // namespace

bool refusals::add() noexcept {
  if (count.fetch_add(1, std::memory_order_relaxed) != 0) return false;
  static bool is_strict = false;
  static ::pid_t owner = 0;
  is_strict = read_strict();
  owner = ::getpid();
  ::on_exit(
      [](int status, void* /*unused*/) {
        if (::getpid() != owner) return;  // a child made by fork
        tell_number();
        // glibc runs the remaining exit handlers, and then ends the process with this status.
        if (is_strict && status == 0) ::exit(1);
      },
      nullptr);
  return true;
}

}  // namespace hpe::trace
