#pragma once

#include <cstddef>

namespace hpe::os {

/// Copies like memcpy, for data that this processor will not read soon: large pieces bypass its caches, which saves
/// reading the destination first. Debian 12's memcpy does so only in single calls of several megabytes, and hpe copies
/// in pieces. On two cores of a Xeon, 256 MiB in pieces of 2 MiB took 28 ms instead of 36.
void copy_past_caches(void* destination, const void* source, std::size_t bytes) noexcept;

}  // namespace hpe::os
