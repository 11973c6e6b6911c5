#include "runtime/transfer/device_groups.h"

#include <algorithm>
#include <memory>

#include "runtime/base/log.h"
#include "runtime/os/numa.h"

namespace hpe::transfer {

device_groups near_devices(device::device_set& devices) {
  std::vector<int> nodes;  // by group
  device_groups result;
  for (unsigned d = 0; d < devices.size(); ++d) {
    const int node = devices.at(d).info().numa_node;
    const auto found = std::find(nodes.begin(), nodes.end(), node);
    result.group_of.push_back(static_cast<unsigned>(found - nodes.begin()));
    if (found == nodes.end()) nodes.push_back(node);
  }
  if (std::all_of(nodes.begin(), nodes.end(), [](int node) { return node == device::unknown_node; })) return {};

  const auto machine = std::make_shared<const os::numa>();
  result.settle_thread = [machine, nodes](unsigned group) {
    if (nodes[group] != device::unknown_node && !machine->settle_thread(nodes[group]))
      log(log_level::debug, "this process may not use the cores of NUMA node {}, to which a device is attached",
          nodes[group]);
  };
  result.settle_memory = [machine, nodes](unsigned group, void* memory, std::size_t bytes) {
    if (nodes[group] != device::unknown_node && !machine->settle_memory(memory, bytes, nodes[group]))
      log(log_level::debug, "this process cannot allocate memory on NUMA node {}, to which a device is attached",
          nodes[group]);
  };
  return result;
}

}  // namespace hpe::transfer
