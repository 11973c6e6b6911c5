#include <algorithm>
#include <complex>

#include "bench/libraries/fft_peers.h"
#include "kernels/fft/fftw_names.h"

namespace hpe::bench {

namespace {

template <class T>
class fftw final : public peer {
 public:
  fftw(const peer_problem& what, int threads) {
    const auto count = static_cast<std::size_t>(what.rows * what.length * what.batch);
    in_ = names::allocate(count);
    out_ = names::allocate(count);
    names::init_threads();
    names::with_threads(threads);
    const int lengths[2] = {static_cast<int>(what.rows), static_cast<int>(what.length)};
    const int flat = what.rows == 1 ? 1 : 0, one = lengths[0] * lengths[1];
    plan_ = names::make(2 - flat, lengths + flat, static_cast<int>(what.batch), in_, nullptr, 1, one, out_, nullptr, 1,
                        one, FFTW_FORWARD, FFTW_MEASURE | FFTW_PRESERVE_INPUT);
    for (std::size_t i = 0; i < count; ++i) in_[i][0] = in_[i][1] = static_cast<float>(i % 17) - 8;
  }
  fftw(const fftw&) = delete;
  fftw& operator=(const fftw&) = delete;
  ~fftw() override {
    names::destroy(plan_);
    names::release(in_);
    names::release(out_);
  }
  void run(int times) override {
    for (int i = 0; i < times; ++i) names::execute(plan_);
  }

 private:
  using names = kernels::fftw_names<T>;

  typename names::element *in_ = nullptr, *out_ = nullptr;
  typename names::plan plan_ = nullptr;
};

}  // namespace

std::unique_ptr<peer> make_fftw(const peer_problem& what, int threads) {
  if (what.single) return std::make_unique<fftw<float>>(what, threads);
  return std::make_unique<fftw<double>>(what, threads);
}

}  // namespace hpe::bench
