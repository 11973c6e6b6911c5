#pragma once

#include <cuda.h>

#include <map>
#include <memory>
#include <vector>

#include "interpose/gpu/check/analysed_kernels.h"
#include "interpose/gpu/hooks/program_steps.h"
#include "runtime/base/thread_safety.h"
#include "runtime/check/checker.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// The work that a launch of an instance of a graph queues. Not changed after construction.
struct checked_graph {
  std::vector<launch_accesses> steps;  // each after the steps for which it waits
  std::shared_ptr<const check::step_order> order;
  bool is_whole = true;  ///< whether `steps` has all accesses
  /// Whether the graph has nodes that show the program how far the graph has come, or that wait for the program: host
  /// functions, events, values in memory.
  bool meets_others = false;
};

/// The graphs of a program that is checked. hpe reads the nodes and edges when the program makes an instance, with the
/// driver's own functions. Thread-safe.
class checked_graphs {
 public:
  /// All arguments must outlive the object.
  checked_graphs(const device::cuda::driver& cu, analysed_kernels& kernels) : cu_(cu), kernels_(kernels) {}

  /// The program has added a node at this place. `child`: the graph of which the node has a copy; null: none.
  void added(CUgraphNode node, std::shared_ptr<const check::call_place> place, CUgraph child = nullptr);
  /// The program has queued work on a captured stream at this place: the node is the last one of the capture.
  void captured(CUstream stream, const std::shared_ptr<const check::call_place>& place);
  /// The program is about to destroy a node, or a graph with its nodes and child graphs.
  void ends(CUgraphNode node);
  void ends(CUgraph graph);
  void step(const instance_step& step, const std::shared_ptr<const check::call_place>& place);
  /// Returns null if hpe does not know the nodes of the instance.
  [[nodiscard]] std::shared_ptr<const checked_graph> find(CUgraphExec instance) const;

 private:
  class reader;

  /// Returns null for a node of which hpe has not seen where the program has added it.
  [[nodiscard]] std::shared_ptr<const check::call_place> place_of(CUgraphNode node) const;
  /// The nodes of a copy of a graph get the places of the graph's nodes.
  void copy_places(CUgraph to, CUgraph from);

  const device::cuda::driver& cu_;
  analysed_kernels& kernels_;
  mutable mutex mutex_;
  std::map<CUgraphNode, std::shared_ptr<const check::call_place>> places_ HPE_GUARDED_BY(mutex_);
  std::map<CUgraphExec, std::shared_ptr<const checked_graph>> instances_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::cuda_hooks
