#pragma once

namespace hpe::bench {

/// Processor time in seconds that this process and its soft devices have used. Unlike time by the
/// clock it does not count what other programs take of a busy machine, but it does count threads that wait awake.
[[nodiscard]] double processor_seconds();

}  // namespace hpe::bench
