#include "apps/hpe/nvlink.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <algorithm>
#include <type_traits>

namespace hpe::cli {

namespace {

/// The part of NVML's interface that is used here (nvml.h of CUDA 13), with the library's own names and numbers.
struct nvml {
  using device = void*;
  struct pci {
    char bus_id_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
  };
  static constexpr unsigned most_links = 36;  // of any GPU so far
  static constexpr int remote_gpu = 0, remote_switch = 2;

  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*by_index)(unsigned, device*) = nullptr;
  int (*pci_of)(device, pci*) = nullptr;
  int (*link_state)(device, unsigned, int*) = nullptr;
  int (*link_version)(device, unsigned, unsigned*) = nullptr;
  int (*remote_type)(device, unsigned, int*) = nullptr;
  int (*remote_pci)(device, unsigned, pci*) = nullptr;
  int (*common_ancestor)(device, device, int*) = nullptr;

  /// Whether the library has all functions, and works.
  bool open(const std::string& file) {
    void* const library = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) return false;
    const auto find = [library](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      return function != nullptr;
    };
    return find(init, "nvmlInit_v2") && find(shutdown, "nvmlShutdown") && find(count, "nvmlDeviceGetCount_v2") &&
           find(by_index, "nvmlDeviceGetHandleByIndex_v2") && find(pci_of, "nvmlDeviceGetPciInfo_v3") &&
           find(link_state, "nvmlDeviceGetNvLinkState") && find(link_version, "nvmlDeviceGetNvLinkVersion") &&
           find(remote_type, "nvmlDeviceGetNvLinkRemoteDeviceType") &&
           find(remote_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2") &&
           find(common_ancestor, "nvmlDeviceGetTopologyCommonAncestor") && init() == 0;
  }
};

/// As the names of folders below /proc/driver/nvidia/gpus.
std::string in_words(const nvml::pci& place) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", place.domain, place.bus, place.device);
}

std::string in_words(int ancestor) {
  if (ancestor <= 0) return "one board";
  if (ancestor <= 10) return "one PCI switch";
  if (ancestor <= 20) return "several PCI switches";
  if (ancestor <= 30) return "one PCI host bridge";
  if (ancestor <= 40) return "the host bridges of one NUMA node";
  return "the link between NUMA nodes";
}

std::string end_of_link(const nvml& library, nvml::device gpu, unsigned link) {
  int type = -1;
  if (library.remote_type(gpu, link, &type) == 0 && type == nvml::remote_switch) return "a switch";
  nvml::pci place{};
  return type == nvml::remote_gpu && library.remote_pci(gpu, link, &place) == 0 ? in_words(place) : "another device";
}

std::vector<nvlinks> links_of(const nvml& library, nvml::device gpu) {
  std::vector<nvlinks> all;
  for (unsigned link = 0; link < nvml::most_links; ++link) {
    int enabled = 0;
    if (library.link_state(gpu, link, &enabled) != 0 || enabled == 0) continue;
    unsigned version = 0;
    if (library.link_version(gpu, link, &version) != 0) version = 0;
    const std::string to = end_of_link(library, gpu, link);
    const auto known =
        std::find_if(all.begin(), all.end(), [&](const nvlinks& n) { return n.to == to && n.version == version; });
    if (known == all.end())
      all.push_back({to, 1, version});
    else
      ++known->count;
  }
  return all;
}

}  // namespace

std::vector<gpu_links> links_of_gpus(const std::string& file) {
  nvml library;
  std::vector<gpu_links> all;
  unsigned count = 0;
  if (!library.open(file)) return all;
  std::vector<nvml::device> gpus;
  if (library.count(&count) != 0) count = 0;
  for (unsigned i = 0; i < count; ++i) {
    nvml::device gpu = nullptr;
    nvml::pci place{};
    if (library.by_index(i, &gpu) != 0 || library.pci_of(gpu, &place) != 0) continue;
    gpus.push_back(gpu);
    all.push_back({in_words(place), links_of(library, gpu), {}});
  }
  for (std::size_t i = 0; i < gpus.size(); ++i)
    for (std::size_t j = 0; j < gpus.size(); ++j)
      if (int ancestor = 0; i != j && library.common_ancestor(gpus[i], gpus[j], &ancestor) == 0)
        all[i].paths.push_back({all[j].bus, in_words(ancestor)});
  library.shutdown();
  return all;
}

gpu_links links_from(const std::vector<gpu_links>& all, const std::string& bus) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const gpu_links& l) { return l.bus == bus; });
  return found != all.end() ? *found : gpu_links{bus, {}, {}};
}

std::string describe_links(const gpu_links& own) {
  std::string text;
  for (const nvlinks& n : own.links)
    text += fmt::format("  NVLink         {} link{} of version {} to {}\n", n.count, n.count == 1 ? "" : "s", n.version,
                        n.to);
  for (const pci_path& p : own.paths) text += fmt::format("  PCI            to {} through {}\n", p.to, p.through);
  return text;
}

}  // namespace hpe::cli
