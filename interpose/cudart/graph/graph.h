#pragma once

#include <driver_types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "interpose/cudart/device/handle_table.h"
#include "interpose/cudart/stream/operation.h"

namespace hpe::cudart {

class graph;

/// The graphs and nodes that exist, by which invalid handles are recognised. Thread safe.
class live_objects {
 public:
  void enter(const void* object);
  void leave(const void* object);
  bool has(const void* object) const;

 private:
  mutable std::mutex mutex_;
  std::unordered_set<const void*> objects_;
};

class graph_node {
 public:
  graph_node(graph& owner, std::shared_ptr<const operation> what, int device, std::uint64_t origin);
  ~graph_node();
  graph_node(const graph_node&) = delete;
  graph_node& operator=(const graph_node&) = delete;

  graph& owner() const { return owner_; }
  std::uint64_t id() const { return id_; }          ///< never used again in this process
  std::uint64_t origin() const { return origin_; }  ///< id of the node that this one was cloned from; 0 for none
  int device() const { return device_; }            ///< the current device when the node was made

  const std::shared_ptr<const operation>& what() const { return what_; }
  cudaGraphNodeType type() const { return what_->type(); }
  void set(std::shared_ptr<const operation> what);  ///< throws failure(cudaErrorInvalidValue) for another type

  /// Keeps the arrays that a query of the node's parameters returned, until the next query or the end of the node.
  void keep(std::shared_ptr<const void> told) { told_ = std::move(told); }

  graph* child() const { return child_.get(); }  ///< null if this is no child graph node
  void set_child(std::unique_ptr<graph> child);

  /// The graphs of a conditional node; empty if this is none. The handles of new ones live as long as the node.
  const std::vector<std::shared_ptr<graph>>& bodies() const { return bodies_; }
  cudaGraph_t* add_bodies(std::vector<std::shared_ptr<graph>> bodies);

  const std::vector<graph_node*>& before() const { return before_; }  ///< the nodes that it depends on
  const std::vector<graph_node*>& after() const { return after_; }    ///< the nodes that depend on it

 private:
  friend class graph;
  graph& owner_;
  const std::uint64_t id_;
  const std::uint64_t origin_;
  const int device_;
  std::shared_ptr<const operation> what_;
  std::unique_ptr<graph> child_;
  std::vector<std::shared_ptr<graph>> bodies_;
  std::vector<cudaGraph_t> body_handles_;
  std::shared_ptr<const void> told_;
  std::vector<graph_node*> before_;
  std::vector<graph_node*> after_;
};

/// A graph of operations with their dependencies. As in CUDA, several threads must not use a graph at the same time.
/// Members throw failure, mostly cudaErrorInvalidValue.
class graph : public std::enable_shared_from_this<graph> {
 public:
  explicit graph(std::shared_ptr<live_objects> live);
  ~graph();
  graph(const graph&) = delete;
  graph& operator=(const graph&) = delete;

  /// Dependencies are nodes of this graph, each named once.
  graph_node& add(std::shared_ptr<const operation> what, std::span<graph_node* const> before, int device,
                  std::uint64_t origin = 0);
  void remove(graph_node& node);  ///< with its edges

  void connect(graph_node& from, graph_node& to);     ///< throws if the edge exists
  void disconnect(graph_node& from, graph_node& to);  ///< throws if the edge does not exist

  const std::vector<std::unique_ptr<graph_node>>& nodes() const { return nodes_; }  ///< in order of creation

  /// The nodes in an order that the dependencies allow, otherwise in order of creation. Throws if there is a cycle.
  std::vector<graph_node*> in_order() const;

  /// Keeps `count` references to a user object, named by `name`, until let_go releases them; clones and executable
  /// graphs of this graph keep the object too. let_go throws if the graph has fewer references.
  void keep(const void* name, std::shared_ptr<void> value, unsigned count);
  void let_go(const void* name, unsigned count);
  std::vector<std::shared_ptr<void>> kept() const;  ///< including those of child graphs and bodies

  /// Such a graph has one executable graph at a time and is not cloned: its executable graphs would share the values of
  /// its conditions.
  bool has_conditions() const;
  void set_instance(std::weak_ptr<const void> made) { instance_ = std::move(made); }
  bool has_instance() const { return !instance_.expired(); }  ///< since set_instance

  /// Clones child graphs too. Each new node knows the node that it was cloned from.
  std::unique_ptr<graph> clone() const;

 private:
  friend class graph_node;
  friend class graph_table;
  struct kept_object {
    std::shared_ptr<void> value;
    unsigned times = 0;
  };
  std::shared_ptr<live_objects> live_;
  std::vector<std::unique_ptr<graph_node>> nodes_;
  std::unordered_map<const void*, kept_object> kept_;
  std::weak_ptr<const void> instance_;
  bool is_body_ = false;  // of a conditional node, which owns it
};

/// Maps handles to graphs and nodes. Thread safe. Members throw failure(cudaErrorInvalidValue).
class graph_table {
 public:
  cudaGraph_t create() { return adopt(make()); }
  cudaGraph_t adopt(std::shared_ptr<graph> made) { return graphs_.adopt(std::move(made)); }
  /// The handle of a graph that a stream captured into: an own graph, or the body of a conditional node.
  cudaGraph_t handle_of_captured(std::shared_ptr<graph> captured);
  std::shared_ptr<graph> make() const;  ///< a graph without a handle
  void destroy(cudaGraph_t handle) { graphs_.destroy(handle); }
  graph& find(cudaGraph_t handle) const;                   ///< also finds child graphs
  std::shared_ptr<graph> share(cudaGraph_t handle) const;  ///< not child graphs
  graph_node& find(cudaGraphNode_t handle) const;

 private:
  const std::shared_ptr<live_objects> live_ = std::make_shared<live_objects>();
  handle_table<cudaGraph_t, graph, cudaErrorInvalidValue> graphs_;
};

inline cudaGraph_t handle_of(graph& it) { return reinterpret_cast<cudaGraph_t>(&it); }
inline cudaGraphNode_t handle_of(graph_node& it) { return reinterpret_cast<cudaGraphNode_t>(&it); }

}  // namespace hpe::cudart
