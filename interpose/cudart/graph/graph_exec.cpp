// A plan is a list of steps, each after the steps that it depends on. Changes replace the whole plan, so that queued
// launches keep the one that they began with.

#include "interpose/cudart/graph/graph_exec.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "interpose/cudart/device/failure.h"

namespace hpe::cudart {
namespace {

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

bool can_be_disabled(cudaGraphNodeType type) {
  return type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemcpy || type == cudaGraphNodeTypeMemset;
}

}  // namespace

graph_exec::graph_exec(const graph& from, unsigned long long flags)
    : flags_(flags),
      kept_(std::make_shared<const std::vector<std::shared_ptr<void>>>(from.kept())),
      id_(next_id()),
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

work graph_exec::begin(stream& where) const {
  std::shared_ptr<const plan> steps;
  {
    const std::scoped_lock lock(mutex_);
    steps = plan_;
  }
  std::vector<work> begun(steps->size());
  memory_uses uses;
  for (std::size_t i = 0; i < begun.size(); ++i) {
    const step& each = (*steps)[i];
    begun[i] = each.what->begin(where);
    if (each.enabled) uses.add(begun[i] ? begun[i].uses() : each.prepared.uses());
  }
  auto run = [steps, kept = kept_, begun = std::make_shared<const std::vector<work>>(std::move(begun))] {
    for (std::size_t i = 0; i < steps->size(); ++i) {
      const step& each = (*steps)[i];
      if (!each.enabled) continue;
      const work& piece = (*begun)[i] ? (*begun)[i] : each.prepared;
      if (const cudaError_t error = piece(); error != cudaSuccess) return error;
    }
    return cudaSuccess;
  };
  return {std::move(run), std::move(uses)};
}

void graph_exec::launch(stream& where) {
  work piece = begin(where);
  const std::scoped_lock lock(mutex_);
  check(where.enqueue(std::move(piece), {last_}, &last_));
}

std::size_t graph_exec::find(const plan& steps, const graph_node& node) {
  const auto found = std::find_if(steps.begin(), steps.end(), [&](const step& each) { return each.id == node.id(); });
  require(found != steps.end(), cudaErrorInvalidValue);
  return static_cast<std::size_t>(found - steps.begin());
}

template <class Change>
void graph_exec::change(const Change& how) {
  const std::scoped_lock lock(mutex_);
  auto next = std::make_shared<plan>(*plan_);
  how(*next);
  plan_ = std::move(next);
}

cudaGraphExecUpdateResult graph_exec::update(const graph& from, graph_node** differing) {
  if (differing != nullptr) *differing = nullptr;
  plan given = make_plan(from);
  auto result = cudaGraphExecUpdateSuccess;
  change([&](plan& steps) {
    if (steps.size() != given.size()) {
      result = cudaGraphExecUpdateErrorTopologyChanged;
      return;
    }
    for (std::size_t i = 0; i < steps.size() && result == cudaGraphExecUpdateSuccess; ++i) {
      if (steps[i].before != given[i].before || steps[i].parts != given[i].parts) {
        result = cudaGraphExecUpdateErrorTopologyChanged;
      } else if (steps[i].what->type() != given[i].what->type()) {
        result = cudaGraphExecUpdateErrorNodeTypeChanged;
      }
      if (result != cudaGraphExecUpdateSuccess && differing != nullptr) *differing = given[i].node;
    }
    if (result != cudaGraphExecUpdateSuccess) return;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      given[i].id = steps[i].id;  // later calls still name the steps by the nodes of the original graph
      given[i].enabled = steps[i].enabled;
    }
    steps = std::move(given);
  });
  return result;
}

void graph_exec::set(const graph_node& node, std::shared_ptr<const operation> what) {
  change([&](plan& steps) {
    step& place = steps[find(steps, node)];
    require(what->type() == place.what->type(), cudaErrorInvalidValue);
    check(what->prepare(place.device, place.prepared));
    place.what = std::move(what);
  });
}

std::shared_ptr<const operation> graph_exec::what(const graph_node& node) const {
  const std::scoped_lock lock(mutex_);
  return (*plan_)[find(*plan_, node)].what;
}

void graph_exec::set_child(const graph_node& node, const graph& child) {
  change([&](plan& steps) {
    const std::size_t place = find(steps, node);
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
    step& place = steps[find(steps, node)];
    require(can_be_disabled(place.what->type()), cudaErrorInvalidValue);
    place.enabled = enabled;
  });
}

bool graph_exec::enabled(const graph_node& node) const {
  const std::scoped_lock lock(mutex_);
  const step& place = (*plan_)[find(*plan_, node)];
  require(can_be_disabled(place.what->type()), cudaErrorInvalidValue);
  return place.enabled;
}

}  // namespace hpe::cudart
