#pragma once

#include <cstddef>

namespace hpe::bench {

/// Launches one block, which adds 1 to a number, in the default stream.
void launch_add(unsigned* number);

}  // namespace hpe::bench
