// Prints from kernels and from the program in turns, in the way that the argument selects. output_test checks the
// output.

#include <cstdio>
#include <cstring>
#include <thread>

#include "tests/ptx_launch/support.h"

namespace {

using namespace ptx_launch;

void print(const module& m, int device, int number) {
  m.launch_on({}, device, "print_line", blocks_of(3, 64), number, static_cast<const char*>(nullptr));
}

// Does not wait for the kernels, so their output appears at the end of the program.
void at_exit(const module& m) {
  for (int i = 0; i < 10; ++i) print(m, i % device_count(), i);
}

// The output of kernels and the program's own lines appear in order.
void in_turns(const module& m) {
  for (int i = 0; i < 20; i += 4) {
    std::printf("%d host\n", i);
    print(m, i % device_count(), i + 1);
    print(m, (i + 1) % device_count(), i + 2);
    EXPECT_TRUE(works(i % 8 == 0 ? hpeSynchronize() : hpeSynchronizeDevice(HPE_CURRENT_DEVICE)));
    EXPECT_TRUE(works(hpeSynchronize()));
    std::printf("%d host\n", i + 3);
  }
}

// Waits for each launch; the wait writes the launch's output to standard output.
void by_work(const module& m) {
  for (int i = 0; i < 20; i += 2) {
    hpeWork work =
        m.launch_on({}, i % device_count(), "print_line", blocks_of(1, 1), i, static_cast<const char*>(nullptr));
    EXPECT_TRUE(works(hpeWorkWait(work, nullptr)));
    std::printf("%d host\n", i + 1);
  }
}

void much(const module& m) {
  for (int i = 0; i < 4; ++i) m.launch_on({}, i % device_count(), "print_much", blocks_of(250, 200), 50000U);
  EXPECT_TRUE(works(hpeSynchronize()));
}

// Neither the output of a kernel that then fails nor the output of later kernels may be lost.
void failing(const module& m) {
  print(m, 0, 0);
  m.launch_on({}, 0, "write_at", blocks_of(1, 1), std::uintptr_t{8}, 0U, 0U);
  print(m, 0, 1);
  EXPECT_EQ(hpeSynchronize(), HPE_ERROR_LAUNCH_FAILED);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  // The module stays loaded until the end of the process, as in CUDA programs.
  static auto* const m = new module;  // NOLINT(cppcoreguidelines-owning-memory)
  if (how == "exit") at_exit(*m);
  if (how == "turns") in_turns(*m);
  if (how == "work") by_work(*m);
  if (how == "much") much(*m);
  if (how == "failing") failing(*m);
  return testing::Test::HasFailure() ? 1 : 0;
}
