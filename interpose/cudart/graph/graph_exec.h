#pragma once

#include <driver_types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "interpose/cudart/graph/graph.h"
#include "interpose/cudart/stream/operation.h"

namespace hpe::cudart {

/// An executable graph. Later changes of the graph do not affect it. Its operations run one after the other, in an
/// order that the dependencies allow. Thread safe. Members throw failure.
class graph_exec {
 public:
  /// Child graphs are expanded into steps. Throws the error of an operation that cannot be prepared, and
  /// cudaErrorInvalidValue for a cycle.
  graph_exec(const graph& from, unsigned long long flags);

  unsigned long long flags() const { return flags_; }
  std::uint64_t id() const { return id_; }

  /// Queues the whole graph in a stream as one piece of work, after all earlier launches of this executable graph.
  void launch(stream& where);

  /// The work of one launch, for use inside another piece of work.
  work begin(stream& where) const;

  /// Takes all operations from `from`, which must have the same nodes and edges, for later launches. Otherwise returns
  /// the difference and changes nothing; *differing (may be null) becomes the first node of `from` that differs, if one
  /// is known.
  cudaGraphExecUpdateResult update(const graph& from, graph_node** differing);

  /// Replaces the operation of a node by one of the same type, for later launches. `node` is of the original graph.
  void set(const graph_node& node, std::shared_ptr<const operation> what);
  [[nodiscard]] std::shared_ptr<const operation> what(const graph_node& node) const;
  void set_child(const graph_node& node, const graph& child);  ///< its nodes and edges must be the same

  /// Whether later launches run a node. Only kernel, memcpy and memset nodes can be disabled.
  void enable(const graph_node& node, bool enabled);
  bool enabled(const graph_node& node) const;

 private:
  struct step;
  using plan = std::vector<step>;
  struct step {
    std::uint64_t id = 0;  // of the node that it was made from
    int device = 0;
    bool enabled = true;
    std::shared_ptr<const operation> what;
    work prepared;
    std::vector<std::size_t> before;  // the steps that it depends on
    std::size_t parts = 0;            // for a child graph node: how many steps right before this one belong to it
    graph_node* node = nullptr;       // for update() only, which reports it; it may be gone later
    std::vector<plan> bodies{};       // of a conditional node
  };
  struct begun_plan;  // one launch of a plan

  static void append(plan& steps, const graph& from, const std::vector<std::size_t>& roots_depend_on);
  static plan make_plan(const graph& from);
  static begun_plan begin(const plan& steps, stream& where, memory_uses& uses);
  static cudaError_t run(const begun_plan& begun);
  static void begin_conditions(const plan& steps);
  static cudaGraphExecUpdateResult compare(const plan& steps, const plan& given, graph_node*& differing);
  static void take_names(plan& given, const plan& steps);
  static std::size_t place_of(const plan& steps, const graph_node& node);
  static const step* find_or_null(const plan& steps, const graph_node& node);
  static const step& find(const plan& steps, const graph_node& node);  // bodies too
  static step& find(plan& steps, const graph_node& node) {
    return const_cast<step&>(find(static_cast<const plan&>(steps), node));
  }
  template <class Change>
  void change(const Change& how);

  const unsigned long long flags_;
  const std::shared_ptr<const std::vector<std::shared_ptr<void>>> kept_;  // used by the nodes of queued launches too
  const std::uint64_t id_;
  mutable std::mutex mutex_;
  std::shared_ptr<const plan> plan_;  // the plan itself never changes, because queued launches share it
  point last_;                        // end of the last launch
};

class exec_table : public handle_table<cudaGraphExec_t, graph_exec, cudaErrorInvalidValue> {};

}  // namespace hpe::cudart
