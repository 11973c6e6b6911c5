#include "apps/fft/cufft.h"

#include <dlfcn.h>

#include <string>

#include "hpe/error.hpp"

namespace hpe::fft::cufft {

namespace {

void* open_library() {
  std::string words;
  for (const char* name : {"libcufft.so.12", "libcufft.so.11", "libcufft.so", "/usr/local/cuda/lib64/libcufft.so"}) {
    if (void* const opened = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) return opened;
    if (words.empty()) words = ::dlerror();  // NOLINT(concurrency-mt-unsafe): the words of this thread's call
  }
  throw error(HPE_ERROR_NOT_SUPPORTED, "Fourier transforms on GPUs need cuFFT: " + words);
}

template <class Function>
void find(void* opened, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(opened, name));
  if (function == nullptr)
    throw error(HPE_ERROR_NOT_SUPPORTED,
                std::string("Fourier transforms on GPUs need a cuFFT library with the function ") + name);
}

library look_up() {
  void* const opened = open_library();
  library it{};
  find(opened, "cufftCreate", it.create);
  find(opened, "cufftDestroy", it.destroy);
  find(opened, "cufftSetAutoAllocation", it.set_auto_allocation);
  find(opened, "cufftMakePlanMany64", it.make_plan_many);
  find(opened, "cufftSetWorkArea", it.set_work_area);
  find(opened, "cufftSetStream", it.set_stream);
  find(opened, "cufftExecC2C", it.execute_c2c);
  find(opened, "cufftExecZ2Z", it.execute_z2z);
  return it;
}

}  // namespace

const library& load() {
  static const library it = look_up();
  return it;
}

}  // namespace hpe::fft::cufft
