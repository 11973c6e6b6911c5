#pragma once

#include <pthread.h>

#include <cstddef>

namespace hpe::testing {

/// While an object of this class exists, no thread with the default stack size can be started in this process, because
/// this size is as large as the address space.
class no_more_threads {
 public:
  no_more_threads() noexcept {
    ::pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    ::pthread_getattr_default_np(&huge);
    ::pthread_attr_setstacksize(&huge, std::size_t{1} << 47);
    ::pthread_setattr_default_np(&huge);
    ::pthread_attr_destroy(&huge);
  }
  ~no_more_threads() {
    ::pthread_setattr_default_np(&before_);
    ::pthread_attr_destroy(&before_);
  }
  no_more_threads(const no_more_threads&) = delete;
  no_more_threads& operator=(const no_more_threads&) = delete;

 private:
  pthread_attr_t before_{};
};

}  // namespace hpe::testing
