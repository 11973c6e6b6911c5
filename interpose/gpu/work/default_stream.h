#pragma once

#include <cstdint>

#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// Which default stream a null stream means; this depends on how the program was compiled.
enum class flavour : std::uint8_t { legacy, per_thread };
using enum flavour;

inline CUstream default_stream(flavour f) { return f == legacy ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD; }
inline CUstream named(CUstream stream, flavour f) { return stream == nullptr ? default_stream(f) : stream; }
/// Whether a handle, as named() returns it, means a default stream. Each context has default streams of its own.
inline bool is_default(CUstream stream) { return stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD; }
/// Returns the stream on which an entry queues work: the entry's stream argument, or the default stream if the entry
/// has no stream argument.
template <flavour Flavour, class... Stream>
CUstream stream_of(Stream... stream) {
  CUstream in = default_stream(Flavour);
  ((in = named(stream, Flavour)), ...);
  return in;
}

}  // namespace hpe::cuda_hooks
