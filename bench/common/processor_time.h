#pragma once

namespace hpe::bench {

/// Returns the processor time in seconds that this process and its soft devices have used. Unlike elapsed time,
/// processor time does not grow while other programs occupy the cores, but it includes the time of threads that wait by
/// spinning.
[[nodiscard]] double processor_seconds();

}  // namespace hpe::bench
