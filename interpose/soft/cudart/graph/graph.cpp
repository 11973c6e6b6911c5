// Each edge is stored in both of its nodes: in after_ of the first node and in before_ of the second node.

#include "interpose/soft/cudart/graph/graph.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "interpose/soft/cudart/device/failure.h"

namespace hpe::cudart {
namespace {

std::uint64_t next_node_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

bool holds(const std::vector<graph_node*>& nodes, const graph_node* node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

}  // namespace

void live_objects::enter(const void* object) {
  const lock_guard lock(mutex_);
  objects_.insert(object);
}

void live_objects::leave(const void* object) {
  const lock_guard lock(mutex_);
  objects_.erase(object);
}

bool live_objects::has(const void* object) const {
  const lock_guard lock(mutex_);
  return objects_.count(object) != 0;
}

graph_node::graph_node(graph& owner, std::shared_ptr<const stream_operation> what, int device, std::uint64_t origin)
    : owner_(owner), id_(next_node_id()), origin_(origin), device_(device), what_(std::move(what)) {
  owner_.live_->enter(this);
}

graph_node::~graph_node() { owner_.live_->leave(this); }

void graph_node::set(std::shared_ptr<const stream_operation> what) {
  require(what->type() == type(), cudaErrorInvalidValue);
  what_ = std::move(what);
}

void graph_node::set_child(std::unique_ptr<graph> child) { child_ = std::move(child); }

cudaGraph_t* graph_node::add_bodies(std::vector<std::shared_ptr<graph>> bodies) {
  for (const auto& each : bodies) {
    each->is_body_ = true;
    body_handles_.push_back(handle_of(*each));
  }
  bodies_ = std::move(bodies);
  return body_handles_.data();
}

graph::graph(std::shared_ptr<live_objects> live) : live_(std::move(live)) { live_->enter(this); }

graph::~graph() {
  nodes_.clear();
  live_->leave(this);
}

graph_node& graph::add(std::shared_ptr<const stream_operation> what, std::span<graph_node* const> before, int device,
                       std::uint64_t origin) {
  for (auto each = before.begin(); each != before.end(); ++each) {
    require(&(*each)->owner() == this && std::find(before.begin(), each, *each) == each, cudaErrorInvalidValue);
  }
  nodes_.push_back(std::make_unique<graph_node>(*this, std::move(what), device, origin));
  graph_node& made = *nodes_.back();
  made.before_.assign(before.begin(), before.end());
  for (graph_node* const each : before) each->after_.push_back(&made);
  return made;
}

void graph::remove(graph_node& node) {
  for (graph_node* const each : node.before_) std::erase(each->after_, &node);
  for (graph_node* const each : node.after_) std::erase(each->before_, &node);
  std::erase_if(nodes_, [&](const auto& each) { return each.get() == &node; });
}

void graph::connect(graph_node& from, graph_node& to) {
  require(&from.owner() == this && &to.owner() == this && &from != &to, cudaErrorInvalidValue);
  require(!holds(to.before_, &from), cudaErrorInvalidValue);
  to.before_.push_back(&from);
  from.after_.push_back(&to);
}

void graph::disconnect(graph_node& from, graph_node& to) {
  require(&from.owner() == this && &to.owner() == this, cudaErrorInvalidValue);
  require(holds(to.before_, &from), cudaErrorInvalidValue);
  std::erase(to.before_, &from);
  std::erase(from.after_, &to);
}

std::vector<graph_node*> graph::in_order() const {
  // For each node, the number of nodes before it that are not in `result`.
  std::unordered_map<const graph_node*, std::size_t> missing;
  for (const auto& each : nodes_) missing[each.get()] = each->before_.size();

  // Programs usually create a node after the nodes on which it depends, so usually one pass is enough.
  std::vector<graph_node*> result;
  result.reserve(nodes_.size());
  std::unordered_set<const graph_node*> taken;
  for (std::size_t before = nodes_.size() + 1; result.size() < nodes_.size();) {
    require(before != result.size(), cudaErrorInvalidValue);  // no progress since the last pass: the graph has a cycle
    before = result.size();
    for (const auto& each : nodes_) {
      if (missing[each.get()] != 0 || !taken.insert(each.get()).second) continue;
      result.push_back(each.get());
      for (const graph_node* const next : each->after_) --missing[next];
    }
  }
  return result;
}

void graph::keep(const void* name, std::shared_ptr<void> value, unsigned count) {
  kept_object& it = kept_[name];
  it.value = std::move(value);
  it.times += count;
}

void graph::let_go(const void* name, unsigned count) {
  const auto found = kept_.find(name);
  require(found != kept_.end() && count <= found->second.times, cudaErrorInvalidValue);
  found->second.times -= count;
  if (found->second.times == 0) kept_.erase(found);
}

std::vector<std::shared_ptr<void>> graph::kept() const {
  std::vector<std::shared_ptr<void>> result;
  for (const auto& [_, each] : kept_) result.push_back(each.value);
  const auto add = [&](const graph& inner) {
    for (auto& value : inner.kept()) result.push_back(std::move(value));
  };
  for (const auto& each : nodes_) {
    if (each->child_) add(*each->child_);
    for (const auto& body : each->bodies_) add(*body);
  }
  return result;
}

bool graph::has_conditions() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const auto& each) { return each->type() == cudaGraphNodeTypeConditional; });
}

std::unique_ptr<graph> graph::clone() const {
  auto result = std::make_unique<graph>(live_);
  result->kept_ = kept_;
  std::unordered_map<const graph_node*, graph_node*> copies;
  for (const auto& each : nodes_) {
    graph_node& copy = result->add(each->what_, {}, each->device_, each->id_);
    if (each->child_) copy.set_child(each->child_->clone());
    std::vector<std::shared_ptr<graph>> bodies;
    for (const auto& body : each->bodies_) bodies.push_back(body->clone());
    copy.add_bodies(std::move(bodies));
    copies[each.get()] = &copy;
  }
  for (const auto& each : nodes_) {
    for (const graph_node* const before : each->before_) copies[each.get()]->before_.push_back(copies[before]);
    for (const graph_node* const after : each->after_) copies[each.get()]->after_.push_back(copies[after]);
  }
  return result;
}

std::shared_ptr<graph> graph_table::make() const { return std::make_shared<graph>(live_); }

cudaGraph_t graph_table::handle_of_captured(std::shared_ptr<graph> captured) {
  return captured->is_body_ ? handle_of(*captured) : adopt(std::move(captured));
}

std::shared_ptr<graph> graph_table::share(cudaGraph_t handle) const {
  graph& it = find(handle);
  return it.is_body_ ? it.shared_from_this() : graphs_.find(handle);
}

graph& graph_table::find(cudaGraph_t handle) const {
  require(live_->has(handle), cudaErrorInvalidValue);
  return *reinterpret_cast<graph*>(handle);
}

graph_node& graph_table::find(cudaGraphNode_t handle) const {
  require(live_->has(handle), cudaErrorInvalidValue);
  return *reinterpret_cast<graph_node*>(handle);
}

}  // namespace hpe::cudart
