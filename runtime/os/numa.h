#pragma once

/// The NUMA nodes of this machine: the nearest node of a device, and functions that place threads and memory on a node.
/// Uses hwloc. With hwloc's environment variables (HWLOC_XMLFILE, HWLOC_SYNTHETIC), users can describe another machine;
/// in this case, hpe cannot bind threads and memory. Without libhpe-numa.so, which is linked with hwloc, hpe assumes a
/// single node and binds nothing. Node numbers are those of the operating system. hpe does not report failures: if it
/// cannot find the nodes of a machine, it is only slower.

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

/// A machine whose topology hwloc has read, with the functions of class numa; libhpe-numa.so implements this class
/// (numa_module.cpp).
class numa_machine {
 public:
  virtual ~numa_machine() = default;
  [[nodiscard]] virtual unsigned nodes() const noexcept = 0;
  [[nodiscard]] virtual std::optional<int> node_near(const pci_address& device) const noexcept = 0;
  [[nodiscard]] virtual bool settle_thread(int node) const noexcept = 0;
  [[nodiscard]] virtual bool settle_memory(void* address, std::size_t bytes, int node) const noexcept = 0;
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

  /// The nearest node of a device. Empty if there is only one node, or if the nearest node is not known.
  [[nodiscard]] std::optional<int> node_near(const pci_address& device) const noexcept;

  /// Binds the calling thread to those cores of the node that the process may use. Returns false, without effect, if
  /// the process may use none of these cores, or if the system refuses.
  bool settle_thread(int node) const noexcept;

  /// Makes the system allocate new pages of the range on the node while the node has free memory. Returns false if the
  /// node does not exist, or if the system refuses.
  bool settle_memory(void* address, std::size_t bytes, int node) const noexcept;

 private:
  std::unique_ptr<numa_machine> machine_;
};

}  // namespace hpe::os

/// Reads the machine's topology; nullptr if hwloc cannot read it. The caller owns the result. This function is in
/// libhpe-numa.so.
extern "C" hpe::os::numa_machine* hpe_read_machine();
