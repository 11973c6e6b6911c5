// The form `transpose` on soft devices, in natural order: two passes over the data instead of three. With the notation
// of transpose.cpp, the first pass transforms columns of the matrix [n1][n2] and writes them, times factors, as rows
// [n2][k1]; the second transforms columns of that and leaves them columns, which is X[k1 + first * k2]. In two
// dimensions the first pass transforms rows.
//
// Invariant: in the second pass each device writes a band of columns of the result, which as ranges of memory
// interleave with those of the others. So its launches do not name what they write. A fence, a launch that does
// nothing, stands before them and names it, and one after them; turn_ puts them in between.

#include <algorithm>

#include "apps/fft/method.h"
#include "apps/fft/modules.h"

namespace hpe::fft {

namespace {

template <class T>
class two_pass_method final : public method<T> {
 public:
  explicit two_pass_method(const circumstances& c)
      : c_(c),
        rows_(make_local_transforms<T>(c)),
        turn_(1, on_device(0)),
        between_(static_cast<std::size_t>(c.made.first * c.made.second),
                 block_distribution(first_devices(c.made.devices))) {}

  void run(int sign, const number<T>* in, number<T>* out) override {
    const std::int64_t a = c_.made.first, b = c_.made.second, devices = c_.made.devices;
    const bool two_dimensions = c_.what.rows > 1;
    for (int d = 0; d < devices; ++d) two_dimensions ? rows(d, sign, in) : turned(d, sign, in);
    const hpeAccess result = written(out, a * b, true);
    fence(in == out ? result : written(out, a * b, false));
    for (int d = 0; d < devices; ++d)
      two_dimensions ? columns(d, sign, out, a, b, 0) : columns(d, sign, out, b, a, a * b);
    fence(result);
  }

  [[nodiscard]] std::string explain() const override {
    return std::to_string(c_.made.first) + " rows of " + std::to_string(c_.made.second) +
           (c_.what.rows > 1 ? ", once moved between all devices" : ", twice moved between all devices");
  }

 private:
  void rows(int d, int sign, const number<T>* in) {
    const range mine = part_of(c_.made.first, d, c_.made.devices);
    if (mine.size() == 0) return;
    const std::int64_t at = mine.begin * c_.made.second;
    rows_->run(d, {{1, c_.made.second}, mine.size()}, sign, in + at, between_.data() + at);
  }

  void turned(int d, int sign, const number<T>* in) {
    const std::int64_t a = c_.made.first, b = c_.made.second;
    const range mine = band(d, b);
    if (mine.size() == 0) return;
    number<T>* const own = between_.data() + mine.begin * a;
    lines(d, {in, own, b, a, mine.begin, mine.end, 0, sign, 1, 0, a}, 0, read(in, a * b),
          written(own, mine.size() * a, false));
  }

  /// Some of `count` columns, in whole tiles: so a band begins at a line of a cache where rows do.
  [[nodiscard]] range band(int d, std::int64_t count) const {
    const range blocks = part_of(kernels::parts_of(count, kernels::line_block), d, c_.made.devices);
    return {std::min(blocks.begin * kernels::line_block, count), std::min(blocks.end * kernels::line_block, count)};
  }

  /// Columns of [length][count], which stay columns.
  void columns(int d, int sign, number<T>* out, std::int64_t length, std::int64_t count, std::int64_t root) {
    const range mine = band(d, count);
    if (mine.size() == 0) return;
    lines(d, {between_.data(), out, count, length, mine.begin, mine.end, root, sign, 1, 0, count}, 1, hpe::in(between_),
          hpe::in(turn_));
  }

  void lines(int d, const kernels::fft_transpose<T>& gather, std::int32_t back, const hpeAccess& from,
             const hpeAccess& other) {
    const auto tiles = kernels::parts_of(gather.end - gather.begin, kernels::line_block);
    launch_on(d, kernels_.lines, grid(static_cast<std::uint32_t>(tiles)), {gather, c_.wish.soft_effort, back}, from,
              other);
  }

  void fence(const hpeAccess& result) { launch_on(0, kernels_.fence, grid(1), {}, result, inout(turn_)); }

  circumstances c_;
  fftw_kernel_set<T> kernels_;
  std::unique_ptr<local_transforms<T>> rows_;
  array<std::byte> turn_;
  array<number<T>> between_;
};

}  // namespace

bool two_passes_possible(const circumstances& c) {
  if (!c.soft || !c.wish.fused || c.wish.elements != order::natural) return false;
  const std::uint64_t all = (std::uint64_t{1} << c.made.devices) - 1;
  for (int d = 0; d < c.made.devices; ++d)
    if ((device_info(d).peers & all) != all) return false;
  return true;
}

template <class T>
std::unique_ptr<method<T>> make_two_pass(const circumstances& c) {
  return std::make_unique<two_pass_method<T>>(c);
}
template std::unique_ptr<method<float>> make_two_pass(const circumstances&);
template std::unique_ptr<method<double>> make_two_pass(const circumstances&);

}  // namespace hpe::fft
