// The form `transpose` on soft devices, in natural order: two passes over the data instead of three. With the notation
// of transpose.cpp, the first pass transforms columns of the matrix [n1][n2] and writes them as rows [n2][k1]. The
// second pass multiplies by the factors and transforms columns of the result in place, which gives X[k1 + first * k2].
// In two dimensions the first pass transforms rows. The second pass writes each column to its own place, so it works in
// place, and the data between the passes are in the output. Only the first pass in one dimension cannot work in place.
// If input and output are the same, this pass writes to separate memory.
//
// In the second pass each device writes a band of columns of the result. The bands interleave in memory, but a declared
// access is one contiguous range. Therefore, the devices run this pass as a team, which declares an access to the whole
// result.

#include <algorithm>

#include "apps/fft/fft_modules.h"
#include "apps/fft/method.h"

namespace hpe::fft {

namespace {

template <class T>
class two_pass_method final : public method<T> {
 public:
  explicit two_pass_method(const circumstances& c) : c_(c), rows_(make_local_transforms<T>(c)) {}

  void run(int sign, const number<T>* in, number<T>* out) override {
    const std::int64_t a = c_.made.first, b = c_.made.second, devices = c_.made.devices;
    const bool two_dimensions = c_.what.rows > 1;
    number<T>* const between = in == out && !two_dimensions ? room(between_, c_.made) : out;
    for (int d = 0; d < devices; ++d) two_dimensions ? rows(d, sign, in, between) : turned(d, sign, in, between);
    two_dimensions ? columns(sign, between, out, a, b, 0) : columns(sign, between, out, b, a, a * b);
  }

  [[nodiscard]] std::string explain() const override {
    return std::to_string(c_.made.first) + " rows of " + std::to_string(c_.made.second) +
           (c_.what.rows > 1 ? ", moved once between all devices" : ", moved twice between all devices");
  }

 private:
  void rows(int d, int sign, const number<T>* in, number<T>* between) {
    const range mine = part_of(c_.made.first, d, c_.made.devices);
    if (mine.size() == 0) return;
    const std::int64_t at = mine.begin * c_.made.second;
    rows_->run(d, {{1, c_.made.second}, mine.size()}, sign, in + at, between + at);
  }

  void turned(int d, int sign, const number<T>* in, number<T>* between) {
    const std::int64_t a = c_.made.first, b = c_.made.second;
    const range mine = band(d, b);
    if (mine.size() == 0) return;
    number<T>* const own = between + mine.begin * a;
    launch_on(d, kernels_.lines, tiles_of(mine), {{in, own, b, a, mine.begin, mine.end, 0, sign, 1, 0, a}, effort(), 0},
              read(in, a * b), written(own, mine.size() * a, false));
  }

  /// Returns device d's band of the `count` columns. Bands consist of whole tiles, so bands begin at cache lines if the
  /// rows of the matrix begin at cache lines.
  [[nodiscard]] range band(int d, std::int64_t count) const {
    const range blocks = part_of(kernels::parts_of(count, kernels::line_block), d, c_.made.devices);
    return {std::min(blocks.begin * kernels::line_block, count), std::min(blocks.end * kernels::line_block, count)};
  }

  /// Transforms the columns of an array [length][count], in place or to `out`.
  void columns(int sign, const number<T>* between, number<T>* out, std::int64_t length, std::int64_t count,
               std::int64_t root) {
    std::vector<team_member<kernels::fft_lines<T>>> members;
    for (int d = 0; d < c_.made.devices; ++d) {
      const range mine = band(d, count);
      if (mine.size() == 0) continue;
      const kernels::fft_transpose<T> gather{between, out,  count, length, mine.begin, mine.end,
                                             root,    sign, 1,     0,      count};
      members.push_back({d, tiles_of(mine), {gather, effort(), 1}});
    }
    std::vector<hpeAccess> accesses{written(out, length * count, between == out)};
    if (between != out) accesses.push_back(read(between, length * count));
    launch_team(kernels_.lines, members, accesses);
  }

  [[nodiscard]] static hpeShape tiles_of(const range& band) {
    return grid(static_cast<std::uint32_t>(kernels::parts_of(band.size(), kernels::line_block)));
  }
  [[nodiscard]] kernels::fft_effort effort() const { return c_.wish.soft_effort; }

  circumstances c_;
  fftw_kernel_set<T> kernels_;
  std::unique_ptr<local_transforms<T>> rows_;
  array<number<T>> between_;  // used only by in-place transforms in one dimension
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
