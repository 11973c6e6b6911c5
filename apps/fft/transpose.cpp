// The form `transpose`. An array of N = first * second elements is a matrix of `first` rows and `second` columns, whose
// rows are divided among the devices. For n = n1 * second + n2 and k = k1 + first * k2, the transform is
//
//   X[k] = sum over n2 of (w_N^(n2 k1) * sum over n1 of x[n] w_first^(n1 k1)) w_second^(n2 k2)
//
// This formula consists of transforms of columns, multiplications by the factors w_N^(n2 k1), and transforms of rows.
// Then X[k] is at [k1][k2]; a last transpose brings the elements into natural order. Transforms of two dimensions need
// no factors. Each transpose is a gather: a device reads from all others and writes the rows that it is going to
// transform, so the writes of devices never overlap.
//
// D. H. Bailey, "FFTs in external or hierarchical memory", 1990 (the four- and six-step forms).

#include <algorithm>
#include <optional>
#include <vector>

#include "apps/fft/fft_modules.h"
#include "apps/fft/method.h"

namespace hpe::fft {

namespace {

/// One pass over the whole matrix, which produces the rows of the target.
struct stage {
  bool transposed;             ///< the source is the transposed matrix
  std::int64_t rows, columns;  ///< of the target matrix
  std::int64_t root;           ///< N of the factors w_N by which the elements are multiplied; 0: no factors
  bool transform;              ///< transform the rows of the target
};

std::vector<stage> stages_of(const circumstances& c, int sign) {
  const std::int64_t a = c.made.first, b = c.made.second, root = c.what.rows > 1 ? 0 : a * b;
  const bool scrambled = c.wish.elements == order::scrambled;
  if (scrambled && sign == inverse_sign) {
    if (c.what.rows > 1) return {{false, b, a, 0, true}, {true, a, b, 0, true}};
    return {{false, a, b, 0, true}, {true, b, a, root, true}, {true, a, b, 0, false}};
  }
  std::vector<stage> list;
  if (c.what.rows > 1)
    list = {{false, a, b, 0, true}, {true, b, a, 0, true}};
  else
    list = {{true, b, a, 0, true}, {true, a, b, root, true}};
  if (!scrambled) list.push_back({true, list[0].rows, list[0].columns, 0, false});
  return list;
}

template <class T>
class transpose_method final : public method<T> {
 public:
  explicit transpose_method(const circumstances& c)
      : c_(c),
        forward_(stages_of(c, forward_sign)),
        inverse_(stages_of(c, inverse_sign)),
        transforms_(make_local_transforms<T>(c)) {
    if (c.soft && c.wish.fused) fused_.emplace();
  }

  void run(int sign, const number<T>* in, number<T>* out) override {
    const std::vector<stage>& all = sign == forward_sign ? forward_ : inverse_;
    const number<T>* source = in;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t left = all.size() - 1 - i;
      number<T>* target = left == 0   ? out
                          : left == 1 ? room(rooms_[0], c_.made)
                          : in == out ? room(rooms_[1], c_.made)
                                      : out;
      for (int d = 0; d < c_.made.devices; ++d) run(d, all[i], sign, source, target);
      source = target;
    }
  }

  [[nodiscard]] std::int64_t position(std::int64_t k) const override {
    if (c_.wish.elements == order::natural) return k;
    if (c_.what.rows > 1) return k % c_.made.second * c_.made.first + k / c_.made.second;
    return k % c_.made.first * c_.made.second + k / c_.made.first;
  }

  [[nodiscard]] std::string explain() const override {
    return std::to_string(c_.made.first) + " rows of " + std::to_string(c_.made.second) + ", " +
           std::to_string(moves(forward_)) + " moves between all devices";
  }

 private:
  static std::size_t moves(const std::vector<stage>& all) {
    std::size_t count = 0;
    for (const stage& s : all) count += s.transposed ? 1 : 0;
    return count;
  }

  static shape rows_of(const stage& s, const range& r) { return {{1, s.columns}, r.size()}; }

  /// Returns the number of blocks of the grid: on a soft device, one for each tile; on a GPU, a few for each
  /// multiprocessor, which are enough to keep the links busy.
  [[nodiscard]] std::uint32_t blocks_for(std::int64_t tiles) const {
    constexpr std::int64_t blocks_per_unit = 4;
    return static_cast<std::uint32_t>(c_.soft ? tiles : std::min(tiles, blocks_per_unit * units_));
  }

  /// Runs one device's part of a stage. Gathering the device's rows in pieces, so that cuFFT can begin while other rows
  /// arrive, is no faster (measured on two and four H200s).
  void run(int device, const stage& s, int sign, const number<T>* source, number<T>* target) {
    const range mine = part_of(s.rows, device, c_.made.devices);
    if (mine.size() == 0) return;
    number<T>* const own = target + mine.begin * s.columns;
    if (!s.transposed) return transforms_->run(device, rows_of(s, mine), sign, source + mine.begin * s.columns, own);
    const kernels::fft_transpose<T> p{source, own,  s.rows,          s.columns, mine.begin, mine.end,
                                      s.root, sign, c_.made.devices, device,    s.columns};
    const hpeAccess from = read(source, s.rows * s.columns), to = written(own, mine.size() * s.columns, false);
    if (fused_ && s.transform) {
      const auto blocks = static_cast<std::uint32_t>(kernels::parts_of(mine.size(), kernels::line_block));
      return launch_on(device, fused_->lines, grid(blocks), {p, c_.wish.soft_effort, 0}, from, to);
    }
    launch_on(device, kernels_.transpose, grid(blocks_for(p.tiles())), p, from, to);
    if (s.transform) transforms_->run(device, rows_of(s, mine), sign, own, own);
  }

  circumstances c_;
  std::int64_t units_ = device_info(0).compute_units;
  std::vector<stage> forward_, inverse_;
  kernel_set<T> kernels_;
  std::unique_ptr<local_transforms<T>> transforms_;
  std::optional<fftw_kernel_set<T>> fused_;
  array<number<T>> rooms_[2];
};

}  // namespace

template <class T>
std::unique_ptr<method<T>> make_transpose(const circumstances& c) {
  return std::make_unique<transpose_method<T>>(c);
}
template std::unique_ptr<method<float>> make_transpose(const circumstances&);
template std::unique_ptr<method<double>> make_transpose(const circumstances&);

}  // namespace hpe::fft
