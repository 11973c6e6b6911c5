#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>

#include "runtime/device/soft/softd/crash_guard.h"
#include "runtime/device/soft/softd/process.h"
#include "runtime/os/thread.h"

// The watchdog's thread never calls malloc, because a kernel that crashed may have left a lock of malloc locked.

namespace hpe::device::soft {

namespace {

using clock = std::chrono::steady_clock;

class watchdog {
 public:
  watchdog(unsigned device, fabric& shared, tile_pool& pool) : device_(device), shared_(shared), pool_(pool) {}

  [[noreturn]] void run() {
    wait_queue& trouble = shared_.common().trouble;
    for (;;) {
      constexpr std::chrono::milliseconds between_attempts{20};
      const std::uint32_t seen = trouble.wakes();
      const bool teams_calm = check_teams();
      const bool calm = check_recoveries() && teams_calm;
      trouble.sleep(seen, calm ? wait_queue::trusted(wait_queue::deadline::max()) : clock::now() + between_attempts);
    }
  }

 private:
  /// Measures how long a problem has lasted without progress. `since`: when the problem, or its current `state`, was
  /// first seen.
  struct patience {
    clock::time_point since = clock::time_point::max();
    std::uint64_t state = 0;

    bool is_over(std::uint64_t now_at, std::chrono::milliseconds limit) {
      if (since == clock::time_point::max() || state != now_at) *this = {clock::now(), now_at};
      return clock::now() - since > limit;
    }
  };

  bool check_teams() {
    const std::uint32_t lost = shared_.configuration().lost.load();
    if (lost == 0 || pool_.stop_teams(lost)) {
      teams_ = {};
      return true;
    }
    if (teams_.is_over(lost, std::chrono::milliseconds(1000)))
      end_process("a kernel waited for a lost device of its team, and could not be stopped");
    return false;
  }

  bool check_recoveries() {
    const recoveries now = count_recoveries();
    if (now.begun == now.ended) {
      recoveries_ = {};
      return true;
    }
    if (recoveries_.is_over(now.ended, std::chrono::milliseconds(1500)))
      end_process("a kernel that crashed or was stopped left the memory allocator of its process locked");
    return false;
  }

  [[noreturn]] void end_process(std::string_view why) {
    std::array<char, 256>& words = shared_.status(device_).last_words;
    std::copy_n(why.begin(), std::min(why.size(), words.size() - 1), words.begin());
    ::_exit(EXIT_FAILURE);
  }

  unsigned device_;
  fabric& shared_;
  tile_pool& pool_;
  patience teams_;
  patience recoveries_;
};

}  // namespace

void start_watchdog(unsigned device, fabric& shared, tile_pool& pool) {
  wake_at_recoveries(shared.common().trouble);
  os::start_thread("softd-watch", [device, &shared, &pool] { watchdog(device, shared, pool).run(); }).detach();
}

}  // namespace hpe::device::soft
