#pragma once

/// How many threads can run at once, and where.

namespace hpe::os {

/// The number of cores that this process was given when it started: all of the machine, or fewer under taskset, in a
/// container or in a batch job. At least 1. Threads that the program binds later do not change it.
[[nodiscard]] unsigned usable_cores() noexcept;

/// Divides these cores into `parts` shares of neighbours, and binds the calling thread to share `part` < parts. A bound
/// thread cannot move to an idle core when it wakes up, so it also gets the policy SCHED_BATCH, under which it does not
/// preempt the thread that runs on its core. Does nothing if there is one part, if there are more parts than cores, or
/// if the system refuses.
void keep_to_share(unsigned part, unsigned parts) noexcept;

}  // namespace hpe::os
