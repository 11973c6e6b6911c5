#pragma once

/// The NUMA nodes of this machine: which one a device is next to, and how threads and memory get there. By hwloc, whose
/// environment (HWLOC_XMLFILE, HWLOC_SYNTHETIC) puts another machine in the place of this one; nothing can be bound
/// then. Without hwloc (numa_absent.cpp) there is one node, and nothing is bound. Nodes have the numbers that the
/// system gives them. Nothing here throws, because a machine whose nodes are not known is merely slower.

#include <cstddef>
#include <memory>
#include <optional>

namespace hpe::os {

/// Where a device is plugged in.
struct pci_address {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
};

class numa {
 public:
  /// Takes some milliseconds.
  numa();
  ~numa();
  numa(const numa&) = delete;
  numa& operator=(const numa&) = delete;

  /// How many nodes with memory there are, at least 1.
  [[nodiscard]] unsigned nodes() const noexcept;

  /// The node that a device is next to. None where there is one node only, or it is not known.
  [[nodiscard]] std::optional<int> node_near(const pci_address& device) const noexcept;

  /// From now on the calling thread runs on the cores of the node that the process may use. False, with nothing
  /// changed, if there are none.
  bool settle_thread(int node) const noexcept;

  /// Pages of the range that do not exist yet are made of the node's memory, as long as it has some. False if there is
  /// no such node, or the system refuses.
  bool settle_memory(void* address, std::size_t bytes, int node) const noexcept;

 private:
  struct machine;
  std::unique_ptr<machine> machine_;
};

}  // namespace hpe::os
