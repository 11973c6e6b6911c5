#include "runtime/device/cuda/driver.h"

#include <dlfcn.h>

#include <cstdlib>

#include "runtime/base/error.h"

namespace hpe::device::cuda {

namespace {

constexpr const char* library = "libcuda.so.1";
constexpr int oldest = 12000;  // CUDA 12.0

// cuda.h defines macros that replace a function's name by the name of one version: cuMemAlloc becomes cuMemAlloc_v2. So
// the second macro expands the name before the first macro makes it a string.
#define HPE_CUDA_STRING(name) #name
#define HPE_CUDA_STRING_OF(name) HPE_CUDA_STRING(name)

// If hpe was preloaded into the program, the library with the driver's name is hpe's own (interpose/gpu). Its function
// hpe_cuda_driver_entry returns the functions of the real driver.
class library_entries {
 public:
  explicit library_entries(void* handle)
      : handle_(handle), behind_(reinterpret_cast<look_up*>(::dlsym(handle, "hpe_cuda_driver_entry"))) {}

  template <class Function>
  void find(const char* name, Function& entry) const {
    entry = reinterpret_cast<Function>(behind_ != nullptr ? behind_(name) : ::dlsym(handle_, name));
  }

 private:
  using look_up = void*(const char*);

  void* handle_;
  look_up* behind_;
};

template <class Function>
void require(const library_entries& library, const char* name, Function& entry) {
  library.find(name, entry);
  HPE_REQUIRE(entry != nullptr, HPE_ERROR_INITIALIZATION,
              "the CUDA driver of this machine has no {}: it is too old; hpe needs one for CUDA {}.{} or later", name,
              oldest / 1000, oldest % 1000 / 10);
}

}  // namespace

driver::driver() {
  // The library is never closed, because the driver starts threads that run its code.
  void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  HPE_REQUIRE(handle != nullptr, HPE_ERROR_INITIALIZATION,
              "this machine has no CUDA driver ({}); HPE_DEVICES=soft:2 needs none",
              ::dlerror());  // NOLINT(concurrency-mt-unsafe): safe in glibc
  HPE_REQUIRE(
      ::dlsym(handle, "hpe_cuda_on_soft_devices") == nullptr, HPE_ERROR_INITIALIZATION,
      "this process runs CUDA on soft devices (hpe run), so it has no CUDA driver; HPE_DEVICES=soft:2 needs none");
  const library_entries entries(handle);
#define HPE_CUDA_REQUIRED(name) require(entries, HPE_CUDA_STRING_OF(name), name);
#define HPE_CUDA_OPTIONAL(name) entries.find(HPE_CUDA_STRING_OF(name), name);
#include "runtime/device/cuda/symbols.def"
#undef HPE_CUDA_REQUIRED
#undef HPE_CUDA_OPTIONAL

  int version = 0;
  HPE_REQUIRE(cuDriverGetVersion(&version) == CUDA_SUCCESS && version >= oldest, HPE_ERROR_INITIALIZATION,
              "the CUDA driver of this machine is for CUDA {}.{}: it is too old; hpe needs one for CUDA {}.{} or later",
              version / 1000, version % 1000 / 10, oldest / 1000, oldest % 1000 / 10);
  const CUresult started = cuInit(0);
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");  // NOLINT(concurrency-mt-unsafe): read once at start
  HPE_REQUIRE(started == CUDA_SUCCESS, HPE_ERROR_INITIALIZATION, "the CUDA driver does not start: {}{}{}",
              words_for(started), visible != nullptr ? "; CUDA_VISIBLE_DEVICES is " : "",
              visible != nullptr ? visible : "");
}

std::string driver::words_for(CUresult result) const {
  const char* name = "an unknown error";
  const char* sentence = "";
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &sentence);
  return fmt::format("{}: {}", name, sentence);
}

error driver::failure(CUresult result, const char* what) const {
  hpeStatus status = HPE_ERROR_SYSTEM;
  if (result == CUDA_ERROR_OUT_OF_MEMORY) status = HPE_ERROR_OUT_OF_MEMORY;
  if (kills_context(result)) status = HPE_ERROR_DEVICE_LOST;
  return {status, fmt::format("{}: {}", what, words_for(result))};
}

CUresult driver::load_texts(CUmodule* made, std::span<const std::string> texts) const {
  if (texts.size() == 1) return cuModuleLoadData(made, texts.front().c_str());
  if (cuLinkCreate == nullptr || cuLinkAddData == nullptr || cuLinkComplete == nullptr || cuLinkDestroy == nullptr)
    return CUDA_ERROR_NOT_SUPPORTED;
  CUlinkState link = nullptr;
  CUresult result = cuLinkCreate(0, nullptr, nullptr, &link);
  if (result != CUDA_SUCCESS) return result;
  for (const std::string& text : texts) {
    if (result != CUDA_SUCCESS) break;
    auto* const bytes = const_cast<char*>(text.c_str());  // the driver does not write the text
    result = cuLinkAddData(link, CU_JIT_INPUT_PTX, bytes, text.size() + 1, nullptr, 0, nullptr, nullptr);
  }
  void* code = nullptr;  // lives as long as the link
  std::size_t size = 0;
  if (result == CUDA_SUCCESS) result = cuLinkComplete(link, &code, &size);
  if (result == CUDA_SUCCESS) result = cuModuleLoadData(made, code);
  cuLinkDestroy(link);
  return result;
}

bool kills_context(CUresult result) noexcept {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_UNKNOWN: return true;
    default: return false;
  }
}

uncaptured::uncaptured(const driver& cu) : cu_(cu) { cu_.cuThreadExchangeStreamCaptureMode(&mode_); }

uncaptured::~uncaptured() { cu_.cuThreadExchangeStreamCaptureMode(&mode_); }

entered::entered(const driver& cu, CUcontext context) : cu_(cu), free_(cu) {
  CUcontext current = nullptr;
  cu_.cuCtxGetCurrent(&current);
  // This also makes a context current that has failed: later calls of the driver then return the context's error.
  if (current != context) pushed_ = cu_.cuCtxPushCurrent(context) == CUDA_SUCCESS;
}

entered::entered(const driver& cu, CUcontext context, replaced_t)
    : cu_(cu), free_(cu), pushed_(cu.cuCtxPushCurrent(context) == CUDA_SUCCESS) {}

entered::~entered() {
  CUcontext ours = nullptr;
  if (pushed_) cu_.cuCtxPopCurrent(&ours);
}

}  // namespace hpe::device::cuda
