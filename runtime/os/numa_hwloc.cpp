// machine_ is null if hwloc could not read the machine; all functions then behave as on a machine with one node.
#include <hwloc.h>

#include <memory>

#include "runtime/os/numa.h"

namespace hpe::os {

namespace {

struct freed {
  void operator()(hwloc_bitmap_t set) const noexcept { hwloc_bitmap_free(set); }
};
using bitmap = std::unique_ptr<hwloc_bitmap_s, freed>;

// hwloc components to leave out: those that would start other runtimes to ask about their devices, and the library for
// PCI devices, which keeps memory and is not needed, because Linux lists those devices.
constexpr const char* left_out[] = {"cuda", "gl", "levelzero", "nvml", "opencl", "pci", "rsmi"};

}  // namespace

struct numa::machine {
  hwloc_topology_t all = nullptr;

  ~machine() {
    if (all != nullptr) hwloc_topology_destroy(all);
  }
  [[nodiscard]] bool read() {
    if (hwloc_topology_init(&all) != 0) {
      all = nullptr;
      return false;
    }
    for (const char* part : left_out)
      hwloc_topology_set_components(all, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, part);
    hwloc_topology_set_io_types_filter(all, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    return hwloc_topology_load(all) == 0;
  }
  [[nodiscard]] hwloc_obj_t find(int node) const {
    return node < 0 ? nullptr : hwloc_get_numanode_obj_by_os_index(all, static_cast<unsigned>(node));
  }
};

numa::numa() : machine_(std::make_unique<machine>()) {
  if (!machine_->read()) machine_.reset();
}

numa::~numa() = default;

unsigned numa::nodes() const noexcept {
  const int count = machine_ ? hwloc_get_nbobjs_by_type(machine_->all, HWLOC_OBJ_NUMANODE) : 1;
  return count > 1 ? static_cast<unsigned>(count) : 1;
}

std::optional<int> numa::node_near(const pci_address& device) const noexcept {
  if (nodes() == 1) return std::nullopt;
  const hwloc_obj_t found = hwloc_get_pcidev_by_busid(machine_->all, device.domain, device.bus, device.device, 0);
  if (found == nullptr) return std::nullopt;
  const hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(machine_->all, found);
  // A device attached to several nodes, for example to the whole machine, is next to none of them.
  if (place == nullptr || place->nodeset == nullptr || hwloc_bitmap_weight(place->nodeset) != 1) return std::nullopt;
  return hwloc_bitmap_first(place->nodeset);
}

bool numa::settle_thread(int node) const noexcept {
  const hwloc_obj_t found = machine_ ? machine_->find(node) : nullptr;
  const bitmap cores(found == nullptr ? nullptr : hwloc_bitmap_dup(found->cpuset));
  const bitmap allowed(hwloc_bitmap_alloc());
  if (!cores || !allowed) return false;
  // The process may use fewer cores than the machine has: taskset, a container.
  if (hwloc_get_cpubind(machine_->all, allowed.get(), HWLOC_CPUBIND_PROCESS) == 0)
    hwloc_bitmap_and(cores.get(), cores.get(), allowed.get());
  return hwloc_bitmap_iszero(cores.get()) == 0 &&
         hwloc_set_cpubind(machine_->all, cores.get(), HWLOC_CPUBIND_THREAD) == 0;
}

bool numa::settle_memory(void* address, std::size_t bytes, int node) const noexcept {
  const hwloc_obj_t found = machine_ ? machine_->find(node) : nullptr;
  return found != nullptr && hwloc_set_area_membind(machine_->all, address, bytes, found->nodeset, HWLOC_MEMBIND_BIND,
                                                    HWLOC_MEMBIND_BYNODESET) == 0;
}

}  // namespace hpe::os
