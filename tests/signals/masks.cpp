// Tests that the program reads back the masks that it has set.

#include <pthread.h>

#include <thread>

#include "tests/signals/child.h"
#include "tests/signals/our_pages.h"

namespace {

sigset_t only(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  return set;
}

bool blocked(int signal) {
  sigset_t mask;
  check(::pthread_sigmask(SIG_BLOCK, nullptr, &mask) == 0);
  return sigismember(&mask, signal) == 1;
}

const sigset_t segv = only(SIGSEGV);
const sigset_t usr1 = only(SIGUSR1);

TEST(Masks, ReportTheMaskThatTheProgramSet) {
  expect_success([] {
    our_pages::start();
    sigset_t old;
    check(::sigprocmask(SIG_BLOCK, &segv, &old) == 0 && sigismember(&old, SIGSEGV) == 0);
    check(::sigprocmask(SIG_BLOCK, &usr1, &old) == 0 && sigismember(&old, SIGSEGV) == 1);
    check(blocked(SIGSEGV) && blocked(SIGUSR1) && !blocked(SIGUSR2));
    check(::pthread_sigmask(SIG_UNBLOCK, &segv, &old) == 0 && sigismember(&old, SIGSEGV) == 1);
    check(!blocked(SIGSEGV) && blocked(SIGUSR1));
    check(::sigprocmask(SIG_SETMASK, &segv, &old) == 0 && sigismember(&old, SIGSEGV) == 0);
    check(blocked(SIGSEGV) && !blocked(SIGUSR1));
    const sigset_t before = old;
    check(::sigprocmask(SIG_SETMASK, &before, &old) == 0 && sigismember(&old, SIGSEGV) == 1);
    check(!blocked(SIGSEGV) && blocked(SIGUSR1));
  });
}

TEST(Masks, OfOtherSignalsLeaveItAlone) {
  expect_success([] {
    our_pages::start();
    ::sigprocmask(SIG_BLOCK, &segv, nullptr);
    const sigset_t stand_in = only(SIGSTKFLT);
    check(::sigprocmask(SIG_UNBLOCK, &stand_in, nullptr) == 0);
    check(blocked(SIGSEGV));
    ::sigprocmask(SIG_UNBLOCK, &segv, nullptr);
    check(::sigprocmask(SIG_BLOCK, &stand_in, nullptr) == 0);
    check(!blocked(SIGSEGV));
  });
}

TEST(Masks, AreInheritedByThreadsAndBelongToThem) {
  expect_success([] {
    our_pages::start();
    ::pthread_sigmask(SIG_BLOCK, &segv, nullptr);
    std::thread([] {
      check(blocked(SIGSEGV));
      ::pthread_sigmask(SIG_UNBLOCK, &segv, nullptr);
      check(!blocked(SIGSEGV));
    }).join();
    check(blocked(SIGSEGV));
  });
}

TEST(Masks, OfAttributesAreThoseOfTheThread) {
  expect_success([] {
    our_pages::start();
    pthread_attr_t attributes;
    check(::pthread_attr_init(&attributes) == 0);
    sigset_t told;
    check(::pthread_attr_getsigmask_np(&attributes, &told) == PTHREAD_ATTR_NO_SIGMASK_NP);
    check(::pthread_attr_setsigmask_np(&attributes, &segv) == 0);
    check(::pthread_attr_getsigmask_np(&attributes, &told) == 0 && sigismember(&told, SIGSEGV) == 1);
    pthread_t thread{};
    const auto touch = [](void* page) -> void* {
      check(blocked(SIGSEGV));
      check(*static_cast<volatile char*>(page) == 0);
      return nullptr;
    };
    check(::pthread_create(&thread, &attributes, touch, const_cast<char*>(our_pages::add())) == 0);
    check(::pthread_join(thread, nullptr) == 0);
    check(::pthread_attr_setsigmask_np(&attributes, nullptr) == 0);
    check(::pthread_attr_getsigmask_np(&attributes, &told) == PTHREAD_ATTR_NO_SIGMASK_NP);
    ::pthread_attr_destroy(&attributes);
  });
}

TEST(Masks, OfActionsComeBackAsTheyWereGiven) {
  expect_success([] {
    our_pages::start();
    struct sigaction action {};
    struct sigaction old {};
    action.sa_handler = [](int) { check(blocked(SIGSEGV) && blocked(SIGUSR2)); };
    action.sa_mask = segv;
    sigaddset(&action.sa_mask, SIGUSR2);
    check(::sigaction(SIGUSR1, &action, nullptr) == 0);
    check(::sigaction(SIGUSR1, nullptr, &old) == 0);
    check(sigismember(&old.sa_mask, SIGSEGV) == 1 && sigismember(&old.sa_mask, SIGUSR2) == 1 &&
          sigismember(&old.sa_mask, SIGTERM) == 0);
    ::raise(SIGUSR1);
    check(!blocked(SIGSEGV) && !blocked(SIGUSR2));
  });
}

TEST(Masks, AFaultOfTheProgramWhileBlockedIsDeath) {
  expect_segv([] {
    our_pages::start();
    ::signal(SIGSEGV, [](int) { check(false); });
    ::sigprocmask(SIG_BLOCK, &segv, nullptr);
    *foreign_page() = 1;
  });
}

volatile sig_atomic_t arrived;

TEST(Masks, ASentSignalWaitsUntilItIsUnblocked) {
  expect_success([] {
    our_pages::start();
    struct sigaction action = action_with(
        [](int signal, siginfo_t* info, void*) {
          check(signal == SIGSEGV && info->si_signo == SIGSEGV && info->si_code == SI_TKILL);
          arrived = arrived + 1;
        },
        0);
    check(::sigaction(SIGSEGV, &action, nullptr) == 0);
    ::sigprocmask(SIG_BLOCK, &segv, nullptr);
    ::raise(SIGSEGV);
    check(arrived == 0);
    ::sigprocmask(SIG_UNBLOCK, &segv, nullptr);
    check(arrived == 1 && !blocked(SIGSEGV));
  });
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

TEST(Masks, SystemVFunctionsAgree) {
  expect_success([] {
    our_pages::start();
    const auto handler = [](int) { arrived = arrived + 1; };
    check(::sigset(SIGSEGV, handler) == SIG_DFL);
    check(::sighold(SIGSEGV) == 0 && blocked(SIGSEGV));
    ::raise(SIGSEGV);
    check(arrived == 0);
    check(::sigrelse(SIGSEGV) == 0 && arrived == 1 && !blocked(SIGSEGV));
    check(::sigset(SIGSEGV, SIG_HOLD) == handler && blocked(SIGSEGV));
    check(::sigset(SIGSEGV, SIG_DFL) == SIG_HOLD && !blocked(SIGSEGV));
    check(::sigignore(SIGSEGV) == 0);
    ::raise(SIGSEGV);
    check(::signal(SIGSEGV, SIG_DFL) == SIG_IGN && arrived == 1);
    check(::sighold(12345) == -1 && errno == EINVAL);
  });
}

#pragma GCC diagnostic pop

}  // namespace
