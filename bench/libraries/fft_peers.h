#pragma once

/// What transforms through hpe are measured against: libraries on memory of their own, and code that copies by hand.

#include <cstdint>
#include <memory>

namespace hpe::bench {

/// A transform that is prepared, forward and single precision unless said otherwise.
class peer {
 public:
  virtual ~peer() = default;
  /// Runs it so many times, one after the other, and returns when all are done.
  virtual void run(int times) = 0;
};

struct peer_problem {
  std::int64_t rows = 1, length = 1, batch = 1;
  bool single = true;
};

/// FFTW on so many threads, with plans that are measured. Null where hpe was built without FFTW.
std::unique_ptr<peer> make_fftw(const peer_problem& what, int threads);

// The rest is null where there is no toolkit.

/// cuFFT on GPU 0.
std::unique_ptr<peer> make_cufft(const peer_problem& what);

/// cuFFT over the first `gpus` GPUs (cufftXt), one dimension, a power of two. It leaves the elements in an order of its
/// own; with `ordered` they are put in natural order too.
std::unique_ptr<peer> make_cufft_over(std::int64_t length, int gpus, bool ordered);

/// The exchange between pairs of GPUs with copies written by hand, in the schemes of J. Cabezas, 2015, section 5.5:
/// through ordinary host memory; through pinned host memory; from GPU to GPU. It ends in natural order.
enum class scheme { naive, pinned, peer };
std::unique_ptr<peer> make_by_hand(std::int64_t length, int gpus, scheme copies);

}  // namespace hpe::bench
