#pragma once

/// The hooks of graphs, for programs that allocate more memory than the GPU has (hpe run --oversubscribe). The driver
/// looks at the memory of copies and fills when they become nodes, and nodes use their memory at each launch. Only
/// hook_table.cpp includes this file. Without --oversubscribe the hooks cost a comparison.

#include "interpose/cuda/hooks/oversubscribed_hooks.h"
#include "interpose/cuda/hooks/real_entries.h"
#include "interpose/cuda/hooks/work_hooks.h"
#include "interpose/cuda/interposer.h"
#include "interpose/cuda/work/graph_memory.h"

namespace hpe::cuda_hooks {

namespace {

inline graph_memory& of_graphs() { return interposer::instance()->memory_of_graphs(); }

/// Calls the driver, which looks at the memory of a node.
template <class Use, class Call>
CUresult with_memory_of_node(const Use& use, const Call& call) {
  oversubscribed* const all = oversubscribed::active();
  return all == nullptr ? call() : all->look(graph_memory::looked_at(*all, use()), call);
}

/// The same for a node of an instance, which uses the memory from then on.
template <class Use, class Call>
CUresult with_memory_of_instance(CUgraphExec instance, CUgraphNode node, const Use& use, const Call& call) {
  const CUresult result = with_memory_of_node(use, call);
  if (result == CUDA_SUCCESS && oversubscribed::active() != nullptr) of_graphs().changed(instance, node, use());
  return result;
}

inline auto use_of_node(const CUDA_MEMCPY3D* copy) {
  return [=] { return copy != nullptr ? graph_memory::of_copy(*copy) : graph_memory::use{}; };
}
inline auto use_of_node(const CUDA_MEMSET_NODE_PARAMS* fill) {
  return [=] { return fill != nullptr ? graph_memory::of_fill(*fill) : graph_memory::use{}; };
}
template <class Kernel>
graph_memory::use use_of_kernel(const Kernel& k) {
  CUfunction function = k.func;
  if constexpr (requires { k.kern; })
    if (function == nullptr) function = reinterpret_cast<CUfunction>(k.kern);
  return of_graphs().of_kernel(function, k.kernelParams, k.extra);
}
inline auto use_of_node(const CUgraphNodeParams* node) {
  return [=]() -> graph_memory::use {
    if (node == nullptr) return {};
    switch (node->type) {
      case CU_GRAPH_NODE_TYPE_MEMCPY: return graph_memory::of_copy(node->memcpy.copyParams);
      case CU_GRAPH_NODE_TYPE_MEMSET: return graph_memory::of_fill(node->memset);
      case CU_GRAPH_NODE_TYPE_KERNEL: return use_of_kernel(node->kernel);
      case CU_GRAPH_NODE_TYPE_GRAPH: return of_graphs().of_graph(node->graph.graph);
      case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return {.anything = true, .words = {}, .ranges = {}};
      default: return {};
    }
  };
}

// ---- nodes -------------------------------------------------------------------------------------------------------

/// Copies and fills.
template <auto Entry, class Parameters>
CUresult CUDAAPI add_memory_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, std::size_t count,
                                 const Parameters* what, CUcontext context) {
  return with_memory_of_node(use_of_node(what),
                             [&] { return (real.*Entry)(node, graph, after, count, what, context); });
}

template <auto Entry, class... Edges>
CUresult CUDAAPI add_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, Edges... edges, std::size_t count,
                          CUgraphNodeParams* what) {
  return with_memory_of_node(use_of_node(what),
                             [&] { return (real.*Entry)(node, graph, after, edges..., count, what); });
}

template <auto Entry, class Parameters>
CUresult CUDAAPI set_node(CUgraphNode node, Parameters* what) {
  return with_memory_of_node(use_of_node(what), [&] { return (real.*Entry)(node, what); });
}

// ---- instances ---------------------------------------------------------------------------------------------------

template <auto Entry, class Parameters, class... Context>
CUresult CUDAAPI set_node_of_instance(CUgraphExec instance, CUgraphNode node, Parameters* what, Context... context) {
  return with_memory_of_instance(instance, node, use_of_node(what),
                                 [&] { return (real.*Entry)(instance, node, what, context...); });
}

template <auto Entry, class Kernel>
CUresult CUDAAPI set_kernel_of_instance(CUgraphExec instance, CUgraphNode node, const Kernel* what) {
  return with_memory_of_instance(
      instance, node, [&] { return what != nullptr ? use_of_kernel(*what) : graph_memory::use{}; },
      [&] { return (real.*Entry)(instance, node, what); });
}

template <auto Entry>
CUresult CUDAAPI set_child_of_instance(CUgraphExec instance, CUgraphNode node, CUgraph child) {
  return with_memory_of_instance(
      instance, node, [&] { return of_graphs().of_graph(child); },
      [&] { return (real.*Entry)(instance, node, child); });
}

template <auto Entry>
CUresult CUDAAPI set_batch_of_instance(CUgraphExec instance, CUgraphNode node,
                                       const CUDA_BATCH_MEM_OP_NODE_PARAMS* what) {
  return with_memory_of_instance(
      instance, node, [] { return graph_memory::use{.anything = true, .words = {}, .ranges = {}}; },
      [&] { return (real.*Entry)(instance, node, what); });
}

template <auto Entry, class... How>
CUresult CUDAAPI instantiate(CUgraphExec* instance, CUgraph graph, How... how) {
  const CUresult result = with_memory_of_node([&] { return of_graphs().of_graph(graph); },
                                              [&] { return (real.*Entry)(instance, graph, how...); });
  if (result == CUDA_SUCCESS && oversubscribed::active() != nullptr) of_graphs().instantiated(*instance, graph);
  return result;
}

template <auto Entry, class... Outcome>
CUresult CUDAAPI update_instance(CUgraphExec instance, CUgraph graph, Outcome... outcome) {
  const CUresult result = with_memory_of_node([&] { return of_graphs().of_graph(graph); },
                                              [&] { return (real.*Entry)(instance, graph, outcome...); });
  if (result == CUDA_SUCCESS && oversubscribed::active() != nullptr) of_graphs().instantiated(instance, graph);
  return result;
}

template <auto Entry>
CUresult CUDAAPI destroy_instance(CUgraphExec instance) {
  if (oversubscribed::active() != nullptr) of_graphs().destroyed(instance);
  return (real.*Entry)(instance);
}

template <auto Entry, flavour Flavour>
CUresult CUDAAPI launch_graph(CUgraphExec instance, CUstream stream) {
  if (interposer* const hpe = interposer::started()) hpe->launches_graph();
  counters::add(trace::status_page::own().count.launches, 1);
  oversubscribed* const all = oversubscribed::active();
  if (all == nullptr) [[likely]]
    return any_work_in_memory<Entry>(instance, stream);
  const movable_use used = graph_memory::movable(*all, of_graphs().of_instance(instance));
  const CUresult result =
      all->run(named(stream, Flavour), used, [&] { return any_work_in_memory<Entry>(instance, stream); });
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    log(log_level::info, "a graph needs the memory of all its nodes at once: graphs of fewer nodes need less");
  return result;
}

}  // namespace

}  // namespace hpe::cuda_hooks
