#pragma once

#include <dlfcn.h>

#include <atomic>

namespace hpe::os {

/// The function of this name that would be called if this library did not define one: the next definition in the
/// dynamic linker's search order. The object is constant-initialised, so it is usable before any constructor has run.
/// The first call looks the name up; later calls are safe in signal handlers. find() looks the name up in advance.
template <class Function>
class next_function {
 public:
  constexpr explicit next_function(const char* name) noexcept : name_(name) {}

  Function* find() noexcept {
    Function* function = function_.load(std::memory_order_acquire);
    if (function == nullptr) {
      function = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name_));
      // If this library is loaded after libc (for example as a dependency of a preloaded library), no caller reaches
      // this definition, and the first definition is libc's.
      if (function == nullptr) function = reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name_));
      function_.store(function, std::memory_order_release);
    }
    return function;
  }

  template <class... Arguments>
  auto operator()(Arguments... arguments) {
    return find()(arguments...);
  }

 private:
  const char* name_;
  std::atomic<Function*> function_{nullptr};
};

}  // namespace hpe::os
