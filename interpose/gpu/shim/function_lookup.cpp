// Invariant: the shim returns a hook only after it has stored the driver's function in the hook's pointer `real`.
// driver() stores all these pointers before it first returns a handle. Threads that call driver() at the same time
// store the same values.
#include "interpose/gpu/shim/function_lookup.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>

#include "interpose/gpu/interposition.h"
#include "interpose/gpu/shim/find_driver.h"
#include "interpose/gpu/shim/next_symbol.h"

extern "C" {
extern std::atomic<void*> hpe_cuda_targets[] __attribute__((visibility("hidden")));
void* hpe_cuda_resolve(std::uint64_t index) __attribute__((visibility("hidden")));
}

namespace hpe::cuda_shim {

namespace {

// Constants of cuda.h. The header itself is not included, because its macros would rename the exported entries.
constexpr int success = 0;
constexpr int no_device = 100;
constexpr std::uint64_t legacy_flag = 1;
constexpr std::uint64_t per_thread_flag = 2;

constexpr const char* entry_names[] = {
#define HPE_DRIVER_ENTRY(name) #name,
#include "interpose/gpu/shim/driver_entries.def"
#undef HPE_DRIVER_ENTRY
};

constexpr auto in_order = [](std::string_view a, std::string_view b) { return a < b; };
static_assert(std::is_sorted(std::begin(entry_names), std::end(entry_names), in_order));

constinit std::atomic<void*> the_driver{nullptr};
constinit std::atomic<bool> checked{false};

int absent() { return no_device; }

// Ends the program, as the dynamic linker does if the program calls a function that a library does not define.
[[noreturn]] void missing(const char* name) {
  std::fprintf(stderr, "hpe: symbol lookup error: the CUDA driver of this machine has no %s\n", name);
  ::_exit(127);
}

void say(void (*log)(const char*), const char* format, const char* name, const char* more = "") {
  char line[512];
  std::snprintf(line, sizeof line, format, name, more);
  log(line);
}

// ---- entries that return other entries ---------------------------------------------------------------------------

using init_function = int(unsigned);
using old_resolver = int(const char*, void**, int, std::uint64_t);
using resolver = int(const char*, void**, int, std::uint64_t, int*);
using version_function = int(int*);

constinit void* real_init = nullptr;
constinit void* real_old_resolver = nullptr;
constinit void* real_resolver = nullptr;

// Whether the list of driver entries contains a function with this name. Uses a binary search, because CUDA's runtime
// requests hundreds of entries when it starts.
bool is_known(std::string_view base) {
  const auto* name = std::lower_bound(std::begin(entry_names), std::end(entry_names), base, in_order);
  for (; name != std::end(entry_names) && std::string_view(*name).starts_with(base); ++name) {
    const std::string_view rest = *name + base.size();
    if (rest.empty() || rest.starts_with("_v") || rest.starts_with("_pt")) return true;
  }
  return false;
}

void give_out(const char* name, void** out) {
  // `out` is null if the program only asks whether an entry exists; `name` may be empty.
  if (out == nullptr || *out == nullptr) return;
  if (name != nullptr && *name != '\0' && !is_known(name))
    say(hpe_cuda_interpose()->inform,
        "the program uses the CUDA driver's function %s, which hpe does not know; hpe does not intercept calls of this "
        "function%s",
        name);
  *out = hook_for(*out);
}

int get_entry_old(const char* name, void** out, int version, std::uint64_t flags) {
  const int result = reinterpret_cast<old_resolver*>(real_old_resolver)(name, out, version, flags);
  if (result == success) give_out(name, out);
  return result;
}

int get_entry(const char* name, void** out, int version, std::uint64_t flags, int* status) {
  const int result = reinterpret_cast<resolver*>(real_resolver)(name, out, version, flags, status);
  if (result == success) give_out(name, out);
  return result;
}

// Removes the suffixes of a symbol: cuMemcpyHtoD_v2_ptds becomes cuMemcpyHtoD.
void base_of(const char* symbol, char (&base)[128]) {
  std::snprintf(base, sizeof base, "%s", symbol);
  if (char* tail = std::strstr(base, "_pt")) *tail = '\0';
  const std::size_t length = std::strlen(base);
  if (length > 3 && std::strncmp(base + length - 3, "_v", 2) == 0) base[length - 3] = '\0';
}

// Logs a warning for each hooked entry that a program built for this driver's version would receive without the hook.
void check_hooks() {
  if (checked.exchange(true) || real_resolver == nullptr) return;
  const hpe_cuda_interposition& hpe = *hpe_cuda_interpose();
  auto* const ask_version = reinterpret_cast<version_function*>(next_look_up(driver(), "cuDriverGetVersion"));
  int version = 0;
  if (ask_version == nullptr || ask_version(&version) != success) return;
  for (std::size_t i = 0; i < hpe.count; ++i) {
    char base[128];
    base_of(hpe.hooks[i].symbol, base);
    for (const std::uint64_t flags : {legacy_flag, per_thread_flag}) {
      void* entry = nullptr;
      int status = 0;
      const int result = reinterpret_cast<resolver*>(real_resolver)(base, &entry, version, flags, &status);
      if (result == success && entry != nullptr && hook_for(entry) == entry)
        say(hpe.warn, "with this CUDA driver, calls of %s bypass hpe%s", base,
            flags == per_thread_flag ? " in programs where each thread has its own default stream" : "");
    }
  }
}

int initialise(unsigned flags) {
  const int result = reinterpret_cast<init_function*>(real_init)(flags);
  if (result != success) return result;
  check_hooks();
  return hpe_cuda_interpose()->started();
}

const hpe_cuda_hook own_hooks[] = {
    {"cuInit", reinterpret_cast<void*>(&initialise), &real_init},
    {"cuGetProcAddress", reinterpret_cast<void*>(&get_entry_old), &real_old_resolver},
    {"cuGetProcAddress_v2", reinterpret_cast<void*>(&get_entry), &real_resolver},
};

template <class Visit>
void for_each_hook(Visit visit) {
  for (const hpe_cuda_hook& h : own_hooks) visit(h);
  const hpe_cuda_interposition& hpe = *hpe_cuda_interpose();
  for (std::size_t i = 0; i < hpe.count; ++i) visit(hpe.hooks[i]);
}

}  // namespace

const char* wanted_driver() { return hpe_cuda_interpose()->driver; }

void* driver() {
  void* found = the_driver.load(std::memory_order_acquire);
  if (found != nullptr) return found;
  path_buffer file;
  if (!find_driver(wanted_driver(), file)) return nullptr;
  found = next_open(file.text, RTLD_NOW | RTLD_LOCAL);
  if (found == nullptr) return nullptr;
  for_each_hook(
      [&](const hpe_cuda_hook& h) { __atomic_store_n(h.real, next_look_up(found, h.symbol), __ATOMIC_RELEASE); });
  void* expected = nullptr;
  if (!the_driver.compare_exchange_strong(expected, found)) ::dlclose(found);  // another thread was faster
  return the_driver.load();
}

void* hook_for(void* function) {
  void* result = function;
  if (function == nullptr) return result;
  for_each_hook([&](const hpe_cuda_hook& h) {
    if (__atomic_load_n(h.real, __ATOMIC_ACQUIRE) == function) result = h.function;
  });
  return result;
}

}  // namespace hpe::cuda_shim

void* hpe_cuda_resolve(std::uint64_t index) {
  using namespace hpe::cuda_shim;
  void* const library = driver();
  if (library == nullptr) return reinterpret_cast<void*>(&absent);
  void* const real = next_look_up(library, entry_names[index]);
  if (real == nullptr) missing(entry_names[index]);
  void* const target = hook_for(real);
  hpe_cuda_targets[index].store(target, std::memory_order_release);
  return target;
}

const char* hpe_cuda_driver_file() {
  using namespace hpe::cuda_shim;
  static constinit pthread_once_t once = PTHREAD_ONCE_INIT;
  static constinit path_buffer file{};
  static constinit bool found = false;
  // Uses pthread_once, because a static variable with a dynamic initial value would need a guard of the C++ library,
  // which the shim does not link.
  ::pthread_once(&once, [] { found = find_driver(wanted_driver(), file); });
  return found ? file.text : nullptr;
}

void* hpe_cuda_driver_entry(const char* name) {
  void* const library = hpe::cuda_shim::driver();
  return library != nullptr ? hpe::cuda_shim::next_look_up(library, name) : nullptr;
}
