#include "apps/hpe/doctor/machine_check.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "apps/hpe/installation.h"
#include "apps/hpe/machine.h"
#include "apps/hpe/nvml.h"
#include "hpe/hpe.hpp"
#include "hpe/placement.h"

namespace hpe::cli {

namespace {

namespace fs = std::filesystem;
using state = finding::state;

finding check_driver(const std::vector<gpu>& gpus) {
  const std::string cuda = version_of_cuda();
  const std::string subject = "CUDA driver";
  if (cuda.empty() && !gpus.empty())
    return {state::bad, subject,
            fmt::format("libcuda.so.1 is not found, although the Linux kernel drives {} GPU{}", gpus.size(),
                        gpus.size() == 1 ? "" : "s"),
            "start the container with its GPUs (docker run --gpus all), or install the driver's libraries"};
  if (cuda.empty()) return {state::note, subject, "none: CUDA programs run on soft devices, without GPUs"};
  if (lacks_the_shim())
    return {state::bad, subject,
            fmt::format("supports CUDA {}, but hpe's part for GPUs is missing: `hpe run` starts CUDA programs, but hpe "
                        "has no effect on them",
                        cuda),
            "install hpe with its part for GPUs, or build it where CMake finds the CUDA toolkit (CUDA_PATH)"};
  return {state::good, subject, fmt::format("for CUDA {}", cuda)};
}

/// Whether a pattern is unchanged after copies to `device`, from there to `other`, and back.
bool copies_well(int device, int other) {
  constexpr std::size_t count = 1 << 16;
  array<unsigned> from(count, on_device(device)), to(count, on_device(other));
  for (std::size_t i = 0; i < count; ++i) from[i] = static_cast<unsigned>(i * 2654435761U);
  check(hpePrefetch(from.data(), count * sizeof(unsigned), device));
  check(hpeMemcpy(to.data(), from.data(), count * sizeof(unsigned)));
  for (std::size_t i = 0; i < count; ++i)
    if (to[i] != static_cast<unsigned>(i * 2654435761U)) return false;
  return true;
}

finding check_device(int number, int count) {
  const hpeDeviceInfo device = device_info(number);
  const std::string subject = fmt::format("device {}", number);
  const std::string name = fmt::format("{}, {} MiB", device.name, device.memory_total >> 20);
  std::vector<std::string> out_of_reach;
  for (int other = 0; other < count; ++other) {
    if (!copies_well(number, other))
      return {state::bad, subject, fmt::format("{}: data that was copied to device {} differs", name, other),
              "look for errors of the GPU or its links (nvidia-smi, dmesg); HPE_CUDA_PEERS=off avoids direct copies"};
    if (other != number && (device.peers >> other & 1) == 0) out_of_reach.push_back(std::to_string(other));
  }
  if (out_of_reach.empty()) return {state::good, subject, fmt::format("{}; copies to all devices are right", name)};
  std::string list;
  for (const std::string& other : out_of_reach) list += (list.empty() ? "" : ", ") + other;
  return {state::note, subject,
          fmt::format("{}; copies are right, but those to device{} {} go through the host", name,
                      out_of_reach.size() == 1 ? "" : "s", list)};
}

void check_devices(machine_check& into) {
  try {
    const int count = device_count();
    for (int d = 0; d < count; ++d) {
      into.facts.device_memory.push_back(device_info(d).memory_total);
      into.findings.push_back(check_device(d, count));
    }
  } catch (const error& e) {
    into.findings.push_back({state::bad, "runtime", e.what(), "docs/troubleshooting.md lists this message"});
  }
}

/// Whether this process runs in a container. Docker, Podman and Apptainer create these paths; systemd-nspawn and Podman
/// set the environment variable "container".
bool is_in_container() {
  constexpr std::array marks{"/.dockerenv", "/run/.containerenv", "/.singularity.d"};
  std::error_code ignored;
  return std::any_of(marks.begin(), marks.end(), [&](const char* file) { return fs::exists(file, ignored); }) ||
         !variable("container").empty() || !variable("KUBERNETES_SERVICE_HOST").empty();
}

finding check_container() {
  if (!is_in_container()) return {state::good, "container", "no container is detected"};
  return {state::note, "container",
          "processes that share memory (ranks of MPI, hpe/node.h) must be in one network name space: start them in one "
          "container, or with --network=host"};
}

/// Describes an MPI library that has been loaded.
finding describe_mpi(void* library, const std::string& file, state without_wrappers) {
  const std::string subject = "MPI library";
  std::array<char, 1 << 15> text{};  // more than the MPI_MAX_LIBRARY_VERSION_STRING of any library
  int length = 0;
  auto* const version = reinterpret_cast<int (*)(char*, int*)>(::dlsym(library, "MPI_Get_library_version"));
  const bool known = version != nullptr && version(text.data(), &length) == 0;
  std::string name = known ? text.data() : "a library without MPI_Get_library_version";
  name = name.substr(0, std::min(name.find('\n'), name.find(", package")));
  const std::string found = fmt::format("{} ({})", name, file);
  const fs::path wrappers = installation::own().mpi;
  void* const choice = ::dlopen(wrappers.c_str(), RTLD_LAZY | RTLD_LOCAL);
  auto* const kind = choice != nullptr ? reinterpret_cast<const char* (*)()>(::dlsym(choice, "hpe_mpi_kind")) : nullptr;
  if (kind == nullptr)
    return {without_wrappers, subject,
            fmt::format("{}: this hpe was built without MPI, and has no {}", found, wrappers.string()),
            "build hpe where CMake finds MPI, or keep device memory out of messages"};
  if (kind() == nullptr)
    return {state::note, subject,
            fmt::format("{}: hpe has no wrappers for this library and passes its calls through unchanged, so MPI "
                        "itself touches device memory",
                        found),
            "use Open MPI 4 or 5, or MPICH or a library with its ABI"};
  return {state::good, subject, fmt::format("{}, with hpe's wrappers for {}", found, kind())};
}

}  // namespace

finding check_mpi(const std::string& file) {
  // The library names with which MPI programs are linked: of Open MPI, of libraries with MPICH's ABI, of Debian's
  // MPICH, and of MPI's standard ABI.
  std::vector<std::string> names{"libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi_abi.so.1",
                                 "libmpi_abi.so.0"};
  if (!file.empty()) names = {file};
  for (const std::string& name : names) {
    void* const library = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) continue;
    Dl_info about{};
    const void* const function = ::dlsym(library, "MPI_Init");
    const bool known = function != nullptr && ::dladdr(function, &about) != 0 && about.dli_fname != nullptr;
    return describe_mpi(library, known ? about.dli_fname : name, file.empty() ? state::note : state::bad);
  }
  if (!file.empty())
    return {state::bad, "MPI library", fmt::format("{} cannot be loaded: {}", file, ::dlerror())};  // NOLINT
  return {state::note, "MPI library", "the dynamic linker finds none"};
}

machine_check check_machine() {
  machine_check result;
  result.facts.has_driver = has_driver();
  const std::vector<gpu> gpus = gpus_of_machine();
  result.findings.push_back(check_driver(gpus));
  const std::vector<gpu_links> links = links_of_gpus();
  for (const gpu_links& l : links)
    if (l.architecture != 0) result.facts.gpu_architectures.push_back(l.architecture);
  result.findings.push_back(check_mpi());
  check_devices(result);
  for (const limit& l : limits_of_machine())
    if (l.advice.empty())
      result.findings.push_back({state::good, l.name, l.value});
    else
      result.findings.push_back({state::note, l.name, l.value, l.advice});
  result.findings.push_back(check_container());
  return result;
}

}  // namespace hpe::cli
