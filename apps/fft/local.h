#pragma once

/// Transforms of contiguous data by one device: by cuFFT on a GPU, by FFTW on a soft device.

#include <cstdint>
#include <memory>
#include <tuple>

#include "apps/fft/fft.h"
#include "hpe/hpe.hpp"

namespace hpe::fft {

template <class T>
using number = kernels::complex_number<T>;

inline constexpr int forward_sign = -1;
inline constexpr int inverse_sign = 1;

/// `count` consecutive arrays of lengths[0] * lengths[1] elements; lengths[0] is 1 for one dimension.
struct shape {
  std::int64_t lengths[2];
  std::int64_t count;

  [[nodiscard]] std::int64_t elements() const { return lengths[0] * lengths[1] * count; }
  bool operator<(const shape& o) const {
    return std::tie(lengths[0], lengths[1], count) < std::tie(o.lengths[0], o.lengths[1], o.count);
  }
};

template <class T>
class local_transforms {
 public:
  virtual ~local_transforms() = default;

  /// Queues the transforms from `in` to `out`, which are equal or do not overlap. The first run of a shape makes the
  /// plans of cuFFT or FFTW.
  virtual void run(int device, const shape& what, int sign, const number<T>* in, number<T>* out) = 0;
};

/// make_cufft_transforms and make_fftw_transforms throw hpe::error (HPE_ERROR_NOT_SUPPORTED) if the library is not
/// installed.
template <class T>
[[nodiscard]] std::unique_ptr<local_transforms<T>> make_cufft_transforms();
template <class T>
[[nodiscard]] std::unique_ptr<local_transforms<T>> make_fftw_transforms(effort how);

/// Returns the access that a transform declares to its output. also_read: the transform reads the output too.
template <class T>
[[nodiscard]] hpeAccess written(number<T>* out, std::int64_t count, bool also_read) {
  return {out, static_cast<std::size_t>(count) * sizeof(number<T>), also_read ? HPE_INOUT : HPE_OUT};
}
template <class T>
[[nodiscard]] hpeAccess read(const number<T>* in, std::int64_t count) {
  return {in, static_cast<std::size_t>(count) * sizeof(number<T>), HPE_IN};
}

}  // namespace hpe::fft
