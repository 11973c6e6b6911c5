#include <fftw3.h>

#include <algorithm>
#include <complex>

#include "bench/fft_peers.h"

namespace hpe::bench {

namespace {

struct single_names {
  using plan = fftwf_plan;
  using element = fftwf_complex;
  static constexpr auto init = fftwf_init_threads;
  static constexpr auto threads = fftwf_plan_with_nthreads;
  static constexpr auto make = fftwf_plan_many_dft;
  static constexpr auto execute = fftwf_execute;
  static constexpr auto destroy = fftwf_destroy_plan;
  static constexpr auto allocate = fftwf_alloc_complex;
  static constexpr auto release = fftwf_free;
};
struct double_names {
  using plan = fftw_plan;
  using element = fftw_complex;
  static constexpr auto init = fftw_init_threads;
  static constexpr auto threads = fftw_plan_with_nthreads;
  static constexpr auto make = fftw_plan_many_dft;
  static constexpr auto execute = fftw_execute;
  static constexpr auto destroy = fftw_destroy_plan;
  static constexpr auto allocate = fftw_alloc_complex;
  static constexpr auto release = fftw_free;
};

template <class Names>
class fftw final : public peer {
 public:
  fftw(const peer_problem& what, int threads) {
    const auto count = static_cast<std::size_t>(what.rows * what.length * what.batch);
    in_ = Names::allocate(count);
    out_ = Names::allocate(count);
    Names::init();
    Names::threads(threads);
    const int lengths[2] = {static_cast<int>(what.rows), static_cast<int>(what.length)};
    const int flat = what.rows == 1 ? 1 : 0, one = lengths[0] * lengths[1];
    plan_ = Names::make(2 - flat, lengths + flat, static_cast<int>(what.batch), in_, nullptr, 1, one, out_, nullptr, 1,
                        one, FFTW_FORWARD, FFTW_MEASURE | FFTW_PRESERVE_INPUT);
    for (std::size_t i = 0; i < count; ++i) in_[i][0] = in_[i][1] = static_cast<float>(i % 17) - 8;
  }
  fftw(const fftw&) = delete;
  fftw& operator=(const fftw&) = delete;
  ~fftw() override {
    Names::destroy(plan_);
    Names::release(in_);
    Names::release(out_);
  }
  void run(int times) override {
    for (int i = 0; i < times; ++i) Names::execute(plan_);
  }

 private:
  typename Names::element *in_ = nullptr, *out_ = nullptr;
  typename Names::plan plan_ = nullptr;
};

}  // namespace

std::unique_ptr<peer> make_fftw(const peer_problem& what, int threads) {
  if (what.single) return std::make_unique<fftw<single_names>>(what, threads);
  return std::make_unique<fftw<double_names>>(what, threads);
}

}  // namespace hpe::bench
