// libhpe-numa.so: reads the machine's topology with hwloc. Only this library links hwloc, and hpe loads the library
// with RTLD_LOCAL: a program under `hpe run` may use another version of hwloc, as MPI libraries do, and must not find
// the functions of this version.
#include <hwloc.h>

#include <memory>

#include "runtime/os/numa.h"

namespace hpe::os {

namespace {

struct freed {
  void operator()(hwloc_bitmap_t set) const noexcept { hwloc_bitmap_free(set); }
};
using bitmap = std::unique_ptr<hwloc_bitmap_s, freed>;

// hwloc components that are not used: those that would start other runtimes to find their devices, and the component
// for libpciaccess, which leaks memory and is not needed, because Linux itself lists the PCI devices.
constexpr const char* left_out[] = {"cuda", "gl", "levelzero", "nvml", "opencl", "pci", "rsmi"};

class hwloc_machine final : public numa_machine {
 public:
  ~hwloc_machine() override {
    if (all_ != nullptr) hwloc_topology_destroy(all_);
  }
  [[nodiscard]] bool read() {
    if (hwloc_topology_init(&all_) != 0) {
      all_ = nullptr;
      return false;
    }
    for (const char* part : left_out)
      hwloc_topology_set_components(all_, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, part);
    hwloc_topology_set_io_types_filter(all_, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    return hwloc_topology_load(all_) == 0;
  }

  [[nodiscard]] unsigned nodes() const noexcept override;
  [[nodiscard]] std::optional<int> node_near(const pci_address& device) const noexcept override;
  [[nodiscard]] bool settle_thread(int node) const noexcept override;
  [[nodiscard]] bool settle_memory(void* address, std::size_t bytes, int node) const noexcept override;

 private:
  [[nodiscard]] hwloc_obj_t find(int node) const {
    return node < 0 ? nullptr : hwloc_get_numanode_obj_by_os_index(all_, static_cast<unsigned>(node));
  }

  hwloc_topology_t all_ = nullptr;
};

unsigned hwloc_machine::nodes() const noexcept {
  const int count = hwloc_get_nbobjs_by_type(all_, HWLOC_OBJ_NUMANODE);
  return count > 1 ? static_cast<unsigned>(count) : 1;
}

std::optional<int> hwloc_machine::node_near(const pci_address& device) const noexcept {
  if (nodes() == 1) return std::nullopt;
  const hwloc_obj_t found = hwloc_get_pcidev_by_busid(all_, device.domain, device.bus, device.device, 0);
  if (found == nullptr) return std::nullopt;
  const hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(all_, found);
  // A device that is attached to several nodes, for example to the whole machine, has no nearest node.
  if (place == nullptr || place->nodeset == nullptr || hwloc_bitmap_weight(place->nodeset) != 1) return std::nullopt;
  return hwloc_bitmap_first(place->nodeset);
}

bool hwloc_machine::settle_thread(int node) const noexcept {
  const hwloc_obj_t found = find(node);
  const bitmap cores(found == nullptr ? nullptr : hwloc_bitmap_dup(found->cpuset));
  const bitmap allowed(hwloc_bitmap_alloc());
  if (!cores || !allowed) return false;
  // The process may be allowed to use only some of the machine's cores, for example by taskset or in a container.
  if (hwloc_get_cpubind(all_, allowed.get(), HWLOC_CPUBIND_PROCESS) == 0)
    hwloc_bitmap_and(cores.get(), cores.get(), allowed.get());
  return hwloc_bitmap_iszero(cores.get()) == 0 && hwloc_set_cpubind(all_, cores.get(), HWLOC_CPUBIND_THREAD) == 0;
}

bool hwloc_machine::settle_memory(void* address, std::size_t bytes, int node) const noexcept {
  const hwloc_obj_t found = find(node);
  return found != nullptr &&
         hwloc_set_area_membind(all_, address, bytes, found->nodeset, HWLOC_MEMBIND_BIND, HWLOC_MEMBIND_BYNODESET) == 0;
}

}  // namespace

}  // namespace hpe::os

extern "C" __attribute__((visibility("default"))) hpe::os::numa_machine* hpe_read_machine() {
  auto machine = std::make_unique<hpe::os::hwloc_machine>();
  return machine->read() ? machine.release() : nullptr;
}
