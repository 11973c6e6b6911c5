#pragma once

#include <driver_types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "interpose/cudart/graph.h"
#include "interpose/cudart/operation.h"

namespace hpe::cudart {

/// A graph made ready for launches, which later changes of the graph do not touch. Its operations run one after the
/// other in an order that the dependencies allow. Thread safe. Members throw failure.
class graph_exec {
 public:
  /// Child graphs become parts of the whole. The error of an operation that cannot be prepared; cudaErrorInvalidValue
  /// for a circle.
  graph_exec(const graph& from, unsigned long long flags);

  unsigned long long flags() const { return flags_; }
  std::uint64_t id() const { return id_; }

  /// As one piece of work, behind all earlier launches too.
  void launch(stream& where);

  /// What such a launch executes, as a piece of somebody else's work.
  work begin(stream& where) const;

  /// For later launches, everything as in `from`, which has the same nodes and edges. Otherwise returns what differs,
  /// and nothing changes. differing (may be null) becomes the node of `from` where that was seen.
  cudaGraphExecUpdateResult update(const graph& from, graph_node** differing);

  /// For later launches, another operation of the same type for a node of the graph that this was made of.
  void set(const graph_node& node, std::shared_ptr<const operation> what);
  void set_child(const graph_node& node, const graph& child);  ///< with the same nodes and edges

  /// Whether later launches execute a node; kernels, copies and memsets only.
  void enable(const graph_node& node, bool enabled);
  bool enabled(const graph_node& node) const;

 private:
  struct step {
    std::uint64_t id = 0;  // of the node it was made of
    int device = 0;
    bool enabled = true;
    std::shared_ptr<const operation> what;
    work prepared;
    std::vector<std::size_t> before;  // steps that it depends on
    std::size_t parts = 0;            // for a child graph: how many steps right before this one are in it
    graph_node* node = nullptr;       // to be told by update() only; it may be gone later
  };
  using plan = std::vector<step>;

  static void append(plan& steps, const graph& from, const std::vector<std::size_t>& roots_depend_on);
  static plan make_plan(const graph& from);
  static std::size_t find(const plan& steps, const graph_node& node);
  template <class Change>
  void change(const Change& how);

  const unsigned long long flags_;
  const std::shared_ptr<const std::vector<std::shared_ptr<void>>> kept_;  // for the nodes, by queued launches too
  const std::uint64_t id_;
  mutable std::mutex mutex_;
  std::shared_ptr<const plan> plan_;  // never changes itself: launches that are queued have it too
  point last_;                        // launch
};

class exec_table : public handle_table<cudaGraphExec_t, graph_exec, cudaErrorInvalidValue> {};

}  // namespace hpe::cudart
