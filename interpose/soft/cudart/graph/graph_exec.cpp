// A plan is a list of steps; each step comes after the steps on which it depends. Each change of the executable graph
// creates a new plan, and queued launches continue to use the plan with which they were queued.

#include "interpose/soft/cudart/graph/graph_exec.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "interpose/soft/cudart/device/failure.h"
#include "interpose/soft/cudart/graph/graph_operations.h"

namespace hpe::cudart {
namespace {

std::uint64_t next_exec_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

bool may_be_in_body(cudaGraphNodeType type) {
  return type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemcpy || type == cudaGraphNodeTypeMemset ||
         type == cudaGraphNodeTypeEmpty || type == cudaGraphNodeTypeGraph || type == cudaGraphNodeTypeConditional;
}

bool can_be_disabled(cudaGraphNodeType type) {
  return type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemcpy || type == cudaGraphNodeTypeMemset;
}

}  // namespace

graph_exec::graph_exec(const graph& from, unsigned long long flags)
    : flags_(flags),
      kept_(std::make_shared<const std::vector<std::shared_ptr<void>>>(from.kept())),
      id_(next_exec_id()),
      plan_(std::make_shared<const plan>(make_plan(from))) {}

void graph_exec::append(plan& steps, const graph& from, const std::vector<std::size_t>& roots_depend_on) {
  std::unordered_map<const graph_node*, std::size_t> places;
  for (graph_node* const node : from.in_order()) {
    std::vector<std::size_t> before = roots_depend_on;
    if (!node->before().empty()) before.clear();
    for (const graph_node* const each : node->before()) before.push_back(places.at(each));
    std::sort(before.begin(), before.end());

    const std::size_t begin = steps.size();
    if (node->child() != nullptr) append(steps, *node->child(), before);
    step made{node->id(), node->device(), true, node->what(), {}, std::move(before), steps.size() - begin, node};
    for (const auto& body : node->bodies()) {
      made.bodies.push_back(make_plan(*body));
      for (const step& each : made.bodies.back())
        if (!may_be_in_body(each.what->type()))
          throw failure(cudaErrorNotSupported,
                        "the graphs of a conditional node may have kernel, memcpy, memset, empty, child graph and "
                        "conditional nodes only");
    }
    for (std::size_t i = begin; i < steps.size(); ++i) made.before.push_back(i);
    check(made.what->prepare(made.device, made.prepared));
    places[node] = steps.size();
    steps.push_back(std::move(made));
  }
}

graph_exec::plan graph_exec::make_plan(const graph& from) {
  plan steps;
  append(steps, from, {});
  return steps;
}

struct graph_exec::begun_plan {
  const plan* steps = nullptr;
  std::vector<stream_task> begun;  // one element for each step; an element is empty if the launch uses step::prepared
  std::vector<std::vector<begun_plan>> bodies;  // for each step
};

graph_exec::begun_plan graph_exec::begin(const plan& steps, cudart_stream& where, task_memory_uses& uses) {
  begun_plan result{&steps, {}, {}};
  for (const step& each : steps) {
    result.begun.push_back(each.what->begin(where));
    const stream_task& begun = result.begun.back();
    if (each.enabled) uses.add(begun ? begun.uses() : each.prepared.uses());
    result.bodies.emplace_back();
    for (const plan& body : each.bodies) result.bodies.back().push_back(begin(body, where, uses));
  }
  return result;
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the program nests conditional nodes
cudaError_t graph_exec::run(const begun_plan& begun, const std::shared_ptr<const check::step_order>& order) {
  for (std::size_t i = 0; i < begun.steps->size(); ++i) {
    const step& each = (*begun.steps)[i];
    if (!each.enabled) continue;
    const stream_task& task = begun.begun[i] ? begun.begun[i] : each.prepared;
    if (order) set_step(order, i);  // null in the bodies of a conditional node, whose steps belong to the node
    if (const cudaError_t error = task(); error != cudaSuccess) return error;
    const std::vector<begun_plan>& bodies = begun.bodies[i];
    if (bodies.empty()) continue;
    const auto& decision = dynamic_cast<const branch_operation&>(*each.what);
    for (std::size_t body = decision.choose(); body < bodies.size(); body = decision.choose()) {
      if (const cudaError_t error = run(bodies[body], nullptr); error != cudaSuccess) return error;
      if (!decision.is_loop()) break;
    }
  }
  return cudaSuccess;
}

// Steps come after the steps on which they depend.
std::shared_ptr<const check::step_order> graph_exec::order_of(const plan& steps) {
  auto made = std::make_shared<check::step_order>();
  made->before.assign(steps.size(), std::vector<bool>(steps.size()));
  for (std::size_t i = 0; i < steps.size(); ++i)
    for (const std::size_t each : steps[i].before) {
      made->before[i][each] = true;
      for (std::size_t n = 0; n < each; ++n)
        if (made->before[each][n]) made->before[i][n] = true;
    }
  return made;
}

void graph_exec::begin_conditions(const plan& steps) {
  for (const step& each : steps) {
    if (each.bodies.empty()) continue;
    dynamic_cast<const branch_operation&>(*each.what).begin_launch();
    for (const plan& body : each.bodies) begin_conditions(body);
  }
}

stream_task graph_exec::begin(cudart_stream& where) const {
  std::shared_ptr<const plan> steps;
  std::shared_ptr<const check::step_order> order;
  {
    const lock_guard lock(mutex_);
    steps = plan_;
    if (checker() != nullptr && ordered_plan_ != plan_) {
      ordered_plan_ = plan_;
      order_ = order_of(*plan_);
    }
    order = order_;
  }
  task_memory_uses uses;
  auto begun = std::make_shared<const begun_plan>(begin(*steps, where, uses));
  auto run_all = [steps, kept = kept_, begun = std::move(begun), order = std::move(order)] {
    begin_conditions(*steps);
    return run(*begun, order);
  };
  return {std::move(run_all), std::move(uses)};
}

void graph_exec::launch(cudart_stream& where) {
  stream_task task = begin(where);
  const lock_guard lock(mutex_);
  check(where.enqueue(std::move(task), {last_}, &last_));
}

std::size_t graph_exec::place_of(const plan& steps, const graph_node& node) {
  const auto found = std::find_if(steps.begin(), steps.end(), [&](const step& each) { return each.id == node.id(); });
  require(found != steps.end(), cudaErrorInvalidValue);
  return static_cast<std::size_t>(found - steps.begin());
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the program nests conditional nodes
const graph_exec::step* graph_exec::find_or_null(const plan& steps, const graph_node& node) {
  for (const step& each : steps) {
    if (each.id == node.id()) return &each;
    for (const plan& body : each.bodies)
      if (const step* const found = find_or_null(body, node)) return found;
  }
  return nullptr;
}

const graph_exec::step& graph_exec::find(const plan& steps, const graph_node& node) {
  const step* const found = find_or_null(steps, node);
  require(found != nullptr, cudaErrorInvalidValue);
  return *found;
}

template <class Change>
void graph_exec::change(const Change& how) {
  const lock_guard lock(mutex_);
  auto next = std::make_shared<plan>(*plan_);
  how(*next);
  plan_ = std::move(next);
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the program nests conditional nodes
cudaGraphExecUpdateResult graph_exec::compare(const plan& steps, const plan& given, graph_node*& differing) {
  if (steps.size() != given.size()) return cudaGraphExecUpdateErrorTopologyChanged;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    differing = given[i].node;
    if (steps[i].before != given[i].before || steps[i].parts != given[i].parts ||
        steps[i].bodies.size() != given[i].bodies.size())
      return cudaGraphExecUpdateErrorTopologyChanged;
    if (steps[i].what->type() != given[i].what->type()) return cudaGraphExecUpdateErrorNodeTypeChanged;
    for (std::size_t body = 0; body < steps[i].bodies.size(); ++body) {
      const auto result = compare(steps[i].bodies[body], given[i].bodies[body], differing);
      if (result != cudaGraphExecUpdateSuccess) return result;
    }
  }
  differing = nullptr;
  return cudaGraphExecUpdateSuccess;
}

// Copies the ids and the enabled flags of `steps` to `given`, because the program continues to identify steps by the
// nodes of the original graph.
// NOLINTNEXTLINE(misc-no-recursion): as deep as the program nests conditional nodes
void graph_exec::take_names(plan& given, const plan& steps) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    given[i].id = steps[i].id;
    given[i].enabled = steps[i].enabled;
    for (std::size_t body = 0; body < steps[i].bodies.size(); ++body)
      take_names(given[i].bodies[body], steps[i].bodies[body]);
  }
}

cudaGraphExecUpdateResult graph_exec::update(const graph& from, graph_node** differing) {
  plan given = make_plan(from);
  auto result = cudaGraphExecUpdateSuccess;
  graph_node* first = nullptr;
  change([&](plan& steps) {
    result = compare(steps, given, first);
    if (result != cudaGraphExecUpdateSuccess) return;
    take_names(given, steps);
    steps = std::move(given);
  });
  if (differing != nullptr) *differing = first;
  return result;
}

void graph_exec::set(const graph_node& node, std::shared_ptr<const stream_operation> what) {
  change([&](plan& steps) {
    step& place = find(steps, node);
    require(what->type() == place.what->type(), cudaErrorInvalidValue);
    check(what->prepare(place.device, place.prepared));
    place.what = std::move(what);
  });
}

std::shared_ptr<const stream_operation> graph_exec::what(const graph_node& node) const {
  const lock_guard lock(mutex_);
  return find(std::as_const(*plan_), node).what;
}

void graph_exec::set_child(const graph_node& node, const graph& child) {
  change([&](plan& steps) {
    const std::size_t place = place_of(steps, node);
    require(steps[place].what->type() == cudaGraphNodeTypeGraph, cudaErrorInvalidValue);
    const std::size_t begin = place - steps[place].parts;
    std::vector<std::size_t> before = steps[place].before;
    std::erase_if(before, [&](std::size_t each) { return each >= begin; });

    plan given(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(begin));
    append(given, child, before);
    require(given.size() == place, cudaErrorInvalidValue);
    for (std::size_t i = begin; i < place; ++i) {
      require(given[i].before == steps[i].before && given[i].what->type() == steps[i].what->type(),
              cudaErrorInvalidValue);
      given[i].id = steps[i].id;
      steps[i] = std::move(given[i]);
    }
  });
}

void graph_exec::enable(const graph_node& node, bool enabled) {
  change([&](plan& steps) {
    step& place = find(steps, node);
    require(can_be_disabled(place.what->type()), cudaErrorInvalidValue);
    place.enabled = enabled;
  });
}

bool graph_exec::enabled(const graph_node& node) const {
  const lock_guard lock(mutex_);
  const step& place = find(std::as_const(*plan_), node);
  require(can_be_disabled(place.what->type()), cudaErrorInvalidValue);
  return place.enabled;
}

}  // namespace hpe::cudart
