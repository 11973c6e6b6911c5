#pragma once

/// The NUMA nodes of this machine: the nearest node of a device, and functions that place threads and memory on a node.
/// Reads the files in which Linux describes the machine. Node numbers are those of the operating system. hpe does not
/// report failures: if it cannot find the nodes of a machine, it is only slower.

#include <cstddef>
#include <optional>
#include <string>

namespace hpe::os {

/// The PCI address of a device.
struct pci_address {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
};

class numa {
 public:
  /// `system`: the folder of the files; only tests use another one.
  explicit numa(std::string system = "/sys");

  /// The number of nodes with memory, at least 1.
  [[nodiscard]] unsigned nodes() const noexcept { return nodes_; }

  /// The nearest node of a device. Empty if there is only one node, or if the nearest node is not known.
  [[nodiscard]] std::optional<int> node_near(const pci_address& device) const;

  /// Binds the calling thread to those cores of the node that the process may use. Returns false, without effect, if
  /// the process may use none of these cores, or if the system refuses.
  [[nodiscard]] bool settle_thread(int node) const;

  /// Makes the system allocate new pages of the range on the node while the node has free memory. The range begins at
  /// the start of a page. Returns false if the node does not exist, or if the system refuses.
  [[nodiscard]] bool settle_memory(void* address, std::size_t bytes, int node) const;

 private:
  [[nodiscard]] std::string folder_of(int node) const;

  std::string system_;
  unsigned nodes_ = 1;
};

}  // namespace hpe::os
