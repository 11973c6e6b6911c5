#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "interpose/soft/cudart/stream/checked_work.h"
#include "interpose/soft/cudart/stream/cudart_stream.h"
#include "interpose/soft/cudart/stream/stream_table.h"
#include "tests/interpose/gpu/failing_memory.h"
#include "tests/interpose/soft/cudart/gate.h"
#include "tests/no_more_threads.h"

namespace hpe::cudart {
namespace {

using testing::gate;

stream_task set(std::atomic<int>& place, int value) {
  return [&place, value] {
    place = value;
    return cudaSuccess;
  };
}

TEST(Stream, RunsWorkInOrderInOneOtherThread) {
  device_streams device(0);
  const auto it = device.create(cudaStreamNonBlocking, 0);
  std::vector<int> seen;
  std::vector<std::thread::id> threads;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(it->enqueue([&, i] {
      seen.push_back(i);
      threads.push_back(std::this_thread::get_id());
      return cudaSuccess;
    }),
              cudaSuccess);
  }
  ASSERT_EQ(it->synchronize(), cudaSuccess);
  ASSERT_EQ(seen.size(), 1000U);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(seen[i], i);
    EXPECT_EQ(threads[i], threads[0]);
  }
  EXPECT_NE(threads[0], std::this_thread::get_id());
}

// Functions that cannot report an error ask for the work, also when memory is short.
TEST(Stream, WorkOfAThreadIsKnownWithoutAllocations) {
  const auto ask = [] {
    failing_memory::arm(1);
    const running_work* const work = this_threads_work();
    EXPECT_FALSE(failing_memory::disarm()) << "the call has allocated memory";
    return work != nullptr;
  };
  std::thread([&] { EXPECT_FALSE(ask()) << "a thread of the program runs no work of a stream"; }).join();
  device_streams device(0);
  const auto it = device.create(cudaStreamNonBlocking, 0);
  bool is_known = false;
  ASSERT_EQ(it->enqueue([&] {
    is_known = ask();
    return cudaSuccess;
  }),
            cudaSuccess);
  ASSERT_EQ(it->synchronize(), cudaSuccess);
  EXPECT_TRUE(is_known);
}

TEST(Stream, QueryTellsWhetherWorkIsLeft) {
  device_streams device(0);
  const auto it = device.create(cudaStreamNonBlocking, 0);
  EXPECT_EQ(it->query(), cudaSuccess);
  gate closed;
  it->enqueue(closed.as_task());
  EXPECT_EQ(it->query(), cudaErrorNotReady);
  closed.open();
  EXPECT_EQ(it->synchronize(), cudaSuccess);
  EXPECT_EQ(it->query(), cudaSuccess);
}

TEST(Stream, NonBlockingStreamsAndTheLegacyOneTakeNoNoticeOfEachOther) {
  device_streams device(0);
  const auto free = device.create(cudaStreamNonBlocking, 0);
  gate first;
  gate second;
  free->enqueue(first.as_task());
  EXPECT_EQ(device.legacy()->synchronize(), cudaSuccess);
  device.legacy()->enqueue(second.as_task());
  EXPECT_EQ(device.legacy()->query(), cudaErrorNotReady);
  first.open();
  EXPECT_EQ(free->synchronize(), cudaSuccess);  // the second gate is still closed
}

TEST(Stream, LegacyStreamWaitsForBlockingStreamsAndTheyForIt) {
  device_streams device(0);
  const auto a = device.create(cudaStreamDefault, 0);
  const auto b = device.create(cudaStreamDefault, 0);
  gate closed;
  std::atomic<int> after_legacy{0};
  std::atomic<int> legacy{0};
  a->enqueue(closed.as_task());
  device.legacy()->enqueue(set(legacy, 1));
  b->enqueue([&] {
    after_legacy = legacy.load();
    return cudaSuccess;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(legacy, 0);
  EXPECT_EQ(b->query(), cudaErrorNotReady);
  closed.open();
  EXPECT_EQ(b->synchronize(), cudaSuccess);
  EXPECT_EQ(after_legacy, 1);
}

TEST(Stream, DevicesHaveLegacyStreamsOfTheirOwn) {
  stream_table table(2);
  gate closed;
  table.find(cudaStreamLegacy, 0)->enqueue(closed.as_task());
  EXPECT_EQ(table.find(nullptr, 1)->synchronize(), cudaSuccess);
  EXPECT_EQ(table.find(nullptr, 0)->query(), cudaErrorNotReady);
}

TEST(Stream, EachThreadHasADefaultStreamThatIsBlocking) {
  stream_table table(1);
  const auto mine = table.find(cudaStreamPerThread, 0);
  EXPECT_EQ(table.find(nullptr, 0, default_stream::per_thread), mine);
  EXPECT_EQ(table.find(cudaStreamLegacy, 0, default_stream::per_thread), table.find(nullptr, 0));
  gate closed;
  table.find(nullptr, 0)->enqueue(closed.as_task());
  std::shared_ptr<cudart_stream> others;
  std::thread([&] {
    others = table.find(cudaStreamPerThread, 0);
    others->enqueue([] { return cudaSuccess; });
  }).join();
  EXPECT_NE(others, mine);
  EXPECT_TRUE(others->closed());  // the stream was closed when its thread ended; the stream's work continues
  EXPECT_EQ(others->query(), cudaErrorNotReady);
  closed.open();
  EXPECT_EQ(others->synchronize(), cudaSuccess);
}

TEST(Stream, HandlesOfDestroyedStreamsAreUnknownAndTheirWorkGoesOn) {
  stream_table table(1);
  gate closed;
  std::atomic<int> ran{0};
  const cudaStream_t handle = table.create(0, cudaStreamDefault, 0);
  table.find(handle, 0)->enqueue(closed.as_task());
  table.find(handle, 0)->enqueue(set(ran, 1));
  EXPECT_TRUE(table.destroy(handle));
  EXPECT_EQ(table.find(handle, 0), nullptr);
  EXPECT_FALSE(table.destroy(handle));
  EXPECT_FALSE(table.destroy(nullptr));
  EXPECT_FALSE(table.destroy(cudaStreamLegacy));
  EXPECT_FALSE(table.destroy(cudaStreamPerThread));
  EXPECT_EQ(table.find(reinterpret_cast<cudaStream_t>(&table), 0), nullptr);
  // The destroyed stream still counts as a blocking stream with work.
  EXPECT_EQ(table.find(nullptr, 0)->query(), cudaErrorNotReady);
  closed.open();
  EXPECT_EQ(table.of_device(0).synchronize(), cudaSuccess);
  EXPECT_EQ(ran, 1);
}

TEST(Stream, AfterAnErrorWorkIsDroppedOnAllStreamsOfTheDevice) {
  stream_table table(2);
  const auto a = table.find(table.create(0, cudaStreamNonBlocking, 0), 0);
  const auto b = table.find(table.create(0, cudaStreamNonBlocking, 0), 0);
  gate closed;
  std::atomic<int> ran{0};
  std::atomic<int> told{-1};
  b->enqueue(closed.as_task());
  b->enqueue(set(ran, 1));
  b->enqueue_always([&](cudaError_t status) { told = status; });
  a->enqueue([] { return cudaErrorIllegalAddress; });
  a->enqueue(set(ran, 2));
  EXPECT_EQ(a->synchronize(), cudaErrorIllegalAddress);
  closed.open();
  EXPECT_EQ(b->synchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(told, cudaErrorIllegalAddress);
  EXPECT_EQ(b->query(), cudaErrorIllegalAddress);
  EXPECT_EQ(b->enqueue(set(ran, 3)), cudaErrorIllegalAddress);
  EXPECT_EQ(table.of_device(0).fault(), cudaErrorIllegalAddress);
  EXPECT_EQ(table.of_device(1).fault(), cudaSuccess);
  table.reset(0);
  EXPECT_EQ(table.of_device(0).fault(), cudaSuccess);
  EXPECT_EQ(table.find(nullptr, 0)->enqueue(set(ran, 4)), cudaSuccess);
  EXPECT_EQ(table.of_device(0).synchronize(), cudaSuccess);
  EXPECT_EQ(ran, 4);
}

using events = std::vector<std::string>;

/// Notes in `told` when the work begins and when the announcement ends.
class noted final : public announced_work {
 public:
  explicit noted(events& told) : told_(told) {}
  ~noted() override { told_.emplace_back("end"); }
  noted(const noted&) = delete;
  noted& operator=(const noted&) = delete;
  void begin() override { told_.emplace_back("begin"); }

 private:
  events& told_;
};

/// A task that owns an object and names no memory.
stream_task owning(events& told) {
  return [&told, object = std::shared_ptr<int>(new int, [&told](const int* gone) {
                   told.emplace_back("destroyed");
                   delete gone;
                 })] {
    told.emplace_back("run");
    return cudaSuccess;
  };
}

// The destructors of a task's objects may free memory, which must not wait for work that is announced behind the task.
TEST(Stream, AnnouncesEachTaskUntilItsObjectsAreDestroyed) {
  events told;
  device_streams device(0, [&](const task_memory_uses&) { return std::make_shared<noted>(told); });
  const auto it = device.create(cudaStreamNonBlocking, 0);
  gate closed;
  EXPECT_EQ(it->enqueue(closed.as_task()), cudaSuccess);
  EXPECT_EQ(it->enqueue(owning(told)), cudaSuccess);
  EXPECT_EQ(it->enqueue_always([task = owning(told)](cudaError_t) { static_cast<void>(task()); }), cudaSuccess);
  closed.open();
  EXPECT_EQ(it->synchronize(), cudaSuccess);
  EXPECT_EQ(told, (events{"begin", "end", "begin", "run", "destroyed", "end", "begin", "run", "destroyed", "end"}));
}

TEST(Stream, AnnouncesDroppedTasksUntilTheirObjectsAreDestroyed) {
  events told;
  device_streams device(0, [&](const task_memory_uses&) { return std::make_shared<noted>(told); });
  const auto it = device.create(cudaStreamNonBlocking, 0);
  gate closed;
  EXPECT_EQ(it->enqueue(closed.as_task()), cudaSuccess);
  EXPECT_EQ(it->enqueue(owning(told)), cudaSuccess);
  device.fail(cudaErrorLaunchFailure);
  closed.open();
  EXPECT_EQ(it->synchronize(), cudaErrorLaunchFailure);
  EXPECT_EQ(told, (events{"begin", "end", "begin", "destroyed", "end"}));
}

TEST(Stream, HostFunctionsMayNotCall) {
  device_streams device(0);
  const auto it = device.create(cudaStreamDefault, 0);
  std::vector<cudaError_t> answers;
  bool is_in_function_behind_it = true;
  it->enqueue([&] {
    {
      const host_function_scope scope;
      answers = {it->enqueue([] { return cudaSuccess; }),
                 it->enqueue_always([](cudaError_t) {}),
                 it->synchronize(),
                 it->query(),
                 it->finish(),
                 device.synchronize()};
    }
    is_in_function_behind_it = in_host_function();
    return cudaSuccess;
  });
  EXPECT_EQ(it->synchronize(), cudaSuccess);
  ASSERT_EQ(answers.size(), 6U);
  for (const cudaError_t each : answers) EXPECT_EQ(each, cudaErrorNotPermitted);
  EXPECT_FALSE(is_in_function_behind_it);
  EXPECT_FALSE(in_host_function());
}

TEST(Stream, ItsThreadTakesNoneOfTheProgramsSignals) {
  device_streams device(0);
  const auto it = device.create(cudaStreamDefault, 0);
  sigset_t inside;
  ::sigemptyset(&inside);
  it->enqueue([&] {
    ::pthread_sigmask(SIG_BLOCK, nullptr, &inside);
    return cudaSuccess;
  });
  EXPECT_EQ(it->synchronize(), cudaSuccess);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGCHLD, SIGPROF, SIGRTMIN + 3})
    EXPECT_EQ(::sigismember(&inside, signal), 1) << ::strsignal(signal);
  EXPECT_EQ(::sigismember(&inside, SIGSEGV), 0) << "host functions may touch memory whose view is closed";
  sigset_t outside;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &outside);
  EXPECT_EQ(::sigismember(&outside, SIGINT), 0) << "the caller's signal mask is unchanged";
}

TEST(Stream, WithoutRoomForItsThreadWorkIsRefused) {
  device_streams device(0);
  const auto it = device.create(cudaStreamDefault, 0);
  std::atomic<int> ran{0};
  {
    const hpe::testing::no_more_threads here;
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(it->enqueue(set(ran, 1)), cudaErrorOperatingSystem);
    EXPECT_NE(::testing::internal::GetCapturedStderr().find("RLIMIT_NPROC"), std::string::npos);
    EXPECT_EQ(it->synchronize(), cudaSuccess) << "refused work must not stay in the queue";
  }
  EXPECT_EQ(it->enqueue(set(ran, 2)), cudaSuccess);
  EXPECT_EQ(it->synchronize(), cudaSuccess);
  EXPECT_EQ(ran, 2);
}

TEST(Stream, ManyThreadsShareStreams) {
  stream_table table(1);
  std::vector<cudaStream_t> handles;
  for (int i = 0; i < 4; ++i)
    handles.push_back(table.create(0, i % 2 == 0 ? cudaStreamDefault : cudaStreamNonBlocking, 0));
  std::atomic<int> ran{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        const auto where = i % 5 == 0 ? table.find(nullptr, 0) : table.find(handles[(t + i) % 4], 0);
        EXPECT_EQ(where->enqueue([&] {
          ++ran;
          return cudaSuccess;
        }),
                  cudaSuccess);
        if (i % 100 == 0) {
          EXPECT_EQ(where->synchronize(), cudaSuccess);
        }
        const cudaStream_t own = table.create(0, cudaStreamDefault, 0);
        EXPECT_TRUE(table.destroy(own));
      }
    });
  }
  for (auto& each : threads) each.join();
  EXPECT_EQ(table.of_device(0).synchronize(), cudaSuccess);
  EXPECT_EQ(ran, 8 * 300);
}

TEST(Stream, TellsItsFlagsAndPriority) {
  stream_table table(2);
  const auto it = table.find(table.create(1, cudaStreamNonBlocking, -3), 0);
  EXPECT_EQ(it->device(), 1);
  EXPECT_EQ(it->flags(), unsigned{cudaStreamNonBlocking});
  EXPECT_EQ(it->priority(), -3);
  EXPECT_NE(it->id(), table.find(nullptr, 1)->id());
  cudaStreamAttrValue value{};
  value.syncPolicy = cudaSyncPolicyYield;
  EXPECT_TRUE(it->attributes().set(cudaLaunchAttributeSynchronizationPolicy, value));
  EXPECT_FALSE(it->attributes().set(cudaLaunchAttributeClusterDimension, value));
  const auto other = table.find(nullptr, 1);
  other->attributes().copy_from(it->attributes());
  cudaStreamAttrValue told{};
  EXPECT_TRUE(other->attributes().get(cudaLaunchAttributeSynchronizationPolicy, told));
  EXPECT_EQ(told.syncPolicy, cudaSyncPolicyYield);
}

}  // namespace
}  // namespace hpe::cudart
