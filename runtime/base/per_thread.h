#pragma once

#include <unistd.h>

#include <utility>

namespace hpe {

/// An object of type T for each thread, created at the thread's first call of get(). Unlike a thread_local object, it
/// may be used at any time: by functions that the program gave to atexit, which run after the destructors of
/// thread_local objects, and by those destructors. The object is destroyed when the thread ends, but never in the main
/// thread. If the thread uses the object after its destruction, get() creates another object, which is never destroyed.
template <class T>
class per_thread {
 public:
  /// Throws what the constructor of T throws, and std::bad_alloc.
  [[nodiscard]] static T& get() {
    static constinit thread_local T* mine = nullptr;
    struct end_of_thread {
      end_of_thread() = default;
      end_of_thread(const end_of_thread&) = delete;
      end_of_thread& operator=(const end_of_thread&) = delete;
      ~end_of_thread() {
        if (::gettid() != ::getpid()) delete std::exchange(mine, nullptr);
      }
    };
    if (mine == nullptr) {
      mine = new T();
      static const thread_local end_of_thread end;
    }
    return *mine;
  }
};

}  // namespace hpe
