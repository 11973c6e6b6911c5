#pragma once

#include <sys/resource.h>

#include <csignal>

namespace hpe::rtm::testing {

/// While this object exists, no file that the process writes can become larger than `bytes` bytes.
class small_disk {
 public:
  explicit small_disk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const struct rlimit small { bytes, before_.rlim_max };
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~small_disk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    static_cast<void>(std::signal(SIGXFSZ, handler_));
  }
  small_disk(const small_disk&) = delete;
  small_disk& operator=(const small_disk&) = delete;

 private:
  struct rlimit before_ {};
  void (*handler_)(int);
};

}  // namespace hpe::rtm::testing
