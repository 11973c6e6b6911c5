// A call of dlsym in the shim would call the shim's own dlsym. So this file finds the C library's dlsym in the C
// library's symbol table, and uses it to find all other functions.
#include "interpose/gpu/shim/next_symbol.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstring>

#include "interpose/loaded_symbols.h"

namespace hpe::cuda_shim {

namespace {

using dlopen_function = void*(const char*, int);
using dlsym_function = void*(void*, const char*);
using dlvsym_function = void*(void*, const char*, const char*);

constinit std::atomic<dlopen_function*> opener{nullptr};
constinit std::atomic<dlsym_function*> finder{nullptr};
constinit std::atomic<dlvsym_function*> versioned_finder{nullptr};

bool ends_with(const char* text, const char* end) {
  const std::size_t length = std::strlen(text);
  const std::size_t tail = std::strlen(end);
  return length >= tail && std::strcmp(text + length - tail, end) == 0;
}

dlsym_function* find_finder() {
  dlsym_function* found = finder.load(std::memory_order_acquire);
  for (const link_map* l = _r_debug.r_map; found == nullptr && l != nullptr; l = l->l_next)
    if (ends_with(l->l_name, "/libc.so.6"))
      found = reinterpret_cast<dlsym_function*>(interpose::defined_in(*l, "dlsym"));
  if (found == nullptr) __builtin_trap();  // cannot happen: the shim is linked with the C library
  finder.store(found, std::memory_order_release);
  return found;
}

template <class Function>
Function* find(std::atomic<Function*>& kept, const char* name) {
  Function* found = kept.load(std::memory_order_acquire);
  if (found == nullptr) {
    found = reinterpret_cast<Function*>(find_finder()(RTLD_NEXT, name));
    kept.store(found, std::memory_order_release);
  }
  return found;
}

}  // namespace

void* next_open(const char* file, int mode) { return find(opener, "dlopen")(file, mode); }

void* next_look_up(void* library, const char* name) { return find_finder()(library, name); }

void* next_look_up(void* library, const char* name, const char* version) {
  return find(versioned_finder, "dlvsym")(library, name, version);
}

}  // namespace hpe::cuda_shim

void* hpe_next_dlopen() { return reinterpret_cast<void*>(hpe::cuda_shim::find(hpe::cuda_shim::opener, "dlopen")); }

void* hpe_next_dlsym() { return reinterpret_cast<void*>(hpe::cuda_shim::find_finder()); }

void* hpe_next_dlvsym() {
  return reinterpret_cast<void*>(hpe::cuda_shim::find(hpe::cuda_shim::versioned_finder, "dlvsym"));
}
