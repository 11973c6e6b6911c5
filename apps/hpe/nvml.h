#pragma once

/// Facts about GPUs from NVIDIA's management library (NVML). The library is opened when it is needed, so hpe builds and
/// runs without it.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hpe::cli {

struct nvml;

/// The NVLinks from a GPU to one other component.
struct nvlinks {
  std::string to;  ///< the PCI address of a GPU, "a switch", or "another device"
  unsigned count;  ///< number of enabled links
  unsigned version;
};

/// The path on the PCI bus from a GPU to another GPU.
struct pci_path {
  std::string to;       ///< the other GPU's PCI address
  std::string through;  ///< the closest component of the machine to which both GPUs are connected
};

struct gpu_links {
  std::string bus;  ///< the GPU's PCI address, as gpu::bus
  std::vector<nvlinks> links;
  std::vector<pci_path> paths;
  unsigned architecture = 0;  ///< as in 90 for sm_90; 0: not known
};

/// Returns the links of all GPUs; empty if the library is missing or finds no GPU. Facts that the library does not know
/// are left out. library: the file to open.
[[nodiscard]] std::vector<gpu_links> links_of_gpus(const std::string& library = "libnvidia-ml.so.1");

/// The memory of a GPU: the bytes that all processes use, and the total.
struct gpu_memory {
  std::string bus;
  std::uint64_t used = 0;
  std::uint64_t total = 0;
};

/// Reads the memory in use repeatedly and keeps the library open.
class gpu_memory_reader {
 public:
  explicit gpu_memory_reader(const std::string& library = "libnvidia-ml.so.1");
  ~gpu_memory_reader();
  gpu_memory_reader(const gpu_memory_reader&) = delete;
  gpu_memory_reader& operator=(const gpu_memory_reader&) = delete;

  /// Returns all GPUs whose memory in use NVML reports; empty if the library is missing or finds no GPU.
  [[nodiscard]] std::vector<gpu_memory> read() const;

 private:
  const std::unique_ptr<nvml> library_;
};

/// Returns the entry of a GPU, or an entry without links if `all` lacks this GPU.
[[nodiscard]] gpu_links links_from(const std::vector<gpu_links>& all, const std::string& bus);

/// Returns the lines of `hpe info` about the links of a GPU.
[[nodiscard]] std::string describe_links(const gpu_links& links);

}  // namespace hpe::cli
