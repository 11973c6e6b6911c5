#include "runtime/os/cores.h"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace hpe::os {

namespace {

// Empty if the call fails, as it does where the kernel knows more cores than the set has room for.
cpu_set_t read() noexcept {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) CPU_ZERO(&allowed);
  return allowed;
}

const cpu_set_t at_start = read();

}  // namespace

unsigned usable_cores() noexcept {
  // Constructors of static objects in other files may call this before at_start is initialised.
  const cpu_set_t allowed = CPU_COUNT(&at_start) != 0 ? at_start : read();
  const int known = CPU_COUNT(&allowed);
  return std::max(1U, known != 0 ? static_cast<unsigned>(known) : std::thread::hardware_concurrency());
}

void keep_to_share(unsigned part, unsigned parts) noexcept {
  const auto cores = static_cast<unsigned>(CPU_COUNT(&at_start));
  if (parts < 2 || cores < parts) return;
  const unsigned first = cores * part / parts, end = cores * (part + 1) / parts;
  cpu_set_t share;
  CPU_ZERO(&share);
  unsigned place = 0;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &at_start)) continue;
    if (place >= first && place < end) CPU_SET(core, &share);
    ++place;
  }
  if (::sched_setaffinity(0, sizeof share, &share) != 0) return;
  const sched_param none{};
  ::sched_setscheduler(0, SCHED_BATCH, &none);
}

}  // namespace hpe::os
