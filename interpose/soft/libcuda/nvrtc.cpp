// Interposes NVRTC's functions for machine code, which soft devices cannot run. If a program compiles for a GPU (sm_90)
// and requests the machine code, these functions return PTX for the same architecture, which the program loads like
// machine code. Because this library is preloaded, the program calls these functions, which call NVIDIA's NVRTC. A
// program that opens NVRTC's file and looks up its functions by dlsym calls NVIDIA's functions instead.

#include <dlfcn.h>
#include <link.h>
#include <nvrtc.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/thread_safety.h"

namespace {

/// Returns the handle of an NVRTC library that the process has loaded; null if there is none. Also finds a library that
/// was loaded for a Python module, which RTLD_NEXT does not find.
void* loaded_nvrtc() {
  std::string path;
  ::dl_iterate_phdr(
      [](dl_phdr_info* about, std::size_t, void* to) {
        const std::string_view name = about->dlpi_name;
        if (!name.substr(name.rfind('/') + 1).starts_with("libnvrtc.so")) return 0;
        *static_cast<std::string*>(to) = name;
        return 1;
      },
      &path);
  return path.empty() ? nullptr : ::dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
}

/// Calls NVIDIA's function with this name and type. Returns an internal error if the process has not loaded NVRTC.
template <class Function, class... Arguments>
nvrtcResult pass_on(const char* name, Arguments... arguments) {
  void* found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr)
    if (void* const library = loaded_nvrtc()) found = ::dlsym(library, name);
  return found != nullptr ? reinterpret_cast<Function*>(found)(arguments...) : NVRTC_ERROR_INTERNAL_ERROR;
}

/// The NVRTC programs that were compiled to PTX in place of machine code. Thread-safe.
class ptx_programs {
 public:
  void set(nvrtcProgram program, bool is_one) {
    const hpe::lock_guard lock(mutex_);
    is_one ? void(programs_.insert(program)) : void(programs_.erase(program));
  }
  bool has(nvrtcProgram program) {
    const hpe::lock_guard lock(mutex_);
    return programs_.contains(program);
  }

 private:
  hpe::mutex mutex_;
  std::set<nvrtcProgram> programs_ HPE_GUARDED_BY(mutex_);
};

ptx_programs& of_process() {
  static auto* const only = new ptx_programs;
  return *only;
}

/// If an option requests machine code, changes it to request PTX: sm_90 becomes compute_90. The architecture may be in
/// the same argument as the option's name (-arch=sm_90) or in the next argument; `before` is the previous argument.
/// Returns whether the option was changed.
bool ask_for_ptx(std::string& option, std::string_view before) {
  constexpr std::string_view names[] = {"--gpu-architecture", "-arch"}, machine = "sm_";
  for (const std::string_view name : names) {
    const bool is_value = before == name && option.starts_with(machine);
    const bool has_value = option.starts_with(name) && std::string_view(option).substr(name.size()).starts_with("=sm_");
    if (!is_value && !has_value) continue;
    option.replace(is_value ? 0 : name.size() + 1, machine.size(), "compute_");
    return true;
  }
  return false;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count,
                                                                       const char* const* options) {
  std::vector<std::string> own(options, options + (options != nullptr ? count : 0));
  bool is_ptx = false;
  std::string_view before;
  for (std::size_t i = 0; i < own.size(); ++i) {
    is_ptx = ask_for_ptx(own[i], before) || is_ptx;
    before = options[i];
  }
  of_process().set(program, is_ptx);
  std::vector<const char*> texts;
  for (const std::string& each : own) texts.push_back(each.c_str());
  return pass_on<decltype(nvrtcCompileProgram)>("nvrtcCompileProgram", program, count, texts.data());
}

__attribute__((visibility("default"))) nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, std::size_t* size) {
  if (of_process().has(program)) return pass_on<decltype(nvrtcGetPTXSize)>("nvrtcGetPTXSize", program, size);
  return pass_on<decltype(nvrtcGetCUBINSize)>("nvrtcGetCUBINSize", program, size);
}

__attribute__((visibility("default"))) nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* code) {
  if (of_process().has(program)) return pass_on<decltype(nvrtcGetPTX)>("nvrtcGetPTX", program, code);
  return pass_on<decltype(nvrtcGetCUBIN)>("nvrtcGetCUBIN", program, code);
}

__attribute__((visibility("default"))) nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  if (program != nullptr) of_process().set(*program, false);
  return pass_on<decltype(nvrtcDestroyProgram)>("nvrtcDestroyProgram", program);
}
}
