// Tests that the settings of early.cpp, made before any constructor of hpe has run, remain in force: the program reads
// back its mask, faults on our pages are handled in spite of this mask, and the program's handler is called.

#include "tests/signals/child.h"
#include "tests/signals/our_pages.h"

extern int early_handler_calls;

int main() {
  our_pages::start();
  sigset_t old;
  check(::sigprocmask(SIG_BLOCK, nullptr, &old) == 0 && sigismember(&old, SIGSEGV) == 1);
  *our_pages::add() = 1;
  check(our_pages::opened() == 1);

  sigemptyset(&old);
  sigaddset(&old, SIGSEGV);
  check(::sigprocmask(SIG_UNBLOCK, &old, nullptr) == 0);
  *foreign_page() = 1;
  check(early_handler_calls == 1);
  return 0;
}
