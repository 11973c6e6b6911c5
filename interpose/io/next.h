#pragma once

/// The functions of calls.def as the next library, usually libc, defines them: next::read calls the read that this
/// library interposes.

#include <aio.h>
#include <mqueue.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdio>
#include <ctime>

#include "runtime/base/touch.h"
#include "runtime/os/next_function.h"

namespace hpe::interpose::next {

/// A function that fails with EFAULT because the program's memory is watched is called again without the protection.
template <class Function>
class repeated_function : public os::next_function<Function> {
 public:
  using os::next_function<Function>::next_function;

  template <class... Arguments>
  auto operator()(Arguments... arguments) {
    const auto result = this->find()(arguments...);
    if constexpr (std::signed_integral<decltype(result)>)
      if (result == -1 && errno == EFAULT && watcher_of_touches() != nullptr && watcher_of_touches()->refused())
        return this->find()(arguments...);
    return result;
  }
};

// Programs may call the functions of string.h before symbols can be looked up; therefore memory.cpp has its own
// pointers to libc's string.h functions.
#define HPE_IO_TAKEN(name, ...) inline constinit repeated_function<__VA_ARGS__> name(#name);
#define HPE_IO_WATCHED(name, ...) inline constinit repeated_function<__VA_ARGS__> name(#name);
#define HPE_IO_LEFT(name, reason)
#include "interpose/io/calls.def"
#undef HPE_IO_TAKEN
#undef HPE_IO_WATCHED
#undef HPE_IO_LEFT

}  // namespace hpe::interpose::next

#define HPE_INTERPOSE extern "C" __attribute__((visibility("default")))
