#pragma once

/// The references for transforms through hpe: libraries on their own memory, and code that copies by hand.

#include <cstdint>
#include <memory>

namespace hpe::bench {

/// A prepared transform: forward and in single precision unless stated otherwise.
class peer {
 public:
  virtual ~peer() = default;
  /// Runs the transform `times` times, one after the other, and returns when all are done.
  virtual void run(int times) = 0;
};

struct peer_problem {
  std::int64_t rows = 1, length = 1, batch = 1;
  bool single = true;
};

/// FFTW on `threads` threads, with measured plans. Null if hpe was built without FFTW.
std::unique_ptr<peer> make_fftw(const peer_problem& what, int threads);

// The functions below return null if hpe was built without the CUDA toolkit.

/// cuFFT on GPU 0.
std::unique_ptr<peer> make_cufft(const peer_problem& what);

/// cuFFT over the first `gpus` GPUs (cufftXt), one dimension, a power of two. It leaves the elements in cufftXt's
/// order; with `ordered`, it also puts them in natural order.
std::unique_ptr<peer> make_cufft_over(std::int64_t length, int gpus, bool ordered);

/// The exchange between pairs of GPUs with copies written by hand, in the schemes of J. Cabezas, 2015, section 5.5:
/// through ordinary host memory; through pinned host memory; from GPU to GPU. It ends in natural order.
enum class scheme { naive, pinned, peer };
std::unique_ptr<peer> make_by_hand(std::int64_t length, int gpus, scheme copies);

}  // namespace hpe::bench
