// A program without CUDA code. It opens a library of kernels repeatedly, and opens the CUDA runtime under the names
// that programs use. It also opens the names that the command line gives in new namespaces.
//
//   plugin_host <plugin> [<other name of the runtime>...]
#include <dlfcn.h>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  for (int round = 0; round < 3; ++round) {
    void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::printf("%s\n", dlerror());
      return 1;
    }
    const auto add = reinterpret_cast<int (*)(int*, int, int)>(dlsym(library, "add_on_device"));
    std::vector<int> data(1001, round);
    const int result = add(data.data(), static_cast<int>(data.size()), 40);
    for (const int value : data)
      if (value != round + 40) {
        std::printf("round %d: %d, WRONG (%d)\n", round, value, result);
        return 1;
      }
    dlclose(library);
  }
  const auto count_devices = [](const char* name, void* runtime) {
    const auto count =
        runtime != nullptr ? reinterpret_cast<int (*)(int*)>(dlsym(runtime, "cudaGetDeviceCount")) : nullptr;
    int devices = -1;
    const int result = count != nullptr ? count(&devices) : -1;
    std::printf("%s: status %d, %d devices\n", name, result, devices);
  };
  for (const char* const name : {"libcudart.so", "libcudart.so.13"}) count_devices(name, dlopen(name, RTLD_LAZY));
  for (int i = 2; i < argc; ++i) {
    count_devices(argv[i], dlopen(argv[i], RTLD_LAZY));
    count_devices("in a new namespace", dlmopen(LM_ID_NEWLM, argv[i], RTLD_LAZY));
  }
  std::printf("plugin: right\n");
}
