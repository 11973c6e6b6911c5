#include "apps/hpe/nvml.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <algorithm>
#include <type_traits>

namespace hpe::cli {

/// The part of NVML's interface that is used here (nvml.h of CUDA 13), with the library's own constants.
struct nvml {
  using device = void*;
  struct pci {
    char bus_id_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
  };
  struct memory {
    unsigned long long total, free, used;
  };
  static constexpr unsigned most_links = 36;  // no GPU has more NVLinks
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
  int (*capability)(device, int*, int*) = nullptr;
  int (*memory_info)(device, memory*) = nullptr;

  nvml() = default;
  nvml(const nvml&) = delete;
  nvml& operator=(const nvml&) = delete;
  ~nvml() {
    if (works_) shutdown();
  }

  /// Opens the library. Returns whether the library has all functions of this struct and can be initialised.
  bool open(const std::string& file) {
    void* const library = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) return false;
    const auto find = [library](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      return function != nullptr;
    };
    works_ = find(init, "nvmlInit_v2") && find(shutdown, "nvmlShutdown") && find(count, "nvmlDeviceGetCount_v2") &&
             find(by_index, "nvmlDeviceGetHandleByIndex_v2") && find(pci_of, "nvmlDeviceGetPciInfo_v3") &&
             find(link_state, "nvmlDeviceGetNvLinkState") && find(link_version, "nvmlDeviceGetNvLinkVersion") &&
             find(remote_type, "nvmlDeviceGetNvLinkRemoteDeviceType") &&
             find(remote_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2") &&
             find(common_ancestor, "nvmlDeviceGetTopologyCommonAncestor") &&
             find(capability, "nvmlDeviceGetCudaComputeCapability") && find(memory_info, "nvmlDeviceGetMemoryInfo") &&
             init() == 0;
    return works_;
  }

  /// Calls visit(device, address) for each GPU, with the GPU's PCI address.
  template <class Visit>
  void each_gpu(Visit visit) const {
    unsigned gpus = 0;
    if (!works_ || count(&gpus) != 0) return;
    for (unsigned i = 0; i < gpus; ++i) {
      device gpu = nullptr;
      pci place{};
      if (by_index(i, &gpu) == 0 && pci_of(gpu, &place) == 0) visit(gpu, name_of(place));
    }
  }

  /// Returns the PCI address as in the names of the folders below /proc/driver/nvidia/gpus.
  static std::string name_of(const pci& place) {
    return fmt::format("{:04x}:{:02x}:{:02x}.0", place.domain, place.bus, place.device);
  }

 private:
  bool works_ = false;
};

namespace {

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
  return type == nvml::remote_gpu && library.remote_pci(gpu, link, &place) == 0 ? nvml::name_of(place)
                                                                                : "another device";
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
  static_cast<void>(library.open(file));
  std::vector<nvml::device> gpus;
  library.each_gpu([&](nvml::device gpu, const std::string& bus) {
    int major = 0, minor = 0;
    const bool known = library.capability(gpu, &major, &minor) == 0;
    gpus.push_back(gpu);
    all.push_back({bus, links_of(library, gpu), {}, known ? static_cast<unsigned>(10 * major + minor) : 0});
  });
  for (std::size_t i = 0; i < gpus.size(); ++i)
    for (std::size_t j = 0; j < gpus.size(); ++j)
      if (int ancestor = 0; i != j && library.common_ancestor(gpus[i], gpus[j], &ancestor) == 0)
        all[i].paths.push_back({all[j].bus, in_words(ancestor)});
  return all;
}

gpu_memory_reader::gpu_memory_reader(const std::string& file) : library_(std::make_unique<nvml>()) {
  static_cast<void>(library_->open(file));
}
gpu_memory_reader::~gpu_memory_reader() = default;

std::vector<gpu_memory> gpu_memory_reader::read() const {
  std::vector<gpu_memory> all;
  library_->each_gpu([&](nvml::device gpu, const std::string& bus) {
    nvml::memory found{};
    if (library_->memory_info(gpu, &found) == 0) all.push_back({bus, found.used, found.total});
  });
  return all;
}

gpu_links links_from(const std::vector<gpu_links>& all, const std::string& bus) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const gpu_links& l) { return l.bus == bus; });
  return found != all.end() ? *found : gpu_links{bus, {}, {}, 0};
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
