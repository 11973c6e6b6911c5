#include "bench/spread/sparse_matrices.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <numeric>

namespace hpe::bench {

namespace {

using words = std::vector<std::uint32_t>;
using content = memory::content;

argument number(std::uint64_t value) { return {-1, value}; }
argument array(int n) { return {n, 0}; }
memory given(words all) {
  const std::uint64_t count = all.size();
  return {count, content::given, std::move(all)};
}
memory result(std::uint64_t count) { return {count, content::result, {}}; }
std::uint32_t blocks(std::uint64_t count, std::uint32_t each) {
  return static_cast<std::uint32_t>((count + each - 1) / each);
}

std::uint32_t scrambled(std::uint64_t i) {
  i = (i + 0x9e3779b97f4a7c15ULL) * 0xbf58476d1ce4e5b9ULL;
  i = (i ^ (i >> 27U)) * 0x94d049bb133111ebULL;
  return static_cast<std::uint32_t>(i >> 32U);
}

/// A sparse matrix in compressed rows (CSR).
struct matrix {
  std::uint32_t rows = 0;
  words first, columns, values;  // values: the bits of floats

  [[nodiscard]] std::uint32_t length(std::uint32_t row) const { return first[row + 1] - first[row]; }
  [[nodiscard]] std::uint32_t elements() const { return first.back(); }

  void multiply(const words& x, words& y) const {
    for (std::uint32_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (std::uint32_t k = first[r]; k < first[r + 1]; ++k)
        sum += static_cast<double>(std::bit_cast<float>(values[k])) * std::bit_cast<float>(x[columns[k]]);
      y[r] = std::bit_cast<std::uint32_t>(static_cast<float>(sum));
    }
  }
};

std::shared_ptr<const matrix> make_matrix(std::uint32_t rows) {
  auto m = std::make_shared<matrix>();
  m->rows = rows;
  m->first.push_back(0);
  for (std::uint32_t r = 0; r < rows; ++r) m->first.push_back(m->first.back() + 16 + scrambled(r) % 33);
  m->columns.resize(m->elements());
  m->values.resize(m->elements());
  for (std::uint32_t k = 0; k < m->elements(); ++k) {
    m->columns[k] = scrambled((std::uint64_t{1} << 40U) + k) % rows;
    m->values[k] = std::bit_cast<std::uint32_t>(static_cast<float>(scrambled(k)) * 0x1p-32F - 0.5F);
  }
  return m;
}

/// A matrix in the format HYB: the first `width` elements of each row are stored column by column, and short rows are
/// filled up with zeros; the other elements are stored row by row.
struct by_columns {
  words values, columns;
  words rest_values, rest_columns, rest_rows;
  std::uint32_t width = 0;
};

by_columns split(const matrix& m, std::uint32_t width) {
  by_columns s;
  s.width = width;
  s.values.resize(std::size_t{width} * m.rows);
  s.columns.resize(s.values.size());
  for (std::uint32_t r = 0; r < m.rows; ++r) {
    for (std::uint32_t k = 0; k < m.length(r); ++k) {
      const std::uint32_t from = m.first[r] + k;
      if (k < width) {
        s.values[std::size_t{k} * m.rows + r] = m.values[from];
        s.columns[std::size_t{k} * m.rows + r] = m.columns[from];
      } else {
        s.rest_values.push_back(m.values[from]);
        s.rest_columns.push_back(m.columns[from]);
        s.rest_rows.push_back(r);
      }
    }
  }
  return s;
}

step coo_step(int y, int values, int columns, int rows, int x, std::uint64_t elements) {
  return {"spmv_coo",
          {blocks(elements, 256), 1, 1},
          {256, 1, 1},
          {array(y), array(values), array(columns), array(rows), array(x), number(elements)}};
}

step zero_step(int y, std::uint64_t count) {
  return {"fill_word", {blocks(count, 256), 1, 1}, {256, 1, 1}, {array(y), number(count), number(0)}};
}

/// Makes programs that compute y = A x: array 0 is y, array 1 is x, and the arrays of the matrix format follow.
class spmv_maker {
 public:
  explicit spmv_maker(std::uint32_t rows) : m_(make_matrix(rows)) {}

  [[nodiscard]] single_gpu_program csr() const {
    return make("CSR", {given(m_->values), given(m_->columns), given(m_->first)},
                {{"spmv_csr",
                  {blocks(m_->rows, 8), 1, 1},
                  {32, 8, 1},
                  {array(0), array(2), array(3), array(4), array(1), number(m_->rows)}}});
  }

  [[nodiscard]] single_gpu_program coo() const {
    words rows;
    for (std::uint32_t r = 0; r < m_->rows; ++r) rows.insert(rows.end(), m_->length(r), r);
    single_gpu_program p = make("COO", {given(m_->values), given(m_->columns), given(std::move(rows))},
                                {zero_step(0, m_->rows), coo_step(0, 2, 3, 4, 1, m_->elements())});
    p.is_exact = false;
    return p;
  }

  [[nodiscard]] single_gpu_program ell() const {
    by_columns s = split(*m_, 48);
    return make("ELL", {given(std::move(s.values)), given(std::move(s.columns))}, {ell_step(48)});
  }

  [[nodiscard]] single_gpu_program hyb() const {
    by_columns s = split(*m_, 32);
    const std::uint64_t rest = s.rest_values.size();
    single_gpu_program p =
        make("HYB",
             {given(std::move(s.values)), given(std::move(s.columns)), given(std::move(s.rest_values)),
              given(std::move(s.rest_columns)), given(std::move(s.rest_rows))},
             {ell_step(32), coo_step(0, 4, 5, 6, 1, rest)});
    p.is_exact = false;
    return p;
  }

  [[nodiscard]] single_gpu_program jds() const {
    words order(m_->rows), lengths, starts, values, columns;
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [this](auto a, auto b) { return m_->length(a) > m_->length(b); });
    for (const std::uint32_t r : order) lengths.push_back(m_->length(r));
    for (std::uint32_t k = 0; k < lengths.front(); ++k) {
      starts.push_back(static_cast<std::uint32_t>(values.size()));
      for (std::uint32_t i = 0; i < m_->rows && lengths[i] > k; ++i) {
        values.push_back(m_->values[m_->first[order[i]] + k]);
        columns.push_back(m_->columns[m_->first[order[i]] + k]);
      }
    }
    return make("JDS",
                {given(std::move(values)), given(std::move(columns)), given(std::move(starts)),
                 given(std::move(lengths)), given(std::move(order))},
                {{"spmv_jds",
                  {blocks(m_->rows, 256), 1, 1},
                  {256, 1, 1},
                  {array(0), array(2), array(3), array(4), array(5), array(6), array(1), number(m_->rows)}}});
  }

 private:
  [[nodiscard]] single_gpu_program make(const std::string& format, std::vector<memory> arrays,
                                        std::vector<step> steps) const {
    arrays.insert(arrays.begin(), {result(m_->rows), {m_->rows, content::random_floats, {}}});
    return {"SpMV " + format,
            fmt::format("2^{} rows, {} elements", std::bit_width(m_->rows) - 1, m_->elements()),
            std::move(arrays),
            std::move(steps),
            {0},
            true,
            true,
            1.9,
            [m = m_](contents& c) { m->multiply(c[1], c[0]); }};
  }

  [[nodiscard]] step ell_step(std::uint32_t width) const {
    return {"spmv_ell",
            {blocks(m_->rows, 256), 1, 1},
            {256, 1, 1},
            {array(0), array(2), array(3), array(1), number(m_->rows), number(width)}};
  }

  std::shared_ptr<const matrix> m_;
};

/// Returns a search in a random graph with 8 edges from each node. The number of launches depends on the number of
/// levels of the search.
single_gpu_program bfs(std::uint32_t nodes) {
  constexpr std::uint32_t degree = 8;
  words first, edges, cost(nodes, ~0U);
  for (std::uint32_t n = 0; n <= nodes; ++n) first.push_back(n * degree);
  for (std::uint64_t e = 0; e < std::uint64_t{nodes} * degree; ++e)
    edges.push_back(scrambled(e ^ (std::uint64_t{1} << 41U)) % nodes);
  std::uint32_t levels = 0;
  words reached = cost, frontier{0};
  reached[0] = 0;
  for (; !frontier.empty(); ++levels) {
    words next;
    for (const std::uint32_t n : frontier)
      for (std::uint32_t e = first[n]; e < first[n + 1]; ++e)
        if (reached[edges[e]] == ~0U) {
          reached[edges[e]] = levels + 1;
          next.push_back(edges[e]);
        }
    frontier = std::move(next);
  }
  words begin(nodes / 4);
  begin[0] = 1;  // the first byte, node 0
  cost[0] = 0;
  single_gpu_program p{"BFS",
                       fmt::format("2^{} nodes, {} edges", std::bit_width(nodes) - 1, nodes * std::uint64_t{degree}),
                       {given(std::move(first)),
                        given(std::move(edges)),
                        given(begin),
                        {nodes / 4, content::zeros, {}},
                        given(begin),
                        given(std::move(cost)),
                        {1, content::zeros, {}}},
                       {},
                       {5},
                       true,
                       false,
                       0.95,
                       [reached](contents& c) { c[5] = reached; }};
  for (std::uint32_t l = 0; l < levels; ++l) {
    p.steps.push_back({"bfs_expand",
                       {blocks(nodes, 256), 1, 1},
                       {256, 1, 1},
                       {array(0), array(1), array(2), array(3), array(4), array(5), number(nodes)}});
    p.steps.push_back({"bfs_advance",
                       {blocks(nodes, 256), 1, 1},
                       {256, 1, 1},
                       {array(2), array(3), array(4), array(6), number(nodes)}});
  }
  return p;
}

}  // namespace

std::vector<named_program> sparse_programs(double factor) {
  const auto rows = std::bit_floor(static_cast<std::uint32_t>(std::max(0x1p20 * factor, 1024.0)));
  return {
      {"SpMV CSR", [rows] { return spmv_maker(rows).csr(); }}, {"SpMV COO", [rows] { return spmv_maker(rows).coo(); }},
      {"SpMV ELL", [rows] { return spmv_maker(rows).ell(); }}, {"SpMV HYB", [rows] { return spmv_maker(rows).hyb(); }},
      {"SpMV JDS", [rows] { return spmv_maker(rows).jds(); }}, {"BFS", [rows] { return bfs(rows); }}};
}

}  // namespace hpe::bench
