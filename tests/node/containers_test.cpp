// Tests which processes hpe can reach across the borders of containers.

#include <cstdlib>

#include "tests/node/process.h"

namespace node_test {
namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;

TEST(Containers, WithANetworkOfTheirOwnAreNotReached) {
  process a;
  process b;
  const hpeExport handle = a.begin(a.allocate(MiB), 0, 1);
  if (b.tell({.what = order::kind::own_network}).value != 1) GTEST_SKIP() << "only root can create a namespace";
  EXPECT_FALSE(b.reachable(handle));
  EXPECT_EQ(b.copy(b.allocate(1), 0, handle, 0, 1).status, HPE_ERROR_NOT_FOUND);
}

TEST(Containers, WithProcessNumbersOfTheirOwnShareMemory) {
  const std::string unshare = "unshare --pid --fork --mount-proc";
  if (std::system((unshare + " true 2>/dev/null").c_str()) != 0) GTEST_SKIP() << "only root can create a namespace";
  process a;
  process b("soft:2", {}, {"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"});
  for (const auto& [from, to] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    const std::uint64_t memory = from->allocate(MiB);
    from->fill(memory, 0, MiB, 71);
    const hpeExport handle = from->begin(memory, 0, MiB);
    EXPECT_TRUE(to->reachable(handle));
    const std::uint64_t copied = to->allocate(MiB);
    EXPECT_EQ(to->copy(copied, 0, handle, 0, MiB).status, HPE_SUCCESS);
    EXPECT_TRUE(to->check(copied, 0, MiB, 71));
  }
  const hpeExport handle = a.begin(a.allocate(MiB), 0, 1);
  EXPECT_TRUE(b.reachable(handle));
  a.kill();
  EXPECT_FALSE(b.reachable(handle)) << "b must notice the end of a process that has no process id in the container";
}

}  // namespace
}  // namespace node_test
