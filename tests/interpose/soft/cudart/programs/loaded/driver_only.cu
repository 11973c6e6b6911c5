// A program that only uses the driver, but is linked by nvcc: its file has a section for fat binaries, but the program
// registers no fat binary.
#include <dlfcn.h>

#include <cstdio>

int main() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return 2;
  int devices = -1;
  if (reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"))(0) != 0) return 1;
  if (reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"))(&devices) != 0) return 1;
  int major = 0, minor = 0;
  const auto capability = reinterpret_cast<int (*)(int*, int*, int)>(dlsym(driver, "cuDeviceComputeCapability"));
  if (capability(&major, &minor, 0) != 0) return 1;
  std::printf("driver: %d devices of %d.%d\n", devices, major, minor);
}
