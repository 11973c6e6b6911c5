#include "interpose/soft/cudart/stream/capture.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>

#include "interpose/soft/cudart/device/thread_state.h"
#include "interpose/soft/cudart/graph/graph_exec.h"
#include "interpose/soft/cudart/stream/stream_table.h"
#include "tests/interpose/soft/cudart/code_of.h"
#include "tests/interpose/soft/cudart/gate.h"
#include "tests/interpose/soft/cudart/host_work.h"

namespace hpe::cudart {
namespace {

using testing::code_of;
using testing::journal;

class Capture : public ::testing::Test {
 protected:
  std::shared_ptr<cudart_stream> create(unsigned flags = cudaStreamNonBlocking) {
    return streams_.find(streams_.create(0, flags, 0), 0);
  }

  std::shared_ptr<capture> begin(const std::shared_ptr<cudart_stream>& where,
                                 cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
    auto begun = std::make_shared<capture>(graphs_.make(), mode);
    begun->begin(where, {});
    table_.add(begun);
    return begun;
  }

  void note(cudart_stream& where, int number) { ASSERT_EQ(submit(where, notes_.note(number)), cudaSuccess); }

  /// Makes stream `to` wait for the work on stream `from`.
  static std::shared_ptr<event> join(cudart_stream& from, cudart_stream& to) {
    auto made = std::make_shared<event>(0, 0);
    record_event(from, nullptr, made, 0);
    wait_for_event(to, nullptr, made, 0);
    return made;
  }

  static cudaStreamCaptureStatus status(const cudart_stream& of) {
    const auto active = of.capturing();
    return active ? active->state(of).status : cudaStreamCaptureStatusNone;
  }

  journal notes_;
  graph_table graphs_;
  stream_table streams_{1};
  capture_table table_;
};

TEST_F(Capture, WorkBecomesNodesInsteadOfRunning) {
  const auto a = create();
  const auto active = begin(a);
  note(*a, 1);
  note(*a, 2);
  EXPECT_EQ(status(*a), cudaStreamCaptureStatusActive);
  EXPECT_EQ(active->state(*a).after->size(), 1U);
  const auto made = active->end(*a);
  EXPECT_EQ(status(*a), cudaStreamCaptureStatusNone);
  EXPECT_TRUE(notes_.take().empty());
  ASSERT_EQ(made->nodes().size(), 2U);
  EXPECT_EQ(made->nodes()[1]->before().front(), made->nodes()[0].get());
  graph_exec exec(*made, 0);
  exec.launch(*a);
  EXPECT_EQ(a->synchronize(), cudaSuccess);
  EXPECT_EQ(notes_.take(), (std::vector{1, 2}));
  note(*a, 3);  // the stream still works
  EXPECT_EQ(a->synchronize(), cudaSuccess);
  EXPECT_EQ(notes_.take(), std::vector{3});
}

TEST_F(Capture, ForksAndJoinsByEvents) {
  const auto a = create();
  const auto b = create();
  const auto active = begin(a);
  note(*a, 1);
  join(*a, *b);
  EXPECT_EQ(b->capturing(), active);
  note(*b, 2);
  note(*a, 3);
  join(*b, *a);
  note(*a, 4);
  const auto made = active->end(*a);
  EXPECT_EQ(b->capturing(), nullptr);
  ASSERT_EQ(made->nodes().size(), 4U);
  const auto& nodes = made->nodes();
  EXPECT_EQ(nodes[1]->before(), std::vector{nodes[0].get()});
  EXPECT_EQ(nodes[2]->before(), std::vector{nodes[0].get()});
  EXPECT_EQ(nodes[3]->before(), (std::vector{nodes[2].get(), nodes[1].get()}));
}

TEST_F(Capture, StreamsThatDoNotJoinAgainAreAnError) {
  const auto a = create();
  const auto b = create();
  const auto active = begin(a);
  note(*a, 1);
  join(*a, *b);
  note(*b, 2);
  EXPECT_EQ(code_of([&] { active->end(*b); }), cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(code_of([&] { active->end(*a); }), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(status(*a), cudaStreamCaptureStatusNone);
  EXPECT_EQ(status(*b), cudaStreamCaptureStatusNone);
}

TEST_F(Capture, AForkWithoutWorkNeedsNoJoin) {
  const auto a = create();
  const auto b = create();
  const auto active = begin(a);
  note(*a, 1);
  join(*a, *b);
  EXPECT_EQ(active->end(*a)->nodes().size(), 1U);
}

TEST_F(Capture, ADestroyedForkStaysPartOfIt) {
  const auto a = create();
  const cudaStream_t joined = streams_.create(0, cudaStreamNonBlocking, 0);
  const auto active = begin(a);
  note(*a, 1);
  {
    const auto b = streams_.find(joined, 0);
    join(*a, *b);
    note(*b, 2);
    join(*b, *a);
    active->lose(*b);
  }
  streams_.destroy(joined);
  note(*a, 3);
  EXPECT_EQ(status(*a), cudaStreamCaptureStatusActive);
  EXPECT_EQ(active->end(*a)->nodes().size(), 3U);

  const auto b = create();
  const auto again = begin(a);
  note(*a, 1);
  join(*a, *b);
  note(*b, 2);
  again->lose(*b);
  EXPECT_EQ(code_of([&] { again->end(*a); }), cudaErrorStreamCaptureUnjoined);

  const auto third = begin(a);
  third->lose(*a);
  EXPECT_EQ(status(*a), cudaStreamCaptureStatusInvalidated);
  EXPECT_EQ(code_of([&] { third->end(*a); }), cudaErrorStreamCaptureInvalidated);
}

TEST_F(Capture, ForbiddenCallsInvalidateIt) {
  const auto a = create();
  const auto active = begin(a);
  note(*a, 1);
  EXPECT_EQ(code_of([&] { require_not_capturing(*a); }), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(status(*a), cudaStreamCaptureStatusInvalidated);
  EXPECT_EQ(code_of([&] { require_not_capturing(*a); }), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(code_of([&] { submit(*a, notes_.note(2)); }), cudaErrorStreamCaptureInvalidated);
  const auto made = std::make_shared<event>(0, 0);
  EXPECT_EQ(code_of([&] { record_event(*a, nullptr, made, 0); }), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(code_of([&] { active->end(*a); }), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(status(*a), cudaStreamCaptureStatusNone);
  note(*a, 3);
  EXPECT_EQ(a->synchronize(), cudaSuccess);
  EXPECT_EQ(notes_.take(), std::vector{3});
}

TEST_F(Capture, TellsWhichCallInvalidatedIt) {
  const auto reason_of_end = [](capture& active, cudart_stream& where) -> std::string {
    try {
      active.end(where);
    } catch (const failure& caught) {
      return caught.reason();
    }
    return "no failure";
  };
  const auto a = create();
  const auto active = begin(a);
  {
    const call_scope inside("cudaStreamSynchronize");
    EXPECT_EQ(code_of([&] { require_not_capturing(*a); }), cudaErrorStreamCaptureUnsupported);
  }
  {
    const call_scope inside("cudaStreamQuery");  // too late: the capture is already invalid
    EXPECT_EQ(code_of([&] { require_not_capturing(*a); }), cudaErrorStreamCaptureInvalidated);
  }
  EXPECT_EQ(reason_of_end(*active, *a), "cudaStreamSynchronize invalidated the capture");
  const auto another = begin(a);
  another->lose(*a);
  EXPECT_EQ(reason_of_end(*another, *a), "cudaStreamDestroy destroyed the stream in which the capture began");
}

TEST_F(Capture, SynchronizingTheDeviceIsForbidden) {
  const auto a = create();
  const auto active = begin(a, cudaStreamCaptureModeRelaxed);
  device_streams& device = streams_.of_device(0);
  EXPECT_EQ(code_of([&] { require_none_capturing(device.captures()); }), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(code_of([&] { active->end(*a); }), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(code_of([&] { require_none_capturing(device.captures()); }), cudaSuccess);
}

TEST_F(Capture, LegacyStreamWouldBecomePartOfBlockingOnes) {
  const auto blocking = create(cudaStreamDefault);
  const auto legacy = streams_.find(nullptr, 0);
  EXPECT_EQ(code_of([&] { begin(legacy); }), cudaErrorStreamCaptureUnsupported);
  const auto active = begin(blocking);
  EXPECT_EQ(code_of([&] { submit(*legacy, notes_.note(1)); }), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(code_of([&] { active->end(*blocking); }), cudaErrorStreamCaptureInvalidated);

  const auto free = create();
  const auto other = begin(free);
  note(*legacy, 2);
  EXPECT_EQ(legacy->synchronize(), cudaSuccess);
  EXPECT_EQ(notes_.take(), std::vector{2});
  record_event(*free, nullptr, std::make_shared<event>(0, 0), 0);
  EXPECT_EQ(code_of([&] { join(*free, *legacy); }), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(code_of([&] { other->end(*free); }), cudaErrorStreamCaptureInvalidated);
}

// Each way to queue work on the legacy stream invalidates the captures of blocking streams.
TEST_F(Capture, RecordingsAndWaitsOnTheLegacyStreamWouldBecomePartOfBlockingOnes) {
  const auto blocking = create(cudaStreamDefault), free = create();
  const auto legacy = streams_.find(nullptr, 0);
  const auto recorded = std::make_shared<event>(0, 0);
  record_event(*free, nullptr, recorded, 0);
  const std::function<void()> ways[] = {[&] { record_event(*legacy, nullptr, std::make_shared<event>(0, 0), 0); },
                                        [&] { wait_for_event(*legacy, nullptr, recorded, 0); },
                                        [&] { require_not_capturing(*legacy); }};
  for (const auto& way : ways) {
    EXPECT_EQ(code_of(way), cudaSuccess) << "nothing is captured";
    const auto active = begin(blocking);
    EXPECT_EQ(code_of(way), cudaErrorStreamCaptureImplicit);
    EXPECT_EQ(status(*blocking), cudaStreamCaptureStatusInvalidated);
    EXPECT_EQ(code_of([&] { active->end(*blocking); }), cudaErrorStreamCaptureInvalidated);
  }
}

TEST_F(Capture, UnsafeCallsAreForbiddenByMode) {
  const auto a = create();
  const auto unsafe = [&] { return code_of([&] { table_.require_unsafe_calls_allowed(); }); };
  const auto unsafe_elsewhere = [&](cudaStreamCaptureMode mode) {
    cudaError_t result{};
    std::thread([&] {
      thread_capture_mode() = mode;
      result = unsafe();
    }).join();
    return result;
  };
  constexpr auto global = cudaStreamCaptureModeGlobal;
  constexpr auto local = cudaStreamCaptureModeThreadLocal;
  constexpr auto relaxed = cudaStreamCaptureModeRelaxed;
  EXPECT_EQ(unsafe(), cudaSuccess);
  const std::pair<cudaStreamCaptureMode, std::vector<cudaError_t>> cases[] = {
      // the results in this thread, then in other threads with the modes global, thread local and relaxed
      {global, {cudaErrorStreamCaptureUnsupported, cudaErrorStreamCaptureUnsupported, cudaSuccess, cudaSuccess}},
      {local, {cudaErrorStreamCaptureUnsupported, cudaSuccess, cudaSuccess, cudaSuccess}},
      {relaxed, {cudaSuccess, cudaSuccess, cudaSuccess, cudaSuccess}}};
  for (const auto& [mode, expected] : cases) {
    const auto active = begin(a, mode);
    EXPECT_EQ(unsafe_elsewhere(relaxed), expected[3]);
    EXPECT_EQ(unsafe_elsewhere(local), expected[2]);
    EXPECT_EQ(status(*a), cudaStreamCaptureStatusActive);
    EXPECT_EQ(unsafe_elsewhere(global), expected[1]);
    EXPECT_EQ(unsafe(), expected[0]);
    const bool disturbed = expected[0] != cudaSuccess;
    EXPECT_EQ(code_of([&] { active->end(*a); }), disturbed ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
    EXPECT_EQ(unsafe(), cudaSuccess);
  }
}

TEST_F(Capture, EndsInTheThreadWhereItBegan) {
  const auto a = create();
  const auto end_elsewhere = [&](capture& active) {
    cudaError_t result{};
    std::thread([&] { result = code_of([&] { active.end(*a); }); }).join();
    return result;
  };
  const auto active = begin(a);
  EXPECT_EQ(end_elsewhere(*active), cudaErrorStreamCaptureWrongThread);
  EXPECT_EQ(code_of([&] { active->end(*a); }), cudaSuccess);
  EXPECT_EQ(end_elsewhere(*begin(a, cudaStreamCaptureModeRelaxed)), cudaSuccess);
}

TEST_F(Capture, CapturedEventsAreNotForTheHost) {
  const auto a = create();
  const auto it = std::make_shared<event>(0, 0);
  const auto active = begin(a);
  record_event(*a, nullptr, it, 0);
  EXPECT_EQ(code_of([&] { it->query(); }), cudaErrorCapturedEvent);
  EXPECT_EQ(code_of([&] { it->synchronize(); }), cudaErrorCapturedEvent);
  active->end(*a);
  EXPECT_EQ(code_of([&] { it->query(); }), cudaErrorCapturedEvent);
  EXPECT_EQ(code_of([&] { wait_for_event(*a, nullptr, it, 0); }), cudaErrorCapturedEvent);
  record_event(*a, nullptr, it, 0);
  EXPECT_EQ(it->synchronize(), cudaSuccess);
}

TEST_F(Capture, CapturesDoNotMixWithOthersNorWithWorkBefore) {
  const auto a = create();
  const auto b = create();
  const auto first = begin(a);
  const auto second = begin(b);
  EXPECT_EQ(code_of([&] { join(*a, *b); }), cudaErrorStreamCaptureMerge);
  EXPECT_EQ(code_of([&] { first->end(*a); }), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(code_of([&] { second->end(*b); }), cudaErrorStreamCaptureInvalidated);

  const auto before = std::make_shared<event>(0, 0);
  record_event(*a, nullptr, before, 0);
  const auto third = begin(b);
  EXPECT_EQ(code_of([&] { begin(b); }), cudaErrorIllegalState);
  EXPECT_EQ(code_of([&] { wait_for_event(*b, nullptr, before, 0); }), cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(code_of([&] { third->end(*b); }), cudaErrorStreamCaptureInvalidated);
}

TEST_F(Capture, ExternalEventsBecomeNodes) {
  const auto a = create();
  const auto it = std::make_shared<event>(0, 0);
  const auto active = begin(a);
  record_event(*a, nullptr, it, cudaEventRecordExternal);
  wait_for_event(*a, nullptr, it, cudaEventWaitExternal);
  EXPECT_EQ(it->query(), cudaSuccess);  // not recorded yet
  const auto made = active->end(*a);
  ASSERT_EQ(made->nodes().size(), 2U);
  EXPECT_EQ(made->nodes()[0]->type(), cudaGraphNodeTypeEventRecord);
  EXPECT_EQ(made->nodes()[1]->type(), cudaGraphNodeTypeWaitEvent);
  graph_exec exec(*made, 0);
  exec.launch(*a);
  EXPECT_EQ(it->synchronize(), cudaSuccess);
  EXPECT_TRUE(it->last());
}

TEST_F(Capture, AddsToAnExistingGraph) {
  const auto into = graphs_.make();
  graph_node& first = into->add(notes_.note(1), {}, 0);
  graph_node& second = into->add(notes_.note(2), {}, 0);
  const auto a = create();
  const auto active = std::make_shared<capture>(into, cudaStreamCaptureModeGlobal);
  active->begin(a, std::vector{&first});
  note(*a, 3);
  active->set_position(*a, std::vector{&second});
  note(*a, 4);
  active->join(*a, std::vector{&first});
  note(*a, 5);
  EXPECT_EQ(active->end(*a), into);
  const auto& nodes = into->nodes();
  ASSERT_EQ(nodes.size(), 5U);
  EXPECT_EQ(nodes[2]->before(), std::vector{&first});
  EXPECT_EQ(nodes[3]->before(), std::vector{&second});
  EXPECT_EQ(nodes[4]->before(), (std::vector{nodes[3].get(), &first}));
}

}  // namespace
}  // namespace hpe::cudart
