#pragma once

#include <dlfcn.h>

#include <atomic>

namespace hpe::os {

/// The function of this name that would have been called if this library had none: the next one in the order in which
/// the dynamic linker searches. Constant-initialised, so it works before any constructor ran; the first call looks the
/// name up, later ones are safe in signal handlers. find() does the look-up ahead of time.
template <class Function>
class next_function {
 public:
  constexpr explicit next_function(const char* name) noexcept : name_(name) {}

  Function* find() noexcept {
    Function* function = function_.load(std::memory_order_acquire);
    if (function == nullptr) {
      function = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name_));
      // Behind libc in that order, as what a preloaded library brings along: nobody calls us, and the first one is
      // libc's.
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
