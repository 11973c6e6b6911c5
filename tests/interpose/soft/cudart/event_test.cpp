#include "interpose/soft/cudart/stream/event.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "interpose/soft/cudart/stream/capture.h"
#include "interpose/soft/cudart/stream/stream_table.h"
#include "tests/interpose/soft/cudart/code_of.h"
#include "tests/interpose/soft/cudart/gate.h"

namespace hpe::cudart {
namespace {

using testing::code_of;
using testing::gate;

TEST(Event, IsReachedWhenTheWorkBeforeItHasFinished) {
  device_streams device(0);
  event it(0, 0);
  EXPECT_EQ(it.query(), cudaSuccess);  // never recorded
  EXPECT_EQ(it.synchronize(), cudaSuccess);
  gate closed;
  gate behind;
  device.legacy()->enqueue(closed.as_task());
  it.record(*device.legacy());
  device.legacy()->enqueue(behind.as_task());
  EXPECT_EQ(it.query(), cudaErrorNotReady);
  closed.open();
  EXPECT_EQ(it.synchronize(), cudaSuccess);
  EXPECT_EQ(it.query(), cudaSuccess);
}

TEST(Event, WaitersKeepTheRecordingThatTheySaw) {
  device_streams device(0);
  const auto a = device.create(cudaStreamNonBlocking, 0);
  const auto b = device.create(cudaStreamNonBlocking, 0);
  const auto it = std::make_shared<event>(0, 0);
  gate later;
  record_event(*a, nullptr, it, 0);
  wait_for_event(*b, nullptr, it, 0);
  a->enqueue(later.as_task());
  record_event(*a, nullptr, it, 0);
  EXPECT_EQ(b->synchronize(), cudaSuccess);  // does not wait for the second recording
  EXPECT_EQ(it->query(), cudaErrorNotReady);
}

TEST(Event, StreamsOfOtherDevicesWaitToo) {
  stream_table table(2);
  const auto it = std::make_shared<event>(0, 0);
  gate closed;
  std::atomic<int> value{0};
  std::atomic<int> seen{-1};
  table.find(nullptr, 0)->enqueue([&] {
    closed.pass();
    value = 7;
    return cudaSuccess;
  });
  record_event(*table.find(nullptr, 0), nullptr, it, 0);
  wait_for_event(*table.find(nullptr, 1), nullptr, it, 0);
  table.find(nullptr, 1)->enqueue([&] {
    seen = value.load();
    return cudaSuccess;
  });
  EXPECT_EQ(table.find(nullptr, 1)->query(), cudaErrorNotReady);
  closed.open();
  EXPECT_EQ(table.find(nullptr, 1)->synchronize(), cudaSuccess);
  EXPECT_EQ(seen, 7);
  EXPECT_EQ(code_of([&] { it->record(*table.find(nullptr, 1)); }), cudaErrorInvalidResourceHandle);
}

TEST(Event, TellsTheTimeBetween) {
  device_streams device(0);
  event begin(0, 0);
  event end(0, 0);
  begin.record(*device.legacy());
  device.legacy()->enqueue([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    return cudaSuccess;
  });
  end.record(*device.legacy());
  EXPECT_EQ(end.synchronize(), cudaSuccess);
  EXPECT_GE(elapsed_milliseconds(begin, end), 29.9F);
  EXPECT_LT(elapsed_milliseconds(begin, end), 10000.0F);
  EXPECT_FLOAT_EQ(elapsed_milliseconds(begin, end), -elapsed_milliseconds(end, begin));
}

TEST(Event, RefusesToTellATimeThatItDoesNotHave) {
  stream_table table(2);
  const event unrecorded(0, 0);
  event recorded(0, 0);
  event untimed(0, cudaEventDisableTiming);
  event elsewhere(1, 0);
  event pending(0, 0);
  recorded.record(*table.find(nullptr, 0));
  untimed.record(*table.find(nullptr, 0));
  elsewhere.record(*table.find(nullptr, 1));
  EXPECT_EQ(table.of_device(0).synchronize(), cudaSuccess);
  EXPECT_EQ(table.of_device(1).synchronize(), cudaSuccess);
  gate closed;
  table.find(nullptr, 0)->enqueue(closed.as_task());
  pending.record(*table.find(nullptr, 0));
  EXPECT_EQ(code_of([&] { elapsed_milliseconds(recorded, unrecorded); }), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(code_of([&] { elapsed_milliseconds(untimed, recorded); }), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(code_of([&] { elapsed_milliseconds(recorded, elsewhere); }), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(code_of([&] { elapsed_milliseconds(recorded, pending); }), cudaErrorNotReady);
  EXPECT_EQ(elapsed_milliseconds(recorded, recorded), 0.0F);
}

TEST(Event, HandlesOfDestroyedEventsAreUnknownAndTheirWaitersGoOn) {
  device_streams device(0);
  event_table table;
  const cudaEvent_t handle = table.create(0, 0);
  gate closed;
  const auto a = device.create(cudaStreamNonBlocking, 0);
  const auto b = device.create(cudaStreamNonBlocking, 0);
  a->enqueue(closed.as_task());
  record_event(*a, handle, table.find(handle), 0);
  wait_for_event(*b, handle, table.find(handle), 0);
  table.destroy(handle);
  EXPECT_EQ(code_of([&] { table.find(handle); }), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(code_of([&] { table.destroy(handle); }), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(b->query(), cudaErrorNotReady);
  closed.open();
  EXPECT_EQ(b->synchronize(), cudaSuccess);
}

TEST(Event, TellsTheStickyError) {
  device_streams device(0);
  event it(0, 0);
  gate closed;  // lets the work fail only after record(), which would otherwise return the error
  device.legacy()->enqueue(closed.as_task());
  device.legacy()->enqueue([] { return cudaErrorLaunchFailure; });
  it.record(*device.legacy());
  closed.open();
  EXPECT_EQ(it.synchronize(), cudaErrorLaunchFailure);
  EXPECT_EQ(it.query(), cudaErrorLaunchFailure);
}

TEST(Event, FlagsForGraphsAreForCapture) {
  device_streams device(0);
  const auto it = std::make_shared<event>(0, 0);
  const auto record = [&](unsigned flags) { record_event(*device.legacy(), nullptr, it, flags); };
  const auto wait = [&](unsigned flags) { wait_for_event(*device.legacy(), nullptr, it, flags); };
  EXPECT_EQ(code_of([&] { record(cudaEventRecordExternal); }), cudaErrorInvalidValue);
  EXPECT_EQ(code_of([&] { record(8); }), cudaErrorInvalidValue);
  EXPECT_EQ(code_of([&] { wait(cudaEventWaitExternal); }), cudaErrorInvalidValue);
  EXPECT_EQ(code_of([&] { wait(8); }), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace hpe::cudart
