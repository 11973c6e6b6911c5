// Built without hwloc: one node, and nothing is bound.
#include "runtime/os/numa.h"

namespace hpe::os {

struct numa::machine {};

numa::numa() = default;
numa::~numa() = default;

unsigned numa::nodes() const noexcept { return 1; }
std::optional<int> numa::node_near(const pci_address& /*device*/) const noexcept { return std::nullopt; }
bool numa::settle_thread(int /*node*/) const noexcept { return false; }
bool numa::settle_memory(void* /*address*/, std::size_t /*bytes*/, int /*node*/) const noexcept { return false; }

}  // namespace hpe::os
