#pragma once

#include <cstddef>

namespace hpe::os {

/// Copies like memcpy, for data that goes elsewhere than into this processor's caches: large pieces are written past
/// them, which saves reading the destination first. Debian 12's memcpy does so only from megabytes on in one call, and
/// hpe copies in pieces. Seen on two cores of a Xeon: 256 MiB in pieces of 2 MiB in 28 ms instead of 36.
void copy_past_caches(void* destination, const void* source, std::size_t bytes) noexcept;

}  // namespace hpe::os
