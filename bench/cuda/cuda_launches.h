#pragma once

#include <cstddef>

namespace hpe::bench {

/// Launches, in the default stream, a kernel of one block that adds 1 to *number.
void launch_add(unsigned* number);

}  // namespace hpe::bench
