// The form `convolution`, for lengths without two factors that suit the form `transpose`. Let c[n] = exp(sign pi i n^2
// / N). Because n k = (n^2 + k^2 - (k - n)^2) / 2, the transform is
//
//   X[k] = c[k] * sum over n of (x[n] c[n]) conj(c[k - n])
//
// The sum is a convolution, which is computed by transforms of a convenient length M >= 2 N - 1. The order of the
// transformed elements does not matter, so they stay scrambled. The transform of conj(c) is computed once, for one
// sign. c is even, so the transform for the other sign is the conjugate of this transform.
//
// L. I. Bluestein, "A linear filtering approach to the computation of the discrete Fourier transform", 1970.

#include "apps/fft/fft_modules.h"
#include "apps/fft/method.h"

namespace hpe::fft {

namespace {

circumstances inner(circumstances c) {
  c.what = {1, c.made.longer, 1};
  c.wish.elements = order::scrambled;
  const factors f = nearest_factors(c.made.longer);
  c.made = {form::transpose, c.made.devices, f.first, f.second, 0};
  return c;
}

template <class T>
class convolution_method final : public method<T> {
 public:
  explicit convolution_method(const circumstances& c)
      : devices_(c.made.devices),
        length_(c.what.length),
        longer_(c.made.longer),
        transforms_(make_transpose<T>(inner(c))),
        chirp_(spread(length_)),
        filter_(spread(longer_)),
        padded_(spread(longer_)),
        transformed_(spread(longer_)) {
    // Computes chirp_, which is c (see the top of this file), and filter_, which is the transform of conj(c) continued
    // with period longer_. filter_ serves forward transforms; run() conjugates it for inverse transforms.
    write_chirp(chirp_, length_, 0, forward_sign);
    write_chirp(padded_, longer_, longer_, inverse_sign);
    transforms_->run(forward_sign, padded_.data(), filter_.data());
  }

  void run(int sign, const number<T>* in, number<T>* out) override {
    const bool conjugate = sign == inverse_sign;
    multiply(padded_.data(), longer_, in, chirp_.data(), length_, 1, conjugate);
    transforms_->run(forward_sign, padded_.data(), transformed_.data());
    multiply(transformed_.data(), longer_, transformed_.data(), filter_.data(), longer_, T(1) / static_cast<T>(longer_),
             conjugate);
    transforms_->run(inverse_sign, transformed_.data(), padded_.data());
    multiply(out, length_, padded_.data(), chirp_.data(), length_, 1, conjugate);
  }

  [[nodiscard]] std::string explain() const override {
    return "as a convolution of " + std::to_string(longer_) + ", " + transforms_->explain();
  }

 private:
  [[nodiscard]] array<number<T>> spread(std::int64_t count) const {
    return array<number<T>>(static_cast<std::size_t>(count), block_distribution(first_devices(devices_)));
  }

  void write_chirp(const array<number<T>>& target, std::int64_t count, std::int64_t period, int sign) {
    for (int d = 0; d < devices_; ++d) {
      const range mine = part_of(count, d, devices_);
      if (mine.size() == 0) continue;
      number<T>* const own = target.data() + mine.begin;
      launch_on(d, kernels_.chirp, tiles_for(mine.size()), {target.data(), length_, period, mine.begin, mine.end, sign},
                written(own, mine.size(), false));
    }
  }

  /// Queues target[i] = left[i] * right[i] * scale for i < given, and target[i] = 0 for given <= i < count. If
  /// `conjugate` is set, right[i] is conjugated.
  void multiply(number<T>* target, std::int64_t count, const number<T>* left, const number<T>* right,
                std::int64_t given, T scale, bool conjugate) {
    for (int d = 0; d < devices_; ++d) {
      const range mine = part_of(count, d, devices_);
      if (mine.size() == 0) continue;
      const std::int64_t used = std::max<std::int64_t>(0, std::min(mine.end, given) - mine.begin);
      const bool in_place = left == target;
      launch_on(d, kernels_.multiply, tiles_for(mine.size()),
                {target, left, right, mine.begin, mine.end, given, scale, conjugate ? 1 : 0},
                read(left + mine.begin, in_place ? 0 : used), read(right + mine.begin, used),
                written(target + mine.begin, mine.size(), in_place));
    }
  }

  int devices_;
  std::int64_t length_, longer_;
  kernel_set<T> kernels_;
  std::unique_ptr<method<T>> transforms_;
  array<number<T>> chirp_, filter_, padded_, transformed_;
};

}  // namespace

template <class T>
std::unique_ptr<method<T>> make_convolution(const circumstances& c) {
  return std::make_unique<convolution_method<T>>(c);
}
template std::unique_ptr<method<float>> make_convolution(const circumstances&);
template std::unique_ptr<method<double>> make_convolution(const circumstances&);

}  // namespace hpe::fft
