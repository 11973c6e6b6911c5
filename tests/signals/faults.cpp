// Faults on pages of our_pages.h are handled whatever the program's signal settings are.

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/signals/child.h"
#include "tests/signals/our_pages.h"

namespace {

TEST(OurFaults, OpenThePageAndKeepErrno) {
  expect_success([] {
    our_pages::start();
    volatile char* a = our_pages::add();
    volatile char* b = our_pages::add();
    errno = ENOTTY;
    check(a[100] == 0);
    check(our_pages::opened() == 1 && our_pages::opened_for_writing() == 0);
    b[4095] = 7;
    check(b[4095] == 7);
    check(our_pages::opened() == 2 && our_pages::opened_for_writing() == 1);
    check(errno == ENOTTY);
  });
}

TEST(OurFaults, WorkWhileTheProgramBlocksEverything) {
  expect_success([] {
    our_pages::start();
    sigset_t all;
    sigfillset(&all);
    check(::sigprocmask(SIG_SETMASK, &all, nullptr) == 0);
    *our_pages::add() = 1;
    check(::pthread_sigmask(SIG_BLOCK, &all, nullptr) == 0);
    *our_pages::add() = 1;
    std::thread([] { *our_pages::add() = 1; }).join();
    check(our_pages::opened() == 3);
  });
}

TEST(OurFaults, WorkInThreadsMadeBeforeTheStartWithEverythingBlocked) {
  expect_success([] {
    std::atomic<bool> started{false};
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before);
    std::thread helper([&] {
      while (!started) std::this_thread::yield();
      *our_pages::add() = 1;
    });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    our_pages::start();
    started = true;
    helper.join();
    check(our_pages::opened() == 1);
  });
}

volatile char* volatile touched_by_handler;

void touch(int) { *touched_by_handler = 1; }

TEST(OurFaults, WorkInHandlersThatBlockEverything) {
  expect_success([] {
    our_pages::start();
    touched_by_handler = our_pages::add();
    struct sigaction action {};
    action.sa_handler = touch;
    sigfillset(&action.sa_mask);
    check(::sigaction(SIGUSR1, &action, nullptr) == 0);
    ::raise(SIGUSR1);
    check(our_pages::opened() == 1);
  });
}

// Tests a call that waits with a mask as its argument: during the wait, handlers run with that mask, and faults in them
// must be handled.
void expect_handlers_can_fault(const std::function<int(const sigset_t*)>& wait) {
  expect_success([&] {
    our_pages::start();
    touched_by_handler = our_pages::add();
    ::signal(SIGUSR1, touch);
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    ::sigprocmask(SIG_BLOCK, &usr1, nullptr);
    ::raise(SIGUSR1);
    check(our_pages::opened() == 0);
    sigset_t all_but_usr1;
    sigfillset(&all_but_usr1);
    sigdelset(&all_but_usr1, SIGUSR1);
    check(wait(&all_but_usr1) == -1 && errno == EINTR);
    check(our_pages::opened() == 1);
  });
}

const timespec second{1, 0};

TEST(OurFaults, WorkInHandlersDuringSigsuspend) {
  expect_handlers_can_fault([](const sigset_t* mask) { return ::sigsuspend(mask); });
}

TEST(OurFaults, WorkInHandlersDuringPpoll) {
  expect_handlers_can_fault([](const sigset_t* mask) { return ::ppoll(nullptr, 0, &second, mask); });
}

TEST(OurFaults, WorkInHandlersDuringPselect) {
  expect_handlers_can_fault(
      [](const sigset_t* mask) { return ::pselect(0, nullptr, nullptr, nullptr, &second, mask); });
}

TEST(OurFaults, WorkInHandlersDuringEpollPwait) {
  expect_handlers_can_fault([](const sigset_t* mask) {
    epoll_event event;
    return ::epoll_pwait(::epoll_create1(0), &event, 1, 1000, mask);
  });
}

TEST(OurFaults, WorkInHandlersDuringEpollPwait2) {
  expect_handlers_can_fault([](const sigset_t* mask) {
    epoll_event event;
    return ::epoll_pwait2(::epoll_create1(0), &event, 1, &second, mask);
  });
}

void touch_ours_and_open(int, siginfo_t* info, void*) {
  *touched_by_handler = 1;
  open_foreign_page(info->si_addr);
}

TEST(OurFaults, WorkInTheProgramsOwnFaultHandler) {
  expect_success([] {
    our_pages::start();
    touched_by_handler = our_pages::add();
    struct sigaction action = action_with(touch_ours_and_open, 0);
    sigfillset(&action.sa_mask);
    check(::sigaction(SIGSEGV, &action, nullptr) == 0);
    *foreign_page() = 1;
    check(our_pages::opened() == 1);
  });
}

TEST(OurFaults, WorkInChildrenOfFork) {
  expect_success([] {
    our_pages::start();
    volatile char* page = our_pages::add();
    const pid_t grandchild = ::fork();
    if (grandchild == 0) {
      *page = 1;
      ::_exit(our_pages::opened() == 1 ? 0 : 1);
    }
    int status = -1;
    ::waitpid(grandchild, &status, 0);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  });
}

void* touch_when_cancellable(void* page) {
  ::pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
  auto* const touched = static_cast<volatile char*>(page);
  *touched = 1;
  while (*touched == 1) {
  }
  return nullptr;
}

TEST(OurFaults, AThreadIsCancelledWhenItsFaultIsOver) {
  expect_success([] {
    our_pages::start();
    volatile char* const page = our_pages::add();
    our_pages::hold();
    pthread_t thread{};
    check(::pthread_create(&thread, nullptr, touch_when_cancellable, const_cast<char*>(page)) == 0);
    while (our_pages::opened() == 0) std::this_thread::yield();
    check(::pthread_cancel(thread) == 0);
    our_pages::go_on();
    void* result = nullptr;
    check(::pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
  });
}

// A handler of the program that waits for the cancellation of its thread.
void wait_for_cancellation(int, siginfo_t*, void*) {
  do {
    *touched_by_handler = 1;
  } while (*touched_by_handler == 1);
}

TEST(OurFaults, AThreadIsCancelledInTheProgramsOwnFaultHandler) {
  expect_success([] {
    our_pages::start();
    touched_by_handler = our_pages::add();
    const struct sigaction action = action_with(wait_for_cancellation, 0);
    check(::sigaction(SIGSEGV, &action, nullptr) == 0);
    pthread_t thread{};
    check(::pthread_create(&thread, nullptr, touch_when_cancellable, const_cast<char*>(foreign_page())) == 0);
    while (our_pages::opened() == 0) std::this_thread::yield();
    check(::pthread_cancel(thread) == 0);
    void* result = nullptr;
    check(::pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
  });
}

void open_it(int, siginfo_t* info, void*) { open_foreign_page(info->si_addr); }
void open_it_too(int, siginfo_t* info, void*) { open_foreign_page(info->si_addr); }

// While threads keep changing the program's action, every fault runs one of the actions completely, never a mixture.
TEST(OurFaults, GoOnWhileThreadsChangeTheAction) {
  expect_success([] {
    our_pages::start();
    const struct sigaction one = action_with(open_it, 0);
    const struct sigaction other = action_with(open_it_too, SA_NODEFER);
    check(::sigaction(SIGSEGV, &one, nullptr) == 0);
    std::atomic<bool> stop{false};
    std::vector<std::thread> changers;
    for (int i = 0; i < 2; ++i)
      changers.emplace_back([&] {
        while (!stop) {
          struct sigaction old {};
          ::sigaction(SIGSEGV, &one, &old);
          check(old.sa_sigaction == open_it || old.sa_sigaction == open_it_too);
          ::sigaction(SIGSEGV, &other, &old);
          check((old.sa_sigaction == open_it) == ((old.sa_flags & SA_NODEFER) == 0));
        }
      });
    std::vector<std::thread> faulting;
    for (int i = 0; i < 2; ++i)
      faulting.emplace_back([] {
        volatile char* ours = our_pages::add();
        volatile char* theirs = foreign_page();
        for (int round = 0; round < 1000; ++round) {
          *ours = 1;
          *theirs = 1;
          our_pages::close(ours);
          our_pages::close(theirs);
        }
      });
    for (std::thread& t : faulting) t.join();
    stop = true;
    for (std::thread& t : changers) t.join();
    check(our_pages::opened() == 2000);
  });
}

}  // namespace
