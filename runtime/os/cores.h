#pragma once

/// How many threads can run at once.

namespace hpe::os {

/// The cores that this process was given when it started: the machine's, or fewer under taskset, in a container's or a
/// batch system's set of cores. At least 1. Threads that the program binds later do not change it.
[[nodiscard]] unsigned usable_cores() noexcept;

}  // namespace hpe::os
