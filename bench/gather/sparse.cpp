// Applications of gather and scatter: products of sparse matrices and vectors, compared with cuSPARSE on one GPU;
// searches in graphs; and hash tables, compared with std::unordered_map. Before each timed run, the benchmark
// overwrites the results with a poison value.

#include <fmt/core.h>

#include <memory>
#include <unordered_map>

#include "apps/gather/fit.h"
#include "apps/gather/model.h"
#include "apps/sparse/breadth_first.h"
#include "apps/sparse/hash_table.h"
#include "apps/sparse/product.h"
#include "bench/common/devices.h"
#include "bench/common/measure.h"
#include "bench/gather/cusparse.h"

namespace {

using hpe::bench::result;
using namespace hpe::sparse;

class program {
 public:
  explicit program(const hpe::bench::arguments& given) : given_(given) {}

  template <class T>
  void multiply(const compressed_rows<T>& m, const std::string& name) {
    const std::string what = fmt::format("{}, {}", name, sizeof(T) == 4 ? "f32" : "f64");
    product<T> own(m, form::fused, {}, {0});
    for (std::uint64_t c = 0; c < m.columns; ++c)
      own.x()[c] = static_cast<T>(static_cast<double>(scrambled(c, repeat_++) >> 40) * 0x1p-24 - 0.5);
    std::vector<T> y(m.rows, T(-1)), theirs(m.rows, T(-2));
    const auto nothing = [] { hpe::synchronize(); };
    const double bytes = static_cast<double>(m.elements()) * (4 + sizeof(T)) +
                         static_cast<double>(m.rows) * (4 + sizeof(T)) + static_cast<double>(m.columns) * sizeof(T);
    // A product of a small matrix takes less time than a launch; therefore, a run queues several products, as iterative
    // solvers do.
    const auto products = static_cast<int>(std::clamp(0x1p28 / bytes, 1.0, 64.0));
    const auto queue_all = [products](auto& product) {
      for (int i = 0; i < products; ++i) product.run();
      hpe::synchronize();
    };
    const auto run = [&] { queue_all(own); };
    if (!hpe::bench::on_gpus() || !hpe::bench::cusparse_product::installed()) {
      const double time = hpe::bench::median_seconds(given_.repeats, nothing, run);
      add(what + ": matrix and vectors", products * bytes / time / 1e9, "GB/s");
      return;
    }
    const hpe::array<T> y_peer(m.rows, hpe::on_device(0));
    hpe::bench::cusparse_product peer(m, own.x(), y_peer, 0);
    const auto poison = [&] {
      hpe::fill(y_peer.data(), 0xff, y_peer.size() * sizeof(T));
      hpe::synchronize();
    };
    const auto [ours, other] =
        hpe::bench::paired_medians(given_.repeats, nothing, run, poison, [&] { queue_all(peer); });
    own.result(y.data());
    hpe::copy(theirs.data(), y_peer.data(), theirs.size() * sizeof(T));
    for (std::uint64_t r = 0; r < m.rows; ++r) {
      const double length = m.first[r + 1] - m.first[r];
      if (!(std::abs(static_cast<double>(y[r] - theirs[r])) <= (length + 8) * (sizeof(T) == 4 ? 0x1p-22 : 0x1p-50)))
        throw std::runtime_error(fmt::format("{}: row {} differs from cuSPARSE's", what, r));
    }
    add(what + ": matrix and vectors", products * bytes / ours / 1e9, "GB/s");
    add(what + ": cuSPARSE", products * bytes / other / 1e9, "GB/s");
    add(what + ": of cuSPARSE", other / ours, "x", 0.95);
  }

  void search(const compressed_rows<float>& graph, std::uint64_t source, const std::string& name) {
    breadth_first s(graph, 0);
    const double time = hpe::bench::median_seconds(
        given_.repeats, [] { hpe::synchronize(); }, [&] { s.run(source); });
    add(fmt::format("{}: {} levels", name, s.depth() + 1), 1e3 * time, "ms");
    add(name + ": edges", static_cast<double>(graph.elements()) / time / 1e9, "G/s");
  }

  void hash(std::uint64_t keys, const hpe::gather::parameters& machine) {
    const method_choice choose = [&](const hpe::gather::problem& p) {
      return hpe::gather::choices(machine, p).front().how;
    };
    const hpe::array<std::uint64_t> entries(keys, hpe::on_device(0));
    const hpe::array<std::uint32_t> queries(keys, hpe::on_device(0)), results(keys, hpe::on_device(0));
    // About half of the queried keys are in the table.
    for (std::uint64_t i = 0; i < keys; ++i) {
      entries[i] = i << 32 | static_cast<std::uint32_t>(i) * 0x9e3779b1U;
      queries[i] = static_cast<std::uint32_t>(scrambled(i, 3) % (2 * keys)) * 0x9e3779b1U;
    }
    const std::string what = fmt::format("hash table of 2^{} keys", std::bit_width(keys) - 1);
    const double build = hpe::bench::median_seconds(
        given_.repeats, [] { hpe::synchronize(); }, [&] { const hash_table table(entries.data(), keys, 0, choose); });
    hash_table table(entries.data(), keys, 0, choose);
    const double find = hpe::bench::median_seconds(
        given_.repeats,
        [&] {
          hpe::fill(results.data(), 0xee, keys * sizeof(std::uint32_t));
          hpe::synchronize();
        },
        [&] { table.find(queries.data(), keys, results.data(), ~0U, choose); });
    for (std::uint64_t i = 0; i < keys; i += keys / 1024 + 1) {
      // Each key is its index times an odd factor; multiplying a key by the factor's inverse yields the index.
      const std::uint32_t place = queries[i] * 0x0e8b2f51U;
      if (results[i] != (place < keys ? place : ~0U))
        throw std::runtime_error(fmt::format("{}: query {} is wrong", what, i));
    }
    add(what + ": built", static_cast<double>(keys) / build / 1e9, "G keys/s");
    add(what + ": found", static_cast<double>(keys) / find / 1e9, "G queries/s");
    if (keys > (std::uint64_t{1} << 22)) return;
    std::unordered_map<std::uint32_t, std::uint32_t> map;
    const double map_build = hpe::bench::median_seconds(
        3, [&] { map = {}; },
        [&] {
          map.reserve(keys);
          for (const std::uint64_t e : entries)
            map.emplace(hpe::kernels::hash_key_of(e), hpe::kernels::hash_value_of(e));
        });
    std::vector<std::uint32_t> found(keys);
    const double map_find = hpe::bench::median_seconds(
        3, [] {},
        [&] {
          for (std::uint64_t i = 0; i < keys; ++i) {
            const auto at = map.find(queries[i]);
            found[i] = at == map.end() ? ~0U : at->second;
          }
        });
    add(what + ": building, of std::unordered_map", map_build / build, "x");
    add(what + ": finding, of std::unordered_map", map_find / find, "x");
  }

  std::vector<result> results;

 private:
  void add(const std::string& what, double value, const std::string& unit, double bar = 0) {
    results.push_back({what, value, unit, bar > 0 ? fmt::format(">= {:.2f}", bar) : "", value >= bar});
  }

  const hpe::bench::arguments given_;
  std::uint64_t repeat_ = 1;
};

}  // namespace

int main(int argc, char** argv) {
  std::string matrix, graph;
  std::uint64_t rows = 0, keys = 0;
  const auto given = hpe::bench::parse(
      argc, argv, "sparse products compared with cuSPARSE, graph searches, and hash tables",
      {{"--matrix", "FILE", "also measure the matrix in FILE, in the format of Matrix Market",
        hpe::bench::to_text(matrix)},
       {"--graph", "FILE", "also measure the graph in FILE, in the format of Rodinia", hpe::bench::to_text(graph)},
       {"--rows", "N", "rows of the random matrix, and vertices of the graph (2^24; on soft devices 2^18)",
        hpe::bench::to_whole(rows, 1)},
       {"--keys", "N", "keys of the largest hash table (2^28; on soft devices 2^20)", hpe::bench::to_whole(keys, 1)}});
  program p(given);
  const bool gpus = hpe::bench::on_gpus();
  if (rows == 0) rows = std::uint64_t{1} << (gpus ? 24 : 18);
  if (keys == 0) keys = std::uint64_t{1} << (gpus ? 28 : 20);
  if (!matrix.empty()) {
    const contents c = read_file(matrix);
    p.multiply(compress<float>(c, 0), matrix);
    p.multiply(compress<double>(c, 0), matrix);
  }
  const random_shape shape{rows, 8, 24};
  p.multiply(random_rows<float>(shape, true, 0), fmt::format("random, {} rows", rows));
  p.multiply(random_rows<double>(shape, true, 0), fmt::format("random, {} rows", rows));
  if (!graph.empty()) {
    const contents c = read_file(graph);
    p.search(compress<float>(c, 0), c.source, graph);
  }
  p.search(random_rows<float>({rows, 4, 12, 2}, false, 0), 0, fmt::format("random graph, {} vertices", rows));
  const hpe::gather::parameters machine = hpe::gather::fitted(0, false, {});
  for (std::uint64_t k = std::uint64_t{1} << 20; k <= keys; k *= 16) p.hash(k, machine);
  return hpe::bench::report(fmt::format("applications of gather and scatter on {}, {}", hpe::device_info(0).name,
                                        hpe::bench::load_of_machine()),
                            p.results, given);
}
