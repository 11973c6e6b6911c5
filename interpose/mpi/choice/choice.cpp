// The code of libhpe-mpi.so, whose functions programs call in place of MPI's functions. At the first call,
// libhpe-mpi.so finds the MPI library of the process and loads the wrapper library for the ABI of this MPI library. If
// hpe has no wrappers for the ABI, each call goes to the MPI library itself.
//
// If a library after libhpe-mpi.so in the search order defines MPI_X but is not the MPI library, it is a tool that uses
// MPI's profiling interface. The tool then gets the program's call of MPI_X unchanged, and itself calls PMPI_X, which
// is hpe's wrapper. Open MPI's Fortran functions call PMPI_X, too.

#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>

#include "runtime/base/log.h"
#include "runtime/base/options.h"

extern "C" {
extern std::atomic<void*> hpe_mpi_targets[] __attribute__((visibility("hidden")));
void* hpe_mpi_resolve(std::uint64_t index) __attribute__((visibility("hidden")));
const char* hpe_mpi_kind() __attribute__((visibility("default")));
int MPIX_Query_cuda_support() __attribute__((visibility("default")));
int MPIX_GPU_query_support(int gpu_type, int* is_supported) __attribute__((visibility("default")));
}

namespace hpe::interpose::mpi {

namespace {

constexpr const char* names[] = {
#define HPE_MPI_FUNCTION(name) "MPI_" #name, "PMPI_" #name,
#define HPE_MPI_NEWER_FUNCTION(name) HPE_MPI_FUNCTION(name)
#include <mpi_functions.def>
#undef HPE_MPI_NEWER_FUNCTION
#undef HPE_MPI_FUNCTION
};

// Returns the function `name` of a library after libhpe-mpi.so in the search order; nullptr if no library defines it.
// RTLD_NEXT does not search libraries that were loaded by dlopen. So this function also searches loaded files with the
// names of Open MPI, of libraries with the ABI of MPICH, of MPICH in Debian, and of MPI's standard ABI.
void* behind(const char* name) {
  if (void* const found = ::dlsym(RTLD_NEXT, name)) return found;
  for (const char* const file :
       {"libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi_abi.so.1", "libmpi_abi.so.0"})
    if (void* const library = ::dlopen(file, RTLD_LAZY | RTLD_NOLOAD))
      if (void* const found = ::dlsym(library, name)) return found;
  return nullptr;
}

// Returns the name of the file that contains a function.
std::string file_of(const void* function) {
  Dl_info about{};
  const bool found = ::dladdr(function, &about) != 0 && about.dli_fname != nullptr;
  return found ? about.dli_fname : "the MPI library of this program";
}

template <class Function>
Function* function_behind(const char* name) {
  return reinterpret_cast<Function*>(behind(name));
}

// Whether the MPI library has MPI's standard ABI. New releases of MPICH consist of two libraries, and only the library
// with the standard ABI returns a version of the ABI.
bool has_standard_abi() {
  int major = -1;
  int minor = -1;
  const auto abi_version = function_behind<int(int*, int*)>("PMPI_Abi_get_version");
  return abi_version != nullptr && abi_version(&major, &minor) == 0 && major == 1;
}

// Whether the MPI library has the ABI of MPICH. The version string of such a library names MPICH or a library that is
// derived from MPICH.
bool has_abi_of_mpich() {
  const auto version = function_behind<int(char*, int*)>("PMPI_Get_library_version");
  std::string text(std::size_t{1} << 15, '\0');  // more than the MPI_MAX_LIBRARY_VERSION_STRING of any library
  int length = 0;
  if (version == nullptr || version(text.data(), &length) != 0) return false;
  const std::string_view name(text.c_str());
  for (const char* const known : {"MPICH", "MVAPICH", "Intel(R) MPI"})
    if (name.find(known) != std::string_view::npos) return true;
  return false;
}

// Returns the name of the wrapper library for the MPI library of this process, "mpi-abi", "open-mpi" or "mpich";
// nullptr if hpe does not support the MPI library.
const char* kind_of_library() {
  if (has_standard_abi()) return "mpi-abi";
  if (behind("ompi_mpi_comm_world") != nullptr) return "open-mpi";
  return behind("PMPI_Init") != nullptr && has_abi_of_mpich() ? "mpich" : nullptr;
}

std::filesystem::path file_of_wrappers(const char* kind) {
  const auto folder = std::filesystem::path(file_of(reinterpret_cast<void*>(&kind_of_library))).parent_path();
  return folder / "hpe" / "mpi" / ("libhpe-" + std::string(kind) + ".so");
}

// Returns the valid options of this process and ignores invalid ones. The wrapper of MPI_Init reports invalid options
// (job::begin), so that a rank with an invalid option also takes part in the vote about the protocol.
options chosen() { return options::valid_in_environment(); }

// Opens the wrapper library for the MPI library of this process. Returns nullptr if HPE_MPI=off, or if hpe has no
// wrappers for the MPI library.
void* open_wrappers() {
  if (chosen().mpi == mpi_use::off) return nullptr;
  const void* const library = behind("PMPI_Init");
  const char* const kind = kind_of_library();
  constexpr const char* consequence = "hpe passes its calls through unchanged, and MPI itself touches device memory";
  if (kind == nullptr) {
    log(log_level::warn,
        "{} is none of the MPI libraries that hpe knows (Open MPI 4 and 5, MPICH and the libraries with its ABI, "
        "libraries with MPI's standard ABI): {}",
        file_of(library), consequence);
    return nullptr;
  }
  const std::string file = file_of_wrappers(kind);
  void* const opened = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (opened == nullptr) {
    log(log_level::warn, "there are no wrappers for {} ({}): {}", file_of(library), ::dlerror(),
        consequence);  // NOLINT(concurrency-mt-unsafe): dlerror returns the message of this thread
    return nullptr;
  }
  reinterpret_cast<void (*)(void* (*)(const char*))>(::dlsym(opened, "hpe_mpi_use"))(behind);
  return opened;
}

void* wrappers() {
  static void* const opened = open_wrappers();
  return opened;
}

// Whether CPU code and wrappers may access memory from cudaMalloc, because hpe intercepts the CUDA calls of this
// process. With GPUs, the library that `hpe run` preloads in front of the CUDA driver intercepts them
// (HPE_CUDA_HOST_ACCESS=off turns the accesses off); with soft devices, hpe's own CUDA runtime.
bool serves_cuda_memory() {
  if (::dlsym(RTLD_DEFAULT, "hpe_cuda_driver_file") != nullptr) return chosen().cuda_host_access;
  const void* const allocate = ::dlsym(RTLD_DEFAULT, "cudaMalloc");
  if (allocate == nullptr) return false;
  const auto own = std::filesystem::path(file_of(reinterpret_cast<void*>(&kind_of_library))).parent_path();
  std::error_code ignored;
  return std::filesystem::equivalent(std::filesystem::path(file_of(allocate)).parent_path(), own / "hpe" / "cudart",
                                     ignored);
}

// Whether hpe's wrappers accept memory from cudaMalloc in this process.
bool serves_cuda_messages() { return serves_cuda_memory() && wrappers() != nullptr; }

void* target_of(const char* name) {
  const bool is_profiling_name = *name == 'P';
  const char* const plain = is_profiling_name ? name + 1 : name;
  void* const real = behind(name);
  if (!is_profiling_name && real != nullptr) {
    const void* const library = behind(std::string("P").append(name).c_str());
    if (library != nullptr && file_of(real) != file_of(library)) return real;
  }
  if (void* const opened = wrappers())
    if (void* const wrapper = ::dlsym(opened, plain)) return wrapper;
  return real;
}

}  // namespace

}  // namespace hpe::interpose::mpi

// Returns the name of the wrapper library for the loaded MPI library; nullptr if hpe has none or the file is not
// installed. `hpe doctor` loads an MPI library and this library, and then calls this function.
const char* hpe_mpi_kind() {
  const char* const kind = hpe::interpose::mpi::kind_of_library();
  return kind != nullptr && std::filesystem::exists(hpe::interpose::mpi::file_of_wrappers(kind)) ? kind : nullptr;
}

// Programs call this function of Open MPI, or the following function of MPICH, to find out whether MPI accepts device
// memory. If hpe's wrappers do not accept it, the MPI library's own function answers; if the MPI library lacks this
// function, the answer is no.
int MPIX_Query_cuda_support() {
  using namespace hpe::interpose::mpi;
  if (serves_cuda_messages()) return 1;
  auto* const real = function_behind<int()>("MPIX_Query_cuda_support");
  return real != nullptr ? real() : 0;
}

int MPIX_GPU_query_support(int gpu_type, int* is_supported) {
  using namespace hpe::interpose::mpi;
  constexpr int cuda = 0;  // MPIX_GPU_SUPPORT_CUDA
  if (gpu_type == cuda && is_supported != nullptr && serves_cuda_messages()) {
    *is_supported = 1;
    return 0;
  }
  auto* const real = function_behind<int(int, int*)>("MPIX_GPU_query_support");
  if (real != nullptr) return real(gpu_type, is_supported);
  if (is_supported != nullptr) *is_supported = 0;
  return 0;
}

void* hpe_mpi_resolve(std::uint64_t index) {
  using namespace hpe::interpose::mpi;
  void* const target = target_of(names[index]);
  if (target == nullptr) {
    std::fprintf(stderr,
                 behind("PMPI_Init") != nullptr
                     ? "hpe: the MPI library of this program has no %s\n"
                     : "hpe: %s was not found; libhpe-mpi.so must come before the MPI library\n",
                 names[index]);
    std::abort();
  }
  hpe_mpi_targets[index].store(target, std::memory_order_release);
  return target;
}
