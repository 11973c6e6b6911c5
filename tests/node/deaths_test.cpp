// Tests with processes that are killed during copies and exports.

#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include "tests/device/processes.h"
#include "tests/node/process.h"

namespace node_test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t MiB = std::size_t{1} << 20;

TEST(Deaths, OfTheExporterBeforeACopy) {
  process b;
  const std::uint64_t to = b.allocate(MiB);
  b.fill(to, 0, MiB, 2);
  for (const bool copied_before : {false, true}) {
    process a;
    const std::uint64_t from = a.allocate(MiB);
    const hpeExport handle = a.begin(from, 0, MiB);
    if (copied_before) {
      ASSERT_EQ(b.copy(to, 0, handle, 0, MiB).status, HPE_SUCCESS);
      b.fill(to, 0, MiB, 2);
    }
    a.kill();
    EXPECT_FALSE(b.reachable(handle));
    EXPECT_EQ(b.copy(to, 0, handle, 0, MiB).status, HPE_ERROR_NOT_FOUND);
    EXPECT_TRUE(b.check(to, 0, MiB, 2));
  }
}

TEST(Deaths, OfTheExporterDuringACopy) {
  // The link is so slow that the copy takes a second.
  process b("soft:2", {"HPE_SOFT_PEER_LINK=32M:1"});
  const std::uint64_t to = b.allocate(32 * MiB);
  for (const auto delay : {20ms, 300ms}) {
    process a;
    const std::uint64_t from = a.allocate(32 * MiB);
    a.fill(from, 0, 32 * MiB, 11);
    const hpeExport handle = a.begin(from, 0, 32 * MiB);
    b.start({.what = order::kind::copy, .number = to, .bytes = 32 * MiB, .handle = handle});
    std::this_thread::sleep_for(delay);
    a.kill();
    const report r = b.finish();
    // The memory of a dead process exists as long as it is mapped, so if the copy succeeds, its bytes are right.
    EXPECT_TRUE(r.status == HPE_SUCCESS || r.status == HPE_ERROR_NOT_FOUND) << r.words;
    if (r.status == HPE_SUCCESS) {
      EXPECT_TRUE(b.check(to, 0, 32 * MiB, 11));
    }
    EXPECT_FALSE(b.reachable(handle));
  }
}

TEST(Deaths, OfTheImporterDuringACopy) {
  process a;
  const std::uint64_t from = a.allocate(32 * MiB);
  a.fill(from, 0, 32 * MiB, 11);
  const hpeExport handle = a.begin(from, 0, 32 * MiB);
  {
    process b("soft:2", {"HPE_SOFT_PEER_LINK=32M:1"});
    const std::uint64_t to = b.allocate(32 * MiB);
    b.start({.what = order::kind::copy, .number = to, .bytes = 32 * MiB, .handle = handle});
    std::this_thread::sleep_for(100ms);
    b.kill();
  }
  a.end(handle);
  a.free(from);
  process c;
  const std::uint64_t again = a.allocate(MiB);
  const std::uint64_t to = c.allocate(MiB);
  a.fill(again, 0, MiB, 12);
  const hpeExport next = a.begin(again, 0, MiB);
  EXPECT_EQ(c.copy(to, 0, next, 0, MiB).status, HPE_SUCCESS);
  EXPECT_TRUE(c.check(to, 0, MiB, 12));
}

TEST(Deaths, OfTheOnlyDeviceThatReachesAnExport) {
  process a;
  process b("soft:1");
  const std::uint64_t memory = a.allocate(MiB);
  a.fill(memory, 0, MiB, 3);
  const hpeExport handle = a.begin(memory, 0, MiB);
  EXPECT_EQ(b.copy_out(handle, 0, MiB, 3, 0).value, 1U);
  for (const pid_t device : device_test::soft_devices_of(b.pid())) ::kill(device, SIGKILL);
  report r;
  const auto refuses_for_want_of_a_device = [&] {
    r = b.copy_out(handle, 0, MiB, 3, 0);
    return r.status == HPE_ERROR_DEVICE_LOST && std::string(r.words).find("no device is left") != std::string::npos;
  };
  EXPECT_TRUE(device_test::eventually(refuses_for_want_of_a_device, 40s)) << r.status << ": " << r.words;
  a.end(handle);
}

TEST(Deaths, OfManyExportersLeaveNoMappings) {
  // The segment for memory of other processes has addresses for six of the allocations of 8 MiB at a time.
  process b("soft:2", {"HPE_SEGMENT_SIZE=64M"});
  const std::uint64_t to = b.allocate(MiB);
  std::uint64_t descriptors = 0, mappings = 0;
  for (int i = 0; i < 8; ++i) {
    process a;
    std::vector<std::uint64_t> exported{a.allocate(8 * MiB)};
    while (exported.size() < 16) exported.push_back(a.allocate(MiB, on_host));
    std::vector<hpeExport> handles;
    for (const std::uint64_t each : exported) {
      handles.push_back(a.begin(each, 0, MiB));
      const report r = b.copy(to, 0, handles.back(), 0, MiB);
      ASSERT_EQ(r.status, HPE_SUCCESS) << i << ": " << r.words;
    }
    if (i == 0) {  // the first exporter lives, and frees its memory
      for (const hpeExport& handle : handles) a.end(handle);
      for (const std::uint64_t each : exported) a.free(each);
    } else {
      a.kill();
    }
    EXPECT_FALSE(b.reachable(handles[0]));
    std::this_thread::sleep_for(120ms);  // hpe checks for dead processes at most ten times a second
    EXPECT_FALSE(b.reachable(handles[0]));
    if (i == 0) mappings = b.count(order::kind::mappings);
    if (i == 1) descriptors = b.count(order::kind::descriptors);
  }
  EXPECT_EQ(b.count(order::kind::descriptors), descriptors);
  EXPECT_LE(b.count(order::kind::mappings), mappings + 4) << "the last exporter had 15 mappings";
}

TEST(Deaths, LeaveStaleHandlesThatAreRefusedAtOnce) {
  std::vector<hpeExport> stale;
  std::vector<pid_t> children;
  process unburied;
  for (int i = 0; i < 3; ++i) {
    process buried;
    process& a = i == 2 ? unburied : buried;
    stale.push_back(a.begin(a.allocate(MiB), 0, 1));
    // A child keeps the sockets open after the process has died, so connections are still possible, but get no answer.
    if (i > 0) children.push_back(static_cast<pid_t>(a.tell({.what = order::kind::fork_child}).value));
    if (i < 2) a.kill();
  }
  siginfo_t end{};
  ASSERT_EQ(::kill(unburied.pid(), SIGKILL), 0);
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(unburied.pid()), &end, WEXITED | WNOWAIT), 0) << "it stays a zombie";
  process a;
  process b;
  const hpeExport handle = a.begin(a.allocate(MiB), 0, 1);
  EXPECT_TRUE(b.reachable(handle));
  const auto begin = std::chrono::steady_clock::now();
  for (const hpeExport& h : stale) EXPECT_FALSE(b.reachable(h));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 9s) << "a dead process was asked, which takes 10 s";
  for (const pid_t child : children) ::kill(child, SIGKILL);
}

TEST(Deaths, AreNotHiddenByChildren) {
  process b;
  process a;
  const std::uint64_t memory = a.allocate(MiB);
  const hpeExport handle = a.begin(memory, 0, MiB);
  a.tell({.what = order::kind::fork_child, .seed = 1});
  EXPECT_TRUE(b.reachable(handle)) << "the end of a child counted as the end of the process";
  const auto child = static_cast<pid_t>(a.tell({.what = order::kind::fork_child}).value);
  ASSERT_EQ(b.tell({.what = order::kind::open, .handle = handle}).status, HPE_SUCCESS);
  a.kill();
  EXPECT_FALSE(b.reachable(handle)) << "a child keeps its sockets open";
  EXPECT_EQ(b.copy(b.allocate(10), 0, handle, 0, 10).status, HPE_ERROR_NOT_FOUND);
  ::kill(child, SIGKILL);
}

TEST(Deaths, OfAProcessWithMemoryOpenAreSeenThoughItsChildrenLive) {
  process a("soft:1", {"HPE_SOFT_MEMORY=8M", "HPE_OVERSUBSCRIBE=off"});
  const std::uint64_t memory = a.allocate(8 * MiB);
  const hpeExport handle = a.begin(memory, 0, MiB);
  process before, b, after;  // `before` and `after` are also connected to the process
  EXPECT_TRUE(before.reachable(handle));
  ASSERT_EQ(b.tell({.what = order::kind::open, .handle = handle}).status, HPE_SUCCESS);
  EXPECT_TRUE(after.reachable(handle));
  const auto child = static_cast<pid_t>(b.tell({.what = order::kind::fork_child}).value);
  a.end(handle);
  a.free(memory);
  EXPECT_EQ(a.tell({.what = order::kind::allocate, .bytes = 8 * MiB}).status, HPE_ERROR_OUT_OF_MEMORY);
  b.kill();
  hpeStatus status = HPE_ERROR_OUT_OF_MEMORY;
  for (int i = 0; i < 300 && status != HPE_SUCCESS; ++i) {
    std::this_thread::sleep_for(10ms);
    status = a.tell({.what = order::kind::allocate, .bytes = 8 * MiB}).status;
  }
  EXPECT_EQ(status, HPE_SUCCESS);
  ::kill(child, SIGKILL);
}

}  // namespace
}  // namespace node_test
