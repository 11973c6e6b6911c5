// A library that sets signal actions and masks before any constructor of hpe has run.

#include <sys/mman.h>

#include <csignal>
#include <cstdint>

__attribute__((visibility("default"))) int early_handler_calls = 0;

namespace {

void open_the_page(int, siginfo_t* info, void*) {
  ++early_handler_calls;
  ::mprotect(reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(info->si_addr) & ~std::uintptr_t{4095}), 4096,
             PROT_READ | PROT_WRITE);
}

[[gnu::constructor]] void set_signals() {
  struct sigaction action {};
  action.sa_sigaction = open_the_page;
  action.sa_flags = SA_SIGINFO;
  sigfillset(&action.sa_mask);
  ::sigaction(SIGSEGV, &action, nullptr);
  sigset_t segv;
  sigemptyset(&segv);
  sigaddset(&segv, SIGSEGV);
  ::pthread_sigmask(SIG_BLOCK, &segv, nullptr);
}

}  // namespace
