#pragma once

#include "apps/sparse/rows.h"
#include "kernels/sparse_parameters.h"

namespace hpe::sparse {

/// Breadth-first searches in one graph, on one device. Only one thread at a time may use an object.
class breadth_first {
 public:
  /// The graph must outlive the search. Throws hpe::error.
  breadth_first(const compressed_rows<float>& graph, int device);

  /// Searches from a vertex and waits for the result. Throws hpe::error, for example for a vertex that does not exist.
  void run(std::uint64_t source);

  /// Returns, after run(), the number of edges on a shortest path from the source to each vertex, or
  /// kernels::graph_unreached if there is no path.
  [[nodiscard]] const array<std::uint32_t>& levels() const { return levels_; }
  /// Return, after run(), the greatest level, and the number of vertices that have a level.
  [[nodiscard]] std::uint32_t depth() const { return depth_; }
  [[nodiscard]] std::uint64_t reached() const { return reached_; }

 private:
  const compressed_rows<float>& graph_;
  const int device_;
  const std::uint32_t lanes_;
  kernel<kernels::graph_step_parameters> step_;
  array<std::uint32_t> levels_, frontier_, next_, counts_;
  std::uint32_t depth_ = 0;
  std::uint64_t reached_ = 0;
};

}  // namespace hpe::sparse
