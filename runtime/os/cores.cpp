#include "runtime/os/cores.h"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace hpe::os {

namespace {

unsigned count() noexcept {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  // Fails where the kernel knows more cores than the set has room for.
  const bool known = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  return std::max(1U, known ? static_cast<unsigned>(CPU_COUNT(&allowed)) : std::thread::hardware_concurrency());
}

const unsigned at_start = count();

}  // namespace

// Static objects of other files may ask before at_start has its value.
unsigned usable_cores() noexcept { return at_start != 0 ? at_start : count(); }

}  // namespace hpe::os
