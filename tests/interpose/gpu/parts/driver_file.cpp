// driver_file SHIM FILE: many threads query the driver's file at the same time, and each thread must get the complete
// path FILE. The program opens the shim by its path, because the linker's folders contain the stand-in, which has the
// same name.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

int main(int /*argc*/, char** argv) {
  void* const shim = ::dlopen(argv[1], RTLD_NOW);
  if (shim == nullptr) return std::fprintf(stderr, "%s\n", ::dlerror()), 2;
  const auto driver_file = reinterpret_cast<const char* (*)()>(::dlsym(shim, "hpe_cuda_driver_file"));
  const std::string wanted = argv[2];
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&] {
        for (int n = 0; n < 500; ++n) {
          const char* const found = driver_file();
          for (int again = 0; again < 50; ++again)
            if (found == nullptr || wanted != found) wrong.fetch_add(1);
        }
      });
  }
  if (wrong != 0) std::fprintf(stderr, "%d of 200000 looks saw another path than %s\n", wrong.load(), wanted.c_str());
  return wrong == 0 ? 0 : 1;
}
