// Tests faults outside of our pages, and signals that a process or thread sends. The program must see them as without
// hpe, so every test runs both with the installed handler and without it.

#include <pthread.h>

#include <csetjmp>
#include <cstdlib>
#include <limits>

#include "tests/signals/child.h"
#include "tests/signals/our_pages.h"

namespace {

class Forwarding : public testing::TestWithParam<bool> {
 protected:
  static void start() {
    if (GetParam()) our_pages::start();
  }
};

INSTANTIATE_TEST_SUITE_P(, Forwarding, testing::Values(false, true),
                         [](const auto& info) { return info.param ? "Installed" : "Kernel"; });

// The arguments of the last call of a handler.
volatile sig_atomic_t calls;
siginfo_t seen;
sigset_t seen_mask;

void record(siginfo_t* info) {
  calls = calls + 1;
  if (info != nullptr) seen = *info;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &seen_mask);
}

void record_and_open(int signal, siginfo_t* info, void*) {
  check(signal == SIGSEGV && info->si_signo == SIGSEGV);
  record(info);
  open_foreign_page(info->si_addr);
}

volatile char* volatile page_to_open;

void open_without_information(int signal) {
  check(signal == SIGSEGV);
  record(nullptr);
  open_foreign_page(const_cast<char*>(page_to_open));
}

void set_action(const struct sigaction& action) { check(::sigaction(SIGSEGV, &action, nullptr) == 0); }

TEST_P(Forwarding, DefaultIsDeathBySegv) {
  expect_segv([] {
    start();
    *foreign_page() = 1;
  });
}

TEST_P(Forwarding, IgnoringAFaultIsDeathToo) {
  expect_segv([] {
    start();
    ::signal(SIGSEGV, SIG_IGN);
    *foreign_page() = 1;
  });
}

TEST_P(Forwarding, HandlerThatWasThereBeforeGetsTheFault) {
  expect_success([] {
    set_action(action_with(record_and_open, 0));
    start();
    volatile char* page = foreign_page();
    page[123] = 5;
    check(page[123] == 5 && calls == 1);
    check(seen.si_addr == page + 123 && seen.si_code == SEGV_ACCERR);
  });
}

TEST_P(Forwarding, ASecondStartChangesNothing) {
  expect_success([] {
    set_action(action_with(record_and_open, 0));
    start();
    start();
    volatile char* page = foreign_page();
    page[7] = 5;
    check(page[7] == 5 && calls == 1);
  });
}

TEST_P(Forwarding, HandlerThatComesLaterGetsTheFault) {
  expect_success([] {
    start();
    struct sigaction old {};
    const struct sigaction action = action_with(record_and_open, 0);
    check(::sigaction(SIGSEGV, &action, &old) == 0 && old.sa_handler == SIG_DFL);
    volatile char* page = foreign_page();
    check(page[9] == 0 && calls == 1 && seen.si_addr == page + 9);
  });
}

TEST_P(Forwarding, EachCallReturnsTheActionThatTheLastOneSet) {
  expect_success([] {
    struct sigaction first = action_with(record_and_open, SA_RESTART);
    sigaddset(&first.sa_mask, SIGUSR2);
    sigaddset(&first.sa_mask, SIGSEGV);
    set_action(first);
    start();
    struct sigaction old {};
    old.sa_handler = ::signal(SIGSEGV, open_without_information);
    check(old.sa_sigaction == record_and_open);
    check(::sigaction(SIGSEGV, nullptr, &old) == 0);
    check(old.sa_handler == open_without_information && (old.sa_flags & SA_RESTART) != 0 &&
          sigismember(&old.sa_mask, SIGSEGV) == 1);
    check(::sigaction(SIGSEGV, &first, &old) == 0 && old.sa_handler == open_without_information);
    check(::sigaction(SIGSEGV, &old, &first) == 0 && first.sa_sigaction == record_and_open);
    check((first.sa_flags & SA_SIGINFO) != 0 && sigismember(&first.sa_mask, SIGUSR2) == 1 &&
          sigismember(&first.sa_mask, SIGSEGV) == 1 && sigismember(&first.sa_mask, SIGUSR1) == 0);
    check(::signal(SIGSEGV, SIG_IGN) == open_without_information);
    check(::signal(SIGSEGV, SIG_DFL) == SIG_IGN);
    check(::signal(SIGSEGV, SIG_ERR) == SIG_ERR && errno == EINVAL);
  });
}

TEST_P(Forwarding, UnmappedAddressesHaveTheCodeOfUnmappedAddresses) {
  expect_success([] {
    start();
    static sigjmp_buf back;
    static volatile char* nowhere;
    nowhere = foreign_page();
    ::munmap(const_cast<char*>(nowhere), 4096);
    set_action(action_with(
        [](int, siginfo_t* info, void*) {
          check(info->si_code == SEGV_MAPERR && info->si_addr == nowhere);
          siglongjmp(back, 1);
        },
        0));
    if (sigsetjmp(back, 1) == 0) {
      *nowhere = 1;
      check(false);
    }
  });
}

// Jumps into a page that the handler would open for an access, and into a page that is already open for reading and
// writing.
TEST_P(Forwarding, AJumpIntoDataIsTheProgramsOwnFault) {
  expect_success([] {
    start();
    static sigjmp_buf back;
    static volatile char* target;
    set_action(action_with(
        [](int, siginfo_t* info, void*) {
          check(info->si_code == SEGV_ACCERR && info->si_addr == target);
          calls = calls + 1;
          siglongjmp(back, 1);
        },
        0));
    target = GetParam() ? our_pages::add() : foreign_page();
    for (int i = 1; i <= 2; ++i) {
      if (sigsetjmp(back, 1) == 0) reinterpret_cast<void (*)()>(reinterpret_cast<std::uintptr_t>(target))();
      check(calls == i);
      open_foreign_page(const_cast<char*>(target));
    }
    check(our_pages::opened() == 0);
  });
}

TEST_P(Forwarding, AJumpIntoDataIsDeathWithoutAHandler) {
  expect_segv([] {
    start();
    const volatile char* const target = GetParam() ? our_pages::add() : foreign_page();
    reinterpret_cast<void (*)()>(reinterpret_cast<std::uintptr_t>(target))();
  });
}

TEST_P(Forwarding, PlainHandlersWork) {
  expect_success([] {
    start();
    ::signal(SIGSEGV, open_without_information);
    page_to_open = foreign_page();
    *page_to_open = 1;
    page_to_open = foreign_page();
    *page_to_open = 1;
    check(calls == 2);
  });
}

TEST_P(Forwarding, HandlersRunUnderTheirMask) {
  expect_success([] {
    start();
    struct sigaction action = action_with(record_and_open, 0);
    sigaddset(&action.sa_mask, SIGUSR1);
    set_action(action);
    *foreign_page() = 1;
    check(sigismember(&seen_mask, SIGUSR1) == 1 && sigismember(&seen_mask, SIGUSR2) == 0 &&
          sigismember(&seen_mask, SIGSEGV) == 1);
    sigset_t after;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &after);
    check(sigismember(&after, SIGUSR1) == 0 && sigismember(&after, SIGSEGV) == 0);

    action.sa_flags |= SA_NODEFER;
    set_action(action);
    *foreign_page() = 1;
    check(sigismember(&seen_mask, SIGUSR1) == 1 && sigismember(&seen_mask, SIGSEGV) == 0);
    check(calls == 2);
  });
}

TEST_P(Forwarding, OneShotHandlersFireOnce) {
  const auto body = [](bool second_fault) {
    start();
    set_action(action_with(record_and_open, static_cast<int>(SA_RESETHAND)));
    *foreign_page() = 1;
    check(calls == 1);
    struct sigaction now {};
    check(::sigaction(SIGSEGV, nullptr, &now) == 0 && now.sa_handler == SIG_DFL);
    if (second_fault) *foreign_page() = 1;
  };
  expect_success([&] { body(false); });
  expect_segv([&] { body(true); });
}

TEST_P(Forwarding, SystemVSignalIsOneShot) {
  expect_segv([] {
    start();
    ::sysv_signal(SIGSEGV, open_without_information);
    page_to_open = foreign_page();
    *page_to_open = 1;
    check(calls == 1 && sigismember(&seen_mask, SIGSEGV) == 0);
    *foreign_page() = 1;
  });
}

sigjmp_buf recovery;

TEST_P(Forwarding, HandlersMayJumpOut) {
  expect_success([] {
    start();
    set_action(action_with([](int, siginfo_t*, void*) { siglongjmp(recovery, 1); }, 0));
    volatile int recovered = 0;
    for (int i = 0; i < 3; ++i) {
      if (sigsetjmp(recovery, 1) == 0)
        *foreign_page() = 1;
      else
        recovered = recovered + 1;
    }
    check(recovered == 3);
    sigset_t mask;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    check(sigismember(&mask, SIGSEGV) == 0);
  });
}

TEST_P(Forwarding, AFaultInTheHandlerIsDeath) {
  expect_segv([] {
    start();
    set_action(action_with(
        [](int, siginfo_t*, void*) {
          calls = calls + 1;
          check(calls == 1);
          *foreign_page() = 1;
        },
        0));
    *foreign_page() = 1;
  });
}

TEST_P(Forwarding, AFaultInTheHandlerComesBackToItIfItAsksForThat) {
  expect_success([] {
    start();
    set_action(action_with(
        [](int, siginfo_t* info, void*) {
          calls = calls + 1;
          if (calls < 4) *foreign_page() = 1;
          open_foreign_page(info->si_addr);
        },
        SA_NODEFER));
    *foreign_page() = 1;
    check(calls == 4);
  });
}

[[gnu::noinline]] int overflow(int depth) {
  volatile char frame[512];
  frame[0] = static_cast<char>(depth);
  if (depth == std::numeric_limits<int>::max()) return 0;
  return overflow(depth + 1) + frame[0];
}

bool on_stack(const void* p, const stack_t& stack) {
  return static_cast<std::uintptr_t>(static_cast<const char*>(p) - static_cast<const char*>(stack.ss_sp)) <
         stack.ss_size;
}

stack_t alternate;

TEST_P(Forwarding, StackOverflowHandlersHaveTheirStack) {
  expect_success([] {
    start();
    set_action(action_with(
        [](int, siginfo_t*, void*) {
          const int here = 0;
          check(on_stack(&here, alternate));
          siglongjmp(recovery, 1);
        },
        SA_ONSTACK));
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstacksize(&attributes, std::size_t{512} << 10);
    pthread_t thread;
    const auto body = [](void*) -> void* {
      alternate.ss_sp = std::malloc(std::size_t{64} << 10);
      alternate.ss_size = std::size_t{64} << 10;
      stack_t before;
      check(::sigaltstack(&alternate, &before) == 0);
      for (int i = 0; i < 2; ++i)
        if (sigsetjmp(recovery, 1) == 0) overflow(0);
      ::sigaltstack(&before, nullptr);
      calls = 1;
      return nullptr;
    };
    check(::pthread_create(&thread, &attributes, body, nullptr) == 0);
    ::pthread_join(thread, nullptr);
    check(calls == 1);
  });
}

// ---- signals that a process or thread sends
// --------------------------------------------------------------------------------

TEST_P(Forwarding, SentSignalsReachTheHandler) {
  expect_success([] {
    start();
    set_action(action_with([](int, siginfo_t* info, void*) { record(info); }, 0));
    ::raise(SIGSEGV);
    check(calls == 1 && seen.si_code == SI_TKILL && seen.si_pid == ::getpid());
    ::kill(::getpid(), SIGSEGV);
    check(calls == 2 && seen.si_code == SI_USER);
    sigval value{};
    value.sival_int = 77;
    ::sigqueue(::getpid(), SIGSEGV, value);
    check(calls == 3 && seen.si_code == SI_QUEUE && seen.si_value.sival_int == 77);
  });
}

TEST_P(Forwarding, SentSignalsKill) {
  expect_segv([] {
    start();
    ::raise(SIGSEGV);
  });
  expect_segv([] {
    start();
    ::kill(::getpid(), SIGSEGV);
    ::pause();
  });
}

TEST_P(Forwarding, SentSignalsCanBeIgnored) {
  expect_success([] {
    start();
    ::signal(SIGSEGV, SIG_IGN);
    ::raise(SIGSEGV);
    ::kill(::getpid(), SIGSEGV);
  });
}

// Crash reporters raise the signal again.
TEST_P(Forwarding, AHandlerCanPassTheSignalOnByRaisingItAgain) {
  static int report[2];
  ASSERT_EQ(::pipe(report), 0);
  expect_segv([] {
    start();
    set_action(action_with(
        [](int signal, siginfo_t*, void*) {
          ::signal(signal, SIG_DFL);
          ::raise(signal);
          const char done = 'd';  // the signal is blocked here, so this runs
          check(::write(report[1], &done, 1) == 1);
        },
        0));
    *foreign_page() = 1;
  });
  ::close(report[1]);
  char done = 0;
  EXPECT_EQ(::read(report[0], &done, 1), 1);
  EXPECT_EQ(done, 'd');
  ::close(report[0]);
}

TEST_P(Forwarding, CoreIsDumpedOrNotAsWithoutUs) {
  const auto body = [](bool with) {
    return status_of_child([with] {
      if (with) our_pages::start();
      *foreign_page() = 1;
    });
  };
  EXPECT_EQ(body(GetParam()), body(false));
}

}  // namespace
