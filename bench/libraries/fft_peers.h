#pragma once

/// The references for transforms through hpe: libraries in their own memory, and hand-written code.

#include <cstdint>
#include <memory>

namespace hpe::bench {

/// A prepared transform, forward and in single precision unless its maker states otherwise.
class peer {
 public:
  virtual ~peer() = default;
  /// Runs the transform `times` times in sequence; returns when all are done.
  virtual void run(int times) = 0;
};

struct peer_problem {
  std::int64_t rows = 1, length = 1, batch = 1;
  bool single = true;
};

/// FFTW on `threads` threads, with plans made by FFTW_MEASURE. Returns null if hpe was built without FFTW.
std::unique_ptr<peer> make_fftw(const peer_problem& what, int threads);

// The functions below return null if hpe was built without the CUDA toolkit.

/// cuFFT on GPU 0.
std::unique_ptr<peer> make_cufft(const peer_problem& what);

/// cuFFT over the first `gpus` GPUs (cufftXt), in one dimension. The length must be a power of two. The result is in
/// cufftXt's own order; if `ordered` is true, the transform also reorders it to natural order.
std::unique_ptr<peer> make_cufft_over(std::int64_t length, int gpus, bool ordered);

/// A transform over several GPUs with hand-written copies between them, in the three schemes of J. Cabezas, 2015,
/// section 5.5: through ordinary host memory, through pinned host memory, or from GPU to GPU. The result is in natural
/// order.
enum class scheme { naive, pinned, peer };
std::unique_ptr<peer> make_by_hand(std::int64_t length, int gpus, scheme copies);

}  // namespace hpe::bench
