// machine_ is null without libhpe-numa.so, or if hwloc could not read the machine; all functions then behave as on a
// machine with one node.
#include "runtime/os/numa.h"

#include <dlfcn.h>

#include "runtime/base/own_process.h"

namespace hpe::os {

numa::numa() {
  void* const library = open_own_library("libhpe-numa.so");
  if (library == nullptr) return;
  if (const auto read = reinterpret_cast<decltype(&hpe_read_machine)>(::dlsym(library, "hpe_read_machine")))
    machine_.reset(read());
}

numa::~numa() = default;

unsigned numa::nodes() const noexcept { return machine_ ? machine_->nodes() : 1; }

std::optional<int> numa::node_near(const pci_address& device) const noexcept {
  return machine_ ? machine_->node_near(device) : std::nullopt;
}

bool numa::settle_thread(int node) const noexcept { return machine_ && machine_->settle_thread(node); }

bool numa::settle_memory(void* address, std::size_t bytes, int node) const noexcept {
  return machine_ && machine_->settle_memory(address, bytes, node);
}

}  // namespace hpe::os
