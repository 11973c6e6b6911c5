#include "apps/sparse/rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "apps/command_line/program.h"
#include "apps/modules/modules.h"
#include "kernels/sparse_parameters.h"

namespace hpe::sparse {

namespace {

constexpr std::uint64_t most_matrix_elements = std::numeric_limits<std::uint32_t>::max();

void check_sizes(std::uint64_t rows, std::uint64_t elements) {
  if (rows >= most_matrix_elements || elements > most_matrix_elements)
    throw error(HPE_ERROR_INVALID_ARGUMENT,
                fmt::format("{} rows with {} elements in all are too many; fewer than {} are possible", rows, elements,
                            most_matrix_elements));
}

std::uint64_t length_of(const random_shape& shape, std::uint64_t row) {
  return shape.least + scrambled(row, 2 * shape.seed) % (shape.most - shape.least + 1);
}

template <class T>
compressed_rows<T> make(std::uint64_t rows, std::uint64_t columns, std::uint64_t elements, bool with_values,
                        int device) {
  check_sizes(rows, elements);
  const placement here = on_device(device);
  return {rows, columns, array<std::uint32_t>(rows + 1, here), array<std::uint32_t>(elements, here),
          array<T>(with_values ? elements : 0, here)};
}

}  // namespace

template <class T>
compressed_rows<T> compress(const contents& file, int device) {
  std::vector<std::uint32_t> next(file.rows + 1, 0);
  for (const element& e : file.elements) ++next[e.row + 1];
  for (std::uint64_t r = 0; r < file.rows; ++r) next[r + 1] += next[r];
  compressed_rows<T> m = make<T>(file.rows, file.columns, file.elements.size(), true, device);
  std::copy(next.begin(), next.end(), m.first.begin());
  for (const element& e : file.elements) {
    const std::uint32_t at = next[e.row]++;
    m.column[at] = e.column;
    m.values[at] = static_cast<T>(e.value);
  }
  return m;
}

std::uint64_t elements_of(const random_shape& shape) {
  if (shape.least == 0 || shape.most < shape.least)
    throw error(HPE_ERROR_INVALID_ARGUMENT, fmt::format("rows of {} to {} elements are not possible: the first number "
                                                        "must be above 0, and the second at least as large",
                                                        shape.least, shape.most));
  std::uint64_t elements = 0;
  for (std::uint64_t r = 0; r < shape.rows && elements <= most_matrix_elements; ++r) elements += length_of(shape, r);
  check_sizes(shape.rows, elements);
  return elements;
}

template <class T>
compressed_rows<T> random_rows(const random_shape& shape, bool with_values, int device) {
  compressed_rows<T> m = make<T>(shape.rows, shape.rows, elements_of(shape), with_values, device);
  m.first[0] = 0;
  for (std::uint64_t r = 0; r < shape.rows; ++r)
    m.first[r + 1] = m.first[r] + static_cast<std::uint32_t>(length_of(shape, r));
  for (std::uint64_t k = 0; k < m.elements(); ++k) {
    const std::uint64_t bits = scrambled(k, 2 * shape.seed + 1);
    m.column[k] = static_cast<std::uint32_t>((static_cast<unsigned __int128>(bits) * shape.rows) >> 64);
    if (with_values) m.values[k] = static_cast<T>(static_cast<double>(bits & 0xffffff) * 0x1p-24 - 0.5);
  }
  return m;
}

template compressed_rows<float> compress(const contents&, int);
template compressed_rows<double> compress(const contents&, int);
template compressed_rows<float> random_rows(const random_shape&, bool, int);
template compressed_rows<double> random_rows(const random_shape&, bool, int);

row_sharing share_rows(const array<std::uint32_t>& first) {
  // A thread processes at most twice this number of elements of a row, unless 32 threads are too few for that: the
  // other threads of the warp wait for the thread.
  constexpr std::uint64_t most_of_a_thread = 32;
  const std::uint64_t rows = first.size() - 1, elements = first[rows];
  std::uint64_t longest = 0;
  for (std::uint64_t r = 0; r < rows; ++r) longest = std::max<std::uint64_t>(longest, first[r + 1] - first[r]);
  // `lanes` becomes the power of two that is between 2/3 and 4/3 of the mean length of a row.
  const std::uint64_t of_mean = rows == 0 ? 0 : 4 * elements / (3 * rows);
  const std::uint64_t wished = std::clamp<std::uint64_t>(std::max(of_mean, longest / most_of_a_thread), 1, 32);
  const auto lanes = static_cast<std::uint32_t>(std::bit_floor(wished));
  return {lanes, longest <= std::uint64_t{2} * lanes ? 2U : 4U};
}

void check_one_device(std::int64_t devices) {
  static_cast<void>(command_line::devices_of(devices));
  if (devices > 1) throw bad_input(fmt::format("--devices {}: only one device, the first, can do this work", devices));
}

std::string kernels_file() { return modules::require("libhpe-sparse-kernels.so"); }

hpeShape shape_for(std::uint64_t count, int device) {
  const hpeDeviceInfo info = device_info(device);
  const std::uint64_t tiles = (count + kernels::sparse_threads - 1) / kernels::sparse_threads;
  // A few tiles for each thread of a soft device, so that no thread waits long for another thread at the end.
  const std::uint64_t most =
      info.kind == HPE_DEVICE_SOFT ? std::uint64_t{4} * info.compute_units : std::numeric_limits<std::int32_t>::max();
  return {{static_cast<std::uint32_t>(std::clamp<std::uint64_t>(tiles, 1, most)), 1, 1},
          {kernels::sparse_threads, 1, 1}};
}

}  // namespace hpe::sparse
