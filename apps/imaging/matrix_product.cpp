// Fox's algorithm on a square of q x q members (imaging_team.h). Each member has a block of a and a block of b, and
// computes a block of the product. In round s, member (i, (i + s) mod q) broadcasts its block of a along its row, all
// members add the product of this block and their block of b to their block of the product, and the blocks of b move up
// by one row.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "apps/files/element_file.h"
#include "apps/imaging/cublas.h"
#include "apps/imaging/imaging_program.h"
#include "kernels/imaging.h"

namespace hpe::imaging {

namespace {

using hpe::kernels::multiply_matrices;

struct request : common {
  std::int64_t n = 512, seed = 1;
  std::string file, right, library = "auto";
};

std::vector<command_line::option> options_of(request& r) {
  using namespace command_line;
  const setter to_n = [&r](const std::string& name, const std::string& text) {
    r.n = whole_number(name, text, 1, 1 << 16);
  };
  return with_common(
      {{"N|FILE", "", "rows and columns of random matrices (512); or the left matrix: .npy, f32, square",
        to_size_or_file(to_n, r.file)},
       {"--right", "FILE", "the right matrix: .npy, f32, as large as the left one (default: the left matrix)",
        to_text(r.right)},
       {"--library", "WHICH",
        "library on GPUs: cublas, none (hpe's own kernel), or auto: cuBLAS if it is installed, else none (auto)",
        to_word(r.library, {"auto", "cublas", "none"})},
       {"--seed", "N", "seed of the random matrices (1)", to_whole(r.seed, 0)}},
      r, "write the product: .npy, f32");
}

std::string help_text() {
  request defaults;
  return "Usage: hpe multiply [options] [N|FILE]\n\n"
         "Multiplies square matrices by Fox's algorithm over 1, 4, 9 or another square number of devices. The\n"
         "measured time begins when each device has its blocks of the matrices, and ends when each device has\n"
         "its block of the product.\n\n" +
         command_line::lines_of_help(options_of(defaults)) +
         "\nExamples:\n"
         "  hpe multiply 4096 --devices 4\n"
         "  hpe multiply a.npy --right b.npy --output c.npy\n";
}

std::vector<float> read_matrix(const std::string& file, std::int64_t& n) {
  const image m = read_image(file);
  if (m.rows != m.columns)
    throw bad_input(fmt::format("{}: {} x {} values are not a square matrix", file, m.rows, m.columns));
  n = m.rows;
  return m.values;
}

struct matrices {
  std::vector<float> left, right;
};

matrices input_of(request& r, bool leads) {
  matrices m;
  if (!r.file.empty()) {
    m.left = m.right = read_matrix(r.file, r.n);
    std::int64_t n = r.n;
    if (!r.right.empty()) m.right = read_matrix(r.right, n);
    if (n != r.n) throw bad_input(fmt::format("--right {}: {} rows; the left matrix has {}", r.right, n, r.n));
    return m;
  }
  if (!r.right.empty())
    throw bad_input(
        "--right FILE also needs the file of the left matrix, as in: hpe multiply LEFT.npy --right RIGHT.npy");
  if (!leads) return m;
  std::mt19937 random(static_cast<std::uint32_t>(r.seed));
  for (std::vector<float>* one : {&m.left, &m.right}) {
    one->resize(static_cast<std::size_t>(r.n * r.n));
    for (float& v : *one) v = static_cast<float>(random()) * 0x1p-31F - 1;
  }
  return m;
}

/// Copies a matrix into q x q blocks of `side` rows and columns, stored one after another and padded with zeros, or
/// copies the blocks back into the matrix.
void copy_blocks(float* matrix, float* blocks, std::int64_t n, std::int64_t side, int q, bool to_blocks) {
  for (std::int64_t y = 0; y < n; ++y)
    for (int j = 0; j < q; ++j) {
      const std::int64_t columns = std::min(side, n - j * side);
      if (columns <= 0) continue;
      float* const in_block = blocks + ((y / side * q + j) * side + y % side) * side;
      float* const in_matrix = matrix + y * n + j * side;
      std::memcpy(to_blocks ? in_block : in_matrix, to_blocks ? in_matrix : in_block,
                  static_cast<std::size_t>(columns) * sizeof(float));
    }
}

/// Computes c += a b, or c = a b in the first round, for blocks a, b and c on a member's device.
class block_product {
 public:
  block_product(int device, std::int64_t side, bool by_cublas)
      : device_(device), side_(side), kernel_(kernels(), "imaging_multiply") {
    if (by_cublas) cublas_ = std::make_unique<cublas_handle>(device);
  }
  void add(const hpe::array<float>& a, const hpe::array<float>& b, const hpe::array<float>& c, bool first) {
    if (cublas_) return cublas_->multiply(a, b, c, static_cast<int>(side_), first);
    const auto side = static_cast<std::int32_t>(side_);
    const auto tiles =
        static_cast<std::uint32_t>((side_ + hpe::kernels::multiply_side - 1) / hpe::kernels::multiply_side);
    hpe::launch_on(device_, kernel_, grid(tiles, tiles),
                   {a.data(), b.data(), c.data(), side, side, side, first ? 0 : 1}, hpe::in(a), hpe::in(b),
                   first ? hpe::out(c) : hpe::inout(c));
  }

 private:
  int device_;
  std::int64_t side_;
  hpe::kernel<multiply_matrices> kernel_;
  std::unique_ptr<cublas_handle> cublas_;
};

void work(member& me, const request& r, int q, bool by_cublas, matrices& blocks, std::vector<float>& product) {
  const std::int64_t side = (r.n + q - 1) / q;
  const auto count = static_cast<std::size_t>(side * side);
  const std::size_t bytes = count * sizeof(float);
  const division parts = divide(me.size(), me.size(), bytes);
  const int row = me.rank() / q, column = me.rank() % q;
  const auto where = on_device(me.device());
  const hpe::array<float> own(count, where), sent(count, where), c(count, where);
  hpe::array<float> b(count, where), next(count, where);
  block_product multiply(me.device(), side, by_cublas);
  const auto bytes_of = [](const hpe::array<float>& a) { return reinterpret_cast<std::byte*>(a.data()); };
  hpe::copy(own.data(), me.fetch(blocks.left.data(), parts), bytes);
  const auto round = [&](int s) {
    const int from = (row + s) % q;
    const hpe::array<float>& a = from == column ? own : sent;
    if (q > 1) me.in(phase::exchange, [&] { me.broadcast(bytes_of(a), bytes, row * q + from, row * q, q); });
    me.in(phase::kernels, [&] { multiply.add(a, b, c, s == 0); });
    if (s + 1 == q) return;
    me.in(phase::exchange, [&] {
      me.shift(bytes_of(b), (row + q - 1) % q * q + column, bytes_of(next), (row + 1) % q * q + column, bytes);
    });
    std::swap(b, next);
  };
  for (std::int64_t i = 0; i < r.repeats; ++i) {
    hpe::copy(b.data(), me.fetch(blocks.right.data(), parts), bytes);  // an earlier run has moved the blocks of b
    hpe::synchronize(me.device());
    me.measure(1, [&] {
      for (int s = 0; s < q; ++s) round(s);
    });
  }
  hpe::copy(me.room(product.data(), parts), c.data(), bytes);
  me.deliver(product.data(), parts);
}

}  // namespace

int run_product(const make_team& make, int argc, char** argv) {
  request r;
  std::unique_ptr<team> all = begin(make, options_of(r), r, help_text, argc, argv);
  if (all == nullptr) return 0;
  const bool chosen = r.devices != 0;
  const int q = static_cast<int>(std::sqrt(static_cast<double>(all->size())));
  if (q * q != all->size()) {
    if (chosen || all->devices_here() != all->size())
      throw bad_input(
          fmt::format("Fox's algorithm needs a square number of devices, such as 1, 4 or 9, not {}", all->size()));
    all = make(q * q);
  }
  const auto outputs = checked_outputs(r.output, r.json, output_kind::array, {r.file, r.right});
  const double values = static_cast<double>(r.n) * static_cast<double>(r.n);
  if (r.file.empty()) check_memory(fmt::format("matrices of {} x {} values", r.n, r.n), *all, 6 * values, 5 * values);
  matrices input = input_of(r, all->leads());
  const bool gpus = device_info(0).kind == HPE_DEVICE_CUDA;
  if (!gpus && r.library == "cublas")
    throw bad_input("--library cublas is for GPUs; soft devices use hpe's own kernel");
  const bool by_cublas = gpus && r.library != "none" && (r.library == "cublas" || cublas_handle::installed());

  const std::int64_t side = (r.n + q - 1) / q;
  matrices blocks;
  std::vector<float> product_blocks, product;
  if (all->leads()) {
    const auto room = static_cast<std::size_t>(side * side * q * q);
    blocks.left.resize(room);
    blocks.right.resize(room);
    product_blocks.resize(room);
    product.resize(static_cast<std::size_t>(r.n * r.n));
    copy_blocks(input.left.data(), blocks.left.data(), r.n, side, q, true);
    copy_blocks(input.right.data(), blocks.right.data(), r.n, side, q, true);
  }
  const times t = all->run([&](member& me) { work(me, r, q, by_cublas, blocks, product_blocks); });
  if (all->leads()) {
    copy_blocks(product.data(), product_blocks.data(), r.n, side, q, false);
    const auto n = static_cast<std::uint64_t>(r.n);
    if (outputs.has(".npy")) files::write(outputs.stem + ".npy", "f32", {n, n}, product.data(), sizeof(float));
  }
  const auto n = static_cast<double>(r.n);
  tell("multiply", fmt::format("{} x {} matrices{}", r.n, r.n, by_cublas ? ", cuBLAS" : ""), r, *all, t,
       fmt::format("{:.1f} Gflop/s\n", 2e-9 * n * n * n / t.seconds));
  return 0;
}

}  // namespace hpe::imaging
