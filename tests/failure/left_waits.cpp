// Threads that leave the wait for their data by a long jump from a signal handler.

#include <sys/time.h>

#include <csetjmp>
#include <csignal>

#include "hpe/hpe.hpp"
#include "tests/failure/child.h"

namespace {

using namespace failure_test;

// The number of waits that threads leave: more than the request board has slots.
constexpr int leaves = 600;
constexpr std::size_t step = 64 << 10;

sigjmp_buf out_of_the_wait;
volatile sig_atomic_t reading = 0;

void jump_out(int /*signal*/) {
  if (reading != 0) siglongjmp(out_of_the_wait, 1);
}

// The link is so slow that a thread spends nearly all of its time in waits.
const variables slow_link{{"HPE_SOFT_HOST_LINK", "4G:300"}, {"HPE_PREFETCH_WINDOW", "0"}};

TEST(LeftWaits, ByLongJumpsHoldNothingUp) {
  const ended child = run_child(
      [] {
        const hpe::array<char> data(64 * step);
        ::signal(SIGALRM, jump_out);
        volatile int left = 0;
        volatile int round = 0;
        while (left < leaves) {
          round = round + 1;
          check(hpeMemset(data.data(), round & 63, data.size()) == HPE_SUCCESS);
          const itimerval soon{{0, 0}, {0, 100 + round % 20 * 50}};
          if (sigsetjmp(out_of_the_wait, 1) == 0) {
            reading = 1;
            ::setitimer(ITIMER_REAL, &soon, nullptr);
            for (std::size_t i = 0; i < data.size(); i += step) check(data[i] == (round & 63));
            reading = 0;
          } else {
            reading = 0;
            left = left + 1;
          }
        }
        ::signal(SIGALRM, SIG_IGN);
        check(hpeMemset(data.data(), 9, data.size()) == HPE_SUCCESS);
        for (std::size_t i = 0; i < data.size(); i += step) check(data[i] == 9);
      },
      slow_link);
  EXPECT_TRUE(child.well()) << child;
}

}  // namespace
