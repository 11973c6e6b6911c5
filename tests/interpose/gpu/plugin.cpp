// A library that a program opens with RTLD_DEEPBIND. The library is linked with the driver, and also opens the driver
// by dlopen.
#include <cuda.h>
#include <dlfcn.h>

extern "C" __attribute__((visibility("default"))) void* entry_of(const char* name) {
  if (name == nullptr) return reinterpret_cast<void*>(&cuDeviceGetCount);
  return ::dlsym(::dlopen("libcuda.so.1", RTLD_NOW), name);
}
