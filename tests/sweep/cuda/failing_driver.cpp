#include "tests/sweep/cuda/failing_driver.h"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iterator>

namespace {

constexpr const char* names[] = {
#define HPE_DRIVER_ENTRY(name) #name,
#include "tests/sweep/cuda/failing_entries.def"
#undef HPE_DRIVER_ENTRY
};

constinit std::atomic<sweep::ask_function*> asked{nullptr};
constinit thread_local int chosen_result = 0;

int refuse() { return chosen_result; }

void* stand_in() {
  static void* const library = [] {
    // SWEEP_STAND_IN has another name than the driver, because the shim would return itself for the driver's name.
    void* const opened = ::dlopen(SWEEP_STAND_IN, RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) {
      std::fprintf(stderr, "%s\n", ::dlerror());
      std::abort();
    }
    return opened;
  }();
  return library;
}

}  // namespace

extern "C" {
void* sweep_choose(std::uint64_t index) __attribute__((visibility("hidden")));
__attribute__((visibility("default"))) void sweep_ask(sweep::ask_function* ask);
__attribute__((visibility("default"))) void* sweep_stand_in(const char* name);
}

void* sweep_choose(std::uint64_t index) {
  static const auto entries = [] {
    std::array<void*, std::size(names)> result{};
    for (std::size_t n = 0; n < result.size(); ++n) result[n] = ::dlsym(stand_in(), names[n]);
    return result;
  }();
  if (sweep::ask_function* const ask = asked.load(); ask != nullptr)
    if ((chosen_result = ask(names[index])) != 0) return reinterpret_cast<void*>(&refuse);
  return entries[index];
}

void sweep_ask(sweep::ask_function* ask) { asked = ask; }

void* sweep_stand_in(const char* name) { return ::dlsym(stand_in(), name); }
