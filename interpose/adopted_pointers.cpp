#include "interpose/adopted_pointers.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace hpe::interpose {

namespace {

constinit std::atomic<pid_t> owner{0};

// The kernel reads the new mask before it looks at what to do with it, and here there is nothing to do.
bool readable(std::uintptr_t address) noexcept {
  constexpr long mask_bytes = 8;
  constexpr int nothing = ~0;
  const int before = errno;
  const bool bad =
      ::syscall(SYS_rt_sigprocmask, nothing, address & ~std::uintptr_t{mask_bytes - 1}, nullptr, mask_bytes) == -1 &&
      errno == EFAULT;
  errno = before;
  return !bad;
}

}  // namespace

constinit std::atomic<adopted_pointers*> adopted_pointers::the_instance{nullptr};

void adopted_pointers::start() noexcept {
  owner.store(::getpid());
  the_instance.store(this, std::memory_order_release);
}

adopted_pointers* adopted_pointers::find(std::uintptr_t address) noexcept {
  constexpr std::uintptr_t first_page = 4096;
  adopted_pointers* const it = the_instance.load(std::memory_order_acquire);
  if (address < first_page || (!it->may_know(address) && readable(address)) || ::getpid() != owner.load())
    return nullptr;
  return it->bytes_from(address) != 0 ? it : nullptr;
}

}  // namespace hpe::interpose
