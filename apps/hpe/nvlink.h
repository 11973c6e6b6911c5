#pragma once

/// The links between GPUs, from NVIDIA's management library (NVML). The library is opened when it is needed, so hpe
/// builds and runs without it.

#include <string>
#include <vector>

namespace hpe::cli {

/// The NVLinks of a GPU that lead to one place.
struct nvlinks {
  std::string to;  ///< the PCI address of a GPU, "a switch", or "another device"
  unsigned count;  ///< links that are enabled
  unsigned version;
};

/// The way of the PCI bus from a GPU to another one.
struct pci_path {
  std::string to;       ///< the other GPU's PCI address
  std::string through;  ///< the part of the machine in which both meet
};

struct gpu_links {
  std::string bus;  ///< the GPU's PCI address, as gpu::bus
  std::vector<nvlinks> links;
  std::vector<pci_path> paths;
};

/// The links of all GPUs; empty if the library is missing or finds no GPU. Facts that the library does not know are
/// left out. library: the file to open.
[[nodiscard]] std::vector<gpu_links> links_of_gpus(const std::string& library = "libnvidia-ml.so.1");

/// The entry of a GPU; without links if there is none.
[[nodiscard]] gpu_links links_from(const std::vector<gpu_links>& all, const std::string& bus);

/// The lines of `hpe info` about the links of a GPU.
[[nodiscard]] std::string describe_links(const gpu_links& links);

}  // namespace hpe::cli
