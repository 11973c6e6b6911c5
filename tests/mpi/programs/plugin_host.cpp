// A program without MPI, which loads plugin.cpp.
#include <dlfcn.h>

#include <cstdio>

int main(int argc, char** argv) {
  void* const plugin = argc == 2 ? ::dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (plugin == nullptr) {
    std::fprintf(stderr, "%s\n", ::dlerror());
    return 3;
  }
  return reinterpret_cast<int (*)()>(::dlsym(plugin, "run_plugin"))();
}
