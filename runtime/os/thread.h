#pragma once

/// Threads of the runtime, and the cores on which they run.

#include <sched.h>

#include <functional>
#include <thread>

namespace hpe::os {

/// Starts a thread. All threads of the runtime are started here. The thread receives none of the program's signals, but
/// its faults are handled. Debuggers and top show the name, which has at most 15 characters. Throws HPE_ERROR_SYSTEM,
/// with a message that states the relevant limits, if the system cannot start another thread.
[[nodiscard]] std::thread start_thread(const char* name, std::function<void()> run);

/// Lets the calling thread run on all cores that the process could use when hpe was loaded. For a thread that serves
/// all threads of the program: its creator may be a thread that the program keeps to one core.
void leave_cores_of_creator() noexcept;

/// The number of cores that this process was allowed to use when it started: all cores of the machine, or fewer with
/// taskset, in a container or in a batch job. The number is at least 1. The number does not change if the program binds
/// threads later.
[[nodiscard]] unsigned usable_cores() noexcept;

/// Binds the calling thread to those of the given cores that the process could use when it started. Returns false,
/// without effect, if there are none, or if the system refuses.
[[nodiscard]] bool keep_to(const cpu_set_t& cores) noexcept;

/// Divides the usable cores into `parts` shares of neighbouring cores, and binds the calling thread to share `part` <
/// parts. A bound thread cannot move to an idle core when it wakes up. Therefore keep_to_share also sets the policy
/// SCHED_BATCH, so that the thread does not preempt another thread that runs on its core. Has no effect if there is
/// only one part, if there are more parts than cores, or if the system refuses.
void keep_to_share(unsigned part, unsigned parts) noexcept;

}  // namespace hpe::os
