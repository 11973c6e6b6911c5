#pragma once

namespace hpe::bench {

/// Processor time in seconds that this process and its soft devices have used. Unlike elapsed time it does not grow
/// while other programs occupy the cores, but it includes threads that wait by spinning.
[[nodiscard]] double processor_seconds();

}  // namespace hpe::bench
