// A process ends by exit() in any thread, or by the return of main(), for which libc calls its own exit(). Both run the
// destructors of the thread's thread_local objects, and then the exit handlers. quick_exit() and _exit() run no exit
// handler of the driver's compiler, so hpe need not wait there.

#include <sys/types.h>
#include <unistd.h>

#include <cstdlib>

#include "interpose/gpu/spread/spreading.h"
#include "runtime/os/next_function.h"

namespace hpe::cuda_hooks {

namespace {

constinit os::next_function<void(int)> next_exit("exit");

struct end_of_main {
  ~end_of_main() { spreading::before_exit_handlers(); }
};

// hpe run lets the main thread load this library before main(). So this object is destroyed after all other
// thread_local objects of the main thread.
[[gnu::constructor]] void watch_main_thread() {
  next_exit.find();
  if (::gettid() != ::getpid()) return;
  static thread_local const end_of_main here;
}

}  // namespace

}  // namespace hpe::cuda_hooks

extern "C" __attribute__((visibility("default"), noreturn)) void exit(int status) noexcept {
  hpe::cuda_hooks::spreading::before_exit_handlers();
  hpe::cuda_hooks::next_exit(status);
  __builtin_unreachable();
}
