#pragma once

#include <cstddef>

namespace hpe::os {

/// Copies like memcpy, for data that this processor will not read soon: large copies bypass the caches of the
/// processor, so that the processor does not have to read the destination first. Debian 12's memcpy bypasses the caches
/// only in single calls of several megabytes, and hpe copies in chunks. On two cores of a Xeon, a copy of 256 MiB in
/// chunks of 2 MiB took 28 ms instead of 36 ms.
void copy_past_caches(void* destination, const void* source, std::size_t bytes) noexcept;

}  // namespace hpe::os
