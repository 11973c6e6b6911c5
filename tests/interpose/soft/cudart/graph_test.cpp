#include "interpose/soft/cudart/graph/graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "interpose/soft/cudart/graph/graph_exec.h"
#include "interpose/soft/cudart/stream/stream_table.h"
#include "tests/interpose/soft/cudart/code_of.h"
#include "tests/interpose/soft/cudart/gate.h"
#include "tests/interpose/soft/cudart/host_work.h"

namespace hpe::cudart {
namespace {

using testing::code_of;
using testing::gate;
using testing::journal;
using nodes = std::vector<graph_node*>;

class Graph : public ::testing::Test {
 protected:
  graph_node& add(graph& to, int number, const nodes& before = {}) { return to.add(notes_.note(number), before, 0); }

  graph_node& add_child(graph& to, const graph& child, const nodes& before = {}) {
    graph_node& made = to.add(std::make_shared<marker_operation>(cudaGraphNodeTypeGraph), before, 0);
    made.set_child(child.clone());
    return made;
  }

  std::vector<int> launched(graph_exec& what) {
    what.launch(*streams_.find(nullptr, 0));
    EXPECT_EQ(streams_.of_device(0).synchronize(), cudaSuccess);
    return notes_.take();
  }

  graph& make() { return table_.find(table_.create()); }

  journal notes_;
  graph_table table_;
  stream_table streams_{1};
};

TEST_F(Graph, RunsNodesAfterTheirDependencies) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 20; ++round) {
    graph& it = make();
    nodes made;
    for (int i = 0; i < 40; ++i) made.push_back(&add(it, i));
    std::vector<int> rank(40);
    for (int i = 0; i < 40; ++i) rank[i] = i;
    std::shuffle(rank.begin(), rank.end(), random);
    for (int edge = 0; edge < 100; ++edge) {  // edges follow a random order of the nodes, so that there is no cycle
      const int a = static_cast<int>(random() % 40);
      const int b = static_cast<int>(random() % 40);
      if (rank[a] < rank[b]) code_of([&] { it.connect(*made[a], *made[b]); });
    }
    graph_exec exec(it, 0);
    const std::vector<int> order = launched(exec);
    ASSERT_EQ(order.size(), 40U);
    const auto place = [&](int number) { return std::find(order.begin(), order.end(), number) - order.begin(); };
    for (int i = 0; i < 40; ++i) {
      for (const graph_node* const before : made[i]->before()) {
        const auto from = std::find(made.begin(), made.end(), before) - made.begin();
        EXPECT_LT(place(static_cast<int>(from)), place(i));
      }
    }
  }
}

TEST_F(Graph, AnEmptyOneCanBeLaunched) {
  graph_exec exec(make(), 0);
  EXPECT_TRUE(launched(exec).empty());
}

TEST_F(Graph, RefusesCirclesAndWrongEdges) {
  graph& it = make();
  graph& other = make();
  graph_node& a = add(it, 1);
  graph_node& b = add(it, 2, {&a});
  graph_node& foreign = add(other, 3);
  EXPECT_EQ(code_of([&] { it.connect(a, b); }), cudaErrorInvalidValue);
  EXPECT_EQ(code_of([&] { it.connect(a, a); }), cudaErrorInvalidValue);
  EXPECT_EQ(code_of([&] { it.connect(a, foreign); }), cudaErrorInvalidValue);
  EXPECT_EQ(code_of([&] { it.disconnect(b, a); }), cudaErrorInvalidValue);
  EXPECT_EQ(code_of([&] { add(it, 4, {&a, &a}); }), cudaErrorInvalidValue);
  EXPECT_EQ(code_of([&] { add(it, 4, {&foreign}); }), cudaErrorInvalidValue);
  it.connect(b, a);
  EXPECT_EQ(code_of([&] { graph_exec(it, 0); }), cudaErrorInvalidValue);
  it.disconnect(a, b);
  graph_exec exec(it, 0);
  EXPECT_EQ(launched(exec), (std::vector{2, 1}));
}

TEST_F(Graph, NodesLeaveWithTheirEdges) {
  graph& it = make();
  graph_node& a = add(it, 1);
  graph_node& b = add(it, 2, {&a});
  graph_node& c = add(it, 3, {&b});
  const cudaGraphNode_t gone = handle_of(b);
  it.remove(b);
  EXPECT_TRUE(a.after().empty());
  EXPECT_TRUE(c.before().empty());
  EXPECT_EQ(code_of([&] { table_.find(gone); }), cudaErrorInvalidValue);
  EXPECT_EQ(&table_.find(handle_of(c)), &c);
}

TEST_F(Graph, HandlesOfDestroyedGraphsAreUnknown) {
  graph& it = make();
  const cudaGraph_t handle = handle_of(it);
  const cudaGraphNode_t node = handle_of(add(it, 1));
  const cudaGraph_t child = handle_of(*add_child(it, it).child());
  EXPECT_EQ(code_of([&] { table_.destroy(child); }), cudaErrorInvalidValue);  // a child graph belongs to its node
  EXPECT_EQ(code_of([&] { table_.find(child); }), cudaSuccess);
  table_.destroy(handle);
  EXPECT_EQ(code_of([&] { table_.destroy(handle); }), cudaErrorInvalidValue);
  EXPECT_EQ(code_of([&] { table_.find(handle); }), cudaErrorInvalidValue);
  EXPECT_EQ(code_of([&] { table_.find(node); }), cudaErrorInvalidValue);
  EXPECT_EQ(code_of([&] { table_.find(child); }), cudaErrorInvalidValue);
}

TEST_F(Graph, ChildGraphsAreCopiesThatRunAsOneNode) {
  graph& child = make();
  graph_node& x = add(child, 10);
  add(child, 11, {&x});
  graph& it = make();
  graph_node& a = add(it, 1);
  graph_node& inner = add_child(it, child, {&a});
  add(it, 2, {&inner});
  add(child, 12);  // has no effect on the child graph, which is a copy
  graph_exec exec(it, 0);
  EXPECT_EQ(launched(exec), (std::vector{1, 10, 11, 2}));
}

TEST_F(Graph, ClonesKnowTheirOriginals) {
  graph& it = make();
  graph_node& a = add(it, 1);
  graph_node& b = add(it, 2, {&a});
  const auto copy = it.clone();
  ASSERT_EQ(copy->nodes().size(), 2U);
  EXPECT_EQ(copy->nodes()[1]->origin(), b.id());
  EXPECT_EQ(copy->nodes()[1]->before(), nodes{copy->nodes()[0].get()});
  EXPECT_EQ(copy->nodes()[0]->after(), nodes{copy->nodes()[1].get()});
  it.remove(a);
  graph_exec exec(*copy, 0);
  EXPECT_EQ(launched(exec), (std::vector{1, 2}));
}

TEST_F(Graph, ExecutablesDoNotFollowTheGraphButTheirOwnChanges) {
  graph& it = make();
  graph_node& a = add(it, 1);
  graph_node& b = add(it, 2, {&a});
  graph_exec exec(it, 0);
  b.set(notes_.note(20));
  EXPECT_EQ(launched(exec), (std::vector{1, 2}));
  exec.set(b, notes_.note(30));
  EXPECT_EQ(launched(exec), (std::vector{1, 30}));
  const auto marker = std::make_shared<marker_operation>(cudaGraphNodeTypeEmpty);
  EXPECT_EQ(code_of([&] { exec.set(b, marker); }), cudaErrorInvalidValue);
  EXPECT_EQ(code_of([&] { exec.set(add(it, 5), notes_.note(6)); }), cudaErrorInvalidValue);
  EXPECT_EQ(code_of([&] { exec.enable(b, false); }), cudaErrorInvalidValue);  // host nodes cannot be disabled
}

TEST_F(Graph, UpdatesTakeGraphsOfTheSameShape) {
  graph& it = make();
  graph_node& a = add(it, 1);
  add(it, 2, {&a});
  graph_exec exec(it, 0);

  graph& same = make();
  graph_node& c = add(same, 3);
  add(same, 4, {&c});
  graph_node* differing = nullptr;
  EXPECT_EQ(exec.update(same, &differing), cudaGraphExecUpdateSuccess);
  EXPECT_EQ(launched(exec), (std::vector{3, 4}));
  exec.set(a, notes_.note(5));  // the steps are still identified by the nodes of the first graph
  EXPECT_EQ(launched(exec), (std::vector{5, 4}));

  graph& unconnected = make();
  add(unconnected, 6);
  graph_node& d = add(unconnected, 7);
  EXPECT_EQ(exec.update(unconnected, &differing), cudaGraphExecUpdateErrorTopologyChanged);
  EXPECT_EQ(differing, &d);

  graph& other_type = make();
  graph_node& e = other_type.add(std::make_shared<marker_operation>(cudaGraphNodeTypeEmpty), {}, 0);
  add(other_type, 8, {&e});
  EXPECT_EQ(exec.update(other_type, &differing), cudaGraphExecUpdateErrorNodeTypeChanged);
  EXPECT_EQ(differing, &e);

  graph& longer = make();
  add(longer, 9);
  EXPECT_EQ(exec.update(longer, nullptr), cudaGraphExecUpdateErrorTopologyChanged);
  EXPECT_EQ(launched(exec), (std::vector{5, 4}));
}

TEST_F(Graph, ChildGraphsOfExecutablesCanBeReplaced) {
  graph& child = make();
  graph_node& x = add(child, 10);
  add(child, 11, {&x});
  graph& it = make();
  graph_node& a = add(it, 1);
  graph_node& inner = add_child(it, child, {&a});
  graph_exec exec(it, 0);

  graph& other = make();
  graph_node& y = add(other, 20);
  add(other, 21, {&y});
  exec.set_child(inner, other);
  EXPECT_EQ(launched(exec), (std::vector{1, 20, 21}));
  graph& wrong = make();
  add(wrong, 30);
  EXPECT_EQ(code_of([&] { exec.set_child(inner, wrong); }), cudaErrorInvalidValue);
  EXPECT_EQ(code_of([&] { exec.set_child(a, other); }), cudaErrorInvalidValue);
  EXPECT_EQ(launched(exec), (std::vector{1, 20, 21}));
}

TEST_F(Graph, LaunchesOfOneExecutableFollowEachOtherInAnyStreams) {
  graph& it = make();
  add(it, 1);
  graph_exec exec(it, 0);
  const auto a = streams_.find(streams_.create(0, cudaStreamNonBlocking, 0), 0);
  const auto b = streams_.find(streams_.create(0, cudaStreamNonBlocking, 0), 0);
  gate closed;
  a->enqueue(closed.as_task());
  exec.launch(*a);
  exec.launch(*b);
  EXPECT_EQ(b->query(), cudaErrorNotReady);
  closed.open();
  EXPECT_EQ(b->synchronize(), cudaSuccess);
  EXPECT_EQ(notes_.take(), (std::vector{1, 1}));
}

TEST_F(Graph, QueuedLaunchesKeepTheNodesOfTheirStart) {
  graph& it = make();
  graph_node& a = add(it, 1);
  auto exec = std::make_unique<graph_exec>(it, 0);
  gate closed;
  const auto where = streams_.find(nullptr, 0);
  where->enqueue(closed.as_task());
  exec->launch(*where);
  exec->set(a, notes_.note(2));
  exec->launch(*where);
  exec.reset();
  table_.destroy(handle_of(it));
  closed.open();
  EXPECT_EQ(where->synchronize(), cudaSuccess);
  EXPECT_EQ(notes_.take(), (std::vector{1, 2}));
}

TEST_F(Graph, EventNodesRecordAndWait) {
  const auto recorded = std::make_shared<event>(0, 0);
  const auto awaited = std::make_shared<event>(0, 0);
  graph& it = make();
  graph_node& wait = it.add(std::make_shared<wait_operation>(nullptr, awaited), {}, 0);
  graph_node& work = add(it, 1, nodes{&wait});
  graph_node& record = it.add(std::make_shared<record_operation>(nullptr, recorded), nodes{&work}, 0);
  add(it, 2, nodes{&record});
  graph_exec exec(it, 0);
  EXPECT_EQ(launched(exec), (std::vector{1, 2}));  // the wait for an event that was never recorded has no effect
  EXPECT_EQ(recorded->query(), cudaSuccess);

  const auto other = streams_.find(streams_.create(0, cudaStreamNonBlocking, 0), 0);
  gate closed;
  other->enqueue(closed.as_task());
  awaited->record(*other);
  exec.launch(*streams_.find(nullptr, 0));
  EXPECT_EQ(recorded->query(), cudaErrorNotReady);
  closed.open();
  EXPECT_EQ(recorded->synchronize(), cudaSuccess);
  EXPECT_EQ(streams_.of_device(0).synchronize(), cudaSuccess);
  EXPECT_EQ(notes_.take(), (std::vector{1, 2}));
  EXPECT_GT(recorded->last()->time(), awaited->last()->time());
}

TEST_F(Graph, EventsOfALaunchThatIsDroppedAreReached) {
  const auto recorded = std::make_shared<event>(0, 0);
  graph& it = make();
  it.add(std::make_shared<record_operation>(nullptr, recorded), {}, 0);
  graph_exec exec(it, 0);
  const auto where = streams_.find(nullptr, 0);
  gate closed;
  where->enqueue([&] {
    closed.pass();
    return cudaErrorIllegalAddress;
  });
  exec.launch(*where);
  closed.open();
  EXPECT_EQ(recorded->synchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(code_of([&] { exec.launch(*where); }), cudaErrorIllegalAddress);
  EXPECT_EQ(recorded->synchronize(), cudaErrorIllegalAddress);
}

}  // namespace
}  // namespace hpe::cudart
