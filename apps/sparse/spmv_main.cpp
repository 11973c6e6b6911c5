#include <fmt/core.h>

#include <cmath>
#include <numeric>

#include "apps/command_line/program.h"
#include "apps/command_line/progress.h"
#include "apps/command_line/report.h"
#include "apps/command_line/wrapping.h"
#include "apps/files/element_file.h"
#include "apps/sparse/product.h"
#include "apps/sparse/sparse_main.h"

namespace hpe::sparse {

namespace {

enum class way_to_read { fused, single_pass, multi_pass, partitioned };

struct request {
  bool help = false, quiet = false, no_check = false;
  std::uint64_t rows = std::uint64_t{1} << 18;
  std::uint64_t elements = 16, chunks = 16;
  std::string file, x, output, json, type = "f64";
  way_to_read read = way_to_read::fused;
  std::int64_t devices = 0, repeats = 5;
};

std::vector<command_line::option> options_of(request& r) {
  using namespace command_line;
  return {
      {"SIZE|FILE", "", "rows of a random matrix, as in 1000 or 2^24 (2^18); or a file of Matrix Market",
       to_size_or_file(to_whole(r.rows, 1), r.file)},
      {"--elements", "K", "elements in a row of a random matrix, on average (16)", to_whole(r.elements, 1, 1 << 20)},
      {"--type", "TYPE", "f32 or f64 (f64)", to_word(r.type, {"f32", "f64"})},
      {"--x", "FILE", "the vector, .npy or raw (numbers from -0.5 to 0.5)", to_text(r.x)},
      {"--output", "FILE", "write the product to this file, .npy or raw", to_text(r.output)},
      {"--method", "NAME",
       "fused: the kernel reads x where it is needed; single-pass, multi-pass or partitioned: one device first gathers "
       "the elements of x by this method (fused)",
       to_one_of<way_to_read>(r.read, {{"fused", way_to_read::fused},
                                       {"single-pass", way_to_read::single_pass},
                                       {"multi-pass", way_to_read::multi_pass},
                                       {"partitioned", way_to_read::partitioned}})},
      {"--chunks", "C", "chunks of x, for multi-pass and partitioned (16)", to_whole(r.chunks, 1, 1 << 20)},
      devices_option(r.devices),
      repeats_option(r.repeats),
      {"--no-check", "", "do not compare the product with a product that the host computes", to_flag(r.no_check)},
      json_option(r.json),
      quiet_option(r.quiet),
      help_option(r.help)};
}

std::string help_text() {
  request defaults;
  return fmt::format(
      "Usage: hpe spmv [options] [SIZE|FILE]\n\n"
      "Multiplies a sparse matrix, stored by rows, by a vector. With several devices, each\n"
      "device has some of the rows and a copy of the vector.\n\n"
      "{}\n"
      "Examples:\n"
      "  hpe spmv 2^22 --elements 8 --type f32\n"
      "  hpe spmv memplus.mtx --x x.npy --output y.npy\n",
      command_line::lines_of_help(options_of(defaults)));
}

gather::choice choice_for(const request& r) {
  const auto chunks = static_cast<std::uint32_t>(r.chunks);
  switch (r.read) {
    case way_to_read::multi_pass: return {gather::method::multi_pass, chunks};
    case way_to_read::partitioned: return {gather::method::partitioned, chunks};
    default: return {gather::method::single_pass, 1};
  }
}

/// Whether y is the product m x, within rounding errors. The allowed error of a row is proportional to the sum of the
/// magnitudes of its products.
template <class T>
bool right(const compressed_rows<T>& m, const array<T>& x, const std::vector<T>& y) {
  for (std::uint64_t r = 0; r < m.rows; ++r) {
    double sum = 0, magnitude = 0;
    for (std::uint32_t k = m.first[r]; k < m.first[r + 1]; ++k) {
      const double term = static_cast<double>(m.values[k]) * static_cast<double>(x[m.column[k]]);
      sum += term;
      magnitude += std::abs(term);
    }
    const double length = m.first[r + 1] - m.first[r];
    if (!(std::abs(sum - static_cast<double>(y[r])) <=
          (length + 2) * static_cast<double>(std::numeric_limits<T>::epsilon()) * magnitude))
      return false;
  }
  return true;
}

template <class T>
int run(const request& r) {
  std::vector<int> devices(static_cast<std::size_t>(command_line::devices_of(r.devices)));
  std::iota(devices.begin(), devices.end(), 0);
  command_line::check_outputs({r.output, r.json}, {r.file, r.x});
  const random_shape shape{r.rows, r.elements - r.elements / 2, r.elements + r.elements / 2};
  if (r.file.empty()) {
    const double bytes =
        static_cast<double>(elements_of(shape)) * (4 + sizeof(T)) + static_cast<double>(r.rows) * (4 + 2 * sizeof(T));
    command_line::check_room(fmt::format("a matrix of {} rows", r.rows), {bytes, 2 * bytes},
                             static_cast<int>(devices.size()));
  }
  const compressed_rows<T> m =
      r.file.empty() ? random_rows<T>(shape, true, devices.front()) : compress<T>(read_file(r.file), devices.front());
  product<T> p(m, r.read == way_to_read::fused ? form::fused : form::gathered, choice_for(r), devices);
  if (r.x.empty()) {
    for (std::uint64_t c = 0; c < m.columns; ++c)
      p.x()[c] = static_cast<T>(static_cast<double>(scrambled(c, 9) >> 40) * 0x1p-24 - 0.5);
  } else {
    const files::description given = files::describe(r.x);
    given.must_hold(r.type);
    if (const std::uint64_t count = given.elements(sizeof(T)); count != m.columns)
      throw bad_input(fmt::format("{} has {} elements, but the matrix has {} columns", r.x, count, m.columns));
    files::read(given, p.x().data());
  }
  std::vector<T> y(m.rows);
  const double time = command_line::median_seconds(r.repeats, r.quiet, [&] { p.run(); });
  p.result(y.data());
  if (!r.no_check && !right(m, p.x(), y)) {
    fmt::print(stderr, "hpe spmv: the product is wrong\n");
    return command_line::failed;
  }
  if (!r.output.empty()) files::write(r.output, r.type, {y.size()}, y.data(), sizeof(T));
  const double elements = static_cast<double>(m.elements());
  const std::string title =
      fmt::format("product of {} x {} with {} elements, {}", m.rows, m.columns, m.elements(), r.type);
  command_line::answer({"hpe spmv",
                        "multiplies a sparse matrix by a vector",
                        title,
                        r.repeats,
                        command_line::names_of_devices(static_cast<int>(devices.size())),
                        {{"time", 1e3 * time, "ms"},
                         {"arithmetic", 2e-9 * elements / time, "Gflop/s"},
                         {"bytes of the matrix", elements * (4 + sizeof(T)) / time / 1e9, "GB/s"}}},
                       fmt::format("{} in {:.3f} ms, {:.2f} Gflop/s{}\n", title, 1e3 * time, 2e-9 * elements / time,
                                   r.no_check ? "" : "; the product is right"),
                       r.json, r.quiet);
  return 0;
}

}  // namespace

}  // namespace hpe::sparse

int spmv_main(int argc, char** argv) {
  using namespace hpe;
  return command_line::guarded("hpe spmv", [&] {
    sparse::request r;
    command_line::read(sparse::options_of(r), argc, argv);
    if (!r.help) return r.type == "f32" ? sparse::run<float>(r) : sparse::run<double>(r);
    hpe::command_line::print_help(sparse::help_text());
    return 0;
  });
}
