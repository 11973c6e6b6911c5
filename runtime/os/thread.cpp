#include "runtime/os/thread.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
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

// Returns the cores that the calling thread may use. The set is empty if the call fails, for example because the
// machine has more cores than cpu_set_t can hold.
cpu_set_t read() noexcept {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) CPU_ZERO(&allowed);
  return allowed;
}

const cpu_set_t at_start = read();

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
              "({}, ulimit -v), RLIMIT_DATA ({}, ulimit -d) and pids.max of the control group",
              name, e.what(), in_words(limit_of(RLIMIT_NPROC)), in_words(limit_of(RLIMIT_AS)),
              in_words(limit_of(RLIMIT_DATA)));
  }
}

void leave_cores_of_creator() noexcept {
  if (CPU_COUNT(&at_start) != 0) ::sched_setaffinity(0, sizeof at_start, &at_start);
}

unsigned usable_cores() noexcept {
  // Constructors of static objects in other files may call this before at_start is initialised.
  const cpu_set_t allowed = CPU_COUNT(&at_start) != 0 ? at_start : read();
  const int known = CPU_COUNT(&allowed);
  return std::max(1U, known != 0 ? static_cast<unsigned>(known) : std::thread::hardware_concurrency());
}

bool keep_to(const cpu_set_t& cores) noexcept {
  cpu_set_t both;
  CPU_AND(&both, &cores, &at_start);
  return CPU_COUNT(&both) != 0 && ::sched_setaffinity(0, sizeof both, &both) == 0;
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
