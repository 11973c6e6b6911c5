// Two answers are needed. The MPI library's own answer (MPIX_Query_cuda_support, MPIX_GPU_query_support) alone is not
// enough: Open MPI answers how it was built, and knows nothing of UCX. The transport's answer alone is not enough
// either: Open MPI without CUDA lets UCX transfer device memory, but its reductions read the memory by CPU code.

#include "interpose/mpi/libraries/own_transport.h"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

namespace {

template <class Function>
Function* function_of_library(const char* name) {
  return library_has(name) ? reinterpret_cast<Function*>(find_in_library(name)) : nullptr;
}

bool library_accepts_cuda_memory() {
  constexpr int cuda = 0;  // MPIX_GPU_SUPPORT_CUDA
  int accepts = 0;
  if (auto* const of_mpich = function_of_library<int(int, int*)>("MPIX_GPU_query_support"))
    return of_mpich(cuda, &accepts) == MPI_SUCCESS && accepts != 0;
  auto* const of_open_mpi = function_of_library<int()>("MPIX_Query_cuda_support");
  return of_open_mpi != nullptr && of_open_mpi() != 0;
}

// The library UCX, which Open MPI and MPICH load. Its file is found by name among the loaded files, because components
// of an MPI library are not in the search order of the process. hpe declares the few parts of UCX's ABI (libucp.so.0)
// that it needs, because it is built without UCX.
class ucx {
 public:
  // The structs of UCX grow at their ends; a mask in front says which members the caller uses.
  struct parameters {
    std::uint64_t mask;
    std::uint64_t features;
    std::array<std::byte, 496> rest;
  };
  struct attributes {
    std::uint64_t mask;
    std::size_t request_size;
    int thread_mode;
    std::uint64_t memory_types;
    std::array<std::byte, 480> rest;
  };

  ucx() : file_(loaded()) {}

  [[nodiscard]] bool is_loaded() const { return function<int(void*, attributes*)>("ucp_context_query") != nullptr; }

  /// Whether UCX, with the settings of this process, accepts memory of CUDA. Open MPI reads the settings with the
  /// prefix "MPI".
  [[nodiscard]] bool accepts_cuda_memory() const {
    const auto read = function<int(const char*, const char*, void**)>("ucp_config_read");
    const auto release = function<void(void*)>("ucp_config_release");
    const auto init = function<int(unsigned, unsigned, const parameters*, void*, void**)>("ucp_init_version");
    const auto query = function<int(void*, attributes*)>("ucp_context_query");
    const auto cleanup = function<void(void*)>("ucp_cleanup");
    if (!read || !release || !init || !query || !cleanup) return false;
    constexpr std::uint64_t features_are_set = 1;   // UCP_PARAM_FIELD_FEATURES
    constexpr std::uint64_t tagged_messages = 1;    // UCP_FEATURE_TAG
    constexpr std::uint64_t memory_types = 1 << 2;  // UCP_ATTR_FIELD_MEMORY_TYPES
    constexpr std::uint64_t cuda = 1 << 1;          // UCS_MEMORY_TYPE_CUDA
    void* settings = nullptr;
    if (read("MPI", nullptr, &settings) != 0) return false;
    const parameters wanted{features_are_set, tagged_messages, {}};
    void* context = nullptr;
    const bool made = init(1, 0, &wanted, settings, &context) == 0;
    release(settings);
    if (!made) return false;
    attributes found{memory_types, 0, 0, 0, {}};
    const bool known = query(context, &found) == 0;
    cleanup(context);
    return known && (found.memory_types & cuda) != 0;
  }

 private:
  static void* loaded() {
    std::string path;
    const auto look = [](dl_phdr_info* info, std::size_t, void* result) {
      const std::string_view name = info->dlpi_name != nullptr ? info->dlpi_name : "";
      const bool is_it = name.find("/libucp") != std::string_view::npos;
      if (is_it) *static_cast<std::string*>(result) = name;
      return static_cast<int>(is_it);
    };
    ::dl_iterate_phdr(look, &path);
    return path.empty() ? nullptr : ::dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  }

  template <class Function>
  [[nodiscard]] Function* function(const char* name) const {
    if (auto* const found = function_of_library<Function>(name)) return found;
    return file_ != nullptr ? reinterpret_cast<Function*>(::dlsym(file_, name)) : nullptr;
  }

  void* file_;
};

// Returns the name of the component of Open MPI that transfers messages: the last name in the description of the
// selected component, a struct of numbers and names of fixed lengths (mca_base_component_2_1_0_t in Open MPI 4 and 5).
// Returns an empty text if the library is not Open MPI.
std::string component_of_open_mpi() {
  struct named_version {
    std::array<int, 3> number;
  };
  struct description {
    named_version architecture;
    std::array<char, 16> project;
    named_version of_project;
    std::array<char, 32> type;
    named_version of_type;
    std::array<char, 64> name;
  };
  constexpr const char* variable = "mca_pml_base_selected_component";
  if (!library_has(variable)) return {};
  const auto& selected = *static_cast<const description*>(find_in_library(variable));
  if (std::string_view(selected.type.data(), 3) != "pml") return {};
  return {selected.name.data(), ::strnlen(selected.name.data(), selected.name.size())};
}

// Returns the device of MPICH, or of a library derived from MPICH, from its description of itself: "ch4:ucx" of a line
// "MPICH Device: ch4:ucx". Returns "unnamed" if the text names no device, as in Cray's library.
std::string device_of_mpich() {
  std::string text(std::size_t{1} << 15, '\0');  // more than the MPI_MAX_LIBRARY_VERSION_STRING of any library
  int length = 0;
  if (HPE_REAL(Get_library_version)(text.data(), &length) != MPI_SUCCESS) return "unnamed";
  text.resize(std::strlen(text.c_str()));
  const auto line = text.find("Device:");
  if (line == std::string::npos) return "unnamed";
  const auto begin = text.find_first_not_of(" \t", line + std::string_view("Device:").size());
  if (begin == std::string::npos) return "unnamed";
  return text.substr(begin, text.find_first_of(" \t\n", begin) - begin);
}

}  // namespace

std::string own_transport() {
  if (!library_accepts_cuda_memory()) return {};
  const ucx transport;
  if (std::string component = component_of_open_mpi(); !component.empty()) {
    if (component == "ucx" && transport.accepts_cuda_memory()) return component;
    return component == "cm" ? component : std::string{};  // cm: libfabric and others; ob1 copies through the host
  }
  std::string device = device_of_mpich();
  if (device.starts_with("ch3:sock") || device.starts_with("ch3:nemesis")) return {};
  // An MPICH with a copy of UCX of its own answers for UCX.
  if (device == "ch4:ucx" && transport.is_loaded() && !transport.accepts_cuda_memory()) return {};
  return device;
}

}  // namespace hpe::interpose::mpi
