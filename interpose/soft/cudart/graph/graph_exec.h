#pragma once

#include <driver_types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "interpose/soft/cudart/graph/graph.h"
#include "interpose/soft/cudart/stream/stream_operation.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cudart {

/// An executable graph. Later changes to the original graph do not affect the executable graph. Its operations run one
/// after another, in an order that satisfies the dependencies. Thread safe. The functions throw `failure`.
class graph_exec {
 public:
  /// Each node of the graph and of its child graphs becomes a step of the executable graph. Throws the error of an
  /// operation that cannot be prepared, and cudaErrorInvalidValue if the graph has a cycle.
  graph_exec(const graph& from, unsigned long long flags);

  unsigned long long flags() const { return flags_; }
  std::uint64_t id() const { return id_; }

  /// Queues the whole graph on a stream as one task, to run after all earlier launches of this executable graph.
  void launch(cudart_stream& where);

  /// Returns the work of one launch, for a caller that runs it as a part of another task.
  stream_task begin(cudart_stream& where) const;

  /// Replaces all operations, for later launches, by the operations of `from`, which must have the same nodes and
  /// edges. If the nodes or edges differ, changes nothing and returns the kind of the difference; otherwise returns
  /// cudaGraphExecUpdateSuccess. Sets *differing to the first node of `from` that differs, or to null if no node
  /// differs or the node is not known; `differing` may be null.
  cudaGraphExecUpdateResult update(const graph& from, graph_node** differing);

  /// Replaces the operation of a node, for later launches, by another operation of the same type. `node` is a node of
  /// the original graph.
  void set(const graph_node& node, std::shared_ptr<const stream_operation> what);
  [[nodiscard]] std::shared_ptr<const stream_operation> what(const graph_node& node) const;
  /// Replaces the operations of a child graph, for later launches. Throws cudaErrorInvalidValue unless the old and the
  /// new child graph have the same nodes and edges.
  void set_child(const graph_node& node, const graph& child);

  /// Sets whether later launches run a node. Only kernel, memcpy and memset nodes can be disabled.
  void enable(const graph_node& node, bool enabled);
  bool enabled(const graph_node& node) const;

 private:
  struct step;
  using plan = std::vector<step>;
  struct step {
    std::uint64_t id = 0;  // the id of the node that this step runs
    int device = 0;
    bool enabled = true;
    std::shared_ptr<const stream_operation> what;
    stream_task prepared;
    std::vector<std::size_t> before;  // the indices of the steps on which this step depends
    std::size_t parts = 0;            // for a child graph, the number of preceding steps that belong to this graph
    graph_node* node = nullptr;       // the node, for reports by update(); may be destroyed later
    std::vector<plan> bodies{};       // the bodies of a conditional node
  };
  struct begun_plan;  // one launch of a plan, in progress

  static void append(plan& steps, const graph& from, const std::vector<std::size_t>& roots_depend_on);
  static plan make_plan(const graph& from);
  static begun_plan begin(const plan& steps, cudart_stream& where, task_memory_uses& uses);
  static cudaError_t run(const begun_plan& begun, const std::shared_ptr<const check::step_order>& order);
  static std::shared_ptr<const check::step_order> order_of(const plan& steps);
  static void begin_conditions(const plan& steps);
  static cudaGraphExecUpdateResult compare(const plan& steps, const plan& given, graph_node*& differing);
  static void take_names(plan& given, const plan& steps);
  static std::size_t place_of(const plan& steps, const graph_node& node);
  static const step* find_or_null(const plan& steps, const graph_node& node);
  static const step& find(const plan& steps, const graph_node& node);  // also searches bodies
  static step& find(plan& steps, const graph_node& node) {
    return const_cast<step&>(find(static_cast<const plan&>(steps), node));
  }
  template <class Change>
  void change(const Change& how);

  const unsigned long long flags_;
  const std::shared_ptr<const std::vector<std::shared_ptr<void>>> kept_;  // the graph's user objects
  const std::uint64_t id_;
  mutable mutex mutex_;
  std::shared_ptr<const plan> plan_ HPE_GUARDED_BY(mutex_);  // a plan never changes, because queued launches use it
  point last_ HPE_GUARDED_BY(mutex_);                        // the end of the last launch
  // For the checker: the order of the steps of a plan.
  mutable std::shared_ptr<const plan> ordered_plan_ HPE_GUARDED_BY(mutex_);
  mutable std::shared_ptr<const check::step_order> order_ HPE_GUARDED_BY(mutex_);
};

class exec_table : public handle_table<cudaGraphExec_t, graph_exec, cudaErrorInvalidValue> {};

}  // namespace hpe::cudart
