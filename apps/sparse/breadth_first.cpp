// The host queues the steps of a search in batches. Only after a batch does the host read whether a frontier was empty;
// if so, all later kernels of the batch have done nothing.

#include "apps/sparse/breadth_first.h"

#include <fmt/core.h>

namespace hpe::sparse {

namespace {

constexpr std::uint32_t steps_of_a_batch = 8;

}  // namespace

breadth_first::breadth_first(const compressed_rows<float>& graph, int device)
    : graph_(graph),
      device_(device),
      lanes_(share_rows(graph.first).lanes),
      step_(module(kernels_file()), "graph_step"),
      levels_(graph.rows, on_device(device)),
      frontier_(graph.rows, on_device(device)),
      next_(graph.rows, on_device(device)),
      counts_(graph.rows + steps_of_a_batch + 1, on_device(device)) {}

void breadth_first::run(std::uint64_t source) {
  if (source >= graph_.rows)
    throw error(HPE_ERROR_INVALID_ARGUMENT,
                fmt::format("vertex {} does not exist; the graph has the vertices 0 to {}", source, graph_.rows - 1));
  fill(levels_.data(), 0xff, levels_.size() * sizeof(std::uint32_t));
  fill(counts_.data(), 0, counts_.size() * sizeof(std::uint32_t));
  levels_[source] = 0;
  frontier_[0] = static_cast<std::uint32_t>(source);
  counts_[0] = 1;
  const hpeShape shape = shape_for(graph_.rows * lanes_, device_);
  std::uint32_t depth = 0;
  for (; counts_[depth] != 0; depth += steps_of_a_batch) {
    for (std::uint32_t s = 0; s < steps_of_a_batch; ++s) {
      const bool even = s % 2 == 0;
      const array<std::uint32_t>&from = even ? frontier_ : next_, &to = even ? next_ : frontier_;
      launch_on(device_, step_, shape,
                {graph_.first.data(), graph_.column.data(), levels_.data(), from.data(), to.data(), counts_.data(),
                 depth + s, lanes_},
                in(graph_.first), in(graph_.column), inout(levels_), in(from), inout(to), inout(counts_));
    }
  }
  reached_ = 0;
  depth_ = 0;
  for (std::uint32_t level = 0; counts_[level] != 0; ++level) {
    reached_ += counts_[level];
    depth_ = level;
  }
}

}  // namespace hpe::sparse
