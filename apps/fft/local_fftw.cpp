#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "apps/fft/fft_modules.h"
#include "apps/fft/local.h"

namespace hpe::fft {

namespace {

template <class T>
class fftw_transforms final : public local_transforms<T> {
 public:
  explicit fftw_transforms(effort how) : effort_(how) {
    for (int d = 0; d < device_count(); ++d) units_.push_back(static_cast<int>(device_info(d).compute_units));
  }

  void run(int device, const shape& what, int sign, const number<T>* in, number<T>* out) override {
    auto p = parameters(device, what, sign);
    p.source = in;
    p.target = out;
    const auto tiles = static_cast<std::uint32_t>(kernels::parts_of(what.count, p.per_tile));
    if (in == out)
      launch_on(device, kernels_.local, grid(tiles), p, written(out, what.elements(), true));
    else
      launch_on(device, kernels_.local, grid(tiles), p, read(in, what.elements()),
                written(out, what.elements(), false));
  }

 private:
  /// The threads divide the arrays among themselves; if there are fewer arrays than threads, all threads work together
  /// on one array after another.
  [[nodiscard]] kernels::fft_local<T> parameters(int device, const shape& what, int sign) const {
    if (what.lengths[0] * what.lengths[1] > std::numeric_limits<int>::max())
      throw error(HPE_ERROR_NOT_SUPPORTED,
                  "Fourier transform of " + std::to_string(what.elements()) +
                      " elements on one soft device: FFTW transforms at most 2^31 - 1 "
                      "elements; the form \"transpose\" (hpe fft --form transpose) makes shorter transforms");
    const std::int64_t units = units_[static_cast<std::size_t>(device)];
    kernels::fft_local<T> p{};
    p.lengths[0] = what.lengths[0];
    p.lengths[1] = what.lengths[1];
    p.count = what.count;
    p.sign = sign;
    p.effort = effort_;
    const bool together = what.count < units;
    constexpr std::int64_t tiles_per_unit = 4, most = std::int64_t{1} << 24;
    p.per_tile = units == 1 || together ? what.count : kernels::parts_of(what.count, tiles_per_unit * units);
    p.per_tile = std::min(p.per_tile, most);
    p.threads = together ? static_cast<std::int32_t>(units) : 1;
    return p;
  }

  effort effort_;
  std::vector<int> units_;
  fftw_kernel_set<T> kernels_;
};

}  // namespace

template <class T>
std::unique_ptr<local_transforms<T>> make_fftw_transforms(effort how) {
  return std::make_unique<fftw_transforms<T>>(how);
}

template std::unique_ptr<local_transforms<float>> make_fftw_transforms(effort);
template std::unique_ptr<local_transforms<double>> make_fftw_transforms(effort);

}  // namespace hpe::fft
