#pragma once

/// Fourier transforms of complex data over several devices, on hpe pointers.
///
///   hpe::array<std::complex<float>> x(n, hpe::block_distribution());
///   hpe::fft::plan<float> plan({.length = n});
///   plan.forward(x.data(), x.data());
///
/// forward: X[k] = sum over n of x[n] exp(-2 pi i n k / N). inverse: with + in the exponent. Results are not scaled, as
/// in FFTW and cuFFT: inverse(forward(x)) is N x (two dimensions: rows * length * x). Any length is possible. On GPUs,
/// cuFFT computes the transforms of one device; it is loaded when the first plan is made. On soft devices, FFTW
/// computes them.

#include <complex>
#include <cstdint>
#include <memory>
#include <string>

#include "hpe/hpe.hpp"
#include "kernels/fft_parameters.h"

namespace hpe::fft {

/// The data to transform: `batch` consecutive arrays of one dimension (rows = 1) or of two, stored row by row.
struct problem {
  std::int64_t rows = 1;
  std::int64_t length = 1;
  std::int64_t batch = 1;

  [[nodiscard]] std::int64_t elements() const { return rows * length * batch; }
};

/// How the devices share the work.
enum class form {
  automatic,
  local,       ///< each device transforms whole arrays of the batch; the first device transforms a single array
  exchange,    ///< pairs of devices exchange halves at each of log2 W steps (J. Cabezas, 2015, section 5.5)
  transpose,   ///< six steps: transforms along one axis, a transpose between all devices, transforms along the other
  convolution  ///< Bluestein: any length as a convolution of a convenient length, whose transforms have the form
               ///< `transpose`
};

/// The order of the transformed elements. The scrambled order saves one pass that moves all elements.
enum class order {
  natural,
  scrambled  ///< forward writes, and inverse reads, X[k] at plan::position(k)
};

using effort = kernels::fft_effort;

struct settings {
  form how = form::automatic;
  order elements = order::natural;
  int devices = 0;                       ///< number of devices to use, counted from device 0; 0: all devices
  effort soft_effort = effort::measure;  ///< soft devices: how long FFTW searches for plans
  bool fused = true;                     ///< soft devices: transpose and transform in one kernel
};

/// A transform that can run many times. The first run in each direction takes longer, because cuFFT or FFTW then makes
/// plans. The plan owns the memory that it needs beside the caller's arrays: up to two arrays of the size of one
/// transform. In the form `convolution`, it owns one array of that size and four arrays of the length of the
/// convolution (at least 2 N - 1). On GPUs, cuFFT's work areas come on top.
///
/// Calls return as soon as the transform is queued; like a launch, the transform waits for earlier work on the same
/// data. Only one thread at a time may use a plan. Throws hpe::error: HPE_ERROR_INVALID_ARGUMENT for an invalid problem
/// or invalid settings, with the possible values; HPE_ERROR_NOT_A_REGION for arrays outside hpe memory;
/// HPE_ERROR_NOT_SUPPORTED if cuFFT or FFTW is missing, or if an array is too long for FFTW (2^31 elements or more on
/// one soft device); and the errors of allocations and launches.
template <class T>
class plan {
 public:
  explicit plan(const problem& what, const settings& wish = {});
  plan(plan&&) noexcept;
  plan& operator=(plan&&) noexcept;
  ~plan();

  /// Queues the transform from `in` to `out`, which are hpe pointers to problem::elements() elements each. Input and
  /// output are identical or do not overlap. If they do not overlap, the input does not change.
  void forward(const std::complex<T>* in, std::complex<T>* out);
  void inverse(const std::complex<T>* in, std::complex<T>* out);

  /// Returns the index of X[k] in an array, where k = row * length + column; in natural order, k itself.
  [[nodiscard]] std::int64_t position(std::int64_t k) const;

  [[nodiscard]] form chosen() const;
  /// Returns the number of devices that take part.
  [[nodiscard]] int devices() const;
  /// Returns the best placement of input and output: on device 0 if only one device takes part, otherwise in blocks on
  /// the devices that take part.
  [[nodiscard]] placement where() const;
  /// Returns a sentence that describes the chosen form.
  [[nodiscard]] std::string explain() const;

 private:
  class parts;
  std::unique_ptr<parts> parts_;
};

extern template class plan<float>;
extern template class plan<double>;

}  // namespace hpe::fft
