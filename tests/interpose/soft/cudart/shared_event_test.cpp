// The state of an event that processes share, without streams: recordings that are pending, that have been reached, or
// that belong to ended processes.

#include "interpose/soft/cudart/stream/shared_event.h"

#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/interpose/soft/cudart/code_of.h"

namespace hpe::cudart {
namespace {

using testing::code_of;

TEST(SharedEvent, TheLastPublishedRecordingCounts) {
  const auto made = shared_event::create();
  const auto other = shared_event::open(made->handle());
  EXPECT_EQ(other->last(), 0U);
  EXPECT_TRUE(other->reached(0));
  auto first = made->begin();
  EXPECT_EQ(other->last(), 0U);
  made->publish(*first);
  const auto first_name = other->last();
  EXPECT_EQ(first_name, first->where());
  EXPECT_FALSE(other->reached(first_name));
  auto second = other->begin();
  other->publish(*second);
  const auto second_name = made->last();
  EXPECT_NE(second_name, first_name);
  second.reset();
  EXPECT_TRUE(made->reached(second_name));
  EXPECT_FALSE(made->reached(first_name));
  first.reset();
  EXPECT_TRUE(other->reached(first_name));
}

TEST(SharedEvent, WaitingEndsWhenTheRecordingIsReached) {
  const auto made = shared_event::create();
  const auto other = shared_event::open(made->handle());
  auto recording = made->begin();
  made->publish(*recording);
  std::atomic<bool> has_ended{false};
  std::thread waiter([&] {
    other->wait(other->last());
    EXPECT_TRUE(has_ended);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  has_ended = true;
  recording.reset();
  waiter.join();
}

TEST(SharedEvent, PlacesAreUsedAgainUnderOtherNames) {
  const auto made = shared_event::create();
  std::vector<shared_event::position> names;
  for (int i = 0; i < 1000; ++i) names.push_back(made->begin()->where());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  for (const auto each : names) EXPECT_TRUE(made->reached(each));
}

TEST(SharedEvent, RecordingBeyondThePlacesWaitsForOne) {
  const auto made = shared_event::create();
  std::vector<std::shared_ptr<shared_event::pending>> all;
  for (int i = 0; i < 256; ++i) all.push_back(made->begin());
  std::atomic<bool> one_ended{false};
  std::thread another([&] {
    const auto more = made->begin();
    EXPECT_TRUE(one_ended);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  one_ended = true;
  all[100].reset();
  another.join();
}

TEST(SharedEvent, RecordingsOfTheDeadAreReachedAndTheirPlacesAreFree) {
  const auto made = shared_event::create();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::vector<std::shared_ptr<shared_event::pending>> all;
    for (int i = 0; i < 256; ++i) all.push_back(made->begin());
    made->publish(*all.back());
    const char byte = 0;
    _exit(write(ready[1], &byte, 1) == 1 && pause() == 0 ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const auto last = made->last();
  EXPECT_FALSE(made->reached(last));
  std::thread waiter([&] { made->wait(last); });
  kill(child, SIGKILL);
  waiter.join();  // returns although the child has not been reaped yet
  EXPECT_TRUE(made->reached(last));
  auto mine = made->begin();
  made->publish(*mine);
  EXPECT_FALSE(made->reached(made->last()));
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  mine.reset();
  EXPECT_TRUE(made->reached(made->last()));
  close(ready[0]);
  close(ready[1]);
}

// Returns the content of the memory that processes share for an event; this process must have only one event.
std::string shared_page() {
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (!std::filesystem::read_symlink(each, gone).string().starts_with("/memfd:hpe-cudart-event")) continue;
    std::ifstream file(each.path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  return {};
}

// A child ends a recording and is killed when it has changed the shared page `stores` times. The test steps the child
// through single instructions to count the changes. The loop ends when the child ends the recording before it is
// killed.
TEST(SharedEvent, AProcessMayBeKilledWhileItEndsARecording) {
  bool ended = false;
  for (int stores = 1; !ended; ++stores) {
    const auto made = shared_event::create();
    const pid_t child = fork();
    if (child == 0) {
      auto recording = made->begin();
      made->publish(*recording);
      if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(1);
      raise(SIGSTOP);
      recording.reset();
      raise(SIGSTOP);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (!WIFSTOPPED(status)) GTEST_SKIP() << "this process may not trace its children";
    const auto last = made->last();
    std::string before = shared_page();
    ASSERT_FALSE(before.empty());
    for (int changes = 0; changes < stores && !ended;) {
      ASSERT_EQ(ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr), 0);
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ended = WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP;
      if (std::string now = shared_page(); now != before) {
        before = std::move(now);
        ++changes;
      }
    }
    kill(child, SIGKILL);
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(made->reached(last)) << "after store " << stores;
    std::vector<std::shared_ptr<shared_event::pending>> all;
    for (int i = 0; i < 256; ++i) all.push_back(made->begin());  // all places for recordings can still be used
  }
}

TEST(SharedEvent, RefusesOtherBytesThanAHandle) {
  cudaIpcEventHandle_t handle{};
  const auto open = [&] { shared_event::open(handle); };
  EXPECT_EQ(code_of(open), cudaErrorInvalidResourceHandle);
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  for (int i = 0; i < 100; ++i) {
    for (char& each : handle.reserved) each = static_cast<char>(random());
    EXPECT_EQ(code_of(open), cudaErrorInvalidResourceHandle) << seed;
  }
  {
    const auto made = shared_event::create();
    handle = made->handle();
    EXPECT_EQ(code_of(open), cudaSuccess);
    handle.reserved[0] = static_cast<char>(handle.reserved[0] + 1);  // now the handle is that of another event
    EXPECT_EQ(code_of(open), cudaErrorInvalidResourceHandle);
    handle = made->handle();
  }
  EXPECT_EQ(code_of(open), cudaErrorInvalidResourceHandle);  // destroyed
  std::FILE* const file = std::tmpfile();                    // may get the descriptor of the destroyed event
  EXPECT_EQ(code_of(open), cudaErrorInvalidResourceHandle);
  std::fclose(file);
}

}  // namespace
}  // namespace hpe::cudart
