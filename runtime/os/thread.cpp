#include "runtime/os/thread.h"

#include <pthread.h>
#include <sys/resource.h>

#include <system_error>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/os/signals.h"

namespace hpe::os {

namespace {

std::string in_words(rlim_t limit) { return limit == RLIM_INFINITY ? "unlimited" : std::to_string(limit); }

rlim_t limit_of(__rlimit_resource resource) noexcept {
  rlimit limit{};
  ::getrlimit(resource, &limit);
  return limit.rlim_cur;
}

}  // namespace

std::thread start_thread(const char* name, std::function<void()> run) {
  const signals_blocked inherited_by_it;
  try {
    return std::thread([name, run = std::move(run)] {
      ::pthread_setname_np(::pthread_self(), name);
      run();
    });
  } catch (const std::system_error& e) {
    HPE_THROW(HPE_ERROR_SYSTEM,
              "the thread {} cannot be made: pthread_create: {}; limits are RLIMIT_NPROC ({}, ulimit -u), RLIMIT_AS "
              "({}, ulimit -v) and "
              "pids.max of the control group",
              name, e.what(), in_words(limit_of(RLIMIT_NPROC)), in_words(limit_of(RLIMIT_AS)));
  }
}

}  // namespace hpe::os
