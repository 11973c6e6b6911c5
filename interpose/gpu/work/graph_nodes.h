#pragma once

/// Questions to the driver about the nodes of graphs.

#include <optional>
#include <vector>

#include "runtime/base/box.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// Calls an entry of the driver. Returns whether this driver has the entry and the call has succeeded.
template <class Entry, class... Arguments>
[[nodiscard]] bool asked(Entry entry, Arguments... arguments) {
  return entry != nullptr && entry(arguments...) == CUDA_SUCCESS;
}

/// Returns the nodes of a graph, without those of child graphs; nullopt if the driver does not report them.
[[nodiscard]] inline std::optional<std::vector<CUgraphNode>> nodes_of(const device::cuda::driver& cu, CUgraph graph) {
  std::size_t count = 0;
  if (!asked(cu.cuGraphGetNodes, graph, nullptr, &count)) return std::nullopt;
  std::vector<CUgraphNode> nodes(count);
  if (count != 0 && !asked(cu.cuGraphGetNodes, graph, nodes.data(), &count)) return std::nullopt;
  return nodes;
}

/// Returns the kernel that the parameters of a node name; null if they name none. The parameters of older drivers have
/// no member `kern`.
template <class Kernel>
[[nodiscard]] CUfunction function_of(const Kernel& k) {
  if constexpr (requires { k.kern; })
    if (k.func == nullptr) return reinterpret_cast<CUfunction>(k.kern);
  return k.func;
}

/// Returns the bytes that a node fills, as a box at `fill.dst`. `Fill` is CUDA_MEMSET_NODE_PARAMS or the newer version
/// of this structure, whose members have the same names.
template <class Fill>
[[nodiscard]] box box_of(const Fill& fill) {
  return {{saturated_product(fill.width, fill.elementSize), fill.height, 1}, {fill.pitch, 0}};
}

}  // namespace hpe::cuda_hooks
