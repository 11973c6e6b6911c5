#pragma once

/// Threads of the runtime, and the cores on which they run.

#include <functional>
#include <thread>

namespace hpe::os {

/// Starts a thread. All threads of the runtime are started here. The thread takes none of the program's signals, but
/// its faults are handled. Debuggers and top show the name, of at most 15 characters. Throws HPE_ERROR_SYSTEM, with the
/// limits that matter, if the system has no room for another thread.
[[nodiscard]] std::thread start_thread(const char* name, std::function<void()> run);

/// The number of cores that this process was given when it started: all of the machine, or fewer under taskset, in a
/// container or in a batch job. At least 1. Threads that the program binds later do not change it.
[[nodiscard]] unsigned usable_cores() noexcept;

/// Divides these cores into `parts` shares of neighbours, and binds the calling thread to share `part` < parts. A bound
/// thread cannot move to an idle core when it wakes up, so it also gets the policy SCHED_BATCH, under which it does not
/// preempt the thread that runs on its core. Does nothing if there is one part, if there are more parts than cores, or
/// if the system refuses.
void keep_to_share(unsigned part, unsigned parts) noexcept;

}  // namespace hpe::os
