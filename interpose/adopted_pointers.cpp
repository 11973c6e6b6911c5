#include "interpose/adopted_pointers.h"

#include <pthread.h>
#include <sys/syscall.h>

#include <cerrno>

namespace hpe::interpose {

namespace {

// Whether CPU code can read the address. This function makes a system call with an invalid operation: the operating
// system reads the mask at `address` first, and returns EFAULT if it cannot. syscall() cannot be used, because the
// interposed syscall() (io/escapes.cpp) calls this function for its arguments.
bool readable(std::uintptr_t address) noexcept {
  constexpr long mask_bytes = 8;
  constexpr long nothing = ~0;
  long result = SYS_rt_sigprocmask;
  register long bytes __asm__("r10") = mask_bytes;
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(nothing), "S"(address & ~std::uintptr_t{mask_bytes - 1}), "d"(0L), "r"(bytes)
                   : "rcx", "r11", "memory");
  return result != -EFAULT;
}

}  // namespace

constinit std::atomic<adopted_pointers*> adopted_pointers::the_instance{nullptr};

void adopted_pointers::start() noexcept {
  ::pthread_atfork(nullptr, nullptr, [] { the_instance.store(nullptr); });
  the_instance.store(this, std::memory_order_release);
}

adopted_pointers* adopted_pointers::find(std::uintptr_t address) noexcept {
  constexpr std::uintptr_t first_page = 4096;
  adopted_pointers* const it = the_instance.load(std::memory_order_acquire);
  if (it == nullptr || address < first_page || (!it->may_know(address) && readable(address))) return nullptr;
  return it->bytes_from(address) != 0 ? it : nullptr;
}

}  // namespace hpe::interpose
