// The program opens the driver itself, by name, and looks up entries by cuGetProcAddress. Prints the errors of wrong
// lookups, too.
#include <cuda.h>
#include <dlfcn.h>

#include <cstring>
#include <vector>

#include "check.h"

template <class Function>
static Function* find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

int main() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::printf("%s\n", dlerror()), 1;
  auto* const init = find<CUresult(unsigned)>(library, "cuInit");
  auto* const retain = find<CUresult(CUcontext*, CUdevice)>(library, "cuDevicePrimaryCtxRetain");
  auto* const enter = find<CUresult(CUcontext)>(library, "cuCtxSetCurrent");
  auto* const get = find<CUresult(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*)>(
      library, "cuGetProcAddress_v2");
  std::printf("init %d, none such %d\n", init(0), dlsym(library, "cuNoneSuch") != nullptr);
  CUcontext context = nullptr;
  std::printf("context %d\n", retain(&context, 0) | enter(context));
  void *allocate = nullptr, *up = nullptr, *down = nullptr, *none = nullptr;
  CUdriverProcAddressQueryResult status;
  std::printf("entries %d %d %d\n", get("cuMemAlloc", &allocate, 13000, 0, &status),
              get("cuMemcpyHtoD", &up, 13000, 0, nullptr), get("cuMemcpyDtoH", &down, 13000, 2, &status));
  std::printf("none such %d, status %d\n", get("cuNoneSuch", &none, 13000, 0, &status), int(status));
  constexpr std::size_t bytes = 80 << 20;
  std::vector<std::uint64_t> in(bytes / 8), out(bytes / 8);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = i * i;
  CUdeviceptr device = 0;
  std::printf("allocated %d\n", reinterpret_cast<CUresult (*)(CUdeviceptr*, std::size_t)>(allocate)(&device, bytes));
  auto* const upload = reinterpret_cast<CUresult (*)(CUdeviceptr, const void*, std::size_t)>(up);
  auto* const download = reinterpret_cast<CUresult (*)(void*, CUdeviceptr, std::size_t)>(down);
  for (int round = 0; round < 3; ++round) {
    in[round] = ~in[round];
    const CUresult uploaded = upload(device, in.data(), bytes);
    const CUresult downloaded = download(out.data(), device, bytes);
    std::printf("copies %d %d %s\n", uploaded, downloaded, in == out ? "the same" : "WRONG");
  }
  std::printf("too far %d\n", upload(device + 4096, in.data(), bytes));
  std::printf("nowhere %d\n", upload(16, in.data(), bytes));
}
