#pragma once

/// The hooks for graphs. When the program adds a node that copies or fills memory, the driver inspects this memory.
/// Every launch of a graph uses the memory of all its nodes. An instance is an executable graph (CUgraphExec). Only
/// hook_table.cpp includes this file.

#include "interpose/gpu/hooks/memory_kind.h"
#include "interpose/gpu/hooks/real_entries.h"
#include "interpose/gpu/hooks/work_hooks.h"
#include "interpose/gpu/interposer.h"
#include "interpose/gpu/work/default_stream.h"
#include "interpose/gpu/work/graph_memory.h"

namespace hpe::cuda_hooks {

namespace {

inline graph_memory& of_graphs() { return interposer::instance()->memory_of_graphs(); }

/// Whether a kind of memory is registered, so that hpe must record which memory graphs use. of_graphs() may be called
/// only if is_watched() is true.
inline bool is_watched() { return memory_kinds::any() && interposer::instance() != nullptr; }

/// Runs call(), in which the driver inspects the memory of a node, and returns its result. use() returns this memory.
template <class Use, class Call>
CUresult with_memory_of_node(const Use& use, const Call& call) {
  if (!is_watched()) return call();
  const auto elsewhere = memory_kinds::first([&](memory_kind& kind) { return kind.look(use(), call); });
  return elsewhere ? *elsewhere : call();
}

inline void tell_instance(const instance_step& step) {
  let_observe([&](memory_kind& kind) { kind.instance(step); });
}

/// Like with_memory_of_node, for a node of an instance. Also records that later launches of the instance use the
/// memory.
template <class Use, class Call>
CUresult with_memory_of_instance(CUgraphExec instance, CUgraphNode node, const Use& use, const Call& call) {
  const CUresult result = with_memory_of_node(use, call);
  if (result == CUDA_SUCCESS && is_watched()) of_graphs().changed(instance, node, use);
  if (result == CUDA_SUCCESS) tell_instance({instance_step::kind::changed, instance});
  return result;
}

inline auto use_of_node(const CUDA_MEMCPY3D* copy) {
  return [=] { return copy != nullptr ? graph_memory::of_copy(*copy) : memory_uses{}; };
}
inline auto use_of_node(const CUDA_MEMSET_NODE_PARAMS* fill) {
  return [=] { return fill != nullptr ? graph_memory::of_fill(*fill) : memory_uses{}; };
}
template <class Kernel>
memory_uses use_of_kernel(const Kernel& k) {
  return of_graphs().of_kernel({function_of(k), k.kernelParams, k.extra});
}
inline auto use_of_node(const CUgraphNodeParams* node) {
  return [=]() -> memory_uses {
    if (node == nullptr) return {};
    switch (node->type) {
      case CU_GRAPH_NODE_TYPE_MEMCPY: return graph_memory::of_copy(node->memcpy.copyParams);
      case CU_GRAPH_NODE_TYPE_MEMSET: return graph_memory::of_fill(node->memset);
      case CU_GRAPH_NODE_TYPE_KERNEL: return use_of_kernel(node->kernel);
      case CU_GRAPH_NODE_TYPE_GRAPH: return of_graphs().of_graph(node->graph.graph);
      case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return {.anything = true};
      default: return {};
    }
  };
}

// ---- nodes -------------------------------------------------------------------------------------------------------

inline CUresult told_node(CUresult result, const CUgraphNode* node, CUgraph child = nullptr) {
  if (result == CUDA_SUCCESS) let_observe([&](memory_kind& kind) { kind.has_node(*node, child); });
  return result;
}

inline CUgraph child_in(const CUDA_KERNEL_NODE_PARAMS* /*what*/) { return nullptr; }
inline CUgraph child_in(CUgraph what) { return what; }
inline CUgraph child_in(const CUgraphNodeParams* what) {
  return what != nullptr && what->type == CU_GRAPH_NODE_TYPE_GRAPH ? what->graph.graph : nullptr;
}

/// The hook for an entry that adds a node which copies or fills memory.
template <auto Entry, class Parameters>
CUresult CUDAAPI add_memory_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, std::size_t count,
                                 const Parameters* what, CUcontext context) {
  return told_node(
      with_memory_of_node(use_of_node(what), [&] { return (real.*Entry)(node, graph, after, count, what, context); }),
      node);
}

/// The hook for an entry that adds a kernel or a child graph: when it adds the node, the driver inspects no memory.
template <auto Entry, class What>
CUresult CUDAAPI add_other_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, std::size_t count,
                                What what) {
  return told_node((real.*Entry)(node, graph, after, count, what), node, child_in(what));
}

/// The hook for an entry that adds a node which allocates memory, and passes the program its address.
template <auto Entry>
CUresult CUDAAPI add_allocation_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, std::size_t count,
                                     CUDA_MEM_ALLOC_NODE_PARAMS* what) {
  const CUresult result = (real.*Entry)(node, graph, after, count, what);
  interpose::adopted_pointers::program_gets_memory();
  return result;
}

template <auto Entry, class... Edges>
CUresult CUDAAPI add_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, Edges... edges, std::size_t count,
                          CUgraphNodeParams* what) {
  const CUresult result =
      with_memory_of_node(use_of_node(what), [&] { return (real.*Entry)(node, graph, after, edges..., count, what); });
  interpose::adopted_pointers::program_gets_memory();  // the node may be an allocation
  return told_node(result, node, child_in(what));
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
      instance, node, [&] { return what != nullptr ? use_of_kernel(*what) : memory_uses{}; },
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
      instance, node, [] { return memory_uses{.anything = true}; },
      [&] { return (real.*Entry)(instance, node, what); });
}

template <auto Entry, class... How>
CUresult CUDAAPI instantiate(CUgraphExec* instance, CUgraph graph, How... how) {
  const CUresult result = with_memory_of_node([&] { return of_graphs().of_graph(graph); },
                                              [&] { return (real.*Entry)(instance, graph, how...); });
  if (result == CUDA_SUCCESS && is_watched()) of_graphs().instantiated(*instance, graph);
  if (result == CUDA_SUCCESS) tell_instance({instance_step::kind::made, *instance, graph});
  if (interposer* const hpe = interposer::started(); hpe != nullptr && result == CUDA_SUCCESS)
    or_undo([&] { hpe->freed_by_graphs().instantiated(*instance, graph); },
            [&] { (real.cuGraphExecDestroy)(*instance); });
  return result;
}

template <auto Entry, class... Outcome>
CUresult CUDAAPI update_instance(CUgraphExec instance, CUgraph graph, Outcome... outcome) {
  const CUresult result = with_memory_of_node([&] { return of_graphs().of_graph(graph); },
                                              [&] { return (real.*Entry)(instance, graph, outcome...); });
  if (result == CUDA_SUCCESS && is_watched()) of_graphs().instantiated(instance, graph);
  if (result == CUDA_SUCCESS) tell_instance({instance_step::kind::made, instance, graph});
  return result;
}

template <auto Entry>
CUresult CUDAAPI destroy_instance(CUgraphExec instance) {
  tell_instance({instance_step::kind::ends, instance});
  if (interposer* const hpe = interposer::started()) {
    hpe->memory_of_graphs().destroyed(instance);
    hpe->freed_by_graphs().destroyed(instance);
  }
  return (real.*Entry)(instance);
}

template <auto Entry>
CUresult CUDAAPI destroy_graph(CUgraph graph) {
  let_observe([&](memory_kind& kind) { kind.ends(graph); });
  if (interposer* const hpe = interposer::started()) hpe->freed_by_graphs().destroyed(graph);
  return (real.*Entry)(graph);
}

template <auto Entry>
CUresult CUDAAPI destroy_node(CUgraphNode node) {
  let_observe([&](memory_kind& kind) { kind.ends(node); });
  return (real.*Entry)(node);
}

template <auto Entry, flavour Flavour>
CUresult CUDAAPI launch_graph(CUgraphExec instance, CUstream stream) {
  if (interposer* const hpe = interposer::started()) hpe->launches_graph();
  counters::add(trace::status_page::own().count.launches, 1);
  const CUresult result = run_other(
      named(stream, Flavour),
      [&] { return is_watched() ? of_graphs().of_instance(instance) : memory_uses{.anything = true}; },
      [&] { return any_work_in_memory<Entry>(instance, stream); }, instance);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && memory_kinds::any())
    log(log_level::info,
        "a graph needs the memory of all its nodes at the same time: divide it into graphs with fewer nodes");
  return result;
}

}  // namespace

}  // namespace hpe::cuda_hooks
