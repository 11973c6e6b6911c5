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
  std::vector<launch_accesses> steps;  // a step comes after the steps for which it waits
  std::shared_ptr<const check::step_order> order;
  bool is_whole = true;  ///< whether `steps` contains all accesses
  /// Whether the graph has nodes by which the program can see the progress of the graph, or nodes that wait for the
  /// program: host functions, events, values in memory.
  bool meets_others = false;
};

/// The graphs of a program that is checked. When the program makes an instance, hpe queries the driver for the nodes
/// and edges. Thread-safe.
class checked_graphs {
 public:
  /// All arguments must outlive the object.
  checked_graphs(const device::cuda::driver& cu, analysed_kernels& kernels) : cu_(cu), kernels_(kernels) {}

  /// To be called when the program has added a node by a call at `place`. `child`: the graph of which the node contains
  /// a copy; null if the node is no child graph.
  void added(CUgraphNode node, std::shared_ptr<const check::call_place> place, CUgraph child = nullptr);
  /// To be called when the program has queued work on a captured stream by a call at `place`. The work is the last node
  /// of the capture.
  void captured(CUstream stream, const std::shared_ptr<const check::call_place>& place);
  /// To be called before the program destroys a node, or a graph with its nodes and child graphs.
  void ends(CUgraphNode node);
  void ends(CUgraph graph);
  void step(const instance_step& step, const std::shared_ptr<const check::call_place>& place);
  /// Returns null if hpe does not know the nodes of the instance.
  [[nodiscard]] std::shared_ptr<const checked_graph> find(CUgraphExec instance) const;

 private:
  class reader;

  /// Returns the place of the call that added a node; null if hpe has not seen this call.
  [[nodiscard]] std::shared_ptr<const check::call_place> place_of(CUgraphNode node) const;
  /// Gives the nodes of `to`, which is a copy of `from`, the places of the nodes of `from`.
  void copy_places(CUgraph to, CUgraph from);

  const device::cuda::driver& cu_;
  analysed_kernels& kernels_;
  mutable mutex mutex_;
  std::map<CUgraphNode, std::shared_ptr<const check::call_place>> places_ HPE_GUARDED_BY(mutex_);
  std::map<CUgraphExec, std::shared_ptr<const checked_graph>> instances_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::cuda_hooks
