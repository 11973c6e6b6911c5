#pragma once

/// How many threads can run at once, and where.

namespace hpe::os {

/// The cores that this process was given when it started: the machine's, or fewer under taskset, in a container's or a
/// batch system's set of cores. At least 1. Threads that the program binds later do not change it.
[[nodiscard]] unsigned usable_cores() noexcept;

/// Divides these cores into `parts` shares of neighbours, and keeps the calling thread to share `part` < parts. As it
/// can no longer go elsewhere when it wakes up, it no longer interrupts what runs there either, which would stand still
/// for its sake beside an idle core. Nothing happens with one part, with more parts than cores, or if the system does
/// not let it.
void keep_to_share(unsigned part, unsigned parts) noexcept;

}  // namespace hpe::os
