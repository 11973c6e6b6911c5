#include "interpose/mpi/waiting_call.h"

#include <fmt/core.h>

#include "interpose/mpi/real.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/options.h"

namespace hpe::interpose::mpi {

namespace {

std::string argument(const char* name, int value, int any) {
  return value == any ? fmt::format("any {}", name) : fmt::format("{} {}", name, value);
}

// Returns the text with which trace::awaited describes a call. `what`: the named_call; `first` and `second`: its
// arguments.
std::string words_for_call(const void* what, std::uint64_t first, std::uint64_t second) {
  const auto& call = *static_cast<const named_call*>(what);
  if (call.first == nullptr) return fmt::format("{} waits for other ranks", call.function);
  const std::string one = argument(call.first, static_cast<int>(first), MPI_ANY_SOURCE);
  if (call.second == nullptr) return fmt::format("{}({}) waits for other ranks", call.function, one);
  return fmt::format("{}({}, {}) waits for other ranks", call.function, one,
                     argument(call.second, static_cast<int>(second), MPI_ANY_TAG));
}

// Starts the reports of stalls at the first call, because the program may use no other part of hpe that starts them.
// Returns `what`.
const named_call& told(const named_call& what) noexcept {
  static const bool begun = [] {
    try {
      trace::tell_of_stalls(options::from_environment().stall_after);
    } catch (const error& e) {
      log(log_level::error, "{}", e.what());
    }
    return true;
  }();
  static_cast<void>(begun);
  return what;
}

}  // namespace

waiting_call::waiting_call(const named_call& what, int first, int second) noexcept
    : awaited({words_for_call, &told(what), static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(second)}) {}

}  // namespace hpe::interpose::mpi
