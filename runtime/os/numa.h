#pragma once

/// The NUMA nodes of this machine: which node a device is next to, and how to place threads and memory on a node. Uses
/// hwloc, whose environment variables (HWLOC_XMLFILE, HWLOC_SYNTHETIC) can substitute another machine, on which nothing
/// can be bound. Without hwloc (numa_absent.cpp) there is one node and nothing is bound. Nodes are numbered as by the
/// system. Failures are not reported, because a machine whose nodes are not known is only slower.

#include <cstddef>
#include <memory>
#include <optional>

namespace hpe::os {

/// The PCI address of a device.
struct pci_address {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
};

class numa {
 public:
  /// Reads the machine's topology, which takes some milliseconds.
  numa();
  ~numa();
  numa(const numa&) = delete;
  numa& operator=(const numa&) = delete;

  /// The number of nodes with memory, at least 1.
  [[nodiscard]] unsigned nodes() const noexcept;

  /// The node that a device is next to. Empty if there is only one node, or if the node is not known.
  [[nodiscard]] std::optional<int> node_near(const pci_address& device) const noexcept;

  /// Binds the calling thread to those cores of the node that the process may use. Returns false, with nothing changed,
  /// if there are none or the system refuses.
  bool settle_thread(int node) const noexcept;

  /// Makes the system allocate new pages of the range on the node while the node has free memory. Returns false if
  /// there is no such node, or if the system refuses.
  bool settle_memory(void* address, std::size_t bytes, int node) const noexcept;

 private:
  struct machine;
  std::unique_ptr<machine> machine_;
};

}  // namespace hpe::os
